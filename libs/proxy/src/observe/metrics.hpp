// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/proxy/heavy_hitters.hpp>
#include <tidegate/proxy/traffic.hpp>

#include <atomic>
#include <bit>
#include <map>

namespace tidegate::gateway {

/// A number that one thread counts and others read.
class counter {
 public:
  void add(std::uint64_t count = 1) noexcept {
    // One writer: a load and a store are enough, and cheaper than an atomic addition.
    value_.store(value_.load(std::memory_order_relaxed) + count, std::memory_order_relaxed);
  }
  void subtract(std::uint64_t count = 1) noexcept {
    value_.store(value_.load(std::memory_order_relaxed) - count, std::memory_order_relaxed);
  }
  [[nodiscard]] auto value() const noexcept -> std::uint64_t {
    return value_.load(std::memory_order_relaxed);
  }

 private:
  std::atomic<std::uint64_t> value_{0};
};

/// What became of a request with an Idempotency-Key, or without the one that it needs.
enum class keyed_outcome : std::uint8_t {
  first,
  replayed,
  conflict,  ///< another one was in flight
  reused,
  unknown,          ///< it ran, and whether it was carried out is not known
  unknown_refused,  ///< a retry of one whose outcome is unknown
  expired,
  not_replayable,
  missing,
  malformed,
  too_many_keys,
  store_failed,
  bypassed,
  not_sent,  ///< no connection to the upstream came about; the key may run again
  refused,   ///< by a quota, or since the upstream is overloaded; the key may run again
};
inline constexpr std::size_t keyed_outcomes_count =
    static_cast<std::size_t>(keyed_outcome::refused) + 1;

/// As metrics and the access log call it: `first`, `replayed` and so on.
[[nodiscard]] auto name_of(keyed_outcome outcome) noexcept -> std::string_view;

/// Counts by status. Of the many that there may be few are in use: a bit for each tells which,
/// since every open console reads them all once a second.
class status_counts {
 public:
  static constexpr std::size_t statuses = 600;

  void add(std::size_t status) noexcept {
    if (counts_[status].value() == 0) {
      used_[status / 64].add(std::uint64_t{1} << (status % 64));
    }
    counts_[status].add();
  }
  /// Calls `each(status, count)` for those that are not 0.
  template <class Each>
  void for_each(Each each) const {
    for (std::size_t i = 0; i < used_.size(); ++i) {
      for (auto bits = used_[i].value(); bits != 0; bits &= bits - 1) {
        auto const status = i * 64 + static_cast<std::size_t>(std::countr_zero(bits));
        if (auto const count = counts_[status].value(); count != 0) {
          each(status, count);
        }
      }
    }
  }

 private:
  std::array<counter, statuses> counts_;
  std::array<counter, (statuses + 63) / 64> used_;  // a bit for each
};

/// How long things took.
struct latency_counts {
  std::array<counter, latency_bounds.size() + 1> by_bound;
  counter sum;  // microseconds

  void count(std::chrono::nanoseconds latency) noexcept;
};

/// What is asked of a SCIM service.
enum class scim_operation : std::uint8_t {
  none,
  read,
  list,
  create,
  replace,
  patch,
  remove,
  bulk,
  discovery,
};
inline constexpr std::size_t scim_operations_count =
    static_cast<std::size_t>(scim_operation::discovery) + 1;

/// By the method and the path below the base.
[[nodiscard]] auto scim_operation_of(std::string_view method, std::string_view path) noexcept
    -> scim_operation;

/// What is counted of one route.
struct route_metrics {
  status_counts by_status;
  latency_counts latency;
  std::array<counter, keyed_outcomes_count> keyed;
  std::atomic<bool> has_keys{false};  ///< then every outcome is there from 0 on

  [[nodiscard]] auto of(keyed_outcome outcome) noexcept -> counter& {
    return keyed[static_cast<std::size_t>(outcome)];
  }
  void count(int status, std::chrono::nanoseconds took) noexcept;
};

/// What is counted of one policy.
struct policy_metrics {
  counter admitted;
  counter refused;
  counter shadow_refused;
  counter blocked;  // by abuse detection
  counter shared;   // found no room in the table
  heavy_hitters hottest;
};

/// What one thread counts of one server of an upstream.
struct server_metrics {
  status_counts by_status;  // of its responses
  counter in_flight;
  counter failures;  // no whole response came
};

/// What one thread counts of all routes together.
struct worker_counters {
  counter connections_accepted;
  counter connections_open;
  counter connections_refused;         // by `max-connections`
  counter connections_untrusted;       // where only proxies may connect
  counter connections_without_header;  // of the PROXY protocol
  counter connections_shed;            // by `max-buffered`
  counter tunnels_open;
  counter tunnel_octets_to_upstream;
  counter tunnel_octets_to_client;
  counter out_of_memory;
  counter accept_failures;
  counter requests_malformed;
  counter origin_fields_dropped;
  counter log_lines_dropped;  // found no room
  counter idempotency_store_failures;
  counter quota_store_failures;  // decisions without the store of quotas
  counter quota_store_asked;
  counter quota_store_here;
  counter quota_store_round_trips;
};

/// What one thread counts. Routes and policies are found by name, so that counts outlive a reload.
struct worker_metrics : worker_counters {
  std::array<status_counts, scim_operations_count> scim;

  [[nodiscard]] auto of_route(std::string const& name) -> route_metrics&;
  [[nodiscard]] auto of_policy(std::string const& name) -> policy_metrics&;
  /// How long the servers of an upstream take, those that are gone too.
  [[nodiscard]] auto of_upstream(std::string const& name) -> latency_counts&;
  /// `server` is its label.
  [[nodiscard]] auto of_server(std::string const& upstream, std::string const& server)
      -> std::shared_ptr<server_metrics>;
  /// Forgets a server that is gone for good, unless its counts are in use.
  void forget_server(std::string const& upstream, std::string const& server);

  std::mutex mutex;  // for the maps, which change with the configuration and with addresses
  std::map<std::string, std::unique_ptr<route_metrics>> routes;
  std::map<std::string, std::unique_ptr<policy_metrics>> policies;
  std::map<std::string, std::unique_ptr<latency_counts>> upstreams;  // to the head of a response
  std::map<std::pair<std::string, std::string>, std::shared_ptr<server_metrics>> servers;
};

}  // namespace tidegate::gateway
