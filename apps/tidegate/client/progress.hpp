// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tidegate::app {

/// How far long work has come.
struct progress_state {
  std::uint64_t done = 0;
  std::uint64_t total = 0;  ///< 0: unknown
  std::uint64_t under_way = 0;
  std::uint64_t retries = 0;
  std::optional<std::chrono::nanoseconds> next_in;  ///< when something happens again, if it waits
};

/// Shows on standard error how far work has come: on a terminal a bar that is redrawn, elsewhere a
/// line every ten seconds. Nothing is shown of work that is over at once.
class progress {
 public:
  using clock = std::chrono::steady_clock;

  progress();
  /// How often to call `show`; more often does no harm.
  static constexpr std::chrono::milliseconds tick{100};

  void show(progress_state const& state, clock::time_point now);
  /// Removes the bar, so that something else can be printed.
  void clear();

 private:
  bool is_terminal_;
  bool is_drawn_ = false;
  clock::time_point began_;
  clock::time_point shown_;
};

/// `1 request`, `2 requests`.
[[nodiscard]] auto counted(std::uint64_t number, std::string_view one) -> std::string;

/// The text of a line, without a bar:
/// `12 of 100 done, 3 under way, 4.0/s, 2 retries, next in 3.2 s`.
[[nodiscard]] auto describe(progress_state const& state, std::chrono::nanoseconds elapsed)
    -> std::string;

}  // namespace tidegate::app
