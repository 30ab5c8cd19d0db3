// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

namespace tidegate::idempotency {

/// A moment by the clock on the wall, which outlives processes. Nothing in here reads it: the
/// caller says what time it is. Gateways that share a store take the time of the store.
using wall_time = std::chrono::sys_time<std::chrono::milliseconds>;

}  // namespace tidegate::idempotency
