// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/result.hpp>
#include <tidegate/ratelimit/limiter.hpp>
#include <tidegate/ratelimit/policy.hpp>
#include <tidegate/ratelimit/write.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

/// From what the limiters say to what the RateLimit field and Retry-After tell a client (draft-09,
/// sections 6 and 8.5): no more at a time than the service can take, and not all at the same
/// moment.
namespace tidegate::TIDEGATE_ABI::ratelimit {

/// Why two numbers make no rate.
enum class rate_fault : std::uint8_t {
  units_out_of_range,     ///< 1 to 999,999,999,999,999
  duration_out_of_range,  ///< above 0, up to 366 days
};

/// What is wrong, for people.
[[nodiscard]] auto message(rate_fault fault) noexcept -> std::string_view;

/// So many units in each such duration: `10/s` is ten in one second.
class rate {
 public:
  /// So many units in so much time; the error says what is wrong.
  [[nodiscard]] static auto make(std::int64_t units, std::chrono::nanoseconds duration)
      -> result<rate, rate_fault>;

  /// How many whole units come in `time`; 0 for a time below 0.
  [[nodiscard]] auto units_in(std::chrono::seconds time) const noexcept -> std::int64_t;
  /// How long one unit takes, rounded up.
  [[nodiscard]] auto time_of_one() const noexcept -> std::chrono::nanoseconds;

  auto operator==(rate const&) const -> bool = default;

 private:
  rate(std::int64_t units, std::int64_t duration) noexcept : units_(units), duration_(duration) {}

  std::int64_t units_;
  std::int64_t duration_;  // nanoseconds
};

/// How what is left of a policy is told.
struct advertisement {
  std::optional<rate> max_rate = std::nullopt;  ///< `r` never invites to more than this over `t`
  std::chrono::nanoseconds jitter{0};           ///< up to this much is added to `t` and Retry-After
  double share = 1;  ///< how much of `r` is told while the service is saturated: 0 to 1
};

/// What one policy says to the request that is answered. Borrows what it points to.
struct policy_outcome {
  ratelimit::policy const* policy = nullptr;
  service left;                            ///< `decision::left`
  std::chrono::nanoseconds retry{0};       ///< `decision::retry`
  bool violated = false;                   ///< it refuses the request
  advertisement const* options = nullptr;  ///< null: as it stands
  std::optional<std::string_view> partition_key = std::nullopt;
  draft version = draft::draft_09;  ///< by which it is told
};

/// How `outcome` is told. Time only ever becomes later and units only ever fewer than the limiter
/// says, so `t` is right whether it is read as draft-09's or as draft-10's; see
/// `service_limit_view`.
///
/// 1. `t` is the limiter's reset, or for a violated policy the time until the request would be
///    admitted. Concurrent requests have none. In draft-10 it is until more is there, also for a
///    violated policy, whose `retry` is the other time; and there is none while the quota is full.
/// 2. `share` lowers `r`, rounded down; a share above 0 leaves one unit of what there is.
/// 3. With `max_rate`, `t` is at least 1 and `r` at most what that rate gives in the whole seconds
///    of `t`. Where that is less than one unit though there is one, `r` is 1 and `t` the time it
///    takes.
/// 4. `t` becomes later by 0 to `jitter`, as `randomness` says, of which all bits count.
[[nodiscard]] auto advertise(policy_outcome const& outcome, std::uint64_t randomness) noexcept
    -> service_limit_view;

/// The same for all policies of one response, in their order: `views` has room for each. One number
/// is random enough for all of them.
///
/// Returns Retry-After when policies are violated: the latest `t` of those, and for concurrent
/// requests, which have no `t`, a second and its jitter. It is never so soon that it would be
/// written as 0.
[[nodiscard]] auto advertise(std::span<policy_outcome const> outcomes, std::uint64_t randomness,
                             std::span<service_limit_view> views) noexcept
    -> std::optional<std::chrono::nanoseconds>;

}  // namespace tidegate::TIDEGATE_ABI::ratelimit
