// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "observe/metrics.hpp"
#include "observe/upstream_reports.hpp"

#include <tidegate/proxy/consumers.hpp>
#include <tidegate/proxy/control.hpp>

namespace tidegate::gateway {

/// What is counted elsewhere, for all threads together.
struct process_figures {
  std::size_t quota_buckets = 0;
  std::size_t quota_octets = 0;
  std::int64_t buffered_octets = 0;  ///< that wait for clients
  std::uint64_t log_lines_lost = 0;
  /// Requests that wait for the answer to another with the same key.
  std::size_t keys_waited_for = 0;
  /// Unknown outcomes in the store; nothing while that is not known, or no route has keys.
  std::optional<std::size_t> keys_unresolved{};
  /// Where the store bounds itself: octets of keys and responses, and how many they may be; else 0.
  std::size_t keys_octets = 0;
  std::size_t keys_octets_max = 0;
  /// Whether new keys find no room; nothing while no route has keys.
  std::optional<bool> keys_full{};
  std::uint64_t event_lines_dropped = 0;
};

/// All of it in the text format of Prometheus.
void append_prometheus(std::string& out, std::span<std::shared_ptr<worker_metrics> const> workers,
                       process_figures const& process, program_figures const& program);

/// How the upstreams of a configuration are, in the same format.
void append_upstreams(std::string& out, active_config const& active,
                      std::span<std::shared_ptr<worker_metrics> const> workers,
                      upstream_reports& reports, instant now);

/// How the look-ups of a name of servers go.
struct name_figures {
  std::string name;
  std::size_t addresses = 0;
  std::uint64_t failures = 0;
  bool is_failing = false;
};
/// In the same format.
void append_names(std::string& out, std::span<name_figures const> names);

/// Until when the certificates of listeners are good, in the same format.
void append_certificates(std::string& out, active_config const& active);

/// Who may ask, and whether their file could be read; nothing where there are no consumers.
void append_consumers(std::string& out, consumer_figures const& consumers);

/// How the stores are, in the same format.
void append_stores(std::string& out, std::span<store_figures const> stores);

/// What SCIM clients send that no schema has, for each route of a configuration, in the same
/// format.
void append_scim_ignored(std::string& out, config const& settings,
                         std::map<std::string, scim_ignored::counts> const& by_route);

}  // namespace tidegate::gateway
