// SPDX-License-Identifier: Apache-2.0
#include <tidegate/ratelimit/overload.hpp>

#include <algorithm>

namespace tidegate::ratelimit {

namespace {

using namespace std::chrono_literals;

constexpr double step_down = 0.75;
/// Where no latency is aimed at, failures lower the limit once in this time.
constexpr auto pause_default = std::chrono::nanoseconds(1s);

}  // namespace

overload_guard::overload_guard(overload_settings const& settings) noexcept
    : target_latency_(settings.target_latency),
      most_(static_cast<double>(
          std::max<std::int64_t>(settings.max_in_flight.value_or(in_flight_default), 1))),
      limit_(most_) {}

void overload_guard::answered(std::chrono::nanoseconds latency, bool well, std::int64_t in_flight,
                              instant now) noexcept {
  bool const is_slow = target_latency_ && latency > *target_latency_;
  if (well && !is_slow) {
    if (static_cast<double>(in_flight) * 2 >= limit_) {
      limit_ = std::min(limit_ + 1 / limit_, most_);
    }
  } else if (now >= lowered_until_) {
    // What is under way now was sent under the limit as it was. Without a bound of its own the limit says
    // little until it is near what is used.
    limit_ = std::max(
        std::min(limit_, static_cast<double>(std::max<std::int64_t>(in_flight, 1))) * step_down,
        1.0);
    lowered_until_ = now + std::max(latency, target_latency_.value_or(pause_default));
  }
}

}  // namespace tidegate::ratelimit
