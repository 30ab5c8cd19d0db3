// SPDX-License-Identifier: Apache-2.0
#include <tidegate/ratelimit/limiter.hpp>

#include <algorithm>
#include <limits>

namespace tidegate::ratelimit {

namespace {

__extension__ using int128 = __int128;

/// `a * b / c` rounded down, for a quotient that fits. The short way is the usual one.
[[nodiscard]] auto multiply_divide(std::int64_t a, std::int64_t b, std::int64_t c) noexcept
    -> std::int64_t {
  std::int64_t product = 0;
  if (!__builtin_mul_overflow(a, b, &product)) {
    return product / c;
  }
  return static_cast<std::int64_t>(int128(a) * b / c);
}

[[nodiscard]] auto saturating_add(std::int64_t a, std::int64_t b) noexcept -> std::int64_t {
  std::int64_t sum = 0;
  if (!__builtin_add_overflow(a, b, &sum)) {
    return sum;
  }
  return a < 0 ? std::numeric_limits<std::int64_t>::min()
               : std::numeric_limits<std::int64_t>::max();
}

/// `a / b` rounded up, for a quotient that fits; `a` is not negative. Dividing 64 bits is the usual way,
/// and many times faster.
[[nodiscard]] auto divide_up(int128 a, std::int64_t b) noexcept -> int128 {
  auto const sum = a + (b - 1);
  if (sum <= std::numeric_limits<std::int64_t>::max()) {
    return static_cast<std::int64_t>(sum) / b;
  }
  return sum / b;
}

[[nodiscard]] auto nanoseconds(instant t) noexcept -> std::int64_t {
  return t.time_since_epoch().count();
}

}  // namespace

struct decider {
  policy const& p;
  std::int64_t now;

  // ---- fixed ----

  [[nodiscard]] auto fixed_now(bucket b) const noexcept -> bucket {
    if (now >= b.time) {
      b = {};
    }
    return b;
  }

  [[nodiscard]] auto fixed_left(bucket const& b) const noexcept -> service {
    auto const reset = b.time == 0 ? p.window_ : std::min(b.time - now, p.window_);
    return {std::max<std::int64_t>(p.quota_ - b.used, 0), std::chrono::nanoseconds(reset)};
  }

  [[nodiscard]] auto fixed(bucket const& old, std::int64_t cost) const noexcept -> decision {
    auto b = fixed_now(old);
    if (cost > p.quota_ - b.used) {
      auto const left = fixed_left(b);
      return {false, left, b.time == 0 ? std::chrono::nanoseconds(p.window_) : left.reset, old};
    }
    if (b.time == 0 && cost > 0) {
      b.time = now + p.window_;
    }
    b.used += cost;
    return {true, fixed_left(b), {}, b};
  }

  // ---- sliding ----

  /// Moves the windows on to `now`; a bucket with nothing in it starts a window at once.
  [[nodiscard]] auto sliding_now(bucket b) const noexcept -> bucket {
    if (now >= b.time) {
      auto const late = now - b.time;
      if (late >= p.window_) {
        b = {};
      } else {
        b.previous = b.used;
        b.used = 0;
        b.time += p.window_;
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

  /// The part of the window before that is less than a window ago: of the instants in it, those after
  /// the one that lies exactly a window back.
  [[nodiscard]] auto weighted(std::int64_t previous, std::int64_t into) const noexcept
      -> std::int64_t {
    return previous == 0 ? 0 : multiply_divide(previous, p.window_ - 1 - into, p.window_);
  }

  /// How far into a window `previous` weighs so little that `room` units are above it.
  [[nodiscard]] auto weighs_at_most(std::int64_t previous, std::int64_t room) const noexcept
      -> std::int64_t {
    if (previous <= room) {
      return 0;
    }
    // previous * (window - 1 - into) / window < room + 1
    auto const into = int128(p.window_) - 1 - ((int128(room) + 1) * p.window_ - 1) / previous;
    return std::max<std::int64_t>(static_cast<std::int64_t>(into), 0);
  }

  [[nodiscard]] auto sliding_wait(bucket const& b, std::int64_t cost) const noexcept
      -> std::int64_t {
    auto const into = elapsed(b);
    if (cost > p.quota_) {
      return p.window_;
    }
    if (b.used + cost <= p.quota_) {  // the window before has to fade
      return std::max<std::int64_t>(weighs_at_most(b.previous, p.quota_ - b.used - cost) - into, 0);
    }
    // This window has to become the one before, and then fade.
    return b.time - now + weighs_at_most(b.used, p.quota_ - cost);
  }

  /// What the quota has above both windows; below 0 after an overshoot.
  [[nodiscard]] auto sliding_room(bucket const& b) const noexcept -> std::int64_t {
    return p.quota_ - saturating_add(weighted(b.previous, elapsed(b)), b.used);
  }

  [[nodiscard]] auto sliding_left(bucket const& b, std::int64_t room) const noexcept -> service {
    auto const remaining = std::max<std::int64_t>(room, 0);
    auto const reset = remaining == 0 && p.quota_ > 0 ? sliding_wait(b, 1)
                                                      : std::max<std::int64_t>(b.time - now, 0);
    return {remaining, std::chrono::nanoseconds(std::min(reset, p.window_))};
  }

  [[nodiscard]] auto sliding(bucket const& old, std::int64_t cost) const noexcept -> decision {
    auto b = sliding_now(old);
    auto const room = sliding_room(b);
    if (cost > room) {
      return {false, sliding_left(b, room), std::chrono::nanoseconds(sliding_wait(b, cost)), old};
    }
    b.used += cost;
    return {true, sliding_left(b, room - cost), {}, b};
  }

  // ---- gcra, as a level that drains: `used` units and `previous` window-ths of one at `time` ----

  [[nodiscard]] auto gcra_now(bucket const& b) const noexcept -> bucket {
    auto const rest = std::min(b.previous, p.window_ - 1);  // from a longer window, before a reload
    auto const since = now - b.time;
    if (since <= 0 || p.quota_ == 0) {
      return {std::max(now, b.time), b.used, rest};
    }
    auto const drained = int128(since) * p.quota_;
    if (drained < p.window_) {  // on a busy key: less than a unit, and nothing to divide
      return gcra_drained(b.used, rest, 0, static_cast<std::int64_t>(drained));
    }
    auto const whole = drained / p.window_;
    if (whole > b.used) {
      return {now, 0, 0};
    }
    return gcra_drained(b.used, rest, static_cast<std::int64_t>(whole),
                        static_cast<std::int64_t>(drained - whole * p.window_));
  }

  /// A level of `used` and `rest` after `whole` units and `part` window-ths of one have drained.
  [[nodiscard]] auto gcra_drained(std::int64_t used, std::int64_t rest, std::int64_t whole,
                                  std::int64_t part) const noexcept -> bucket {
    used -= whole;
    rest -= part;
    if (rest < 0) {
      used -= 1;
      rest += p.window_;
    }
    return used < 0 ? bucket{now, 0, 0} : bucket{now, used, rest};
  }

  /// How long until the level is at most `units`.
  [[nodiscard]] auto drains_to(bucket const& b, std::int64_t units) const noexcept -> std::int64_t {
    auto const excess = int128(b.used - units) * p.window_ + b.previous;
    if (excess <= 0) {
      return b.time - now;
    }
    auto const wait = p.quota_ == 0 ? int128(p.window_) : divide_up(excess, p.quota_);
    constexpr auto far = std::numeric_limits<std::int64_t>::max() / 4;
    return saturating_add(static_cast<std::int64_t>(std::min(wait, int128(far))), b.time - now);
  }

  /// The level in whole units, rounded up.
  [[nodiscard]] static auto level(bucket const& b) noexcept -> std::int64_t {
    return saturating_add(b.used, b.previous > 0 ? 1 : 0);
  }

  [[nodiscard]] auto gcra_left(bucket const& b) const noexcept -> service {
    auto const remaining = std::max<std::int64_t>(p.burst_ - level(b), 0);
    auto const reset = drains_to(b, remaining == 0 ? p.burst_ - 1 : 0);
    return {remaining, std::chrono::nanoseconds(std::min(reset, p.window_))};
  }

  [[nodiscard]] auto gcra(bucket const& old, std::int64_t cost) const noexcept -> decision {
    auto b = gcra_now(old);
    if (cost > p.burst_ - level(b)) {
      auto const wait = cost > p.burst_ ? p.window_ : drains_to(b, p.burst_ - cost);
      return {false, gcra_left(b), std::chrono::nanoseconds(wait), old};
    }
    b.used += cost;
    return {true, gcra_left(b), {}, b};
  }

  // ---- concurrent requests ----

  [[nodiscard]] auto concurrent(bucket const& old, std::int64_t cost) const noexcept -> decision {
    constexpr auto later = std::chrono::seconds(1);
    auto const left = std::max<std::int64_t>(p.quota_ - old.used, 0);
    if (cost > left) {
      return {false, {left, {}}, later, old};
    }
    return {true, {left - cost, {}}, {}, {0, old.used + cost, 0}};
  }

  [[nodiscard]] auto decide(bucket const& b, std::int64_t cost) const noexcept -> decision {
    if (p.unit_ == quota_unit::concurrent_requests) {
      return concurrent(b, cost);
    }
    switch (p.algorithm_) {
      case algorithm::fixed: return fixed(b, cost);
      case algorithm::sliding: return sliding(b, cost);
      case algorithm::gcra: break;
    }
    return gcra(b, cost);
  }

  [[nodiscard]] auto look(bucket const& b) const noexcept -> service {
    if (p.unit_ == quota_unit::concurrent_requests) {
      return {std::max<std::int64_t>(p.quota_ - b.used, 0), {}};
    }
    switch (p.algorithm_) {
      case algorithm::fixed: return fixed_left(fixed_now(b));
      case algorithm::sliding: {
        auto const moved = sliding_now(b);
        return sliding_left(moved, sliding_room(moved));
      }
      case algorithm::gcra: break;
    }
    return gcra_left(gcra_now(b));
  }

  // ---- after the fact ----

  [[nodiscard]] auto settle_windows(bucket b, std::int64_t admitted_at, std::int64_t units,
                                    bool two_windows) const noexcept -> bucket {
    b = two_windows ? sliding_now(b) : fixed_now(b);
    if (units >= 0) {
      if (b.time == 0) {
        b.time = now + p.window_;
      }
      b.used = saturating_add(b.used, units);
      return b;
    }
    auto const begin = b.time - p.window_;
    if (admitted_at >= begin) {
      b.used = std::max<std::int64_t>(b.used + units, 0);
    } else if (two_windows && admitted_at >= begin - p.window_) {
      b.previous = std::max<std::int64_t>(b.previous + units, 0);
    }
    return b;
  }

  [[nodiscard]] auto settle_gcra(bucket const& old, std::int64_t units) const noexcept -> bucket {
    auto b = gcra_now(old);
    b.used = saturating_add(b.used, units);
    return b.used < 0 ? bucket{} : b;
  }

  [[nodiscard]] auto settle(bucket const& b, std::int64_t admitted_at,
                            std::int64_t units) const noexcept -> bucket {
    if (p.unit_ == quota_unit::concurrent_requests) {
      return {0, std::max<std::int64_t>(saturating_add(b.used, units), 0), 0};
    }
    if (p.algorithm_ == algorithm::gcra) {
      return settle_gcra(b, units);
    }
    return settle_windows(b, admitted_at, units, p.algorithm_ == algorithm::sliding);
  }

  [[nodiscard]] auto expires(bucket const& b) const noexcept -> std::int64_t {
    if (p.unit_ == quota_unit::concurrent_requests) {
      return b.used > 0 ? std::numeric_limits<std::int64_t>::max() : 0;
    }
    switch (p.algorithm_) {
      case algorithm::fixed: return b.time;
      case algorithm::sliding: return b.time == 0 ? 0 : saturating_add(b.time, p.window_);
      case algorithm::gcra: break;
    }
    auto const level = int128(b.used) * p.window_ + b.previous;
    auto const drained = p.quota_ == 0 ? int128(0) : divide_up(level, p.quota_);
    constexpr auto far = std::numeric_limits<std::int64_t>::max() / 4;
    return level == 0
               ? 0
               : saturating_add(b.time, static_cast<std::int64_t>(std::min(drained, int128(far))));
  }
};

auto decide(policy const& p, bucket const& b, instant now, std::int64_t cost) noexcept -> decision {
  return decider{p, nanoseconds(now)}.decide(b, std::max<std::int64_t>(cost, 0));
}

auto look(policy const& p, bucket const& b, instant now) noexcept -> service {
  return decider{p, nanoseconds(now)}.look(b);
}

auto settle(policy const& p, bucket const& b, instant admitted_at, instant now,
            std::int64_t units) noexcept -> bucket {
  return decider{p, nanoseconds(now)}.settle(b, nanoseconds(admitted_at), units);
}

auto expires(policy const& p, bucket const& b) noexcept -> instant {
  return instant(std::chrono::nanoseconds(decider{p, 0}.expires(b)));
}

}  // namespace tidegate::ratelimit
