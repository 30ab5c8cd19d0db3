// SPDX-License-Identifier: Apache-2.0
#include <tidegate/ratelimit/abuse.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

namespace tidegate::TIDEGATE_ABI::ratelimit {

// The table that keeps them has room for so much and copies bytes.
static_assert(std::is_trivially_copyable_v<refusal_state> && sizeof(refusal_state) <= 24);
static_assert(std::is_trivially_copyable_v<pattern_state> && sizeof(pattern_state) <= 24);

namespace {

__extension__ using int128 = __int128;
using std::chrono::nanoseconds;

[[nodiscard]] auto count_of(instant t) noexcept -> std::int64_t {
  return t.time_since_epoch().count();
}

/// The nearest number that fits.
[[nodiscard]] auto clamped(int128 value) noexcept -> std::int64_t {
  constexpr int128 least = std::numeric_limits<std::int64_t>::min();
  constexpr int128 most = std::numeric_limits<std::int64_t>::max();
  return static_cast<std::int64_t>(std::clamp(value, least, most));
}

[[nodiscard]] auto after(instant now, nanoseconds wait) noexcept -> std::int64_t {
  return clamped(int128(count_of(now)) + wait.count());
}

[[nodiscard]] auto left_until(std::int64_t end, instant now) noexcept -> nanoseconds {
  return nanoseconds(clamped(std::max<int128>(int128(end) - count_of(now), 0)));
}

[[nodiscard]] auto interval_of(pattern_settings const& settings) noexcept -> std::int64_t {
  return std::max<std::int64_t>(settings.interval.count(), 1);
}

/// Takes an interval with so many requests into the mean; the first one as RFC 6298, section 2.2
/// takes the first time it measures, and the others as its section 2.3 does.
void learn(pattern_settings const& settings, pattern_state& state, std::uint32_t count) noexcept {
  auto const value = static_cast<float>(count);
  if (state.seen == 0) {
    state.mean = value;
    state.deviation = value / 2;
  } else {
    auto const error = value - state.mean;
    state.deviation += settings.weight * (std::abs(error) - state.deviation);
    state.mean += settings.weight * error;
  }
  if (state.seen < std::numeric_limits<std::uint16_t>::max()) {
    ++state.seen;
  }
}

/// How many intervals after the running one, or after the block, may pass before the past is
/// forgotten.
[[nodiscard]] auto intervals_kept(pattern_settings const& settings,
                                  pattern_state const& state) noexcept -> std::int64_t {
  return std::int64_t{settings.quiet_intervals_max} + (state.count > 0 ? 1 : 0);
}

/// Moves on to the interval that `now` is in. At most so many steps as quiet intervals are kept.
void advance(pattern_settings const& settings, pattern_state& state, instant now) noexcept {
  auto const interval = interval_of(settings);
  auto const passed = clamped(std::max<int128>(int128(count_of(now)) - state.time, 0) / interval);
  bool const is_new = state.seen == 0 && state.count == 0;
  if (is_new || passed > intervals_kept(settings, state)) {
    state = {.time = count_of(now)};
    return;
  }
  for (std::int64_t i = 0; i < passed; ++i) {
    learn(settings, state, state.count);
    state.count = 0;
  }
  state.time = clamped(int128(state.time) + int128(passed) * interval);
}

[[nodiscard]] auto is_broken(pattern_settings const& settings, pattern_state const& state) noexcept
    -> bool {
  auto const count = static_cast<float>(state.count);
  return state.seen >= settings.intervals_min && state.count > settings.minimum &&
         count > settings.factor * state.mean &&
         count > state.mean + settings.deviations * state.deviation;
}

}  // namespace

// ---- refusals ----

auto count_refusal(abuse_settings const& settings, refusal_state const& state, instant now) noexcept
    -> refusal_verdict {
  if (blocked_for(state, now) > nanoseconds(0)) {
    return {false, state};
  }
  auto next = state;
  if (next.blocked != 0 || next.count == 0 || count_of(now) >= next.end) {
    next = {.end = after(now, std::max(settings.within, nanoseconds(1)))};
  }
  ++next.count;
  if (next.count >= settings.refusals) {
    return {true, {.end = after(now, settings.block), .blocked = 1}};
  }
  return {false, next};
}

auto blocked_for(refusal_state const& state, instant now) noexcept -> nanoseconds {
  return state.blocked != 0 ? left_until(state.end, now) : nanoseconds(0);
}

auto expires(refusal_state const& state) noexcept -> instant {
  return instant(nanoseconds(state.end));
}

// ---- patterns ----

auto watch(pattern_settings const& settings, pattern_state const& state, instant now) noexcept
    -> pattern_verdict {
  if (blocked_for(state, now) > nanoseconds(0)) {
    return {true, false, state};
  }
  auto next = state;
  next.blocked = 0;  // an interval begins where the block ended
  advance(settings, next, now);
  if (next.count < std::numeric_limits<std::uint32_t>::max()) {
    ++next.count;
  }
  if (!is_broken(settings, next)) {
    return {false, false, next};
  }
  learn(settings, next, next.count);
  next.time = after(now, settings.block);
  next.count = 0;
  next.blocked = 1;
  return {true, true, next};
}

auto blocked_for(pattern_state const& state, instant now) noexcept -> nanoseconds {
  return state.blocked != 0 ? left_until(state.time, now) : nanoseconds(0);
}

auto expires(pattern_settings const& settings, pattern_state const& state) noexcept -> instant {
  if (state.seen == 0 && state.count == 0) {
    return {};
  }
  auto const kept = int128(intervals_kept(settings, state)) + 1;
  return instant(nanoseconds(clamped(state.time + kept * interval_of(settings))));
}

}  // namespace tidegate::TIDEGATE_ABI::ratelimit
