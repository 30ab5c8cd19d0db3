// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/instant.hpp>
#include <tidegate/ratelimit/policy.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>

/// The limiters: state and time in, verdict and next state out. Nothing in here reads a clock,
/// locks or allocates; the owner of the buckets ensures that each has one writer at a time.
namespace tidegate::TIDEGATE_ABI::ratelimit {

/// The state of one partition under one policy. A bucket of zeros is one that was never used.
struct bucket {
  std::int64_t time = 0;  ///< fixed, sliding: end of the window; gcra: when the level was taken;
                          ///< log: when the last unit was spent
  std::int64_t used = 0;  ///< units in the window or held; gcra: the level
  std::int64_t previous = 0;  ///< sliding: units in the window before; gcra: window-ths of a unit
  auto operator==(bucket const&) const -> bool = default;
};

/// What is left for a partition, as the RateLimit field says it.
struct service {
  std::int64_t remaining = 0;         ///< units that can be spent now
  std::chrono::nanoseconds reset{0};  ///< until there is more; never longer than the window
  auto operator==(service const&) const -> bool = default;
};

/// The answer to "may this cost be spent now?".
struct verdict {
  bool admitted = false;
  service left;                       ///< after this request when admitted, else as it stands
  std::chrono::nanoseconds retry{0};  ///< when refused: how long until the cost fits
};

/// A verdict with what becomes of the bucket.
struct decision : verdict {
  bucket next;  ///< the bucket when the request goes ahead; unchanged if not
};

/// Spends `cost` units at `now` if they are there; a cost below 0 counts as 0.
///
/// - `fixed`: a window starts with the first unit spent in it, or by the calendar; at most the
///   quota is admitted in it.
/// - `sliding`: windows follow one another; what was spent in the one before counts in proportion
///   to how much of it is still less than a window ago, rounded down. That sum never exceeds the
///   quota. With an unlucky start up to twice the quota is spent within the length of a window.
/// - `log`: at most the quota in any window. A bucket has room for one time: all that is in it
///   counts as spent when the last of it was, so that it may admit less and never more. Keep a
///   `spent_log` for exactly the quota.
/// - `gcra`: in any span of time d at most burst + d * quota / window, and so at most burst at
///   once.
/// - concurrent requests: at most the quota are held at a time, until `settle` gives them back.
///
/// A clock that steps back never gives units back: the bucket looks fuller until `now` catches up.
[[nodiscard]] auto decide(policy const& p, bucket const& b, instant now, std::int64_t cost) noexcept
    -> decision;

/// The same in place: the bucket becomes the next one when the cost is admitted. For a caller that
/// keeps buckets and decides millions of times a second.
[[nodiscard]] auto spend(policy const& p, bucket& b, instant now, std::int64_t cost) noexcept
    -> verdict;

/// What is left without spending anything.
[[nodiscard]] auto look(policy const& p, bucket const& b, instant now) noexcept -> service;

/// Corrects a cost after the fact, for a request that was admitted at `admitted_at`: `units` above
/// 0 are spent whether they are there or not and count against what follows; below 0 they are given
/// back, as far as the window they were spent in still counts.
[[nodiscard]] auto settle(policy const& p, bucket const& b, instant admitted_at, instant now,
                          std::int64_t units) noexcept -> bucket;

/// `b` without what was spent beyond what the policy allows at once, as a policy that allowed more
/// may have left it: with `gcra` all of that would have to drain first. Windows end by themselves.
[[nodiscard]] auto forgiven(policy const& p, bucket const& b, instant now) noexcept -> bucket;

/// When a bucket says nothing any more and may be forgotten: from then on it decides like a new
/// one.
[[nodiscard]] auto expires(policy const& p, bucket const& b) noexcept -> instant;

// ---- what follows is how they work: in sight of the caller is what happens on every request ----

namespace detail {

/// `a * b / c` rounded down, for a quotient that fits. The short way is the usual one.
[[nodiscard]] inline auto multiply_divide(std::int64_t a, std::int64_t b, std::int64_t c) noexcept
    -> std::int64_t {
  __extension__ using int128 = __int128;
  std::int64_t product = 0;
  if (!__builtin_mul_overflow(a, b, &product)) {
    return product / c;
  }
  return static_cast<std::int64_t>(int128(a) * b / c);
}

[[nodiscard]] inline auto saturating_add(std::int64_t a, std::int64_t b) noexcept -> std::int64_t {
  std::int64_t sum = 0;
  if (!__builtin_add_overflow(a, b, &sum)) {
    return sum;
  }
  return a < 0 ? std::numeric_limits<std::int64_t>::min()
               : std::numeric_limits<std::int64_t>::max();
}

}  // namespace detail

/// One decision in the making, with time as nanoseconds. Not for callers. What is always inlined is
/// so because calls would cost as much as the decision.
struct decider {
  policy const& p;
  std::int64_t now;

  // ---- fixed ----

  [[nodiscard]] auto fixed_now(bucket const& b) const noexcept -> bucket {
    if (p.has_begin_) [[unlikely]] {
      return calendar_now(b);
    }
    return now >= b.time ? bucket{} : b;
  }

  [[nodiscard]] auto fixed_left(bucket const& b) const noexcept -> service {
    auto const end = b.time == 0 ? fixed_end() : b.time;
    auto const reset = std::clamp<std::int64_t>(end - now, 0, p.window_);
    return {std::max<std::int64_t>(p.quota_ - b.used, 0), std::chrono::nanoseconds(reset)};
  }

  [[nodiscard, gnu::always_inline]] auto fixed(bucket& b, std::int64_t cost) const noexcept
      -> verdict {
    auto next = fixed_now(b);
    if (cost > p.quota_ - next.used) {
      auto const left = fixed_left(next);
      return {false, left, left.reset};
    }
    if (next.time == 0 && cost > 0) {
      next.time = fixed_end();
    }
    next.used += cost;
    b = next;
    return {true, fixed_left(next), {}};
  }

  /// When the window ends that begins with a request of now.
  [[nodiscard]] auto fixed_end() const noexcept -> std::int64_t {
    return (p.has_begin_ ? p.begin_ : now) + p.window_;
  }
  [[nodiscard]] auto calendar_now(bucket const& b) const noexcept -> bucket;

  // ---- sliding ----

  /// Moves the windows on to `now`; a bucket with nothing in it starts a window at once.
  [[nodiscard]] auto sliding_now(bucket b) const noexcept -> bucket {
    if (now >= b.time) {
      if (now - b.time >= p.window_) {
        b = {};
      } else {
        b = {b.time + p.window_, 0, b.used};
      }
    }
    if (b.used == 0 && b.previous == 0) {
      b.time = now + p.window_;
    }
    return b;
  }

  /// Nanoseconds into the window; a clock that stepped back is at its beginning.
  [[nodiscard]] auto elapsed(bucket const& b) const noexcept -> std::int64_t {
    return std::max<std::int64_t>(p.window_ - (b.time - now), 0);
  }

  /// What the quota has above both windows; below 0 after an overshoot. Of the window before counts
  /// the part that is less than a window ago: of the instants in it, those after the one that lies
  /// exactly a window back.
  [[nodiscard]] auto sliding_room(bucket const& b) const noexcept -> std::int64_t {
    auto const before = b.previous == 0 ? 0
                                        : detail::multiply_divide(
                                              b.previous, p.window_ - 1 - elapsed(b), p.window_);
    return p.quota_ - detail::saturating_add(before, b.used);
  }

  [[nodiscard, gnu::always_inline]] auto sliding(bucket& b, std::int64_t cost) const noexcept
      -> verdict {
    auto const next = sliding_now(b);
    auto const room = sliding_room(next);
    if (cost >= room) [[unlikely]] {
      return sliding_at_the_edge(b, room, cost);
    }
    b = {next.time, next.used + cost, next.previous};
    auto const reset = std::clamp<std::int64_t>(next.time - now, 0, p.window_);
    return {true, {room - cost, std::chrono::nanoseconds(reset)}, {}};
  }

  /// When nothing remains or the cost does not fit.
  [[nodiscard]] auto sliding_at_the_edge(bucket& b, std::int64_t room,
                                         std::int64_t cost) const noexcept -> verdict;
  [[nodiscard]] inline auto sliding_left(bucket const& b, std::int64_t room) const noexcept
      -> service;
  [[nodiscard]] inline auto sliding_wait(bucket const& b, std::int64_t cost) const noexcept
      -> std::int64_t;
  [[nodiscard]] inline auto weighs_at_most(std::int64_t previous, std::int64_t room) const noexcept
      -> std::int64_t;

  // ---- gcra, as a level that drains: `used` units and `previous` window-ths of one at `time` ----

  [[nodiscard]] auto gcra(bucket& b, std::int64_t cost) const noexcept -> verdict;
  [[nodiscard]] inline auto gcra_now(bucket const& b) const noexcept -> bucket;
  [[nodiscard]] inline auto gcra_drained(std::int64_t used, std::int64_t rest, std::int64_t whole,
                                         std::int64_t part) const noexcept -> bucket;
  [[nodiscard]] inline auto gcra_left(bucket const& b) const noexcept -> service;
  [[nodiscard]] auto gcra_forgiven(bucket const& b) const noexcept -> bucket;
  [[nodiscard]] auto gcra_expires(bucket const& b) const noexcept -> std::int64_t;
  [[nodiscard]] inline auto drains_to(bucket const& b, std::int64_t units) const noexcept
      -> std::int64_t;

  // ---- log, of which a bucket knows one time ----

  [[nodiscard]] auto log(bucket& b, std::int64_t cost) const noexcept -> verdict;
  [[nodiscard]] inline auto log_left(bucket const& b) const noexcept -> service;
  [[nodiscard]] inline auto settle_log(bucket b, std::int64_t admitted_at,
                                       std::int64_t units) const noexcept -> bucket;

  // ---- concurrent requests ----

  [[nodiscard]] auto concurrent(bucket& b, std::int64_t cost) const noexcept -> verdict;

  // ---- all ----

  [[nodiscard, gnu::always_inline]] auto spend(bucket& b, std::int64_t cost) const noexcept
      -> verdict {
    if (p.unit_ == quota_unit::concurrent_requests) {
      return concurrent(b, cost);
    }
    switch (p.algorithm_) {
      case algorithm::fixed: return fixed(b, cost);
      case algorithm::sliding: return sliding(b, cost);
      case algorithm::log: return log(b, cost);
      case algorithm::gcra: break;
    }
    return gcra(b, cost);
  }

  [[nodiscard]] auto look(bucket const& b) const noexcept -> service;

  [[nodiscard]] auto settle(bucket const& b, std::int64_t admitted_at,
                            std::int64_t units) const noexcept -> bucket;
  [[nodiscard]] inline auto settle_windows(bucket b, std::int64_t admitted_at, std::int64_t units,
                                           bool two_windows) const noexcept -> bucket;
  [[nodiscard]] inline auto settle_gcra(bucket const& old, std::int64_t units) const noexcept
      -> bucket;

  [[nodiscard]] auto expires(bucket const& b) const noexcept -> std::int64_t {
    if (p.unit_ == quota_unit::concurrent_requests) {
      return b.used > 0 ? std::numeric_limits<std::int64_t>::max() : 0;
    }
    switch (p.algorithm_) {
      case algorithm::fixed: return b.time;
      case algorithm::sliding: return b.time == 0 ? 0 : detail::saturating_add(b.time, p.window_);
      case algorithm::log: return b.used == 0 ? 0 : detail::saturating_add(b.time, p.window_);
      case algorithm::gcra: break;
    }
    return gcra_expires(b);
  }
};

[[gnu::always_inline]] inline auto spend(policy const& p, bucket& b, instant now,
                                         std::int64_t cost) noexcept -> verdict {
  return decider{p, now.time_since_epoch().count()}.spend(b, std::max<std::int64_t>(cost, 0));
}

inline auto expires(policy const& p, bucket const& b) noexcept -> instant {
  return instant(std::chrono::nanoseconds(decider{p, 0}.expires(b)));
}

}  // namespace tidegate::TIDEGATE_ABI::ratelimit
