// SPDX-License-Identifier: Apache-2.0
#include "base64url.hpp"

#include <cstdint>

namespace tidegate::scim {

namespace {

constexpr std::string_view digits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

[[nodiscard]] constexpr auto value_of(char c) noexcept -> int {
  if (c >= 'A' && c <= 'Z') {
    return c - 'A';
  }
  if (c >= 'a' && c <= 'z') {
    return c - 'a' + 26;
  }
  if (c >= '0' && c <= '9') {
    return c - '0' + 52;
  }
  return c == '-' ? 62 : c == '_' ? 63 : -1;
}

}  // namespace

auto to_base64url(std::string_view octets) -> std::string {
  std::string out;
  out.reserve((octets.size() * 4 + 2) / 3);
  std::uint32_t bits = 0;
  unsigned held = 0;
  for (char c : octets) {
    bits = bits << 8 | static_cast<unsigned char>(c);
    held += 8;
    while (held >= 6) {
      held -= 6;
      out.push_back(digits[bits >> held & 63U]);
    }
  }
  if (held > 0) {
    out.push_back(digits[bits << (6 - held) & 63U]);
  }
  return out;
}

auto from_base64url(std::string_view text) -> std::optional<std::string> {
  std::string out;
  out.reserve(text.size() * 3 / 4);
  std::uint32_t bits = 0;
  unsigned held = 0;
  for (char c : text) {
    auto const value = value_of(c);
    if (value < 0) {
      return std::nullopt;
    }
    bits = bits << 6 | static_cast<std::uint32_t>(value);
    held += 6;
    if (held >= 8) {
      held -= 8;
      out.push_back(static_cast<char>(bits >> held & 255U));
    }
  }
  // A digit that adds no octet, or bits behind the last octet: another spelling of the same octets.
  if (held >= 6 || (bits & ((1U << held) - 1)) != 0) {
    return std::nullopt;
  }
  return out;
}

}  // namespace tidegate::scim
