// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "protocol/callback_timer.hpp"
#include "protocol/connection.hpp"

#include <algorithm>
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
struct question {
  command what;
  answer_function answer;
  std::uint16_t slot = 0;
  unsigned tries_left = 12;
};

/// What the first of several commands was answered, or the only one.
[[nodiscard]] inline auto first_of(command const& what, resp_value const& value)
    -> resp_value const& {
  return what.count() > 1 && !value.items.empty() ? value.items.front() : value;
}

/// Questions that are asked again a little later.
class later {
 public:
  later(engine::loop& on, std::size_t questions_max,
        std::function<void(std::unique_ptr<question>)> ask)
      : questions_max_(questions_max), ask_(std::move(ask)), alarm_(on, [this] { ask_all(); }) {}

  /// Has `q` asked again, or answers it with `why` when that was done too often.
  void add(std::unique_ptr<question> q, std::string const& why) {
    if (q->tries_left == 0 || waiting_.size() >= questions_max_) {
      q->answer(failure(store::store_error{store::store_fault::unavailable, why}));
      return;
    }
    --q->tries_left;
    waiting_.push_back(std::move(q));
    alarm_.set_within(pause);
  }
  /// Answers all of them.
  void fail(store::store_error const& error) {
    for (auto& each : std::exchange(waiting_, {})) {
      each->answer(failure(error));
    }
  }
  /// Asks all of them now.
  void ask_all() {
    for (auto& each : std::exchange(waiting_, {})) {
      ask_(std::move(each));
    }
  }

 private:
  static constexpr std::chrono::milliseconds pause{50};

  std::size_t questions_max_;
  std::function<void(std::unique_ptr<question>)> ask_;
  std::deque<std::unique_ptr<question>> waiting_;
  alarm alarm_;
};

}  // namespace tidegate::store_redis
