// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/ascii.hpp>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace tidegate::TIDEGATE_ABI {

/// The value of a hexadecimal digit in either case, or -1.
[[nodiscard]] constexpr auto hex_value(char c) noexcept -> int {
  if (is_digit(c)) {
    return c - '0';
  }
  char const letter = to_lower(c);
  return letter >= 'a' && letter <= 'f' ? letter - 'a' + 10 : -1;
}

/// Two lower-case digits for each octet.
inline void append_hex(std::string& out, std::span<std::byte const> octets) {
  constexpr std::string_view digits = "0123456789abcdef";
  for (auto const octet : octets) {
    out.push_back(digits[std::to_integer<std::size_t>(octet >> 4)]);
    out.push_back(digits[std::to_integer<std::size_t>(octet & std::byte{15})]);
  }
}

inline void append_hex(std::string& out, char octet) {
  append_hex(out, std::as_bytes(std::span(&octet, 1)));
}

/// The same as a string of its own.
[[nodiscard]] inline auto to_hex(std::span<std::byte const> octets) -> std::string {
  std::string out;
  out.reserve(2 * octets.size());
  append_hex(out, octets);
  return out;
}

}  // namespace tidegate::TIDEGATE_ABI
