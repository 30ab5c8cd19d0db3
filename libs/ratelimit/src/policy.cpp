// SPDX-License-Identifier: Apache-2.0
#include <tidegate/ratelimit/policy.hpp>

#include <algorithm>
#include <cmath>

namespace tidegate::TIDEGATE_ABI::ratelimit {

namespace {

__extension__ using int128 = __int128;

constexpr std::int64_t quota_max = 999'999'999'999'999;
constexpr auto window_max = std::chrono::seconds(std::chrono::days(366));
constexpr auto drain_max = std::chrono::nanoseconds(std::chrono::days(3653));

}  // namespace

auto message(policy_fault fault) noexcept -> std::string_view {
  switch (fault) {
    case policy_fault::quota_out_of_range: return "the quota must be 0 to 999999999999999";
    case policy_fault::log_quota_too_large:
      return "with algorithm: log the quota must be at most 10000";
    case policy_fault::window_out_of_range: return "the window must be 1 second to 366 days";
    case policy_fault::window_not_allowed: return "concurrent requests have no window";
    case policy_fault::unit_not_allowed:
      return "the unit must be requests, content-bytes or concurrent-requests";
    case policy_fault::burst_not_allowed: return "only gcra has a burst";
    case policy_fault::calendar_not_allowed: return "only fixed has windows of a calendar";
    case policy_fault::burst_out_of_range:
      return "the burst must be at least 1 and drain within ten years";
  }
  return "unknown fault";
}

auto policy::make(policy_settings const& settings) -> result<policy, policy_fault> {
  if (settings.quota < 0 || settings.quota > quota_max) {
    return failure(policy_fault::quota_out_of_range);
  }
  if (settings.unit == quota_unit::other) {
    return failure(policy_fault::unit_not_allowed);
  }
  bool const concurrent = settings.unit == quota_unit::concurrent_requests;
  if (concurrent && settings.window != std::chrono::seconds(0)) {
    return failure(policy_fault::window_not_allowed);
  }
  if (!concurrent && (settings.window < std::chrono::seconds(1) || settings.window > window_max)) {
    return failure(policy_fault::window_out_of_range);
  }
  if (settings.algorithm == ratelimit::algorithm::log && !concurrent &&
      settings.quota > log_quota_max) {
    return failure(policy_fault::log_quota_too_large);
  }
  bool const gcra = settings.algorithm == ratelimit::algorithm::gcra && !concurrent;
  if (settings.burst.has_value() && !gcra) {
    return failure(policy_fault::burst_not_allowed);
  }
  if (settings.is_calendar && (concurrent || settings.algorithm != ratelimit::algorithm::fixed)) {
    return failure(policy_fault::calendar_not_allowed);
  }
  policy made;
  made.is_calendar_ = settings.is_calendar;
  made.quota_ = settings.quota;
  made.window_ = std::chrono::nanoseconds(settings.window).count();
  made.unit_ = settings.unit;
  made.algorithm_ = settings.algorithm;
  made.burst_ = settings.burst.value_or(settings.quota);
  if (settings.burst.has_value()) {
    auto const drain =
        made.quota_ == 0 ? int128(0) : int128(made.burst_) * made.window_ / made.quota_;
    if (made.burst_ < 1 || made.burst_ > quota_max || drain > drain_max.count()) {
      return failure(policy_fault::burst_out_of_range);
    }
  }
  return made;
}

auto policy::reduced(double capacity) const noexcept -> policy {
  auto const share = std::clamp(std::isnan(capacity) ? 1.0 : capacity, 0.0, 1.0);
  auto const scale = [share](std::int64_t full) {
    return share == 1 ? full
                      : static_cast<std::int64_t>(std::floor(static_cast<double>(full) * share));
  };
  policy less = *this;
  less.quota_ = scale(quota_);
  less.burst_ = less.quota_ == 0 ? 0 : std::max<std::int64_t>(scale(burst_), 1);
  return less;
}

auto policy::in_window(instant begin, std::chrono::sys_seconds wall_begin,
                       std::chrono::seconds length) const noexcept -> policy {
  policy made = *this;
  made.begin_ = begin.time_since_epoch().count();
  made.wall_begin_ = wall_begin.time_since_epoch().count();
  made.window_ = std::chrono::nanoseconds(length).count();
  made.has_begin_ = is_calendar_;
  return made;
}

auto policy::with_quota(std::int64_t quota) const -> result<policy, policy_fault> {
  if (quota < 0 || quota > quota_max) {
    return failure(policy_fault::quota_out_of_range);
  }
  if (algorithm_ == ratelimit::algorithm::log && unit_ != quota_unit::concurrent_requests &&
      quota > log_quota_max) {
    return failure(policy_fault::log_quota_too_large);
  }
  policy other = *this;
  other.quota_ = quota;
  if (quota_ == 0 || quota == 0 || burst_ == quota_) {
    other.burst_ = quota;
  } else {
    auto const scaled = (int128(burst_) * quota + quota_ - 1) / quota_;
    other.burst_ = static_cast<std::int64_t>(std::clamp<int128>(scaled, 1, quota_max));
  }
  return other;
}

}  // namespace tidegate::TIDEGATE_ABI::ratelimit
