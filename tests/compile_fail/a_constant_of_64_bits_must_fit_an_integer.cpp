// expect: integer_is_out_of_range|consteval
// SPDX-License-Identifier: Apache-2.0
#include <tidegate/sf.hpp>

tidegate::sf::integer integer = 1'000'000'000'000'000;

auto main() -> int {}
