// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "protocol/callback_timer.hpp"
#include "protocol/connection.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>

namespace tidegate::store_redis {

/// A command that may have to be sent again: the server said that it was not carried out.
struct pending_command {
  command request;
  answer_function answer;
  std::uint16_t slot = 0;
  unsigned tries_left = 12;
};

/// What the first of several commands was answered, or the only one.
[[nodiscard]] inline auto first_of(command const& sent, resp_value const& value)
    -> resp_value const& {
  return sent.count() > 1 && !value.items.empty() ? value.items.front() : value;
}

/// Commands that are sent again after a short pause.
class retry_queue {
 public:
  retry_queue(engine::loop& on, std::size_t commands_max,
              std::function<void(std::unique_ptr<pending_command>)> send)
      : commands_max_(commands_max), send_(std::move(send)), timer_(on, [this] { send_all(); }) {}

  /// Has `pending` sent again, or answers it with `why` when that was done too often.
  void add(std::unique_ptr<pending_command> pending, std::string const& why) {
    if (pending->tries_left == 0 || waiting_.size() >= commands_max_) {
      pending->answer(failure(store::store_error{store::store_fault::unavailable, why}));
      return;
    }
    --pending->tries_left;
    waiting_.push_back(std::move(pending));
    timer_.set_within(pause);
  }
  /// Answers all of them.
  void fail(store::store_error const& error) {
    for (auto& each : std::exchange(waiting_, {})) {
      each->answer(failure(error));
    }
  }
  /// Sends all of them now.
  void send_all() {
    for (auto& each : std::exchange(waiting_, {})) {
      send_(std::move(each));
    }
  }

 private:
  static constexpr std::chrono::milliseconds pause{50};

  std::size_t commands_max_;
  std::function<void(std::unique_ptr<pending_command>)> send_;
  std::deque<std::unique_ptr<pending_command>> waiting_;
  callback_timer timer_;
};

}  // namespace tidegate::store_redis
