// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/engine/loop.hpp>
#include <tidegate/engine/timer.hpp>
#include <tidegate/proxy/idempotency_service.hpp>

#include <chrono>
#include <cstddef>

namespace tidegate::gateway {

[[nodiscard]] inline auto wall_clock_now() -> idempotency::wall_time {
  return std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
}

/// Expires the records of idempotency keys, once a second.
class key_sweeper final : private engine::timer {
 public:
  key_sweeper(engine::loop& on, idempotency_service& keys) : loop_(on), keys_(keys) { expired(); }

 private:
  void expired() override {
    keys_.clock.look(wall_clock_now(), loop_.now());
    keys_.store->sweep(keys_.clock.at(loop_.now()), records_at_once);
    set(loop_.timers(), loop_.now() + std::chrono::seconds(1));
  }

  static constexpr std::size_t records_at_once = 10'000;

  engine::loop& loop_;
  idempotency_service& keys_;
};

}  // namespace tidegate::gateway
