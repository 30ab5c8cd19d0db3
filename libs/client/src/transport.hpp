// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "exchange.hpp"
#include "scheduler.hpp"

#include <tidegate/base/result.hpp>
#include <tidegate/client/session.hpp>

#include <chrono>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace tidegate::client {

/// Moves the bytes of attempts, with libcurl's multi interface on an epoll of its own. Decides nothing: it says
/// what became of an attempt.
///
/// One thread uses it; only `wake` may be called by others.
class transport {
 public:
  /// `options` outlive it.
  [[nodiscard]] static auto make(session_options const& options)
      -> result<std::unique_ptr<transport>, client_error>;
  transport(transport const&) = delete;
  auto operator=(transport const&) -> transport& = delete;
  /// All attempts have ended or were dropped.
  ~transport();

  /// Begins an attempt, which ends after `time_max` at the latest. When it cannot begin, says why.
  [[nodiscard]] auto start(exchange& each, std::chrono::nanoseconds time_max)
      -> std::optional<attempt_end>;
  /// Lets go of an attempt that has begun, and says how far it had come.
  [[nodiscard]] auto drop(exchange& each) -> attempt_end;
  void wake();

  using ended_attempt = std::pair<exchange*, attempt_end>;
  /// Waits until there is something to read or write, somebody wakes it, or `time` is over; reads and writes
  /// it. Returns what has ended, until the next call.
  [[nodiscard]] auto move_bytes(std::chrono::nanoseconds time) -> std::vector<ended_attempt> const&;

 private:
  struct state;
  explicit transport(std::unique_ptr<state> state) noexcept;
  std::unique_ptr<state> state_;
};

}  // namespace tidegate::client
