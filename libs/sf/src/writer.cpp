// SPDX-License-Identifier: Apache-2.0
#include <tidegate/sf/writer.hpp>

#include <tidegate/base/base64.hpp>
#include <tidegate/base/hex.hpp>

#include "scan.hpp"

#include <array>
#include <charconv>
#include <cstdint>

namespace tidegate::TIDEGATE_ABI::sf::detail {

namespace {

constexpr auto two_digits = [] {
  std::array<char, 200> table{};
  for (std::size_t i = 0; i < 100; ++i) {
    table[2 * i] = static_cast<char>('0' + i / 10);
    table[2 * i + 1] = static_cast<char>('0' + i % 10);
  }
  return table;
}();

/// Writes `value` so that it ends before `end`; returns where it begins.
auto digits_before(char* end, std::uint64_t value) noexcept -> char* {
  while (value >= 100) {
    auto const pair = value % 100 * 2;
    value /= 100;
    *--end = two_digits[pair + 1];
    *--end = two_digits[pair];
  }
  if (value >= 10) {
    *--end = two_digits[value * 2 + 1];
    *--end = two_digits[value * 2];
  } else {
    *--end = static_cast<char>('0' + value);
  }
  return end;
}

[[nodiscard]] auto magnitude(std::int64_t value) noexcept -> std::uint64_t {
  return static_cast<std::uint64_t>(value < 0 ? -value : value);
}

}  // namespace

/// RFC 9651, section 4.1.4; draft11, section 4.1.4.
void append(std::string& out, integer value) {
  std::array<char, 20> buffer;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  auto* const end = buffer.data() + buffer.size();
  auto* begin = digits_before(end, magnitude(value.value()));
  if (value.value() < 0) {
    *--begin = '-';
  }
  out.append(begin, end);
}

/// RFC 9651, section 4.1.5.
void append(std::string& out, decimal value) {
  std::array<char, 24> buffer;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  auto* const end = buffer.data() + buffer.size();
  auto const thousandths = magnitude(value.thousandths());
  auto const fraction = thousandths % 1000;
  auto* stop = end;
  auto* begin = end;
  *--begin = static_cast<char>('0' + fraction % 10);
  *--begin = static_cast<char>('0' + fraction / 10 % 10);
  *--begin = static_cast<char>('0' + fraction / 100);
  while (stop - begin > 1 && *(stop - 1) == '0') {
    --stop;
  }
  *--begin = '.';
  begin = digits_before(begin, thousandths / 1000);
  if (value.thousandths() < 0) {
    *--begin = '-';
  }
  out.append(begin, stop);
}

/// draft11, section 4.1.5: the fewest digits that read back equal.
void append(std::string& out, floating value) {
  std::array<char, 32> buffer;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  auto const number = value.value() == 0 ? 0.0 : value.value();  // zero has no sign
  auto const [end, error] =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), number, std::chars_format::fixed);
  assert(error == std::errc());
  auto const text = std::string_view(buffer.data(), static_cast<std::size_t>(end - buffer.data()));
  out.append(text);
  if (text.find('.') == std::string_view::npos) {
    out.append(".0", 2);
  }
}

/// RFC 9651, section 4.1.6; draft11, section 4.1.6.
void append(std::string& out, string_view value) {
  auto const text = value.text();
  out.push_back('"');
  auto const* p = text.data();
  auto const* const end = p + text.size();
  while (p != end) {
    auto const* const special = find_special(text.data(), p, end);
    out.append(p, special);
    p = special;
    if (p != end) {
      out.push_back('\\');
      out.push_back(*p++);
    }
  }
  out.push_back('"');
}

/// RFC 9651, section 4.1.11.
void append(std::string& out, display_string_view value) {
  out.append("%\"", 2);
  for (char c : value.text()) {
    if (c == '%' || c == '"' || c < 0x20 || c == 0x7f) {  // bytes from 0x80 are negative
      out.push_back('%');
      append_hex(out, c);
    } else {
      out.push_back(c);
    }
  }
  out.push_back('"');
}

/// RFC 9651, section 4.1.8; draft11, section 4.1.8.
void append_bytes(std::string& out, std::string_view octets, char delimiter) {
  out.push_back(delimiter);
  auto const before = out.size();
  out.resize(before + base64::encoded_size(octets.size()));
  base64::encode<base64::standard>(octets, out.data() + before);
  out.append((4 - (out.size() - before) % 4) % 4, '=');
  out.push_back(delimiter);
}

}  // namespace tidegate::TIDEGATE_ABI::sf::detail
