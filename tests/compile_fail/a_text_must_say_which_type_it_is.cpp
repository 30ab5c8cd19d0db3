// expect: no matching function|could not convert|conversion|ambiguous
// SPDX-License-Identifier: Apache-2.0
#include <tidegate/sf.hpp>

tidegate::sf::bare_item item = "token or string";

auto main() -> int {}
