// SPDX-License-Identifier: Apache-2.0
#include <tidegate/proxy/control.hpp>

#include "observe/prometheus.hpp"
#include "observe/traffic.hpp"
#include "worker/worker.hpp"

namespace tidegate::gateway {

auto control::events() const -> std::shared_ptr<event_log> const& {
  return shared_.events;
}

auto control::listeners() const -> std::span<bound_listener const> {
  return shared_.listeners;
}

auto control::consumers() const -> std::shared_ptr<consumer_index const> {
  auto current = shared_.consumers ? shared_.consumers->current() : nullptr;
  return current ? std::move(current) : active->consumers;
}

auto control::is_draining() const -> bool {
  return shared_.drain.draining.load(std::memory_order_relaxed);
}

auto control::quota_table() const -> store::quota_table& {
  return shared_.quotas.table;
}

auto control::overrides() const -> store::quota_overrides& {
  return shared_.quotas.overrides;
}

auto control::quota_health() const -> store::store_health& {
  return shared_.quotas.health;
}

void control::post_to_workers(std::function<void(store::quota_store&)> const& task) const {
  for (auto* const each : shared_.workers) {
    each->loop.post([each, task] {
      if (each->quotas) {
        task(*each->quotas);
      }
    });
  }
}

auto control::traffic() const -> traffic_sums {
  return sum_traffic(shared_.metrics);
}

auto control::sums_of(std::string const& policy) const -> policy_sums {
  policy_sums sums;
  for (auto const& worker : shared_.metrics) {
    std::lock_guard const lock(worker->mutex);
    if (auto const found = worker->policies.find(policy); found != worker->policies.end()) {
      sums.add(*found->second);
    }
  }
  return sums;
}

auto control::hottest_of(std::string const& policy, instant now) const
    -> std::vector<heavy_hitters::partition> {
  std::map<std::string, heavy_hitters::partition> merged;
  for (auto const& worker : shared_.metrics) {
    std::unique_lock lock(worker->mutex);
    auto const found = worker->policies.find(policy);
    auto seen = found == worker->policies.end() ? std::vector<heavy_hitters::partition>()
                                                : found->second->hottest.look(now);
    lock.unlock();
    for (auto& each : seen) {
      auto [at, is_new] = merged.try_emplace(each.text, each);
      if (!is_new) {
        auto& sum = at->second;
        sum.requests += each.requests;
        sum.refused += each.refused;
        // The threads share the bucket: the thread that saw less of it saw it later.
        sum.remaining = std::min(sum.remaining, each.remaining);
        sum.reset = std::max(sum.reset, each.reset);
      }
    }
  }
  std::vector<heavy_hitters::partition> all;
  all.reserve(merged.size());
  for (auto& [text, each] : merged) {
    all.push_back(std::move(each));
  }
  return all;
}

void control::correct_hottest(std::string const& policy, std::string_view partition,
                              ratelimit::service const& left) const {
  for (auto const& each : shared_.metrics) {
    std::lock_guard const lock(each->mutex);
    if (auto const found = each->policies.find(policy); found != each->policies.end()) {
      found->second->hottest.correct(partition, left, loop.now());
    }
  }
}

void control::append_metrics(std::string& out, program_figures const& program,
                             std::span<store_figures const> stores) const {
  auto const used = keys ? keys->store->used() : store::idempotency_store::usage{};
  append_prometheus(
      out, shared_.metrics,
      {.quota_buckets = shared_.quotas.table.size(),
       .quota_octets = shared_.quotas.table.memory(),
       .buffered_octets = shared_.memory.buffered.load(std::memory_order_relaxed),
       .log_lines_lost = shared_.log.lost(),
       .keys_waited_for = keys ? keys->waiters.size() : 0,
       .keys_unresolved = used.unknown,
       .keys_octets = used.stored_octets,
       .keys_octets_max = used.stored_octets_max,
       .keys_full =
           keys ? std::optional(keys->is_full.load(std::memory_order_relaxed)) : std::nullopt,
       .event_lines_dropped = shared_.events->dropped()},
      program);
  append_upstreams(out, *active, shared_.metrics, shared_.upstreams, loop.now());
  append_names(out, shared_.names.figures());
  append_certificates(out, *active);
  if (shared_.consumers) {
    append_consumers(out, shared_.consumers->figures());
  }
  append_stores(out, stores);
  append_scim_ignored(
      out, active->config,
      scim != nullptr ? scim->ignored().by_route() : std::map<std::string, scim_ignored::counts>());
}

}  // namespace tidegate::gateway
