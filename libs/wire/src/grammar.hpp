// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

/// Which character may stand where, in one table.
namespace tidegate::wire::grammar {

enum : std::uint8_t {
  token_char = 1 << 0,  // RFC 9110, section 5.6.2
  blank = 1 << 1,       // SP HTAB
  lower_char = 1 << 2,  // of a token without capital letters, which is what HTTP/2 has as names
  letter_or_digit = 1 << 3,
};

inline constexpr auto classes = [] {
  std::array<std::uint8_t, 256> table{};
  auto add = [&table](std::string_view characters, unsigned bits) {
    for (char const c : characters) {
      auto& entry = table[static_cast<unsigned char>(c)];
      entry = static_cast<std::uint8_t>(entry | bits);
    }
  };
  constexpr std::string_view alpha = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  constexpr std::string_view digit = "0123456789";
  add(alpha, token_char | letter_or_digit);
  add("abcdefghijklmnopqrstuvwxyz", lower_char);
  add(digit, token_char | lower_char | letter_or_digit);
  add("!#$%&'*+-.^_`|~", token_char | lower_char);
  add(" \t", blank);
  return table;
}();

[[nodiscard]] constexpr auto is(char c, unsigned bits) noexcept -> bool {
  return (classes[static_cast<unsigned char>(c)] & bits) != 0;
}

[[nodiscard]] constexpr auto is_digit(char c) noexcept -> bool {
  return c >= '0' && c <= '9';
}

[[nodiscard]] constexpr auto lower(char c) noexcept -> char {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
}

/// True when the two differ in the case of letters at most.
[[nodiscard]] constexpr auto same_text(std::string_view a, std::string_view b) noexcept -> bool {
  if (a.size() != b.size()) {
    return false;
  }
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (lower(a[i]) != lower(b[i])) {
      return false;
    }
  }
  return true;
}

[[nodiscard]] constexpr auto trimmed(std::string_view text) noexcept -> std::string_view {
  while (!text.empty() && is(text.front(), blank)) {
    text.remove_prefix(1);
  }
  while (!text.empty() && is(text.back(), blank)) {
    text.remove_suffix(1);
  }
  return text;
}

/// Takes the element before the next comma out of `list`, without the white space around it.
[[nodiscard]] constexpr auto next_element(std::string_view& list) noexcept -> std::string_view {
  auto const comma = list.find(',');
  auto const element = trimmed(list.substr(0, comma));
  list.remove_prefix(comma == std::string_view::npos ? list.size() : comma + 1);
  return element;
}

[[nodiscard]] constexpr auto is_token(std::string_view text) noexcept -> bool {
  for (char const c : text) {
    if (!is(c, token_char)) {
      return false;
    }
  }
  return !text.empty();
}

}  // namespace tidegate::wire::grammar
