// SPDX-License-Identifier: Apache-2.0
#include "observe/metrics.hpp"

#include <tidegate/proxy/control.hpp>

namespace tidegate::gateway {

namespace {

constexpr std::array<std::string_view, keyed_outcomes_count> keyed_outcome_names = {
    "first",           "replayed",     "conflict",       "reused",   "unknown",
    "unknown-refused", "expired",      "not-replayable", "missing",  "malformed",
    "too-many-keys",   "store-failed", "bypassed",       "not-sent", "refused"};

}  // namespace

auto name_of(keyed_outcome outcome) noexcept -> std::string_view {
  return keyed_outcome_names[static_cast<std::size_t>(outcome)];
}

void latency_counts::count(std::chrono::nanoseconds latency) noexcept {
  auto const microseconds =
      static_cast<std::uint64_t>(std::max<std::int64_t>(latency / std::chrono::microseconds(1), 0));
  std::size_t bound = 0;  // one by one, as most are within the first few
  while (bound < latency_bounds.size() && latency_bounds[bound] < microseconds) {
    ++bound;
  }
  by_bound[bound].add();
  sum.add(microseconds);
}

void route_metrics::count(int status, std::chrono::nanoseconds took) noexcept {
  by_status.add(static_cast<std::size_t>(std::clamp(status, 0, 599)));
  latency.count(took);
}

auto scim_operation_of(std::string_view method, std::string_view path) noexcept -> scim_operation {
  auto const type = path.substr(0, path.find('/', 1));
  if (type == "/ServiceProviderConfig" || type == "/Schemas" || type == "/ResourceTypes") {
    return scim_operation::discovery;
  }
  if (type == "/Bulk") {
    return scim_operation::bulk;
  }
  if (path.ends_with("/.search")) {
    return scim_operation::list;
  }
  if (method == "POST") {
    return scim_operation::create;
  }
  if (method == "PUT") {
    return scim_operation::replace;
  }
  if (method == "PATCH") {
    return scim_operation::patch;
  }
  if (method == "DELETE") {
    return scim_operation::remove;
  }
  return type.size() + 1 < path.size() ? scim_operation::read : scim_operation::list;
}

void policy_sums::add(policy_metrics const& counted) noexcept {
  admitted += counted.admitted.value();
  refused += counted.refused.value();
  shadow_refused += counted.shadow_refused.value();
  blocked += counted.blocked.value();
  shared += counted.shared.value();
}

namespace {

/// What is counted under `key`, from 0 on when nothing was so far.
template <class Map>
[[nodiscard]] auto found_or_made(std::mutex& mutex, Map& map, typename Map::key_type const& key)
    -> auto& {
  std::lock_guard const lock(mutex);
  auto& found = map[key];
  if (!found) {
    found = std::make_unique<typename Map::mapped_type::element_type>();
  }
  return *found;
}

}  // namespace

auto worker_metrics::of_route(std::string const& name) -> route_metrics& {
  return found_or_made(mutex, routes, name);
}

auto worker_metrics::of_policy(std::string const& name) -> policy_metrics& {
  return found_or_made(mutex, policies, name);
}

auto worker_metrics::of_upstream(std::string const& name) -> latency_counts& {
  return found_or_made(mutex, upstreams, name);
}

auto worker_metrics::of_server(std::string const& upstream, std::string const& server)
    -> std::shared_ptr<server_metrics> {
  std::lock_guard const lock(mutex);
  auto& found = servers[{upstream, server}];
  if (!found) {
    found = std::make_shared<server_metrics>();
  }
  return found;
}

void worker_metrics::forget_server(std::string const& upstream, std::string const& server) {
  std::lock_guard const lock(mutex);
  auto const found = servers.find({upstream, server});
  if (found != servers.end() && found->second.use_count() == 1) {
    servers.erase(found);
  }
}

}  // namespace tidegate::gateway
