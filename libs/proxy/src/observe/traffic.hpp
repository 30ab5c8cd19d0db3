// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "observe/metrics.hpp"

#include <memory>
#include <span>

namespace tidegate::gateway {

/// Adds up what the threads counted.
[[nodiscard]] auto sum_traffic(std::span<std::shared_ptr<worker_metrics> const> workers)
    -> traffic_sums;

}  // namespace tidegate::gateway
