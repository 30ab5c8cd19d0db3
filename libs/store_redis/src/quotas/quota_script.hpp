// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/instant.hpp>
#include <tidegate/ratelimit/policy.hpp>

#include <cstdint>
#include <string>
#include <string_view>

/// What Redis runs to decide about quotas: the limiters of `ratelimit` once more, in Lua.
///
/// Lua's numbers are doubles. Times are whole microseconds and units are at most `units_max`, so
/// both are exact; products that may not be are divided digit by digit. Durations in answers are
/// microseconds and, apart, what nanoseconds they have beyond. Buckets are three or four doubles;
/// those of concurrent requests are hashes with a field for each holder, which counts until it has
/// been silent for too long; logs are lists of times.
///
/// A client that writes the keys can have anything admitted, but what no script wrote is an error,
/// never a script that does not end.
namespace tidegate::store_redis {

/// A bucket never says more; it is more than twice the largest quota.
inline constexpr std::int64_t units_max = std::int64_t{1} << 51;

/// Spends all charges of a request or none, as `store::quota_table::spend` does, for several
/// requests one after the other at the same time.
///
/// KEYS: a bucket for each charge. ARGV: how many charges each request has, an octet each; a
/// `charge_argument` for each charge; and for tests the time. Answers: the time; then for each
/// request 1 or 0, and for each of its charges 1 or 0, what remains, reset, retry, and the
/// nanoseconds of both: those of reset times 1,000 and those of retry.
[[nodiscard]] auto spend_script() -> std::string const&;

/// Corrects charges, as `ratelimit::settle` does.
///
/// KEYS: a bucket for each. ARGV: for each its `charge_argument` with the units as cost, and when
/// it was admitted; and for tests the time. Answers: the time.
[[nodiscard]] auto settle_script() -> std::string const&;

/// Spends a slice of what is there: as much as was asked for, but no more than a part of what
/// remains.
///
/// KEYS: its bucket. ARGV: its `charge_argument` with what is wanted as cost, how little is of use,
/// how many parts to make of what remains, and for tests the time. Answers: the time, what was
/// granted, for how long its window lasts, and what remains, reset, retry and nanoseconds as above.
[[nodiscard]] auto take_script() -> std::string const&;

/// Says that a holder of concurrent requests lives, and how many it holds.
///
/// KEYS: hashes. ARGV: for each a `charge_argument` with that number as cost, or below 0 when it is
/// not known; and for tests the time. Answers: the time.
[[nodiscard]] auto hold_script() -> std::string const&;

/// Says that a gateway lives, and counts those that do.
///
/// KEYS: a hash. ARGV: the name of the gateway, microseconds after which one is forgotten, and for
/// tests the time. Answers: the time and how many there are.
[[nodiscard]] auto gateways_script() -> std::string const&;

/// A policy, a cost and whether the policy is enforced, as the scripts read it: 34 octets.
/// For concurrent requests `holder` names whose they are, and `alive_for` says how long that is
/// believed. In a window of the calendar 16 octets more say when it began and what time it is: that
/// is counted by the clock of the gateway, which knows the calendar.
[[nodiscard]] auto charge_argument(ratelimit::policy const& policy, std::int64_t cost,
                                   bool enforced, std::string_view holder,
                                   std::chrono::microseconds alive_for, instant now = {})
    -> std::string;

/// A moment by the clock that windows of the calendar are of, in microseconds.
[[nodiscard]] auto wall_time(ratelimit::policy const& policy, instant at) noexcept -> std::int64_t;

}  // namespace tidegate::store_redis
