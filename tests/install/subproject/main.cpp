// SPDX-License-Identifier: Apache-2.0
#include <tidegate/base.hpp>

#include <cstdio>
#include <string>

auto main() -> int {
  auto const digest = tidegate::sha256::of("abc");
  std::puts(tidegate::to_hex(digest).substr(0, 8).c_str());
}
