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

/// Sends requests and hands what becomes of them, one after the other, to the thread that asks; Ctrl-C is one
/// of the things that may come.
class outcomes {
 public:
  struct outcome {
    std::uint64_t tag = 0;  ///< as it was given to `send`
    result<client::response, client::client_error> what;
  };

  /// From here on SIGINT and SIGTERM only end a wait; a second one ends the program. An error is a text.
  [[nodiscard]] static auto open(client::session_options options)
      -> result<std::unique_ptr<outcomes>, std::string>;
  outcomes(outcomes const&) = delete;
  auto operator=(outcomes const&) -> outcomes& = delete;
  ~outcomes();

  [[nodiscard]] auto send(client::request wanted, std::uint64_t tag)
      -> result<void, client::client_error>;
  /// The next outcome. Nothing when none came in this time, or somebody has just interrupted.
  [[nodiscard]] auto wait(std::chrono::milliseconds time) -> std::optional<outcome>;

  [[nodiscard]] auto is_interrupted() const -> bool { return interrupted_; }
  [[nodiscard]] auto activity() const -> client::session_activity { return session_->activity(); }

 private:
  outcomes() = default;

  sigset_t ending_{};
  int signals_ = -1;
  int came_ = -1;
  bool interrupted_ = false;
  std::mutex mutex_;
  std::deque<outcome> queue_;                 // no longer than what is under way
  std::unique_ptr<client::session> session_;  // the last one: its end makes outcomes
};

}  // namespace tidegate::app
