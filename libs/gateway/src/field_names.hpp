// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string_view>

namespace tidegate::gateway {

/// What only the gateway says to an upstream: how often it was asked the same.
inline constexpr std::string_view attempt_name = "idempotency-attempt";

/// Whether a name is the one given in lower case, whatever the case of its letters.
[[nodiscard]] inline auto equal_names(std::string_view a, std::string_view lower_case) -> bool {
  return std::ranges::equal(a, lower_case, [](char x, char y) {
    return (x >= 'A' && x <= 'Z' ? static_cast<char>(x | 0x20) : x) == y;
  });
}

}  // namespace tidegate::gateway
