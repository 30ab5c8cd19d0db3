// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/version.hpp>

#include <algorithm>
#include <string>
#include <string_view>

/// Characters of ASCII, whatever the locale says of them.
namespace tidegate::TIDEGATE_ABI {

/// 0 to 9.
[[nodiscard]] constexpr auto is_digit(char c) noexcept -> bool {
  return c >= '0' && c <= '9';
}

/// A to Z.
[[nodiscard]] constexpr auto is_upper(char c) noexcept -> bool {
  return c >= 'A' && c <= 'Z';
}

/// A to Z or a to z.
[[nodiscard]] constexpr auto is_letter(char c) noexcept -> bool {
  return is_upper(c) || (c >= 'a' && c <= 'z');
}

/// A letter or a digit.
[[nodiscard]] constexpr auto is_letter_or_digit(char c) noexcept -> bool {
  return is_letter(c) || is_digit(c);
}

/// A space or a tab.
[[nodiscard]] constexpr auto is_blank(char c) noexcept -> bool {
  return c == ' ' || c == '\t';
}

/// `c` in lower case where it is one of A to Z.
[[nodiscard]] constexpr auto to_lower(char c) noexcept -> char {
  return is_upper(c) ? static_cast<char>(c - 'A' + 'a') : c;
}

/// The text with A to Z in lower case.
[[nodiscard]] auto lower_case(std::string_view text) -> std::string;

namespace detail {
/// Of texts that are equally long.
[[nodiscard]] auto is_equal_ignoring_case(std::string_view a, std::string_view b) noexcept -> bool;
}  // namespace detail

/// Whether two texts differ at most in the case of letters.
[[nodiscard]] inline auto equal_ignoring_case(std::string_view a, std::string_view b) noexcept
    -> bool {
  // Most that are compared differ in size or in their first letter: no call for those.
  return a.size() == b.size() && (a.empty() || (to_lower(a.front()) == to_lower(b.front()) &&
                                                detail::is_equal_ignoring_case(a, b)));
}

/// Without the spaces and tabs around it.
[[nodiscard]] constexpr auto trimmed(std::string_view text) noexcept -> std::string_view {
  while (!text.empty() && is_blank(text.front())) {
    text.remove_prefix(1);
  }
  while (!text.empty() && is_blank(text.back())) {
    text.remove_suffix(1);
  }
  return text;
}

/// Takes what stands before the next `separator`, or all there is, off the front of `text`, and the
/// separator with it.
[[nodiscard]] constexpr auto take_until(std::string_view& text, char separator) noexcept
    -> std::string_view {
  auto const end = std::min(text.find(separator), text.size());
  auto const taken = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return taken;
}

}  // namespace tidegate::TIDEGATE_ABI
