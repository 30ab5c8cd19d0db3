// expect: ok
// SPDX-License-Identifier: Apache-2.0
#include <tidegate/sf.hpp>

tidegate::sf::integer integer = 999'999'999'999'999;

auto main() -> int {}
