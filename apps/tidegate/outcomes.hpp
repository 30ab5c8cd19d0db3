// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/client/session.hpp>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

namespace tidegate::app {

/// Sends requests and hands what becomes of them, one after the other, to the thread that asks;
/// Ctrl-C is one of the things that may come.
class outcomes {
 public:
  struct outcome {
    std::uint64_t tag = 0;  ///< as it was given to `send`
    result<client::response, client::client_error> what;
  };

  /// From here on SIGINT and SIGTERM only end a wait; a second one ends the program. An error is a
  /// text.
  [[nodiscard]] static auto open(client::session_options options)
      -> result<std::unique_ptr<outcomes>, std::string>;
  outcomes(outcomes const&) = delete;
  auto operator=(outcomes const&) -> outcomes& = delete;
  ~outcomes();

  [[nodiscard]] auto send(client::request wanted, std::uint64_t tag)
      -> result<void, client::client_error>;
  /// The next outcome. Nothing when none came in this time, somebody has just interrupted, or the
  /// descriptor `input` can be read, which `has_input` says then.
  [[nodiscard]] auto wait(std::chrono::milliseconds time, int input = -1) -> std::optional<outcome>;
  [[nodiscard]] auto has_input() const -> bool { return has_input_; }

  [[nodiscard]] auto is_interrupted() const -> bool { return interrupted_; }
  /// The same for those who do not wait for anything: looks whether a signal has come.
  [[nodiscard]] auto is_interrupted_now() -> bool;
  [[nodiscard]] auto activity() const -> client::session_activity { return session_->activity(); }

 private:
  outcomes() = default;
  void take_signal();

  sigset_t ending_{};
  int signals_ = -1;
  int came_ = -1;
  bool interrupted_ = false;
  bool has_input_ = false;
  std::mutex mutex_;
  std::deque<outcome> queue_;                 // no longer than what is under way
  std::unique_ptr<client::session> session_;  // the last one: its end makes outcomes
};

}  // namespace tidegate::app
