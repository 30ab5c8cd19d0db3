// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

namespace tidegate::gateway {

/// The time as records of keys and cursors have it.
[[nodiscard]] inline auto wall_clock_now() -> std::chrono::sys_time<std::chrono::milliseconds> {
  return std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
}

}  // namespace tidegate::gateway
