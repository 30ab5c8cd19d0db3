// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/hex.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

/// Which byte is what, for the readers of targets, addresses and fields.
namespace tidegate::TIDEGATE_ABI::http::octets {

/// sub-delims of RFC 3986, section 2.2
[[nodiscard]] constexpr auto is_sub_delim(char c) noexcept -> bool {
  return std::string_view("!$&'()*+,;=").contains(c);
}

/// What the escape "%XY" at `offset` stands for; nothing when it is incomplete.
[[nodiscard]] constexpr auto escaped(std::string_view text, std::size_t offset) noexcept
    -> std::optional<char> {
  if (text.size() - offset < 3) {
    return std::nullopt;
  }
  int const high = hex_value(text[offset + 1]);
  int const low = hex_value(text[offset + 2]);
  if (high < 0 || low < 0) {
    return std::nullopt;
  }
  return static_cast<char>(high * 16 + low);
}

inline void append_escape(std::string& out, char octet) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  auto const value = static_cast<unsigned char>(octet);
  out.append({'%', digits[value >> 4U], digits[value & 15U]});
}

}  // namespace tidegate::TIDEGATE_ABI::http::octets
