// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/version.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

/// Base64 and base64url (RFC 4648, sections 4 and 5).
namespace tidegate::TIDEGATE_ABI::base64 {

/// What is not a digit has this value.
inline constexpr std::uint8_t no_digit = 0xff;

/// The 64 digits of a form of base64.
struct alphabet {
  std::string_view digits;
  std::array<std::uint8_t, 256> values{};  ///< six bits, or `no_digit`

  explicit constexpr alphabet(std::string_view sixty_four) noexcept : digits(sixty_four) {
    values.fill(no_digit);
    for (std::size_t i = 0; i < digits.size(); ++i) {
      values[static_cast<unsigned char>(digits[i])] = static_cast<std::uint8_t>(i);
    }
  }
  /// What a digit stands for, or `no_digit`.
  [[nodiscard]] constexpr auto value(char c) const noexcept -> std::uint32_t {
    return values[static_cast<unsigned char>(c)];
  }
};

/// The alphabets of RFC 4648, sections 4 and 5.
inline constexpr alphabet standard(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/");
inline constexpr alphabet url("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_");

/// How many digits `octets` take, without padding.
[[nodiscard]] constexpr auto encoded_size(std::size_t octets) noexcept -> std::size_t {
  return octets / 3 * 4 + (octets % 3 * 4 + 2) / 3;
}

/// Encodes with zero pad bits and without padding; writes `encoded_size` digits and returns where
/// they end.
template <alphabet const& Alphabet>
auto encode(std::string_view octets, char* out) noexcept -> char* {
  auto const octet = [&octets](std::size_t i) -> std::uint32_t {
    return static_cast<unsigned char>(octets[i]);
  };
  std::size_t i = 0;
  for (; i + 3 <= octets.size(); i += 3) {
    auto const bits = octet(i) << 16 | octet(i + 1) << 8 | octet(i + 2);
    *out++ = Alphabet.digits[bits >> 18];
    *out++ = Alphabet.digits[bits >> 12 & 63];
    *out++ = Alphabet.digits[bits >> 6 & 63];
    *out++ = Alphabet.digits[bits & 63];
  }
  if (auto const rest = octets.size() - i; rest != 0) {
    auto const bits = octet(i) << 16 | (rest == 2 ? octet(i + 1) << 8 : 0);
    *out++ = Alphabet.digits[bits >> 18];
    *out++ = Alphabet.digits[bits >> 12 & 63];
    if (rest == 2) {
      *out++ = Alphabet.digits[bits >> 6 & 63];
    }
  }
  return out;
}

/// Decodes digits that were found valid, without padding and whatever their pad bits; returns how
/// many octets were written.
template <alphabet const& Alphabet>
auto decode(std::string_view text, char* out) noexcept -> std::size_t {
  auto const value = [&text](std::size_t i) { return Alphabet.value(text[i]); };
  auto* const begin = out;
  std::size_t i = 0;
  for (; i + 4 <= text.size(); i += 4) {
    auto const bits = value(i) << 18 | value(i + 1) << 12 | value(i + 2) << 6 | value(i + 3);
    *out++ = static_cast<char>(bits >> 16);
    *out++ = static_cast<char>(bits >> 8);
    *out++ = static_cast<char>(bits);
  }
  if (i + 2 <= text.size()) {
    auto bits = value(i) << 18 | value(i + 1) << 12;
    *out++ = static_cast<char>(bits >> 16);
    if (i + 3 <= text.size()) {
      bits |= value(i + 2) << 6;
      *out++ = static_cast<char>(bits >> 8);
    }
  }
  return static_cast<std::size_t>(out - begin);
}

}  // namespace tidegate::TIDEGATE_ABI::base64

namespace tidegate::TIDEGATE_ABI {

/// base64url without padding.
[[nodiscard]] auto to_base64url(std::string_view octets) -> std::string;

/// Strict: every text has one spelling, and any other is refused.
[[nodiscard]] auto from_base64url(std::string_view text) -> std::optional<std::string>;

}  // namespace tidegate::TIDEGATE_ABI
