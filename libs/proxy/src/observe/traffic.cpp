// SPDX-License-Identifier: Apache-2.0
#include "observe/traffic.hpp"

#include <algorithm>

namespace tidegate::gateway {

namespace {

/// Where a status is counted in `traffic_sums::responses`.
[[nodiscard]] auto group_of(std::size_t status) -> std::size_t {
  constexpr std::size_t too_many_requests = 5;
  return status == 429 ? too_many_requests : std::clamp<std::size_t>(status / 100, 1, 5) - 1;
}

/// Where an outcome is counted in `traffic_sums::keys`.
[[nodiscard]] auto group_of(keyed_outcome outcome) -> std::size_t {
  constexpr auto others = traffic_sums::key_names.size() - 1;
  return std::min(static_cast<std::size_t>(outcome), others);
}
static_assert(static_cast<std::size_t>(keyed_outcome::unknown) == 4, "the others come after it");

void add(traffic_sums& sums, route_metrics const& counted) {
  counted.by_status.for_each(
      [&](std::size_t status, std::uint64_t count) { sums.responses[group_of(status)] += count; });
  for (std::size_t i = 0; i < sums.latency.size(); ++i) {
    sums.latency[i] += counted.latency.by_bound[i].value();
  }
  for (std::size_t i = 0; i < counted.keyed.size(); ++i) {
    sums.keys[group_of(static_cast<keyed_outcome>(i))] += counted.keyed[i].value();
  }
}

}  // namespace

auto sum_traffic(std::span<std::shared_ptr<worker_metrics> const> workers) -> traffic_sums {
  traffic_sums sums;
  for (auto const& worker : workers) {
    std::lock_guard const lock(worker->mutex);
    for (auto const& [name, route] : worker->routes) {
      add(sums, *route);
    }
    for (auto const& [name, server] : worker->servers) {
      sums.upstream_failures += server->failures.value();
    }
  }
  return sums;
}

}  // namespace tidegate::gateway
