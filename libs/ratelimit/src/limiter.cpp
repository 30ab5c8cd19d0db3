// SPDX-License-Identifier: Apache-2.0
#include <tidegate/ratelimit/limiter.hpp>

namespace tidegate::TIDEGATE_ABI::ratelimit {

namespace {

__extension__ using int128 = __int128;

/// `a / b` rounded up, for a quotient that fits; `a` is not negative. Dividing 64 bits is the usual
/// way, and many times faster.
[[nodiscard]] auto divide_up(int128 a, std::int64_t b) noexcept -> int128 {
  auto const sum = a + (b - 1);
  if (sum <= std::numeric_limits<std::int64_t>::max()) {
    return static_cast<std::int64_t>(sum) / b;
  }
  return sum / b;
}

}  // namespace

using detail::saturating_add;

// ---- fixed, by the calendar ----

/// A bucket is of the window whose end is nearest to its own: the clock that says when windows
/// begin may have been set a little. It is kept when it is of a later one.
auto decider::calendar_now(bucket const& b) const noexcept -> bucket {
  auto const into = b.time - p.begin_;
  if (b.time == 0 || into <= p.window_ / 2) {
    return {};
  }
  return {into - p.window_ <= p.window_ / 2 ? p.begin_ + p.window_ : b.time, b.used, 0};
}

// ---- sliding ----

/// How far into a window `previous` weighs so little that `room` units are above it.
auto decider::weighs_at_most(std::int64_t previous, std::int64_t room) const noexcept
    -> std::int64_t {
  if (previous <= room) {
    return 0;
  }
  // previous * (window - 1 - into) / window < room + 1
  auto const into = int128(p.window_) - 1 - ((int128(room) + 1) * p.window_ - 1) / previous;
  return std::max<std::int64_t>(static_cast<std::int64_t>(into), 0);
}

auto decider::sliding_wait(bucket const& b, std::int64_t cost) const noexcept -> std::int64_t {
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

auto decider::sliding_left(bucket const& b, std::int64_t room) const noexcept -> service {
  auto const remaining = std::max<std::int64_t>(room, 0);
  auto const reset =
      remaining == 0 && p.quota_ > 0 ? sliding_wait(b, 1) : std::max<std::int64_t>(b.time - now, 0);
  return {remaining, std::chrono::nanoseconds(std::min(reset, p.window_))};
}

auto decider::sliding_at_the_edge(bucket& b, std::int64_t room, std::int64_t cost) const noexcept
    -> verdict {
  auto next = sliding_now(b);
  if (cost > room) {
    return {false, sliding_left(next, room), std::chrono::nanoseconds(sliding_wait(next, cost))};
  }
  next.used += cost;
  b = next;
  return {true, sliding_left(next, room - cost), {}};
}

// ---- gcra ----

namespace {

/// The level in whole units, rounded up.
[[nodiscard]] auto level(bucket const& b) noexcept -> std::int64_t {
  return saturating_add(b.used, b.previous > 0 ? 1 : 0);
}

}  // namespace

/// A level of `used` and `rest` after `whole` units and `part` window-ths of one have drained.
auto decider::gcra_drained(std::int64_t used, std::int64_t rest, std::int64_t whole,
                           std::int64_t part) const noexcept -> bucket {
  used -= whole;
  rest -= part;
  if (rest < 0) {
    used -= 1;
    rest += p.window_;
  }
  return used < 0 ? bucket{now, 0, 0} : bucket{now, used, rest};
}

auto decider::gcra_now(bucket const& b) const noexcept -> bucket {
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

/// How long until the level is at most `units`.
auto decider::drains_to(bucket const& b, std::int64_t units) const noexcept -> std::int64_t {
  auto const excess = int128(b.used - units) * p.window_ + b.previous;
  if (excess <= 0) {
    return b.time - now;
  }
  auto const wait = p.quota_ == 0 ? int128(p.window_) : divide_up(excess, p.quota_);
  constexpr auto far = std::numeric_limits<std::int64_t>::max() / 4;
  return saturating_add(static_cast<std::int64_t>(std::min(wait, int128(far))), b.time - now);
}

auto decider::gcra_left(bucket const& b) const noexcept -> service {
  auto const remaining = std::max<std::int64_t>(p.burst_ - level(b), 0);
  auto const reset = drains_to(b, remaining == 0 ? p.burst_ - 1 : 0);
  return {remaining, std::chrono::nanoseconds(std::min(reset, p.window_))};
}

auto decider::gcra(bucket& b, std::int64_t cost) const noexcept -> verdict {
  auto next = gcra_now(b);
  if (cost > p.burst_ - level(next)) {
    auto const wait = cost > p.burst_ ? p.window_ : drains_to(next, p.burst_ - cost);
    return {false, gcra_left(next), std::chrono::nanoseconds(wait)};
  }
  next.used += cost;
  b = next;
  return {true, gcra_left(next), {}};
}

auto decider::gcra_forgiven(bucket const& b) const noexcept -> bucket {
  auto const left = gcra_now(b);
  return level(left) > p.burst_ ? bucket{left.time, p.burst_, 0} : left;
}

auto decider::gcra_expires(bucket const& b) const noexcept -> std::int64_t {
  auto const level = int128(b.used) * p.window_ + b.previous;
  if (level == 0) {
    return 0;
  }
  auto const drained = p.quota_ == 0 ? int128(0) : divide_up(level, p.quota_);
  constexpr auto far = std::numeric_limits<std::int64_t>::max() / 4;
  return saturating_add(b.time, static_cast<std::int64_t>(std::min(drained, int128(far))));
}

// ---- log ----

namespace {

[[nodiscard]] auto log_now(bucket const& b, std::int64_t now, std::int64_t window) noexcept
    -> bucket {
  return b.used == 0 || now - b.time >= window ? bucket{} : bucket{b.time, b.used, 0};
}

}  // namespace

auto decider::log_left(bucket const& b) const noexcept -> service {
  auto const reset = b.used == 0 ? p.window_ : std::min(b.time - now + p.window_, p.window_);
  return {std::max<std::int64_t>(p.quota_ - b.used, 0), std::chrono::nanoseconds(reset)};
}

auto decider::log(bucket& b, std::int64_t cost) const noexcept -> verdict {
  auto next = log_now(b, now, p.window_);
  if (cost > p.quota_ - next.used) {
    auto const wait = cost > p.quota_ ? p.window_ : next.time - now + p.window_;
    return {false, log_left(next), std::chrono::nanoseconds(wait)};
  }
  if (cost > 0) {
    next = {next.used == 0 ? now : std::max(next.time, now), next.used + cost, 0};
  }
  b = next;
  return {true, log_left(next), {}};
}

auto decider::settle_log(bucket b, std::int64_t admitted_at, std::int64_t units) const noexcept
    -> bucket {
  b = log_now(b, now, p.window_);
  if (units > 0) {
    return {b.used == 0 ? now : std::max(b.time, now), saturating_add(b.used, units), 0};
  }
  if (admitted_at > now - p.window_) {
    b.used = std::max<std::int64_t>(b.used + units, 0);
  }
  return b.used == 0 ? bucket{} : b;
}

// ---- concurrent requests ----

auto decider::concurrent(bucket& b, std::int64_t cost) const noexcept -> verdict {
  constexpr auto later = std::chrono::seconds(1);
  auto const left = std::max<std::int64_t>(p.quota_ - b.used, 0);
  if (cost > left) {
    return {false, {left, {}}, later};
  }
  b = {0, b.used + cost, 0};
  return {true, {left - cost, {}}, {}};
}

// ---- all ----

auto decider::look(bucket const& b) const noexcept -> service {
  if (p.unit_ == quota_unit::concurrent_requests) {
    return {std::max<std::int64_t>(p.quota_ - b.used, 0), {}};
  }
  switch (p.algorithm_) {
    case algorithm::fixed: return fixed_left(fixed_now(b));
    case algorithm::sliding: {
      auto const moved = sliding_now(b);
      return sliding_left(moved, sliding_room(moved));
    }
    case algorithm::log: return log_left(log_now(b, now, p.window_));
    case algorithm::gcra: break;
  }
  return gcra_left(gcra_now(b));
}

auto decider::settle_windows(bucket b, std::int64_t admitted_at, std::int64_t units,
                             bool two_windows) const noexcept -> bucket {
  b = two_windows ? sliding_now(b) : fixed_now(b);
  if (units >= 0) {
    if (b.time == 0) {
      b.time = fixed_end();
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

auto decider::settle_gcra(bucket const& old, std::int64_t units) const noexcept -> bucket {
  auto b = gcra_now(old);
  b.used = saturating_add(b.used, units);
  return b.used < 0 ? bucket{} : b;
}

auto decider::settle(bucket const& b, std::int64_t admitted_at, std::int64_t units) const noexcept
    -> bucket {
  if (p.unit_ == quota_unit::concurrent_requests) {
    return {0, std::max<std::int64_t>(saturating_add(b.used, units), 0), 0};
  }
  if (p.algorithm_ == algorithm::gcra) {
    return settle_gcra(b, units);
  }
  if (p.algorithm_ == algorithm::log) {
    return settle_log(b, admitted_at, units);
  }
  return settle_windows(b, admitted_at, units, p.algorithm_ == algorithm::sliding);
}

auto decide(policy const& p, bucket const& b, instant now, std::int64_t cost) noexcept -> decision {
  auto next = b;
  return {spend(p, next, now, cost), next};
}

auto look(policy const& p, bucket const& b, instant now) noexcept -> service {
  return decider{p, now.time_since_epoch().count()}.look(b);
}

auto forgiven(policy const& p, bucket const& b, instant now) noexcept -> bucket {
  bool const drains =
      p.unit() != quota_unit::concurrent_requests && p.algorithm() == algorithm::gcra;
  return drains ? decider{p, now.time_since_epoch().count()}.gcra_forgiven(b) : b;
}

auto settle(policy const& p, bucket const& b, instant admitted_at, instant now,
            std::int64_t units) noexcept -> bucket {
  return decider{p, now.time_since_epoch().count()}.settle(
      b, admitted_at.time_since_epoch().count(), units);
}

}  // namespace tidegate::TIDEGATE_ABI::ratelimit
