// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string>
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

/// Takes a field out of a head.
inline void drop_field(std::string& head, std::string_view lower_case_name) {
  auto const is_named = [&](std::string_view line) {
    return line.size() > lower_case_name.size() && line[lower_case_name.size()] == ':' &&
           equal_names(line.substr(0, lower_case_name.size()), lower_case_name);
  };
  for (auto at = head.find("\r\n"); at != std::string::npos; at = head.find("\r\n", at + 2)) {
    while (is_named(std::string_view(head).substr(at + 2))) {
      head.erase(at, head.find("\r\n", at + 2) - at);
    }
  }
}

}  // namespace tidegate::gateway
