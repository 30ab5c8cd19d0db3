// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

/// Which byte is what, for the readers of targets, addresses and fields.
namespace tidegate::http::octets {

[[nodiscard]] constexpr auto is_digit(char c) noexcept -> bool {
  return c >= '0' && c <= '9';
}

[[nodiscard]] constexpr auto is_alpha(char c) noexcept -> bool {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

/// unreserved of RFC 3986, section 2.3
[[nodiscard]] constexpr auto is_unreserved(char c) noexcept -> bool {
  return is_alpha(c) || is_digit(c) || c == '-' || c == '.' || c == '_' || c == '~';
}

/// sub-delims of RFC 3986, section 2.2
[[nodiscard]] constexpr auto is_sub_delim(char c) noexcept -> bool {
  switch (c) {
    case '!':
    case '$':
    case '&':
    case '\'':
    case '(':
    case ')':
    case '*':
    case '+':
    case ',':
    case ';':
    case '=': return true;
    default: return false;
  }
}

/// tchar of RFC 9110, section 5.6.2
[[nodiscard]] constexpr auto is_tchar(char c) noexcept -> bool {
  switch (c) {
    case '!':
    case '#':
    case '$':
    case '%':
    case '&':
    case '\'':
    case '*':
    case '+':
    case '-':
    case '.':
    case '^':
    case '_':
    case '`':
    case '|':
    case '~': return true;
    default: return is_alpha(c) || is_digit(c);
  }
}

/// The value of a hexadecimal digit, or -1.
[[nodiscard]] constexpr auto hex_value(char c) noexcept -> int {
  if (is_digit(c)) {
    return c - '0';
  }
  if (c >= 'a' && c <= 'f') {
    return c - 'a' + 10;
  }
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/// What the escape "%XY" at `offset` stands for; nothing when it is incomplete.
[[nodiscard]] constexpr auto escaped(std::string_view text, std::size_t offset) noexcept
    -> std::optional<char> {
  if (text.size() - offset < 3) {
    return std::nullopt;
  }
  int const high = hex_value(text[offset + 1]);
  int const low = hex_value(text[offset + 2]);
  if (high < 0 || low < 0) {
    return std::nullopt;
  }
  return static_cast<char>(high * 16 + low);
}

[[nodiscard]] constexpr auto lower(char c) noexcept -> char {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

/// Whether `text` is `lower_case`, in any case.
[[nodiscard]] constexpr auto is_in_any_case(std::string_view text,
                                            std::string_view lower_case) noexcept -> bool {
  if (text.size() != lower_case.size()) {
    return false;
  }
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (lower(text[i]) != lower_case[i]) {
      return false;
    }
  }
  return true;
}

/// Without the spaces and tabs around it.
[[nodiscard]] constexpr auto without_ows(std::string_view text) noexcept -> std::string_view {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) {
    text.remove_prefix(1);
  }
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) {
    text.remove_suffix(1);
  }
  return text;
}

}  // namespace tidegate::http::octets
