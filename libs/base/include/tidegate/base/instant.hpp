// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/version.hpp>

#include <chrono>
#include <cstdint>

namespace tidegate::TIDEGATE_ABI {

/// The clock that decisions are made by: it never steps back while a process lives, and
/// nothing in here reads it. The caller of a policy says what time it is.
struct steady_time {
  /// What `std::chrono` wants a clock to have.
  using rep = std::int64_t;
  using period = std::nano;
  using duration = std::chrono::duration<rep, period>;
  using time_point = std::chrono::time_point<steady_time>;
  static constexpr bool is_steady = true;
};

/// A moment of `steady_time`.
using instant = steady_time::time_point;

}  // namespace tidegate::TIDEGATE_ABI
