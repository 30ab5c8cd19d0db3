// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace tidegate::e2e {

struct outcome {
  int status = -1;  ///< what the program exited with; 128 and more when a signal ended it
  std::string out;
  std::string err;
};

/// Runs a program to its end with `input` on standard input.
[[nodiscard]] auto run(std::vector<std::string> const& arguments, std::string const& input = {})
    -> outcome;

}  // namespace tidegate::e2e
