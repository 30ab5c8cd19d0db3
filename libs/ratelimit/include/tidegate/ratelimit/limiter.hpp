// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/instant.hpp>
#include <tidegate/ratelimit/policy.hpp>

#include <chrono>
#include <cstdint>

/// The limiters: state and time in, verdict and next state out. Nothing in here reads a clock, locks or
/// allocates; whoever keeps the buckets sees to it that each has one writer at a time.
namespace tidegate::ratelimit {

/// The state of one partition under one policy. A bucket of zeros is one that was never used.
struct bucket {
  std::int64_t time = 0;      ///< fixed, sliding: end of the window; gcra: when the level was taken
  std::int64_t used = 0;      ///< units in the window or held; gcra: the level
  std::int64_t previous = 0;  ///< sliding: units in the window before; gcra: window-ths of a unit
  auto operator==(bucket const&) const -> bool = default;
};

/// What is left for a partition, as the RateLimit field says it.
struct service {
  std::int64_t remaining = 0;         ///< units that can be spent now
  std::chrono::nanoseconds reset{0};  ///< until there is more; never longer than the window
};

/// The answer to "may this cost be spent now?".
struct decision {
  bool admitted = false;
  service left;                       ///< after this request when admitted, else as it stands
  std::chrono::nanoseconds retry{0};  ///< when refused: how long until the cost fits
  bucket next;                        ///< the bucket when the request goes ahead; unchanged if not
};

/// Spends `cost` units at `now` if they are there; a cost below 0 counts as 0.
///
/// - `fixed`: a window starts with the first unit spent in it; at most the quota is admitted in it.
/// - `sliding`: windows follow one another; what was spent in the one before counts in proportion to how
///   much of it is still less than a window ago, rounded down. That sum never exceeds the quota.
/// - `gcra`: in any span of time d at most burst + d * quota / window, and so at most burst at once.
/// - concurrent requests: at most the quota are held at a time, until `settle` gives them back.
///
/// A clock that steps back never gives units back: the bucket looks fuller until `now` catches up.
[[nodiscard]] auto decide(policy const& p, bucket const& b, instant now, std::int64_t cost) noexcept
    -> decision;

/// What is left without spending anything.
[[nodiscard]] auto look(policy const& p, bucket const& b, instant now) noexcept -> service;

/// Corrects a cost after the fact, for a request that was admitted at `admitted_at`: `units` above 0
/// are spent whether they are there or not and count against what follows; below 0 they are given
/// back, as far as the window they were spent in still counts.
[[nodiscard]] auto settle(policy const& p, bucket const& b, instant admitted_at, instant now,
                          std::int64_t units) noexcept -> bucket;

/// When a bucket says nothing any more and may be forgotten: from then on it decides like a new one.
[[nodiscard]] auto expires(policy const& p, bucket const& b) noexcept -> instant;

}  // namespace tidegate::ratelimit
