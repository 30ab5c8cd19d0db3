// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/engine/loop.hpp>
#include <tidegate/engine/timer.hpp>

#include <chrono>
#include <functional>
#include <utility>

namespace tidegate::store_redis {

/// A timer that calls a function.
class callback_timer final : private engine::timer {
 public:
  callback_timer(engine::loop& on, std::function<void()> call)
      : loop_(on), call_(std::move(call)) {}

  /// In `time` from now, instead of whatever was set before.
  void set_in(std::chrono::milliseconds time) {
    at_ = loop_.now() + time;
    set(loop_.timers(), at_);
  }
  /// The same, unless it comes earlier.
  void set_within(std::chrono::milliseconds time) {
    if (!is_set() || loop_.now() + time < at_) {
      set_in(time);
    }
  }

 private:
  void expired() override {
    // What it calls may destroy this.
    auto const call = call_;
    call();
  }

  engine::loop& loop_;
  std::function<void()> call_;
  instant at_{};
};

}  // namespace tidegate::store_redis
