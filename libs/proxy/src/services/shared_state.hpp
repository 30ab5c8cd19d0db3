// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "observe/access_log.hpp"
#include "observe/upstream_reports.hpp"
#include "services/consumer_follower.hpp"
#include "services/name_resolver.hpp"

#include <tidegate/proxy/control.hpp>

#include <set>

namespace tidegate::gateway {

class worker;

/// Quotas in memory, of all threads.
struct quota_state {
  store::quota_table& table;
  store::quota_overrides overrides{};  ///< of what is in `table`
  /// Of the store, where gateways share quotas.
  store::store_health health{
      {"the store of quotas does not answer ({}): each policy does as its "
       "on-store-failure says",
       "the store of quotas answers again"}};
};

/// How far the gateway is with stopping.
struct drain_state {
  /// No connection, or no exchange without one, is left; from any thread.
  void last_has_gone() {
    if (draining.load(std::memory_order_relaxed)) {
      std::lock_guard const lock(mutex);
      changed.notify_all();
    }
  }

  std::atomic<bool> draining{false};
  std::mutex mutex;
  /// When a worker has begun to drain, and when the last connection goes.
  std::condition_variable changed;
  std::size_t workers_draining = 0;
};

/// Descriptors of all threads. The bounds are set at the start.
struct connection_budget {
  std::atomic<std::int64_t> clients{0};
  std::atomic<std::int64_t> detached{0};  ///< exchanges that run without their client
  std::atomic<std::int64_t> upstreams{0};
  std::int64_t clients_max = 0;
  std::int64_t descriptors = 0;                ///< for clients and upstreams
  std::atomic<instant> noted{instant::min()};  ///< when the log last said that none is left
};

/// What waits in memory because clients are slow, on all threads.
struct buffer_budget {
  std::atomic<std::int64_t> buffered{0};              ///< octets
  std::atomic<std::uint64_t> shed_requests{0};        ///< that it be less; 0: no round is under way
  std::atomic<instant> shed_noted{instant::min()};    ///< when the log last said so
  std::atomic<instant> memory_noted{instant::min()};  ///< the same for failed allocations
};

/// Whether the log may say something again that it said at `noted`: every ten seconds.
[[nodiscard]] inline auto may_note(std::atomic<instant>& noted, instant now) -> bool {
  constexpr std::chrono::seconds pause{10};
  auto before = noted.load(std::memory_order_relaxed);
  return (before == instant::min() || now >= before + pause) &&
         noted.compare_exchange_strong(before, now);
}

/// What all workers share.
struct shared_state {
  shared_state(store::quota_table& table, access_log& to, std::shared_ptr<event_log> events_to)
      : quotas{table}, log(to), events(std::move(events_to)), upstreams(*events), names(*events) {}

  void warn(std::string_view line) const { events->warning(line); }
  /// A client asked for an upgrade that its route does not have. Says so once for each route.
  void note_upgrade(std::string const& route) {
    std::lock_guard const lock(upgrades_mutex);
    if (upgrades_noted.insert(route).second) {
      events->info("route \"" + route +
                   "\": a client asked to upgrade its connection, which goes on as plain HTTP "
                   "(see upgrade: [websocket] of the route)");
    }
  }

  quota_state quotas;
  drain_state drain;
  connection_budget connections;
  buffer_budget memory;
  access_log& log;
  std::shared_ptr<event_log> events;  ///< never null
  upstream_reports upstreams;
  name_resolver names;
  std::vector<std::shared_ptr<worker_metrics>> metrics;
  std::vector<bound_listener> listeners;  ///< from the start on
  std::vector<worker*> workers;           ///< each is used on its own thread only
  /// Null while no route has keys; from then on it stays.
  std::shared_ptr<idempotency_service> idempotency;
  /// Null while no route is one of SCIM; from then on it stays.
  std::unique_ptr<scim_service> scim;
  /// Null while no route is a bridge; from then on it stays.
  std::unique_ptr<scim::cursor_sealer const> bridge_cursors;
  std::unique_ptr<consumer_follower> consumers;  ///< null before the start
  std::mutex upgrades_mutex;
  std::set<std::string> upgrades_noted;  ///< by route
};

}  // namespace tidegate::gateway
