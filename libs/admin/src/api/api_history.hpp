// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "http.hpp"
#include "traffic_history.hpp"

#include <chrono>
#include <cstddef>
#include <string>

namespace tidegate::gateway {

/// The same moment by both clocks.
struct two_clocks {
  instant steady;
  std::chrono::system_clock::time_point wall;
};

/// The samples from index `first` on as JSON, one array for each series; series that are 0 all the
/// time are left out.
[[nodiscard]] auto history_json(traffic_history const& history, std::size_t first, two_clocks now)
    -> std::string;

/// `/api/v1/history?seconds=N`
[[nodiscard]] auto answer_history(traffic_history const& history, admin_request const& request,
                                  two_clocks now) -> admin_answer;

}  // namespace tidegate::gateway
