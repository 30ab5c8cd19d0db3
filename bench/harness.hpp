// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

/// What every benchmark shares: timing, counting allocations, counting instructions, and the lines
/// that programs read.
namespace tidegate::bench {

/// Keeps the compiler from dropping a computation whose value is not used.
template <class T>
inline void keep(T const& value) {
  asm volatile("" : : "r,m"(value) : "memory");
}

struct bench_case {
  std::string name;                      ///< such as `sf/a/reader`
  std::function<void(std::size_t)> run;  ///< does the work so many times
  double instructions_bar = 0;           ///< what the case must stay below; 0: no bar
  std::size_t bytes = 0;                 ///< of input: then also instructions for each of them
};

/// Runs the cases that `arguments` select and prints one line for each:
/// `bench NAME ns=… allocations=…`, with `--instructions` also `instructions=…` as counted by
/// callgrind, and the bar where there is one. Returns the exit status: 1 when a bar was missed.
[[nodiscard]] auto run_cases(std::vector<bench_case> const& cases, int argc, char** argv) -> int;

/// The same work by a library of others, with the name of its figure.
struct rival {
  std::string name;
  std::function<void()> run;
};

struct comparison {
  std::string name;
  std::size_t octets;  ///< of input
  std::function<void()> ours;
  std::vector<rival> rivals;
};

/// Runs ours and the others in turns, so that a machine that is busy for a while slows all of
/// them, and prints `bench NAME octets=… ns=… RIVAL_ns=… ratio=…` with the best of each. The ratio
/// is the best of the others divided by ours.
void compare(std::vector<comparison> const& all);

}  // namespace tidegate::bench
