// SPDX-License-Identifier: Apache-2.0
#include <tidegate/sf.hpp>

#include <cstdio>

// Parses a field value and writes it again, so that both halves of the library are linked.
auto main() -> int {
  auto const list = tidegate::sf::parse_list("\"default\"; r=50;  t=30");
  if (!list.has_value()) {
    std::puts(tidegate::sf::to_string(list.error()).c_str());
    return 1;
  }
  std::puts(tidegate::sf::serialized(*list).c_str());
}
