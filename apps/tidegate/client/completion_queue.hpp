// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/client/session.hpp>
#include <tidegate/engine/socket.hpp>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

namespace tidegate::app {

/// A request that is over.
struct completion {
  std::uint64_t tag = 0;  ///< as it was given to `send`
  result<client::response, client::client_error> answer;
};

/// Sends requests and hands their completions, one after the other, to the thread that waits; a
/// signal ends a wait, too.
class completion_queue {
 public:
  /// From here on SIGINT and SIGTERM only end a wait; a second one ends the program. An error is a
  /// text.
  [[nodiscard]] static auto open(client::session_options options)
      -> result<std::unique_ptr<completion_queue>, std::string>;
  completion_queue(completion_queue const&) = delete;
  auto operator=(completion_queue const&) -> completion_queue& = delete;
  ~completion_queue() = default;

  [[nodiscard]] auto send(client::request wanted, std::uint64_t tag)
      -> result<void, client::client_error>;
  /// The next completion. Nothing when none came in this time, a signal has just come, or the
  /// descriptor `input` can be read, which `has_input` says then.
  [[nodiscard]] auto wait(std::chrono::milliseconds time, int input = -1)
      -> std::optional<completion>;
  [[nodiscard]] auto has_input() const -> bool { return has_input_; }

  [[nodiscard]] auto is_interrupted() const -> bool { return interrupted_; }
  /// The same without a wait: looks whether a signal has come.
  [[nodiscard]] auto is_interrupted_now() -> bool;
  [[nodiscard]] auto activity() const -> client::session_activity { return session_->activity(); }

 private:
  completion_queue() = default;
  void take_signal();

  sigset_t ending_{};
  engine::descriptor signals_;
  engine::descriptor came_;
  bool interrupted_ = false;
  bool has_input_ = false;
  std::mutex mutex_;
  std::deque<completion> queue_;              // no longer than what is under way
  std::unique_ptr<client::session> session_;  // the last one: its end makes completions
};

}  // namespace tidegate::app
