// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "exchange.hpp"
#include "scheduler.hpp"

#include <tidegate/base/result.hpp>
#include <tidegate/client/session.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>

namespace tidegate::TIDEGATE_ABI::client {

/// Moves the bytes of attempts, with libcurl's multi interface on an epoll of its own. Decides
/// nothing: it says what became of an attempt.
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

  /// Hears of an attempt that has ended. Must not begin or drop one.
  using on_end = std::move_only_function<void(exchange&, attempt_end const&)>;
  /// Waits until there is something to read or write, `wake` is called, or `time` is over; reads
  /// and writes it. Does not wait when something has ended.
  void move_bytes(std::chrono::nanoseconds time, on_end& ended);

 private:
  struct state;
  explicit transport(std::unique_ptr<state> state) noexcept;
  std::unique_ptr<state> state_;
};

}  // namespace tidegate::TIDEGATE_ABI::client
