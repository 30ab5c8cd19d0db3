// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>

namespace tidegate::gateway {

/// What every program that Prometheus scrapes says of its process, by the same names.
void append_process_metrics(std::string& out, std::chrono::system_clock::time_point started);

}  // namespace tidegate::gateway
