// SPDX-License-Identifier: Apache-2.0
#include <tidegate/idempotency/canonical_json.hpp>

#include <tidegate/http/json_string.hpp>
#include <tidegate/sf/grammar.hpp>

#include <algorithm>
#include <charconv>

namespace tidegate::idempotency {

namespace {

void append_utf8(std::string& out, std::uint32_t code_point) {
  auto const put = [&out](std::uint32_t octet) { out.push_back(static_cast<char>(octet)); };
  if (code_point < 0x80) {
    put(code_point);
    return;
  }
  if (code_point < 0x800) {
    put(0xc0 | code_point >> 6);
  } else {
    if (code_point < 0x10000) {
      put(0xe0 | code_point >> 12);
    } else {
      put(0xf0 | code_point >> 18);
      put(0x80 | (code_point >> 12 & 63));
    }
    put(0x80 | (code_point >> 6 & 63));
  }
  put(0x80 | (code_point & 63));
}

/// Reads JSON and writes its canonical form in one pass: the members of an object are put in order when
/// it ends. Each function returns false when there is no canonical form.
class canonical_writer {
 public:
  canonical_writer(std::string& out, std::string_view text) : text_(text), out_(out) {}

  auto write() -> bool {
    if (!write_value(0)) {
      return false;
    }
    skip_whitespace();
    return position_ == text_.size();
  }

 private:
  // One `"name":value,` in the output.
  struct member {
    std::size_t begin;
    std::size_t name_end;
    std::size_t end;
  };

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

  auto write_value(int depth) -> bool {
    skip_whitespace();
    if (position_ == text_.size()) {
      return false;
    }
    switch (text_[position_]) {
      case '{': return depth < canonical_json_depth_max && write_object(depth + 1);
      case '[': return depth < canonical_json_depth_max && write_array(depth + 1);
      case '"': return write_string();
      case 't': return write_word("true");
      case 'f': return write_word("false");
      case 'n': return write_word("null");
      default: return write_number();
    }
  }

  auto write_word(std::string_view word) -> bool {
    if (text_.substr(position_, word.size()) != word) {
      return false;
    }
    position_ += word.size();
    out_ += word;
    return true;
  }

  auto write_array(int depth) -> bool {
    ++position_;
    out_ += '[';
    skip_whitespace();
    if (!take(']')) {
      do {
        if (!write_value(depth)) {
          return false;
        }
        out_ += ',';
        skip_whitespace();
      } while (take(','));
      if (!take(']')) {
        return false;
      }
      out_.pop_back();
    }
    out_ += ']';
    return true;
  }

  auto write_object(int depth) -> bool {
    auto const outer = members_.size();
    ++position_;
    out_ += '{';
    skip_whitespace();
    if (!take('}')) {
      do {
        member one{};
        one.begin = out_.size();
        skip_whitespace();
        if (!at('"') || !write_string()) {
          return false;
        }
        one.name_end = out_.size();
        out_ += ':';
        skip_whitespace();
        if (!take(':') || !write_value(depth)) {
          return false;
        }
        out_ += ',';
        one.end = out_.size();
        members_.push_back(one);
        skip_whitespace();
      } while (take(','));
      if (!take('}') || !order_members(outer)) {
        return false;
      }
      out_.pop_back();
    }
    members_.resize(outer);
    out_ += '}';
    return true;
  }

  /// Puts the members from number `first` on, which stand at the end of the output, in the order of their
  /// names. False when a name comes twice.
  auto order_members(std::size_t first) -> bool {
    auto const name = [this](member const& m) {
      return std::string_view(out_).substr(m.begin, m.name_end - m.begin);
    };
    auto const before = [&](member const& a, member const& b) { return name(a) < name(b); };
    auto const begin = members_.begin() + static_cast<std::ptrdiff_t>(first);
    auto const object = begin->begin;
    bool const ordered = std::is_sorted(begin, members_.end(), before);
    if (!ordered) {
      std::sort(begin, members_.end(), before);
    }
    if (std::adjacent_find(begin, members_.end(), [&](member const& a, member const& b) {
          return name(a) == name(b);
        }) != members_.end()) {
      return false;
    }
    if (!ordered) {
      ordered_.clear();
      for (auto m = begin; m != members_.end(); ++m) {
        ordered_.append(out_, m->begin, m->end - m->begin);
      }
      out_.replace(object, std::string::npos, ordered_);
    }
    return true;
  }

  auto write_string() -> bool {
    auto const begin = ++position_;
    bool escapes = false;
    sf::grammar::utf8_checker utf8;
    for (;; ++position_) {
      if (position_ == text_.size()) {
        return false;
      }
      auto const octet = static_cast<std::uint8_t>(text_[position_]);
      if (octet < 0x20 || !utf8.feed(octet)) {
        return false;
      }
      if (octet == '"') {
        break;
      }
      if (octet == '\\') {
        escapes = true;
        ++position_;
        if (position_ == text_.size() || !utf8.feed(static_cast<std::uint8_t>(text_[position_]))) {
          return false;  // what is escaped is judged below
        }
      }
    }
    auto const raw = text_.substr(begin, position_ - begin);
    ++position_;
    if (!escapes) {
      out_ += '"';
      out_ += raw;
      out_ += '"';
      return true;
    }
    decoded_.clear();
    if (!decode(raw)) {
      return false;
    }
    http::append_json_string(out_, decoded_);
    return true;
  }

  auto decode(std::string_view raw) -> bool {
    constexpr std::string_view names = "\"\\/bfnrt";
    constexpr std::string_view values = "\"\\/\b\f\n\r\t";
    while (!raw.empty()) {
      auto const plain = std::min(raw.find('\\'), raw.size());
      decoded_ += raw.substr(0, plain);
      raw.remove_prefix(plain);
      if (raw.empty()) {
        break;
      }
      if (auto const simple = names.find(raw[1]); simple != std::string_view::npos) {
        decoded_ += values[simple];
        raw.remove_prefix(2);
        continue;
      }
      auto const unit = take_code_unit(raw);
      if (!unit || (*unit >= 0xdc00 && *unit < 0xe000)) {
        return false;
      }
      auto code_point = *unit;
      if (code_point >= 0xd800 && code_point < 0xdc00) {
        auto const low = take_code_unit(raw);
        if (!low || *low < 0xdc00 || *low >= 0xe000) {
          return false;
        }
        code_point = 0x10000 + ((code_point - 0xd800) << 10) + (*low - 0xdc00);
      }
      append_utf8(decoded_, code_point);
    }
    return true;
  }

  /// `\u` and four hexadecimal digits from the front of `raw`.
  [[nodiscard]] static auto take_code_unit(std::string_view& raw) noexcept
      -> std::optional<std::uint32_t> {
    if (raw.size() < 6 || !raw.starts_with("\\u")) {
      return std::nullopt;
    }
    std::uint32_t unit = 0;
    auto const* const end = raw.data() + 6;
    auto const read = std::from_chars(raw.data() + 2, end, unit, 16);
    if (read.ec != std::errc() || read.ptr != end) {
      return std::nullopt;
    }
    raw.remove_prefix(6);
    return unit;
  }

  /// Appends the digits that come to `digits_`; false when there are none.
  auto take_digits() -> bool {
    auto const begin = position_;
    while (at_digit()) {
      ++position_;
    }
    digits_ += text_.substr(begin, position_ - begin);
    return position_ != begin;
  }

  /// `[-]DIGITS[eN]`: neither a zero before nor one behind the digits.
  auto write_number() -> bool {
    bool const negative = take('-');
    digits_.clear();
    bool const zero = at('0');
    if (!take_digits() || (zero && digits_.size() > 1)) {
      return false;
    }
    std::int64_t exponent = 0;
    if (take('.')) {
      auto const whole = digits_.size();
      if (!take_digits()) {
        return false;
      }
      exponent = -static_cast<std::int64_t>(digits_.size() - whole);
    }
    if (take('e') || take('E')) {
      auto const more = take_exponent();
      if (!more) {
        return false;
      }
      exponent += *more;
    }
    auto const last = digits_.find_last_not_of('0');
    if (last == std::string::npos) {
      out_ += '0';
      return true;
    }
    exponent += static_cast<std::int64_t>(digits_.size() - 1 - last);
    digits_.resize(last + 1);
    out_ += negative ? "-" : "";
    out_.append(digits_, digits_.find_first_not_of('0'));
    if (exponent != 0) {
      out_ += 'e';
      out_ += std::to_string(exponent);
    }
    return true;
  }

  auto take_exponent() -> std::optional<std::int64_t> {
    constexpr std::size_t digits_max = 9;
    bool const negative = take('-');
    if (!negative) {
      take('+');
    }
    if (!at_digit()) {
      return std::nullopt;
    }
    while (at('0')) {
      ++position_;
    }
    std::int64_t value = 0;
    for (std::size_t digits = 0; at_digit(); ++digits, ++position_) {
      if (digits == digits_max) {
        return std::nullopt;
      }
      value = value * 10 + (text_[position_] - '0');
    }
    return negative ? -value : value;
  }

  std::string_view text_;
  std::size_t position_ = 0;
  std::string& out_;
  std::vector<member> members_;  // of all objects that are open
  std::string ordered_;
  std::string decoded_;
  std::string digits_;
};

/// Where the string at the beginning of `canonical` ends.
[[nodiscard]] auto end_of_string(std::string_view canonical) noexcept -> std::size_t {
  std::size_t i = 1;
  while (canonical[i] != '"') {
    i += canonical[i] == '\\' ? std::size_t{2} : std::size_t{1};
  }
  return i + 1;
}

/// Where the value at the beginning of `canonical` ends.
[[nodiscard]] auto end_of_value(std::string_view canonical) noexcept -> std::size_t {
  std::size_t i = 0;
  std::size_t open = 0;
  while (i < canonical.size()) {
    switch (canonical[i]) {
      case '"': i += end_of_string(canonical.substr(i)); continue;
      case '{':
      case '[': ++open; break;
      case '}':
      case ']':
        if (open == 0) {
          return i;
        }
        --open;
        break;
      case ',':
        if (open == 0) {
          return i;
        }
        break;
      default: break;
    }
    ++i;
  }
  return i;
}

}  // namespace

auto append_canonical_json(std::string& out, std::string_view text) -> bool {
  auto const before = out.size();
  if (!canonical_writer(out, text).write()) {
    out.resize(before);
    return false;
  }
  return true;
}

auto to_string(json_pointer_error const& error) -> std::string {
  auto const what = [&]() -> std::string_view {
    switch (error.fault) {
      case json_pointer_fault::slash_expected: return R"(a JSON pointer begins with "/")";
      case json_pointer_fault::invalid_escape: return R"("~" must be followed by 0 or 1)";
      case json_pointer_fault::invalid_utf8: return "not UTF-8";
      case json_pointer_fault::too_long: break;
    }
    return "the JSON pointer is too long";
  }();
  return std::string(what) + " at offset " + std::to_string(error.offset);
}

auto json_pointer::parse(std::string_view text) -> result<json_pointer, json_pointer_error> {
  using enum json_pointer_fault;
  if (text.size() > octets_max) {
    return failure(json_pointer_error{too_long, octets_max});
  }
  if (!text.empty() && text.front() != '/') {
    return failure(json_pointer_error{slash_expected, 0});
  }
  if (auto const fault = sf::grammar::display_string::fault(text)) {
    return failure(json_pointer_error{invalid_utf8, fault->offset});
  }
  json_pointer pointer;
  pointer.text_ = text;
  for (std::size_t i = 0; i < text.size();) {
    std::string name;
    for (++i; i < text.size() && text[i] != '/'; ++i) {
      if (text[i] != '~') {
        name += text[i];
        continue;
      }
      if (i + 1 == text.size() || (text[i + 1] != '0' && text[i + 1] != '1')) {
        return failure(json_pointer_error{invalid_escape, i});
      }
      name += text[++i] == '0' ? '~' : '/';
    }
    step one;
    // RFC 6901, section 4: an index has no zeros before it.
    if (std::size_t index = 0; !name.empty() && (name == "0" || name.front() != '0')) {
      auto const* const end = name.data() + name.size();
      auto const read = std::from_chars(name.data(), end, index);
      if (read.ec == std::errc() && read.ptr == end) {
        one.index = index;
      }
    }
    http::append_json_string(one.name, name);
    pointer.steps_.push_back(std::move(one));
  }
  return pointer;
}

auto json_pointer::find(std::string_view canonical) const noexcept
    -> std::optional<std::string_view> {
  auto value = canonical;
  for (auto const& step : steps_) {
    bool const object = value.starts_with('{');
    if (!object && !(value.starts_with('[') && step.index)) {
      return std::nullopt;
    }
    bool found = false;
    value.remove_prefix(1);
    for (std::size_t i = 0; !found && value.front() != '}' && value.front() != ']'; ++i) {
      if (object) {
        auto const name_end = end_of_string(value);
        found = value.substr(0, name_end) == step.name;
        value.remove_prefix(name_end + 1);
      } else {
        found = i == *step.index;
      }
      auto const end = end_of_value(value);
      if (found) {
        value = value.substr(0, end);
      } else {
        value.remove_prefix(end + (value[end] == ',' ? 1 : 0));
      }
    }
    if (!found) {
      return std::nullopt;
    }
  }
  return value;
}

}  // namespace tidegate::idempotency
