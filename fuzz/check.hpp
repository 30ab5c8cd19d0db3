// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdio>
#include <cstdlib>
#include <source_location>

namespace tidegate::fuzz {

/// Ends the program, as a finding, when a property of a fuzz target does not hold: says where it is
/// stated, and `what` it says when the condition alone would not tell.
inline void check(bool holds, char const* what = "",
                  std::source_location where = std::source_location::current()) {
  if (!holds) {
    std::fprintf(stderr, "%s:%u: does not hold: %s\n", where.file_name(), where.line(), what);
    std::abort();
  }
}

}  // namespace tidegate::fuzz
