// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/ratelimit/fields.hpp>
#include <tidegate/sf/text.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// Writing the two fields by any draft, and what goes with them: X-RateLimit-* and Retry-After.
/// All functions append a field value to the end of the caller's string and allocate nothing when
/// it has room. Where there is nothing to say they append nothing: the field is left out.
namespace tidegate::TIDEGATE_ABI::ratelimit {

/// A policy to be advertised. Borrows its texts.
struct quota_policy_view {
  sf::string_view name;
  std::int64_t quota = 0;             ///< written as 0 to 999,999,999,999,999
  sf::string_view unit = "requests";  ///< the default is not written
  std::optional<std::chrono::seconds> window = std::nullopt;  ///< at least 1 s
  comment_parameters const* comments = nullptr;               ///< written after those above
};

/// How a policy stands for one partition, after the request that is answered. Borrows its text.
///
/// `reset` is the time until the policy has more than `remaining` to give again. It is written as
/// `t`, and `t` is to be right in two readings. To draft-09 it is the time until the quota resets,
/// after which a client may come back for more, though not to a full quota (section 4.1.2). To
/// draft-10 it is the time until more quota is there, and Retry-After must not be earlier. Both
/// hold when the caller sees to this:
///
/// - Pass a time at which more is there, or a later one, never an earlier one. A fixed window
///   passes its end; the others pass when the next unit comes back. Jitter is added, not taken off.
///   It is rounded up here, so that no client comes back within the second before.
/// - When a request is refused, `reset` of each policy that refused it is the time until the
///   request would be admitted, and Retry-After is made from the latest of them by
///   `append_retry_after`. The same rounding then makes it the same moment or a later one than any
///   such `t`, which is also what section 6 of draft-09 asks for.
/// - A policy without a time at which more comes back, as for concurrent requests, has none.
///
/// Written as draft-10 says, `t` may be earlier than Retry-After: then `retry` is the time until
/// the request would be admitted, and Retry-After is made from that.
struct service_limit_view {
  std::int64_t remaining = 0;  ///< written as 0 to 999,999,999,999,999
  std::optional<std::chrono::nanoseconds> reset = std::nullopt;
  std::optional<std::string_view> partition_key = std::nullopt;  ///< any octets
  /// Of a policy that refuses, where that is not `reset`.
  std::optional<std::chrono::nanoseconds> retry = std::nullopt;
};

/// Whole seconds until something that is `wait` away is over: rounded up, never below 0.
[[nodiscard]] constexpr auto seconds_until(std::chrono::nanoseconds wait) noexcept -> std::int64_t {
  return wait.count() <= 0 ? 0 : (wait.count() - 1) / 1'000'000'000 + 1;
}

// In what follows `limits[i]` is how `policies[i]` stands; the two have the same size.

/// Appends RateLimit-Policy, one item for each policy in their order.
///
/// draft-07 has Integers instead of names, so policies without a window are left out, and of those
/// with the same quota only the one with the longest window is shown (section 3.5 forbids two).
void append_policies(std::string& out, std::span<quota_policy_view const> policies,
                     std::span<service_limit_view const> limits, draft version);

/// Appends RateLimit: one item for each policy, in draft-07 the expiring limit.
void append_limits(std::string& out, std::span<quota_policy_view const> policies,
                   std::span<service_limit_view const> limits, draft version);

/// Which policy is closest to exhaustion: the one with the least remaining; of equal ones the one
/// that resets later (draft-07, sections 3.2 and 4). Policies without a window are not looked at.
[[nodiscard]] auto closest_to_exhaustion(std::span<quota_policy_view const> policies,
                                         std::span<service_limit_view const> limits) noexcept
    -> std::optional<std::size_t>;

/// What draft-07's RateLimit and the three X-RateLimit-* fields say of one policy.
struct expiring_limit {
  std::int64_t limit = 0;      ///< X-RateLimit-Limit
  std::int64_t remaining = 0;  ///< X-RateLimit-Remaining
  std::int64_t reset = 0;      ///< X-RateLimit-Reset, in seconds from now
  auto operator==(expiring_limit const&) const -> bool = default;
};

/// Those of the policy closest to exhaustion, as they are written. A reset that is not known is the
/// window.
[[nodiscard]] auto find_expiring_limit(std::span<quota_policy_view const> policies,
                                       std::span<service_limit_view const> limits) noexcept
    -> std::optional<expiring_limit>;

/// Appends it as draft-07's RateLimit.
void append_expiring_limit(std::string& out, expiring_limit const& limit);
/// Appends one of its numbers: the value of an X-RateLimit-* field.
void append_count(std::string& out, std::int64_t value);

/// Appends the value of Retry-After as delay-seconds, rounded up (RFC 9110, section 10.2.3).
void append_retry_after(std::string& out, std::chrono::nanoseconds wait);

/// The parts of both fields that are the same in every response of a route, written once.
///
/// Appends byte for byte what `append_policies` and `append_limits` do. Owns its text.
class prepared_fields {
 public:
  prepared_fields() = default;
  prepared_fields(std::span<quota_policy_view const> policies, draft version);

  /// Of `limits`, one for each policy in the same order, only the partition keys are looked at.
  void append_policies(std::string& out, std::span<service_limit_view const> limits) const;
  void append_limits(std::string& out, std::span<service_limit_view const> limits) const;

  /// Appends both as complete lines, `RateLimit-Policy: ` and the value and an end of line, then
  /// RateLimit. A field without a value is left out.
  void append_lines(std::string& out, std::span<service_limit_view const> limits) const;

  /// The draft that the fields are written by.
  [[nodiscard]] auto version() const noexcept -> draft { return version_; }
  /// How many policies there are.
  [[nodiscard]] auto size() const noexcept -> std::size_t { return parts_.size(); }

 private:
  void append_usual_lines(std::string& out, std::span<service_limit_view const> limits) const;

  struct part {
    std::size_t policy_end = 0;  // in policy_text_: where its item ends
    std::size_t limit_end = 0;   // in limit_text_: where the text before its remaining ends
    std::optional<std::int64_t> window = std::nullopt;  // seconds
  };

  std::string policy_text_;  // all items with ", " between
  std::string limit_text_;   // for each policy what stands before the number that remains
  std::string lines_text_;  // with names: both lines up to the first number, without partition keys
  std::vector<part> parts_;
  draft version_ = draft::draft_09;
};

}  // namespace tidegate::TIDEGATE_ABI::ratelimit
