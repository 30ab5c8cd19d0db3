// expect: extension_name_is_not_valid_here
// SPDX-License-Identifier: Apache-2.0
#include <tidegate/http/problem.hpp>

#include <string>

auto main() -> int {
  std::string out;
  tidegate::http::problem_writer(out, {}).extension("status", 1);
}
