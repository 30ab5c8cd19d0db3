// expect: literal_is_not_valid_here|consteval
// SPDX-License-Identifier: Apache-2.0
#include <tidegate/sf.hpp>

auto main() -> int {
  tidegate::sf::dictionary dictionary;
  dictionary.set("Upper", tidegate::sf::item{1});
}
