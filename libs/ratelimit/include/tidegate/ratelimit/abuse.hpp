// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/instant.hpp>

#include <chrono>
#include <cstdint>

/// Two watchers for what draft-09, section 5.3 calls abnormal usage: a client that does not stop
/// when it is refused, and one that suddenly behaves unlike itself. State and time in, verdict and
/// next state out; both block a partition for a while. A blocked request is answered with
/// `problem_type::abnormal_usage_detected` and `blocked_for` as Retry-After.
///
/// A state of zeros is one of a partition that was never seen. A clock that steps back forgets
/// nothing: a window, an interval or a block lasts until the clock has caught up.
namespace tidegate::TIDEGATE_ABI::ratelimit {

// ---- refusals ----

/// So many refusals within so long block a partition for so long.
struct abuse_settings {
  std::uint32_t refusals = 50;                                ///< 0 counts as 1
  std::chrono::nanoseconds within = std::chrono::minutes(1);  ///< at least 1 ns
  std::chrono::nanoseconds block = std::chrono::minutes(10);
};

/// The refusals of one partition.
struct refusal_state {
  std::int64_t end = 0;       ///< of the window, or of the block
  std::uint32_t count = 0;    ///< refusals in the window; while blocked 0
  std::uint32_t blocked = 0;  ///< 1 when it is
  auto operator==(refusal_state const&) const -> bool = default;
};

/// What a refusal means for its partition.
struct refusal_verdict {
  bool blocks = false;  ///< this refusal is the one that blocks the partition
  refusal_state next;
};

/// Counts a refusal by quota at `now`, in a window that begins with the first one. The one that
/// reaches the number blocks the partition from `now` on and is a refusal by quota itself: what
/// comes next is blocked. While the partition is blocked nothing is counted, so the block is not
/// prolonged.
[[nodiscard]] auto count_refusal(abuse_settings const& settings, refusal_state const& state,
                                 instant now) noexcept -> refusal_verdict;

/// How long the partition stays blocked; 0 when it is not.
[[nodiscard]] auto blocked_for(refusal_state const& state, instant now) noexcept
    -> std::chrono::nanoseconds;

/// When the state says nothing any more and may be forgotten.
[[nodiscard]] auto expires(refusal_state const& state) noexcept -> instant;

// ---- patterns ----

/// When the requests of a partition break with its own past, and for how long that blocks it.
///
/// Time is cut into intervals. Of their counts an exponentially weighted mean is kept, and one of
/// how far they lie from it. A request breaks the pattern when it takes the running interval above
/// all three bounds: `minimum`, `factor` times the mean, and the mean plus `deviations` times the
/// mean deviation.
struct pattern_settings {
  std::chrono::nanoseconds interval = std::chrono::minutes(1);  ///< at least 1 ns
  std::uint32_t minimum = 100;       ///< so many requests in an interval are never abnormal
  float factor = 4;                  ///< nor are so many times the mean
  float deviations = 6;              ///< nor so many deviations above it
  float weight = 0.125F;             ///< of the newest interval, above 0 and up to 1
  std::uint16_t intervals_min = 10;  ///< so many are seen before anything is judged
  /// After more quiet intervals than this in a row, the past is forgotten: a client that comes back
  /// in the morning is a new one, and not one that breaks with a quiet night.
  std::uint8_t quiet_intervals_max = 15;
  std::chrono::nanoseconds block = std::chrono::minutes(10);
};

/// The past of one partition.
struct pattern_state {
  std::int64_t time = 0;      ///< begin of the running interval; while blocked the end of the block
  std::uint32_t count = 0;    ///< requests in the running interval
  float mean = 0;             ///< requests in an interval
  float deviation = 0;        ///< how far intervals lie from the mean
  std::uint16_t seen = 0;     ///< intervals in the mean
  std::uint16_t blocked = 0;  ///< 1 when it is
  auto operator==(pattern_state const&) const -> bool = default;
};

/// What a request means for its partition.
struct pattern_verdict {
  bool blocked = false;  ///< the request is to be refused
  bool breaks = false;   ///< it is the one that broke the pattern
  pattern_state next;
};

/// Counts a request at `now` and judges it. The request that breaks the pattern is the first that
/// is blocked. While the partition is blocked nothing is counted, so the block is not prolonged.
/// The interval that was broken goes into the mean with what it had until then, so a client that
/// has grown for good is let through more each time. The time of the block is not part of the past.
[[nodiscard]] auto watch(pattern_settings const& settings, pattern_state const& state,
                         instant now) noexcept -> pattern_verdict;

/// How long the partition stays blocked; 0 when it is not.
[[nodiscard]] auto blocked_for(pattern_state const& state, instant now) noexcept
    -> std::chrono::nanoseconds;

/// When the state says nothing any more and may be forgotten.
[[nodiscard]] auto expires(pattern_settings const& settings, pattern_state const& state) noexcept
    -> instant;

}  // namespace tidegate::TIDEGATE_ABI::ratelimit
