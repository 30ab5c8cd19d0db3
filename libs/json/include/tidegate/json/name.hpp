// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace tidegate::json {

/// `c` in lower case when it is a letter of ASCII.
[[nodiscard]] constexpr auto fold_ascii(char c) noexcept -> char {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

namespace detail {
/// Of names that are equally long.
[[nodiscard]] auto is_equal(std::string_view a, std::string_view b) noexcept -> bool;
}  // namespace detail

/// Whether two names are the same but for the case of letters of ASCII.
[[nodiscard]] inline auto equal_names(std::string_view a, std::string_view b) noexcept -> bool {
  // Most names that are compared differ in size or in their first letter: no call for those.
  return a.size() == b.size() &&
         (a.empty() || (fold_ascii(a.front()) == fold_ascii(b.front()) && detail::is_equal(a, b)));
}

/// The one spelling of a name by which it is compared.
[[nodiscard]] auto fold_name(std::string_view name) -> std::string;

}  // namespace tidegate::json
