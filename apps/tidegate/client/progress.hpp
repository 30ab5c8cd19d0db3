// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/client/session.hpp>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace tidegate::app {

/// Shows on standard error how far work has come: on a terminal a bar that is redrawn, elsewhere a
/// line every ten seconds. Nothing is shown of work that is over at once.
class progress {
 public:
  using clock = std::chrono::steady_clock;

  progress();
  /// How often to call `show`; more often does no harm.
  static constexpr std::chrono::milliseconds tick{100};

  /// `total` is 0 when it is unknown.
  void show(std::uint64_t done, std::uint64_t total, client::session_activity const& activity = {});
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

}  // namespace tidegate::app
