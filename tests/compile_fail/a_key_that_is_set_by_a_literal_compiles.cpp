// expect: ok
// SPDX-License-Identifier: Apache-2.0
#include <tidegate/sf.hpp>

auto main() -> int {
  tidegate::sf::dictionary dictionary;
  dictionary.set("lower", tidegate::sf::item{1});
  dictionary.set("with", 2);
  tidegate::sf::parameters parameters;
  parameters.set("q", 1);
}
