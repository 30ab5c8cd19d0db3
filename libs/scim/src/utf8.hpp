// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tidegate::scim::utf8 {

/// Appends the character `c`.
inline void append(std::string& out, std::uint32_t c) {
  auto const put = [&out](std::uint32_t octet) { out.push_back(static_cast<char>(octet)); };
  if (c < 0x80) {
    put(c);
    return;
  }
  if (c < 0x800) {
    put(0xc0 | c >> 6);
  } else {
    if (c < 0x10000) {
      put(0xe0 | c >> 12);
    } else {
      put(0xf0 | c >> 18);
      put(0x80 | (c >> 12 & 63));
    }
    put(0x80 | (c >> 6 & 63));
  }
  put(0x80 | (c & 63));
}

/// How many octets the character at the beginning of `text` has; 0 when there is none (RFC 3629, section 4).
[[nodiscard]] constexpr auto character_octets(std::string_view text) noexcept -> std::size_t {
  auto const octet = [&](std::size_t i) {
    return i < text.size() ? static_cast<std::uint8_t>(text[i]) : std::uint8_t{0};
  };
  auto const tail = [&](std::size_t i) { return (octet(i) & 0xc0) == 0x80; };
  auto const lead = octet(0);
  if (lead < 0x80) {
    return text.empty() ? 0 : 1;
  }
  if (lead < 0xc2 || lead > 0xf4 || !tail(1)) {
    return 0;
  }
  if (lead < 0xe0) {
    return 2;
  }
  if ((lead == 0xe0 && octet(1) < 0xa0) || (lead == 0xed && octet(1) > 0x9f) ||
      (lead == 0xf0 && octet(1) < 0x90) || (lead == 0xf4 && octet(1) > 0x8f) || !tail(2)) {
    return 0;
  }
  if (lead < 0xf0) {
    return 3;
  }
  return tail(3) ? 4 : 0;
}

}  // namespace tidegate::scim::utf8
