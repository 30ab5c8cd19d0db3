// SPDX-License-Identifier: Apache-2.0
#include "text/base64url.hpp"

#include <array>
#include <cstddef>
#include <cstdint>

namespace tidegate::scim {

namespace {

constexpr std::string_view digits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

constexpr std::uint8_t no_digit = 64;
constexpr auto values = [] {
  std::array<std::uint8_t, 256> all{};
  all.fill(no_digit);
  for (std::size_t i = 0; i < digits.size(); ++i) {
    all[static_cast<unsigned char>(digits[i])] = static_cast<std::uint8_t>(i);
  }
  return all;
}();

}  // namespace

auto to_base64url(std::string_view octets) -> std::string {
  std::string out((octets.size() * 4 + 2) / 3, '\0');
  auto* to = out.data();
  std::uint32_t bits = 0;
  unsigned held = 0;
  for (char c : octets) {
    bits = bits << 8 | static_cast<unsigned char>(c);
    held += 8;
    while (held >= 6) {
      held -= 6;
      *to++ = digits[bits >> held & 63U];
    }
  }
  if (held > 0) {
    *to = digits[bits << (6 - held) & 63U];
  }
  return out;
}

auto from_base64url(std::string_view text) -> std::optional<std::string> {
  std::string out(text.size() * 3 / 4, '\0');
  auto* to = out.data();
  std::uint32_t bits = 0;
  unsigned held = 0;
  for (char c : text) {
    auto const value = values[static_cast<unsigned char>(c)];
    if (value == no_digit) {
      return std::nullopt;
    }
    bits = bits << 6 | value;
    held += 6;
    if (held >= 8) {
      held -= 8;
      *to++ = static_cast<char>(bits >> held & 255U);
    }
  }
  // A digit that adds no octet, or bits behind the last octet: another spelling of the same octets.
  if (held >= 6 || (bits & ((1U << held) - 1)) != 0) {
    return std::nullopt;
  }
  return out;
}

}  // namespace tidegate::scim
