// SPDX-License-Identifier: Apache-2.0
#include <tidegate/scim/json.hpp>

#include "utf8.hpp"

#include <tidegate/http/json_string.hpp>
#include <tidegate/scim/case_fold.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

namespace tidegate::scim {

json_object::json_object(std::initializer_list<json_member> members) : members_(members) {}

auto json_object::find(std::string_view name) const noexcept -> json const* {
  for (auto const& m : members_) {
    if (equal_names(m.name, name)) {
      return &m.value;
    }
  }
  return nullptr;
}

auto json_object::find(std::string_view name) noexcept -> json* {
  return const_cast<json*>(std::as_const(*this).find(name));
}

void json_object::set(std::string_view name, json value) {
  if (auto* const there = find(name)) {
    *there = std::move(value);
  } else {
    append(std::string(name), std::move(value));
  }
}

void json_object::append(std::string name, json value) {
  members_.push_back({std::move(name), std::move(value)});
}

auto json_object::erase(std::string_view name) -> bool {
  return std::erase_if(members_, [&](json_member const& m) { return equal_names(m.name, name); }) !=
         0;
}

auto json::find(std::string_view name) const noexcept -> json const* {
  auto const* const object = if_object();
  return object == nullptr ? nullptr : object->find(name);
}

auto operator==(json const& a, json const& b) -> bool {
  auto const* const left = a.if_object();
  auto const* const right = b.if_object();
  if (left == nullptr || right == nullptr) {
    if (left != nullptr || right != nullptr || a.value_.index() != b.value_.index()) {
      return false;
    }
    if (auto const* const array = a.if_array()) {
      return *array == *b.if_array();
    }
    return (a.if_bool() != nullptr && *a.if_bool() == *b.if_bool()) ||
           (a.if_integer() != nullptr && *a.if_integer() == *b.if_integer()) ||
           (a.if_decimal() != nullptr && *a.if_decimal() == *b.if_decimal()) ||
           (a.if_string() != nullptr && *a.if_string() == *b.if_string()) || a.is_null();
  }
  return left->members().size() == right->members().size() &&
         std::ranges::all_of(left->members(), [&](json_member const& m) {
           auto const* const other = right->find(m.name);
           return other != nullptr && m.value == *other;
         });
}

namespace {

class reader {
 public:
  reader(std::string_view text, int depth_max) : text_(text), depth_max_(depth_max) {}

  auto read_document() -> result<json, json_error> {
    TIDEGATE_TRY(auto value, read_value(0));
    skip_whitespace();
    if (position_ != text_.size()) {
      return fail(json_fault::end_expected);
    }
    return value;
  }

  auto read_literal() -> result<json_prefix, json_error> {
    if (at('{') || at('[')) {
      return fail(json_fault::value_expected);
    }
    TIDEGATE_TRY(auto value, read_value_here(0));
    return json_prefix{std::move(value), position_};
  }

 private:
  [[nodiscard]] auto fail(json_fault fault) const -> std::unexpected<json_error> {
    return failure(json_error{fault, position_});
  }
  [[nodiscard]] auto at(char c) const noexcept -> bool {
    return position_ < text_.size() && text_[position_] == c;
  }
  [[nodiscard]] auto at_digit() const noexcept -> bool {
    return position_ < text_.size() && text_[position_] >= '0' && text_[position_] <= '9';
  }
  auto take(char c) noexcept -> bool {
    bool const there = at(c);
    position_ += there ? 1 : 0;
    return there;
  }
  void skip_whitespace() noexcept {
    while (at(' ') || at('\t') || at('\n') || at('\r')) {
      ++position_;
    }
  }

  auto read_value(int depth) -> result<json, json_error> {
    skip_whitespace();
    return read_value_here(depth);
  }

  auto read_value_here(int depth) -> result<json, json_error> {
    if (position_ == text_.size()) {
      return fail(json_fault::value_expected);
    }
    switch (text_[position_]) {
      case '{': return read_object(depth + 1);
      case '[': return read_array(depth + 1);
      case '"': {
        TIDEGATE_TRY(auto text, read_string());
        return json(std::move(text));
      }
      case 't': return read_word("true", true);
      case 'f': return read_word("false", false);
      case 'n': return read_word("null", nullptr);
      default: return read_number();
    }
  }

  auto read_word(std::string_view word, json value) -> result<json, json_error> {
    if (text_.substr(position_, word.size()) != word) {
      return fail(json_fault::value_expected);
    }
    position_ += word.size();
    return value;
  }

  auto read_array(int depth) -> result<json, json_error> {
    if (depth > depth_max_) {
      return fail(json_fault::too_deep);
    }
    ++position_;
    json_array array;
    skip_whitespace();
    if (!take(']')) {
      do {
        TIDEGATE_TRY(auto value, read_value(depth));
        array.push_back(std::move(value));
        skip_whitespace();
      } while (take(','));
      if (!take(']')) {
        return fail(json_fault::comma_expected);
      }
    }
    return json(std::move(array));
  }

  auto read_object(int depth) -> result<json, json_error> {
    if (depth > depth_max_) {
      return fail(json_fault::too_deep);
    }
    ++position_;
    json_object object;
    skip_whitespace();
    if (!take('}')) {
      do {
        skip_whitespace();
        if (!at('"')) {
          return fail(json_fault::name_expected);
        }
        TIDEGATE_TRY(auto name, read_string());
        skip_whitespace();
        if (!take(':')) {
          return fail(json_fault::colon_expected);
        }
        TIDEGATE_TRY(auto value, read_value(depth));
        object.append(std::move(name), std::move(value));
        skip_whitespace();
      } while (take(','));
      if (!take('}')) {
        return fail(json_fault::comma_expected);
      }
      if (has_name_twice(object)) {
        return fail(json_fault::name_twice);
      }
    }
    return json(std::move(object));
  }

  static constexpr std::size_t few_members = 24;  // to compare each with each, sizes first
  static auto has_name_twice(json_object const& object) -> bool {
    auto const& members = object.members();
    if (members.size() <= few_members) {
      for (auto one = members.begin(); one != members.end(); ++one) {
        if (std::any_of(members.begin(), one, [&](json_member const& other) {
              return equal_names(one->name, other.name);
            })) {
          return true;
        }
      }
      return false;
    }
    std::vector<std::string> names;
    names.reserve(object.members().size());
    for (auto const& m : object.members()) {
      names.push_back(fold_name(m.name));
    }
    std::ranges::sort(names);
    return std::ranges::adjacent_find(names) != names.end();
  }

  /// How many characters of ASCII that stand for themselves `text` begins with.
  static auto plain_octets(std::string_view text) noexcept -> std::size_t {
    auto const is_plain = [](char c) {
      auto const octet = static_cast<std::uint8_t>(c);
      return octet >= 0x20 && octet < 0x80 && c != '"' && c != '\\';
    };
    return static_cast<std::size_t>(std::find_if_not(text.begin(), text.end(), is_plain) -
                                    text.begin());
  }

  auto read_string() -> result<std::string, json_error> {
    ++position_;
    std::string out;
    for (;;) {
      auto const plain = plain_octets(text_.substr(position_));
      out += text_.substr(position_, plain);
      position_ += plain;
      if (position_ == text_.size()) {
        return fail(json_fault::unterminated_string);
      }
      auto const octet = static_cast<std::uint8_t>(text_[position_]);
      if (octet == '"') {
        ++position_;
        return out;
      }
      if (octet == '\\') {
        TIDEGATE_TRY_VOID(read_escape(out));
        continue;
      }
      if (octet < 0x20) {
        return fail(json_fault::control_character);
      }
      auto const size = utf8::character_octets(text_.substr(position_));
      if (size == 0) {
        return fail(json_fault::invalid_utf8);
      }
      out += text_.substr(position_, size);
      position_ += size;
    }
  }

  auto read_escape(std::string& out) -> result<void, json_error> {
    constexpr std::string_view names = "\"\\/bfnrt";
    constexpr std::string_view values = "\"\\/\b\f\n\r\t";
    auto const rest = text_.substr(position_);
    if (rest.size() > 1) {
      if (auto const simple = names.find(rest[1]); simple != std::string_view::npos) {
        out += values[simple];
        position_ += 2;
        return {};
      }
    }
    auto const unit = code_unit(rest);
    if (!unit || (*unit >= 0xdc00 && *unit < 0xe000)) {
      return fail(json_fault::invalid_escape);
    }
    auto code_point = *unit;
    std::size_t octets = 6;
    if (code_point >= 0xd800 && code_point < 0xdc00) {
      auto const low = code_unit(rest.substr(6));
      if (!low || *low < 0xdc00 || *low >= 0xe000) {
        return fail(json_fault::invalid_escape);
      }
      code_point = 0x10000 + ((code_point - 0xd800) << 10) + (*low - 0xdc00);
      octets = 12;
    }
    utf8::append(out, code_point);
    position_ += octets;
    return {};
  }

  /// Of `\u` and four hexadecimal digits at the beginning of `text`.
  static auto code_unit(std::string_view text) noexcept -> std::optional<std::uint32_t> {
    if (text.size() < 6 || !text.starts_with("\\u")) {
      return std::nullopt;
    }
    std::uint32_t unit = 0;
    auto const* const end = text.data() + 6;
    auto const read = std::from_chars(text.data() + 2, end, unit, 16);
    if (read.ec != std::errc() || read.ptr != end) {
      return std::nullopt;
    }
    return unit;
  }

  auto take_digits() noexcept -> bool {
    auto const begin = position_;
    while (at_digit()) {
      ++position_;
    }
    return position_ != begin;
  }

  auto read_number() -> result<json, json_error> {
    auto const begin = position_;
    auto const fail_here = [&](json_fault fault) { return failure(json_error{fault, begin}); };
    if (!at('-') && !at_digit()) {
      return fail(json_fault::value_expected);
    }
    take('-');
    bool const zero = at('0');
    auto const digits = position_;
    if (!take_digits() || (zero && position_ - digits > 1)) {
      return fail_here(json_fault::invalid_number);
    }
    bool integer = true;
    if (take('.')) {
      integer = false;
      if (!take_digits()) {
        return fail_here(json_fault::invalid_number);
      }
    }
    if (take('e') || take('E')) {
      integer = false;
      if (!take('-')) {
        take('+');
      }
      if (!take_digits()) {
        return fail_here(json_fault::invalid_number);
      }
    }
    auto const* const first = text_.data() + begin;
    auto const* const last = text_.data() + position_;
    if (integer) {
      std::int64_t value = 0;
      if (std::from_chars(first, last, value).ec != std::errc()) {
        return fail_here(json_fault::number_out_of_range);
      }
      return json(value);
    }
    double value = 0;
    if (std::from_chars(first, last, value).ec != std::errc()) {
      return fail_here(json_fault::number_out_of_range);
    }
    return json(value);
  }

  std::string_view text_;
  std::size_t position_ = 0;
  int depth_max_;
};

}  // namespace

auto to_string(json_error const& error) -> std::string {
  auto const what = [&]() -> std::string_view {
    switch (error.fault) {
      case json_fault::value_expected: return "a value is expected";
      case json_fault::comma_expected:
        return "a comma or the end of the array or object is expected";
      case json_fault::colon_expected: return "a colon is expected";
      case json_fault::name_expected: return "the name of a member is expected";
      case json_fault::name_twice: return "a name comes twice in an object";
      case json_fault::unterminated_string: return "the string does not end";
      case json_fault::invalid_escape: return "invalid escape in a string";
      case json_fault::control_character: return "control character in a string";
      case json_fault::invalid_utf8: return "not UTF-8";
      case json_fault::invalid_number: return "invalid number";
      case json_fault::number_out_of_range: return "the number is out of range";
      case json_fault::too_deep: return "nested too deep";
      case json_fault::too_long: return "too long";
      case json_fault::end_expected: break;
    }
    return "more behind the value";
  }();
  return std::string(what) + " at offset " + std::to_string(error.offset);
}

auto parse_json(std::string_view text, json_limits const& limits) -> result<json, json_error> {
  if (text.size() > limits.octets_max) {
    return failure(json_error{json_fault::too_long, limits.octets_max});
  }
  return reader(text, limits.depth_max).read_document();
}

auto parse_json_literal(std::string_view text) -> result<json_prefix, json_error> {
  return reader(text, 0).read_literal();
}

void append_json(std::string& out, json const& value) {
  if (auto const* const text = value.if_string()) {
    http::append_json_string(out, *text);
  } else if (auto const* const boolean = value.if_bool()) {
    out += *boolean ? "true" : "false";
  } else if (auto const* const integer = value.if_integer()) {
    out += std::to_string(*integer);
  } else if (auto const* const decimal = value.if_decimal()) {
    std::array<char, 32> buffer{};
    auto const end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), *decimal).ptr;
    auto const digits = std::string_view(buffer.data(), end);
    out += digits;
    if (digits.find_first_of(".e") == std::string_view::npos) {
      out += ".0";
    }
  } else if (auto const* const array = value.if_array()) {
    out += '[';
    for (auto const& item : *array) {
      append_json(out, item);
      out += ',';
    }
    out.resize(out.size() - (array->empty() ? 0 : 1));
    out += ']';
  } else if (auto const* const object = value.if_object()) {
    out += '{';
    for (auto const& m : object->members()) {
      http::append_json_string(out, m.name);
      out += ':';
      append_json(out, m.value);
      out += ',';
    }
    out.resize(out.size() - (object->empty() ? 0 : 1));
    out += '}';
  } else {
    out += "null";
  }
}

auto to_string(json const& value) -> std::string {
  std::string out;
  append_json(out, value);
  return out;
}

}  // namespace tidegate::scim
