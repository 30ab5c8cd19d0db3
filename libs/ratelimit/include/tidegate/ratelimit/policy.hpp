// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/instant.hpp>
#include <tidegate/base/result.hpp>
#include <tidegate/ratelimit/fields.hpp>

#include <chrono>
#include <cstdint>
#include <optional>

namespace tidegate::TIDEGATE_ABI::ratelimit {

/// How units are counted over time. What each promises is said at `decide`.
enum class algorithm : std::uint8_t { fixed, sliding, gcra, log };

/// With `algorithm::log` the time of each unit may have to be kept.
inline constexpr std::int64_t log_quota_max = 10'000;

/// What an operator says of a policy.
struct policy_settings {
  std::int64_t quota = 0;
  std::chrono::seconds window{0};  ///< none for concurrent requests
  quota_unit unit = quota_unit::requests;
  ratelimit::algorithm algorithm = ratelimit::algorithm::sliding;
  // NOLINTNEXTLINE(readability-redundant-member-init): so that it may be left out
  std::optional<std::int64_t> burst{};  ///< gcra only; the quota when it is missing
  /// fixed only: windows are those of a calendar, and `window` says how long they usually are.
  bool is_calendar = false;
};

/// Why settings make no policy.
enum class policy_fault : std::uint8_t {
  quota_out_of_range,    ///< 0 to 999,999,999,999,999
  log_quota_too_large,   ///< at most 10,000 with the log
  window_out_of_range,   ///< 1 second to 366 days
  window_not_allowed,    ///< concurrent requests have none
  unit_not_allowed,      ///< not one that can be counted here
  burst_not_allowed,     ///< only gcra has one
  calendar_not_allowed,  ///< only fixed has windows of a calendar
  burst_out_of_range,    ///< 1 to the quota times 1,000, as long as it drains within ten years
};

/// What is wrong, for people.
[[nodiscard]] auto message(policy_fault fault) noexcept -> std::string_view;

/// Settings that were checked.
class policy {
 public:
  /// Checks the settings; the error says which cannot be.
  [[nodiscard]] static auto make(policy_settings const& settings) -> result<policy, policy_fault>;

  /// What the settings said; a burst that they left out is the quota.
  [[nodiscard]] auto quota() const noexcept -> std::int64_t { return quota_; }
  [[nodiscard]] auto window() const noexcept -> std::chrono::seconds {
    return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::nanoseconds(window_));
  }
  [[nodiscard]] auto unit() const noexcept -> quota_unit { return unit_; }
  [[nodiscard]] auto algorithm() const noexcept -> ratelimit::algorithm { return algorithm_; }
  [[nodiscard]] auto burst() const noexcept -> std::int64_t { return burst_; }
  /// What a request can cost at most without being refused for ever.
  [[nodiscard]] auto cost_max() const noexcept -> std::int64_t {
    return algorithm_ == ratelimit::algorithm::gcra && unit_ != quota_unit::concurrent_requests
               ? burst_
               : quota_;
  }

  /// Whether windows are those of a calendar: then every decision is made by what `in_window`
  /// returns, and without it by windows that begin with the first request.
  [[nodiscard]] auto is_calendar() const noexcept -> bool { return is_calendar_; }
  /// The same policy in the window of the calendar that contains the moment of a decision. Buckets
  /// keep their meaning; where the beginnings of windows shift by less than half of one, since
  /// clocks differ, they are the same windows.
  [[nodiscard]] auto in_window(instant begin, std::chrono::sys_seconds wall_begin,
                               std::chrono::seconds length) const noexcept -> policy;
  /// When that window began, by both clocks; only what `in_window` returns says so.
  [[nodiscard]] auto window_begin() const noexcept -> instant {
    return instant(std::chrono::nanoseconds(begin_));
  }
  [[nodiscard]] auto wall_begin() const noexcept -> std::chrono::sys_seconds {
    return std::chrono::sys_seconds(std::chrono::seconds(wall_begin_));
  }
  [[nodiscard]] auto has_window_begin() const noexcept -> bool { return has_begin_; }

  /// The same policy at temporarily reduced capacity: `capacity` of its quota and burst, from 0 to
  /// 1, rounded down. Buckets keep their meaning, so a factor may change between two decisions.
  [[nodiscard]] auto reduced(double capacity) const noexcept -> policy;

  /// The same policy with another quota that `make` would take, and a burst that has changed as
  /// much, rounded up. Buckets keep their meaning, so it may change between two decisions.
  [[nodiscard]] auto with_quota(std::int64_t quota) const -> result<policy, policy_fault>;

  auto operator==(policy const&) const -> bool = default;

 private:
  friend struct decider;
  policy() = default;

  std::int64_t quota_ = 0;
  std::int64_t window_ = 0;  // nanoseconds
  std::int64_t burst_ = 0;
  std::int64_t begin_ = 0;       // nanoseconds
  std::int64_t wall_begin_ = 0;  // seconds
  quota_unit unit_ = quota_unit::requests;
  ratelimit::algorithm algorithm_ = ratelimit::algorithm::sliding;
  bool is_calendar_ = false;
  bool has_begin_ = false;
};

}  // namespace tidegate::TIDEGATE_ABI::ratelimit
