// expect: constant expression
// SPDX-License-Identifier: Apache-2.0
#include <tidegate/sf.hpp>

#include <cstdint>

std::int64_t number = 1;
tidegate::sf::integer integer = number;

auto main() -> int {}
