// expect: literal_is_not_valid_here
// SPDX-License-Identifier: Apache-2.0
#include <tidegate/sf.hpp>

auto main() -> int {
  std::string out;
  tidegate::sf::list_writer writer(out);
  writer.item(1);
  writer.parameter("Upper", 1);
}
