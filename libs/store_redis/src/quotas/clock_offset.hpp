// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>

namespace tidegate::store_redis {

/// How far the clock of the store is ahead of the steady clock here, by what was answered last.
struct clock_offset {
  std::int64_t ahead = 0;  ///< microseconds, at least
  bool is_known = false;

  /// What was answered is over, so that the store's clock is now ahead at least as far as this.
  void update(std::int64_t store_time) noexcept {
    auto const now = std::chrono::steady_clock::now().time_since_epoch();
    ahead = store_time - std::chrono::ceil<std::chrono::microseconds>(now).count();
    is_known = true;
  }
};

}  // namespace tidegate::store_redis
