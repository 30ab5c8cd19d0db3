// SPDX-License-Identifier: Apache-2.0
#include <tidegate/scim/json.hpp>

#include "utf8.hpp"

#include <tidegate/http/json_string.hpp>
#include <tidegate/scim/case_fold.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <memory>
#include <optional>
#include <span>

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
    json value;
    if (!read_value(value, 0)) {
      return failure(error_);
    }
    skip_whitespace();
    if (position_ != text_.size()) {
      return failure(json_error{json_fault::end_expected, position_});
    }
    return value;
  }

  auto read_literal() -> result<json_prefix, json_error> {
    if (at('{') || at('[')) {
      return failure(json_error{json_fault::value_expected, position_});
    }
    json_prefix read;
    if (!read_value_here(read.value, 0)) {
      return failure(error_);
    }
    read.octets = position_;
    return read;
  }

 private:
  /// What is open at one depth. It is moved out when its size is known: short ones grow here once for all of
  /// them, and take no more memory than they need.
  struct level {
    std::vector<json_member> members;
    std::vector<json> items;
  };

  auto fail(json_fault fault, std::size_t offset) -> bool {
    error_ = {fault, offset};
    return false;
  }
  auto fail(json_fault fault) -> bool { return fail(fault, position_); }

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
    while (position_ < text_.size() && text_[position_] <= ' ' &&
           (at(' ') || at('\t') || at('\n') || at('\r'))) {
      ++position_;
    }
  }

  /// Reads into `out`, which is null.
  auto read_value(json& out, int depth) -> bool {
    skip_whitespace();
    return read_value_here(out, depth);
  }

  auto read_value_here(json& out, int depth) -> bool {
    if (position_ == text_.size()) {
      return fail(json_fault::value_expected);
    }
    switch (text_[position_]) {
      case '{': return read_object(out, depth + 1);
      case '[': return read_array(out, depth + 1);
      case '"': {
        auto const text = read_string();
        if (!text) {
          return false;
        }
        out.emplace<std::string>(*text);
        return true;
      }
      case 't': return read_word("true", out, true);
      case 'f': return read_word("false", out, false);
      case 'n': return read_word("null", out, nullptr);
      default: return read_number(out);
    }
  }

  template <class Value>
  auto read_word(std::string_view word, json& out, Value value) -> bool {
    if (text_.substr(position_, word.size()) != word) {
      return fail(json_fault::value_expected);
    }
    position_ += word.size();
    out.emplace<Value>(value);
    return true;
  }

  auto level_at(int depth) -> level& {
    while (levels_.size() < static_cast<std::size_t>(depth)) {
      levels_.push_back(std::make_unique<level>());
    }
    return *levels_[static_cast<std::size_t>(depth) - 1];
  }

  /// `to` is empty.
  template <class T>
  static void move_out(std::vector<T>& open, std::vector<T>& to) {
    if (open.size() > open.capacity() / 2) {
      to.swap(open);
      return;
    }
    to.assign(std::move_iterator(open.begin()), std::move_iterator(open.end()));
    open.clear();
  }

  auto read_array(json& out, int depth) -> bool {
    if (depth > depth_max_) {
      return fail(json_fault::too_deep);
    }
    ++position_;
    auto& array = out.emplace<json_array>();
    skip_whitespace();
    if (take(']')) {
      return true;
    }
    auto& items = level_at(depth).items;
    do {
      if (!read_value(items.emplace_back(), depth)) {
        return false;
      }
      skip_whitespace();
    } while (take(','));
    if (!take(']')) {
      return fail(json_fault::comma_expected);
    }
    move_out(items, array);
    return true;
  }

  auto read_object(json& out, int depth) -> bool {
    if (depth > depth_max_) {
      return fail(json_fault::too_deep);
    }
    ++position_;
    auto& object = out.emplace<json_object>();
    skip_whitespace();
    if (take('}')) {
      return true;
    }
    auto& members = level_at(depth).members;
    members.reserve(14);  // which is less than a KiB
    do {
      skip_whitespace();
      if (!at('"')) {
        return fail(json_fault::name_expected);
      }
      auto const name = read_string();
      if (!name) {
        return false;
      }
      auto& member = members.emplace_back();
      member.name = *name;
      skip_whitespace();
      if (!take(':')) {
        return fail(json_fault::colon_expected);
      }
      if (!read_value(member.value, depth)) {
        return false;
      }
      skip_whitespace();
    } while (take(','));
    if (!take('}')) {
      return fail(json_fault::comma_expected);
    }
    if (has_name_twice(members)) {
      return fail(json_fault::name_twice);
    }
    move_out(members, object.members());
    return true;
  }

  static constexpr std::size_t few_members =
      24;  // to compare each with each, where it may be the same
  static auto has_name_twice(std::span<json_member const> members) -> bool {
    if (members.size() <= few_members) {
      std::uint64_t seen = 0;
      for (std::size_t i = 0; i < members.size(); ++i) {
        auto const& name = members[i].name;
        auto const bit = std::uint64_t{1} << (likeness_of(name) % 64);
        if ((seen & bit) != 0 &&
            std::ranges::any_of(members.first(i), [&](json_member const& other) {
              return equal_names(name, other.name);
            })) {
          return true;
        }
        seen |= bit;
      }
      return false;
    }
    std::vector<std::string> names;
    names.reserve(members.size());
    for (auto const& m : members) {
      names.push_back(fold_name(m.name));
    }
    std::ranges::sort(names);
    return std::ranges::adjacent_find(names) != names.end();
  }

  /// The same of names that are the same.
  static auto likeness_of(std::string_view name) noexcept -> std::size_t {
    return name.empty() ? 0
                        : name.size() * 5 + static_cast<std::uint8_t>(fold_ascii(name.front())) +
                              static_cast<std::uint8_t>(fold_ascii(name.back())) * std::size_t{3};
  }

  /// Good until the next one is read. Nothing after an error.
  auto read_string() -> std::optional<std::string_view> {
    ++position_;
    auto const begin = position_;
    position_ += http::plain_json_octets(text_.substr(position_));
    if (at('"')) {
      return text_.substr(begin, position_++ - begin);
    }
    unescaped_ = text_.substr(begin, position_ - begin);
    return read_rest_of_string() ? std::optional<std::string_view>(unescaped_) : std::nullopt;
  }

  /// From what does not stand for itself on, into `unescaped_`.
  auto read_rest_of_string() -> bool {
    for (;;) {
      auto const plain = http::plain_json_octets(text_.substr(position_));
      unescaped_ += text_.substr(position_, plain);
      position_ += plain;
      if (position_ == text_.size()) {
        return fail(json_fault::unterminated_string);
      }
      auto const octet = static_cast<std::uint8_t>(text_[position_]);
      if (octet == '"') {
        ++position_;
        return true;
      }
      if (octet == '\\') {
        if (!read_escape()) {
          return false;
        }
        continue;
      }
      if (octet < 0x20) {
        return fail(json_fault::control_character);
      }
      auto const size = utf8::character_octets(text_.substr(position_));
      if (size == 0) {
        return fail(json_fault::invalid_utf8);
      }
      unescaped_ += text_.substr(position_, size);
      position_ += size;
    }
  }

  auto read_escape() -> bool {
    constexpr std::string_view names = "\"\\/bfnrt";
    constexpr std::string_view values = "\"\\/\b\f\n\r\t";
    auto const rest = text_.substr(position_);
    if (rest.size() > 1) {
      if (auto const simple = names.find(rest[1]); simple != std::string_view::npos) {
        unescaped_ += values[simple];
        position_ += 2;
        return true;
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
    utf8::append(unescaped_, code_point);
    position_ += octets;
    return true;
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

  auto read_number(json& out) -> bool {
    auto const begin = position_;
    if (!at('-') && !at_digit()) {
      return fail(json_fault::value_expected);
    }
    take('-');
    bool const zero = at('0');
    auto const digits = position_;
    if (!take_digits() || (zero && position_ - digits > 1)) {
      return fail(json_fault::invalid_number, begin);
    }
    bool integer = true;
    if (take('.')) {
      integer = false;
      if (!take_digits()) {
        return fail(json_fault::invalid_number, begin);
      }
    }
    if (take('e') || take('E')) {
      integer = false;
      if (!take('-')) {
        take('+');
      }
      if (!take_digits()) {
        return fail(json_fault::invalid_number, begin);
      }
    }
    return integer ? convert(begin, out.emplace<std::int64_t>())
                   : convert(begin, out.emplace<double>());
  }

  template <class Number>
  auto convert(std::size_t begin, Number& out) -> bool {
    auto const read = std::from_chars(text_.data() + begin, text_.data() + position_, out);
    return read.ec == std::errc() || fail(json_fault::number_out_of_range, begin);
  }

  std::string_view text_;
  std::size_t position_ = 0;
  int depth_max_;
  json_error error_;
  std::string unescaped_;
  std::vector<std::unique_ptr<level>> levels_;
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
