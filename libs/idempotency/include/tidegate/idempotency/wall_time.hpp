// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/version.hpp>

#include <chrono>

namespace tidegate::TIDEGATE_ABI::idempotency {

/// A moment by the clock on the wall, which outlives processes. Nothing in here reads it: the
/// caller says what time it is. Gateways that share a store take the time of the store.
using wall_time = std::chrono::sys_time<std::chrono::milliseconds>;

}  // namespace tidegate::TIDEGATE_ABI::idempotency
