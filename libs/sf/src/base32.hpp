// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/version.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

/// Base32 (RFC 4648, section 6), as the JSON form of Byte Sequences has it.
namespace tidegate::TIDEGATE_ABI::sf::detail {

inline constexpr std::string_view base32_alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

[[nodiscard]] inline auto base32_encode(std::string_view octets) -> std::string {
  std::string out;
  std::uint32_t bits = 0;
  int count = 0;
  for (char octet : octets) {
    bits = bits << 8 | static_cast<unsigned char>(octet);
    for (count += 8; count >= 5; count -= 5) {
      out.push_back(base32_alphabet[bits >> (count - 5) & 31]);
    }
  }
  if (count > 0) {
    out.push_back(base32_alphabet[bits << (5 - count) & 31]);
  }
  out.append((8 - out.size() % 8) % 8, '=');
  return out;
}

/// Strict: full groups of eight, canonical padding, zero pad bits.
[[nodiscard]] inline auto base32_decode(std::string_view text) -> std::optional<std::string> {
  std::string out;
  std::uint32_t bits = 0;
  int count = 0;
  auto const symbols = text.substr(0, text.find('='));
  for (char c : symbols) {
    auto const value = base32_alphabet.find(c);
    if (value == std::string_view::npos) {
      return std::nullopt;
    }
    bits = bits << 5 | static_cast<std::uint32_t>(value);
    count += 5;
    if (count >= 8) {
      count -= 8;
      out.push_back(static_cast<char>(bits >> count));
    }
  }
  // What is not exactly what encoding would give back is refused as a whole.
  return base32_encode(out) == text ? std::optional(out) : std::nullopt;
}

}  // namespace tidegate::TIDEGATE_ABI::sf::detail
