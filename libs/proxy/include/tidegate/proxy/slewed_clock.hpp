// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/instant.hpp>
#include <tidegate/idempotency/wall_time.hpp>

#include <algorithm>
#include <atomic>

namespace tidegate::gateway {

/// The time by which idempotency keys are kept. It begins with the clock on the wall and follows
/// it, but never steps when that one is set: it goes on by the steady clock, and until both agree
/// again it runs at most half as fast again, or half as fast. So no lease ends under an owner that
/// renews it, time never goes back, and a clock that is set wrongly for a while neither forgets
/// keys nor keeps them for good.
class slewed_clock {
 public:
  slewed_clock(idempotency::wall_time wall, instant steady) noexcept
      : ahead_(difference(wall, steady)), looked_(steady) {}

  /// To be told every second or so, by one thread, what both clocks say.
  void look(idempotency::wall_time wall, instant steady) noexcept {
    auto const bend_max = std::max(steady - looked_, std::chrono::nanoseconds(0)) / 2;
    auto const before = ahead_.load(std::memory_order_relaxed);
    auto const step = difference(wall, steady) - before;
    ahead_.store(before + std::clamp(step, -bend_max, bend_max), std::memory_order_relaxed);
    looked_ = std::max(looked_, steady);
  }

  /// The time at a moment that is not long ago. By any thread.
  [[nodiscard]] auto at(instant steady) const noexcept -> idempotency::wall_time {
    return idempotency::wall_time(std::chrono::floor<std::chrono::milliseconds>(
        steady.time_since_epoch() + ahead_.load(std::memory_order_relaxed)));
  }

 private:
  [[nodiscard]] static auto difference(idempotency::wall_time wall, instant steady) noexcept
      -> std::chrono::nanoseconds {
    return wall.time_since_epoch() - steady.time_since_epoch();
  }

  std::atomic<std::chrono::nanoseconds> ahead_;  // of the steady clock
  instant looked_;
};

}  // namespace tidegate::gateway
