// SPDX-License-Identifier: Apache-2.0
#include <tidegate/json/reader.hpp>

#include <tidegate/base/utf8.hpp>
#include <tidegate/json/string.hpp>

#include <charconv>
#include <cstdint>

namespace tidegate::TIDEGATE_ABI::json {

namespace {

constexpr std::size_t code_unit_octets = 6;

/// Of `\u` and four hexadecimal digits at the beginning of `text`.
[[nodiscard]] auto code_unit(std::string_view text) noexcept -> std::optional<std::uint32_t> {
  if (text.size() < code_unit_octets || !text.starts_with("\\u")) {
    return std::nullopt;
  }
  std::uint32_t unit = 0;
  auto const* const end = text.data() + code_unit_octets;
  auto const read = std::from_chars(text.data() + 2, end, unit, 16);
  if (read.ec != std::errc() || read.ptr != end) {
    return std::nullopt;
  }
  return unit;
}

}  // namespace

auto message(json::fault fault) noexcept -> std::string_view {
  switch (fault) {
    case fault::value_expected: return "a value is expected";
    case fault::comma_expected: return "a comma or the end of the array or object is expected";
    case fault::colon_expected: return "a colon is expected";
    case fault::name_expected: return "the name of a member is expected";
    case fault::name_twice: return "a name comes twice in an object";
    case fault::unterminated_string: return "the string does not end";
    case fault::invalid_escape:
    case fault::lone_surrogate: return "invalid escape in a string";
    case fault::control_character: return "control character in a string";
    case fault::invalid_utf8: return "not UTF-8";
    case fault::invalid_number: return "invalid number";
    case fault::number_out_of_range: return "the number is out of range";
    case fault::too_deep: return "nested too deep";
    case fault::too_long: return "too long";
    case fault::end_expected: break;
  }
  return "more behind the value";
}

auto to_string(error const& error) -> std::string {
  return std::string(message(error.fault)) + " at offset " + std::to_string(error.offset);
}

auto scanner::take_word(std::string_view word) noexcept -> bool {
  if (!text_.substr(position_).starts_with(word)) {
    return fail(fault::value_expected);
  }
  position_ += word.size();
  return true;
}

auto scanner::take_string() -> std::optional<std::string_view> {
  auto const begin = ++position_;
  position_ += plain_octets(text_.substr(position_));
  if (at('"')) {
    return text_.substr(begin, position_++ - begin);
  }
  unescaped_ = text_.substr(begin, position_ - begin);
  return take_rest_of_string() ? std::optional<std::string_view>(unescaped_) : std::nullopt;
}

/// From what does not stand for itself on, into `unescaped_`.
auto scanner::take_rest_of_string() -> bool {
  for (;;) {
    auto const plain = plain_octets(text_.substr(position_));
    unescaped_ += text_.substr(position_, plain);
    position_ += plain;
    if (at_end()) {
      return fail(fault::unterminated_string);
    }
    auto const octet = static_cast<std::uint8_t>(text_[position_]);
    if (octet == '"') {
      ++position_;
      return true;
    }
    if (octet == '\\') {
      if (!take_escape()) {
        return false;
      }
      continue;
    }
    if (octet < 0x20) {
      return fail(fault::control_character);
    }
    auto const size = utf8::character_octets(text_.substr(position_));
    if (size == 0) {
      return fail(fault::invalid_utf8);
    }
    unescaped_ += text_.substr(position_, size);
    position_ += size;
  }
}

auto scanner::take_escape() -> bool {
  constexpr std::string_view names = "\"\\/bfnrt";
  constexpr std::string_view values = "\"\\/\b\f\n\r\t";
  auto const begin = position_;
  auto const rest = text_.substr(begin);
  if (rest.size() > 1) {
    if (auto const simple = names.find(rest[1]); simple != std::string_view::npos) {
      unescaped_ += values[simple];
      position_ += 2;
      return true;
    }
  }
  auto const unit = code_unit(rest);
  if (!unit) {
    return fail(fault::invalid_escape);
  }
  position_ += code_unit_octets;
  auto code_point = *unit;
  if (code_point >= 0xd800 && code_point < 0xe000) {
    auto const low = code_unit(rest.substr(code_unit_octets));
    if (code_point >= 0xdc00 || !low || *low < 0xdc00 || *low >= 0xe000) {
      return fail(fault::lone_surrogate, begin);
    }
    code_point = 0x10000 + ((code_point - 0xd800) << 10) + (*low - 0xdc00);
    position_ += code_unit_octets;
  }
  utf8::append(unescaped_, code_point);
  return true;
}

auto scanner::take_digits() noexcept -> bool {
  auto const begin = position_;
  while (at_digit()) {
    ++position_;
  }
  return position_ != begin;
}

auto scanner::take_number() noexcept -> std::optional<number_token> {
  auto const begin = position_;
  if (!at('-') && !at_digit()) {
    fail(fault::value_expected);
    return std::nullopt;
  }
  take('-');
  bool valid = take('0') ? !at_digit() : take_digits();
  bool is_integer = true;
  if (valid && take('.')) {
    is_integer = false;
    valid = take_digits();
  }
  if (valid && (take('e') || take('E'))) {
    is_integer = false;
    if (!take('-')) {
      take('+');
    }
    valid = take_digits();
  }
  if (!valid) {
    fail(fault::invalid_number, begin);
    return std::nullopt;
  }
  return number_token{text_.substr(begin, position_ - begin), is_integer};
}

}  // namespace tidegate::TIDEGATE_ABI::json
