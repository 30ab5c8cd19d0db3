// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string_view>

namespace tidegate::http {

/// Whether a name is the one given in lower case, whatever the case of its letters (RFC 9110,
/// section 5.1).
[[nodiscard]] inline auto equal_names(std::string_view a, std::string_view lower_case) -> bool {
  return std::ranges::equal(a, lower_case, [](char x, char y) {
    return (x >= 'A' && x <= 'Z' ? static_cast<char>(x | 0x20) : x) == y;
  });
}

}  // namespace tidegate::http
