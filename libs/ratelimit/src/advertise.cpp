// SPDX-License-Identifier: Apache-2.0
#include <tidegate/ratelimit/advertise.hpp>

#include <algorithm>
#include <cassert>
#include <limits>

namespace tidegate::TIDEGATE_ABI::ratelimit {

namespace {

__extension__ using int128 = __int128;
__extension__ using uint128 = unsigned __int128;
using std::chrono::nanoseconds;

constexpr std::int64_t units_max = 999'999'999'999'999;
constexpr auto duration_max = nanoseconds(std::chrono::days(366));
constexpr std::int64_t second = 1'000'000'000;

/// `time` made later by 0 to `jitter`, both included and all equally likely.
[[nodiscard]] auto jittered(nanoseconds time, nanoseconds jitter, std::uint64_t randomness) noexcept
    -> nanoseconds {
  auto const choices = static_cast<std::uint64_t>(std::max<std::int64_t>(jitter.count(), 0)) + 1;
  auto const added = static_cast<std::int64_t>(uint128(randomness) * choices >> 64);
  std::int64_t sum = 0;
  return __builtin_add_overflow(time.count(), added, &sum) ? nanoseconds::max() : nanoseconds(sum);
}

[[nodiscard]] auto shared(std::int64_t remaining, double share) noexcept -> std::int64_t {
  if (!(share < 1)) {
    return remaining;
  }
  auto const told =
      static_cast<std::int64_t>(static_cast<double>(remaining) * std::max(share, 0.0));
  // Nothing would mean: until the reset, which may be a day away.
  return share > 0 && remaining > 0 ? std::max<std::int64_t>(told, 1) : told;
}

[[nodiscard]] auto is_concurrent(policy_outcome const& outcome) noexcept -> bool {
  return outcome.policy->unit() == quota_unit::concurrent_requests;
}

/// The earliest moment for a request that was refused: the limiter's, and never at once.
[[nodiscard]] auto retry_of(policy_outcome const& outcome) noexcept -> nanoseconds {
  return std::max(outcome.retry, nanoseconds(1));
}

/// The limiter's reset. With gcra it is until all is there, while a unit comes back in a part of
/// the window. Of a policy that is violated it is never later than when the request would be
/// admitted.
[[nodiscard]] auto time_until_more(policy_outcome const& outcome) noexcept -> nanoseconds {
  auto const& p = *outcome.policy;
  auto time = outcome.left.reset;
  if (p.algorithm() == algorithm::gcra && p.quota() > 0) {
    auto const one = (nanoseconds(p.window()).count() - 1) / p.quota() + 1;
    time = std::min(time, nanoseconds(one));
  }
  return outcome.violated ? std::min(time, retry_of(outcome)) : time;
}

/// Lowers `remaining`, or makes `reset` later, until `most` is not exceeded.
void cap(rate const& most, std::int64_t& remaining, nanoseconds& reset) noexcept {
  reset = std::max(reset, nanoseconds(second));
  auto const allowed = most.units_in(std::chrono::seconds(seconds_until(reset)));
  if (allowed == 0 && remaining > 0) {
    remaining = 1;
    reset = most.time_of_one();
  } else {
    remaining = std::min(remaining, allowed);
  }
}

}  // namespace

auto message(rate_fault fault) noexcept -> std::string_view {
  switch (fault) {
    case rate_fault::units_out_of_range: return "the units must be 1 to 999999999999999";
    case rate_fault::duration_out_of_range: break;
  }
  return "the duration must be above 0 and up to 366 days";
}

auto rate::make(std::int64_t units, nanoseconds duration) -> result<rate, rate_fault> {
  if (units < 1 || units > units_max) {
    return failure(rate_fault::units_out_of_range);
  }
  if (duration <= nanoseconds(0) || duration > duration_max) {
    return failure(rate_fault::duration_out_of_range);
  }
  return rate(units, duration.count());
}

auto rate::units_in(std::chrono::seconds time) const noexcept -> std::int64_t {
  // Seconds that a nanosecond count can be rounded up to: the product fits.
  auto const seconds = std::clamp<std::int64_t>(
      time.count(), 0, std::numeric_limits<std::int64_t>::max() / second + 1);
  auto const units = int128(units_) * seconds * second / duration_;
  return static_cast<std::int64_t>(
      std::min<int128>(units, std::numeric_limits<std::int64_t>::max()));
}

auto rate::time_of_one() const noexcept -> nanoseconds {
  return nanoseconds((duration_ - 1) / units_ + 1);
}

auto advertise(policy_outcome const& outcome, std::uint64_t randomness) noexcept
    -> service_limit_view {
  assert(outcome.policy != nullptr);
  static constexpr advertisement as_it_stands;
  auto const& how = outcome.options != nullptr ? *outcome.options : as_it_stands;
  auto remaining = shared(outcome.left.remaining, how.share);
  if (is_concurrent(outcome)) {
    return {remaining, std::nullopt, outcome.partition_key};
  }
  auto const rules = rules_of(outcome.version);
  if (rules.omits_full_reset && !outcome.violated &&
      outcome.left.remaining >= outcome.policy->cost_max()) {
    return {remaining, std::nullopt, outcome.partition_key};
  }
  auto const retry = retry_of(outcome);
  auto reset = rules.reset_is_for_more ? time_until_more(outcome)
               : outcome.violated      ? retry
                                       : outcome.left.reset;
  if (how.max_rate.has_value()) {
    cap(*how.max_rate, remaining, reset);
  }
  service_limit_view told{remaining, jittered(reset, how.jitter, randomness),
                          outcome.partition_key};
  if (rules.reset_is_for_more && outcome.violated) {
    told.retry = std::max(jittered(retry, how.jitter, randomness), *told.reset);
  }
  return told;
}

auto advertise(std::span<policy_outcome const> outcomes, std::uint64_t randomness,
               std::span<service_limit_view> views) noexcept -> std::optional<nanoseconds> {
  assert(views.size() >= outcomes.size());
  std::optional<nanoseconds> retry_after;
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    auto const& outcome = outcomes[i];
    views[i] = advertise(outcome, randomness);
    if (outcome.violated) {
      auto const jitter = outcome.options != nullptr ? outcome.options->jitter : nanoseconds(0);
      auto const wait = views[i].retry.has_value() ? *views[i].retry
                        : views[i].reset.has_value()
                            ? *views[i].reset
                            : jittered(std::chrono::seconds(1), jitter, randomness);
      retry_after = std::max(retry_after.value_or(wait), wait);
    }
  }
  return retry_after;
}

}  // namespace tidegate::TIDEGATE_ABI::ratelimit
