// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/instant.hpp>
#include <tidegate/base/result.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// What a gateway does, read from its admin address. Its answers are input like any other: bounded,
/// and shown without control characters. A counter that went back belongs to a gateway that was
/// restarted; rates start again with it.
namespace tidegate::app::top {

/// What was counted of one route since its gateway began.
struct route_figures {
  std::uint64_t requests = 0;
  std::array<std::uint64_t, 6> by_class{};   ///< by the first digit of the status
  std::uint64_t throttled = 0;               ///< 429
  std::uint64_t replayed = 0;                ///< answers that were given again to a key
  std::uint64_t conflicts = 0;               ///< keys in flight, reused or of unknown outcome
  double seconds = 0;                        ///< of all requests together
  std::map<double, std::uint64_t> within{};  ///< how many took at most so many seconds
};

/// What a policy is, and what it said.
struct policy_figures {
  std::int64_t quota = 0;
  std::optional<std::int64_t> window{};  ///< in seconds
  std::string unit{};
  bool enforced = true;
  std::uint64_t admitted = 0;
  std::uint64_t refused = 0;
  std::uint64_t shadow_refused = 0;
  std::uint64_t blocked = 0;
};

/// One of the hottest partitions.
struct partition_figures {
  std::string policy;
  std::string text;  ///< `client-ip=192.0.2.1`; what is hidden is shown by the beginning of its key
  double requests = 0;
  double refused = 0;
  std::int64_t quota = 0;
  std::int64_t remaining = 0;
  std::optional<std::int64_t> reset{};  ///< in seconds
};

/// All that one look at the admin address gives.
struct snapshot {
  instant taken{};
  std::map<std::string, route_figures> routes{};
  std::map<std::string, policy_figures> policies{};
  std::vector<partition_figures> partitions{};  ///< the hottest first
  std::int64_t partition_window = 0;            ///< how many seconds they were counted for
  std::uint64_t connections = 0;                ///< of clients that are open
  std::uint64_t waiting = 0;  ///< requests that wait for another with the same key
  double cpu_seconds = 0;
  std::uint64_t memory_octets = 0;
};

/// What the admin address answers: /metrics, /api/v1/policies and /api/v1/partitions.
struct admin_texts {
  std::string_view metrics;
  std::string_view policies;
  std::string_view partitions;
};

/// So many routes, policies and partitions are taken.
inline constexpr std::size_t entries_max = 1000;

/// Reads them. Lines of metrics that are not known are passed over; JSON of another form is an
/// error, which is one line for people.
[[nodiscard]] auto read_snapshot(admin_texts const& texts, instant taken)
    -> result<snapshot, std::string>;

}  // namespace tidegate::app::top
