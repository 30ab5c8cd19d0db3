// SPDX-License-Identifier: Apache-2.0
#include <tidegate/ratelimit/overload.hpp>

#include <algorithm>

namespace tidegate::TIDEGATE_ABI::ratelimit {

namespace {

using namespace std::chrono_literals;

constexpr double step_down = 0.75;
/// Where no latency is aimed at, failures lower the limit once in this time.
constexpr auto pause_default = std::chrono::nanoseconds(1s);

[[nodiscard]] auto bound_of(overload_settings const& settings) noexcept -> double {
  return static_cast<double>(std::max<std::int64_t>(
      settings.max_in_flight.value_or(overload_guard::in_flight_default), 1));
}

}  // namespace

overload_guard::overload_guard(overload_settings const& settings) noexcept
    : target_latency_(settings.target_latency), most_(bound_of(settings)), limit_(most_) {}

void overload_guard::use(overload_settings const& settings) noexcept {
  bool const is_lowered = limit_ < most_;
  target_latency_ = settings.target_latency;
  most_ = bound_of(settings);
  limit_ = is_lowered ? std::min(limit_, most_) : most_;
}

auto overload_guard::admits(std::int64_t in_flight, instant now) noexcept -> bool {
  if (in_flight < limit()) {
    return true;
  }
  overloaded_at_ = std::max(overloaded_at_, now);
  return false;
}

auto overload_guard::capacity(instant now) const noexcept -> double {
  auto const limited = limit_ / most_;
  if (overloaded_at_ == instant::min()) {
    return limited;
  }
  // The next sign may be on its way.
  constexpr auto rise = recovery - pause_default;
  auto const risen =
      std::clamp<std::chrono::nanoseconds>(now - overloaded_at_ - pause_default, 0ns, rise);
  return limited +
         (1 - limited) * (static_cast<double>(risen.count()) / static_cast<double>(rise.count()));
}

void overload_guard::answered(std::chrono::nanoseconds latency, bool well, std::int64_t in_flight,
                              instant now) noexcept {
  bool const is_slow = target_latency_ && latency > *target_latency_;
  if (well && !is_slow) {
    if (static_cast<double>(in_flight) * 2 >= limit_) {
      limit_ = std::min(limit_ + 1 / limit_, most_);
    }
    return;
  }
  overloaded_at_ = std::max(overloaded_at_, now);
  if (now >= lowered_until_) {
    // What is under way now was sent under the limit as it was. Without a bound of its own the
    // limit says little until it is near what is used.
    limit_ = std::max(
        std::min(limit_, static_cast<double>(std::max<std::int64_t>(in_flight, 1))) * step_down,
        1.0);
    lowered_until_ = now + std::max(latency, target_latency_.value_or(pause_default));
  }
}

}  // namespace tidegate::TIDEGATE_ABI::ratelimit
