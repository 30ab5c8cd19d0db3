// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/ascii.hpp>

#include <array>
#include <cstdint>
#include <string_view>

/// Which character may stand where, in one table.
namespace tidegate::TIDEGATE_ABI::wire::grammar {

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

[[nodiscard]] constexpr auto is_token(std::string_view text) noexcept -> bool {
  for (char const c : text) {
    if (!is(c, token_char)) {
      return false;
    }
  }
  return !text.empty();
}

}  // namespace tidegate::TIDEGATE_ABI::wire::grammar
