// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/version.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tidegate::TIDEGATE_ABI::utf8 {

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

/// How many octets a character takes, and whether it is one.
struct sequence {
  std::size_t octets;
  bool well_formed;
};

/// The character that `text` begins with; or what one U+FFFD takes the place of: the longest
/// beginning of a well-formed sequence, at least one octet (Unicode, definition D93b, table 3-7).
/// `text` is not empty.
[[nodiscard]] constexpr auto first_sequence(std::string_view text) noexcept -> sequence {
  auto const octet = [text](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  auto const lead = octet(0);
  if (lead < 0xc2 || lead > 0xf4) {
    return {1, lead < 0x80};
  }
  std::size_t const octets = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  // The second octet rules out overlong forms, surrogates and what is above U+10FFFF.
  std::uint8_t low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
  std::uint8_t high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
  for (std::size_t i = 1; i < octets; ++i) {
    if (i == text.size() || octet(i) < low || octet(i) > high) {
      return {i, false};
    }
    low = 0x80;
    high = 0xbf;
  }
  return {octets, true};
}

/// How many octets the character at the beginning of `text` has; 0 when there is none.
[[nodiscard]] constexpr auto character_octets(std::string_view text) noexcept -> std::size_t {
  if (text.empty()) {
    return 0;
  }
  auto const first = first_sequence(text);
  return first.well_formed ? first.octets : 0;
}

}  // namespace tidegate::TIDEGATE_ABI::utf8
