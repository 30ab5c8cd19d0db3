// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

/// Base64 (RFC 4648, section 4).
namespace tidegate::sf::detail {

inline constexpr std::string_view base64_alphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
inline constexpr std::uint8_t base64_other = 0xff;

/// The six bits that a character stands for, or `base64_other`.
inline constexpr auto base64_values = [] {
  std::array<std::uint8_t, 256> table{};
  table.fill(base64_other);
  for (std::size_t i = 0; i < base64_alphabet.size(); ++i) {
    table[static_cast<unsigned char>(base64_alphabet[i])] = static_cast<std::uint8_t>(i);
  }
  return table;
}();

[[nodiscard]] constexpr auto base64_value(char c) noexcept -> std::uint32_t {
  return base64_values[static_cast<unsigned char>(c)];
}

/// Decodes text that was found valid, with or without padding and whatever its pad bits; returns
/// how many octets were written.
inline auto base64_decode(std::string_view text, char* out) noexcept -> std::size_t {
  while (!text.empty() && text.back() == '=') {
    text.remove_suffix(1);
  }
  auto* const begin = out;
  std::size_t i = 0;
  for (; i + 4 <= text.size(); i += 4) {
    auto const bits = base64_value(text[i]) << 18 | base64_value(text[i + 1]) << 12 |
                      base64_value(text[i + 2]) << 6 | base64_value(text[i + 3]);
    *out++ = static_cast<char>(bits >> 16);
    *out++ = static_cast<char>(bits >> 8);
    *out++ = static_cast<char>(bits);
  }
  if (i + 2 <= text.size()) {
    auto bits = base64_value(text[i]) << 18 | base64_value(text[i + 1]) << 12;
    *out++ = static_cast<char>(bits >> 16);
    if (i + 3 <= text.size()) {
      bits |= base64_value(text[i + 2]) << 6;
      *out++ = static_cast<char>(bits >> 8);
    }
  }
  return static_cast<std::size_t>(out - begin);
}

[[nodiscard]] constexpr auto base64_encoded_size(std::size_t octets) noexcept -> std::size_t {
  return (octets + 2) / 3 * 4;
}

/// Encodes with padding and zero pad bits; writes `base64_encoded_size` characters.
inline auto base64_encode(std::string_view octets, char* out) noexcept -> char* {
  auto octet = [&octets](std::size_t i) -> std::uint32_t {
    return static_cast<unsigned char>(octets[i]);
  };
  std::size_t i = 0;
  for (; i + 3 <= octets.size(); i += 3) {
    auto const bits = octet(i) << 16 | octet(i + 1) << 8 | octet(i + 2);
    *out++ = base64_alphabet[bits >> 18];
    *out++ = base64_alphabet[bits >> 12 & 63];
    *out++ = base64_alphabet[bits >> 6 & 63];
    *out++ = base64_alphabet[bits & 63];
  }
  if (auto const rest = octets.size() - i; rest != 0) {
    auto const bits = octet(i) << 16 | (rest == 2 ? octet(i + 1) << 8 : 0);
    *out++ = base64_alphabet[bits >> 18];
    *out++ = base64_alphabet[bits >> 12 & 63];
    *out++ = rest == 2 ? base64_alphabet[bits >> 6 & 63] : '=';
    *out++ = '=';
  }
  return out;
}

}  // namespace tidegate::sf::detail
