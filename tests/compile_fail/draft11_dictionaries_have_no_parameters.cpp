// expect: no matching function|constraints not satisfied|no match
// SPDX-License-Identifier: Apache-2.0
#include <tidegate/sf.hpp>

using namespace tidegate::sf;

auto main() -> int {
  std::string out;
  basic_dictionary_writer<dialect::draft11> writer(out);
  writer.member("a", 1);
  writer.parameter("b", 1);
}
