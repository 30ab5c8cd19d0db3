// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/instant.hpp>
#include <tidegate/ratelimit/fields.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

/// What a pacer knows of one limit of a server, and what follows from it for the rate.
namespace tidegate::TIDEGATE_ABI::ratelimit {

/// What was known when a response was made.
struct limit_mark {
  instant at;
  std::int64_t remaining = 0;
  instant reset;
  std::uint64_t own = 0;
};

/// Where a server holds far less than the quota at a time, the reset in whole seconds is too
/// coarse.
struct burst_knowledge {
  double most = 0;      ///< units that were there at a time
  double patience = 1;  ///< the part of the time to the reset that is waited, at least
  double longest = 0;   ///< seconds to the reset when nothing was left
  instant shared_until{instant::min()};  ///< others are there: the reset is waited for
  unsigned came_too_early = 0;           ///< how often less than all of it was too short
};

/// `made` is when a response was made, `in_flight` how many requests are under way: those that
/// overtake each other blur what remained when.
struct known_limit {
  std::string name;
  std::optional<std::string> partition_key;
  quota_unit unit = quota_unit::requests;
  double per_request = 1;      ///< units that a request costs; 0 while that is not known
  std::int64_t remaining = 0;  ///< units, when it was last seen
  std::uint64_t ticket = 0;    ///< of the request whose response told
  std::uint64_t own = 0;       ///< requests of this client that were let in by then, or nearly so
  std::int64_t overtaken = 0;  ///< requests sent before that one and still under way
  instant reset;               ///< when there is more, as far as is known
  instant until;               ///< how long nothing goes once the allowance is used up
  double quota = 0;            ///< units; as the policy says, else the most that was seen
  double window = 0;           ///< seconds; as the policy says, else the longest reset seen
  bool has_policy = false;
  bool refills = false;     ///< quota comes back before the reset
  limit_mark measured;      ///< how fast it shrinks is measured from here on
  limit_mark window_begin;  ///< the first response of this window
  bool alone = false;       ///< all that was spent lately was spent by this client
  burst_knowledge burst;

  /// Units of a request, and requests from units, by what was seen.
  [[nodiscard]] auto cost_of_one() const noexcept -> double {
    return per_request > 0 ? per_request : 1;
  }
  [[nodiscard]] auto requests(double units) const noexcept -> double {
    return units / cost_of_one();
  }

  /// Measures from a response on that was made at `made`; with it a window may begin.
  void measure_from(instant made) noexcept;
  void begin_window(instant made) noexcept;

  /// What a request costs in a unit that a client cannot count: what was gone after it, others'
  /// share included.
  void learn_cost(std::int64_t spent, std::uint64_t now_answered) noexcept;

  /// Whether quota comes back bit by bit and never is there at once: a burst that is far below the
  /// quota, which no field tells.
  [[nodiscard]] auto holds_little(instant made) const noexcept -> bool;
  /// Less is waited as long as nothing is refused. Who came too early may not be alone, and waits
  /// for the reset for a window, and twice as many each time.
  void learn_patience(bool is_refused, instant made) noexcept;
  /// Where it holds little: seconds from one request to the next. `wait` is that to the reset.
  [[nodiscard]] auto burst_pace(std::chrono::nanoseconds wait) noexcept -> double;
  /// What such a server did not keep looks as if others had taken it.
  [[nodiscard]] auto is_paced_by_burst() const noexcept -> bool;

  /// The rate at which what remains lasts until the reset, where all of it is for one client: with
  /// the last request the next window begins.
  [[nodiscard]] auto spread_rate(instant made) const -> double;
  /// Nothing is known of others yet. 0 when nothing remains: that says nothing about a rate.
  [[nodiscard]] auto first_rate(instant made) const -> double;
  /// Whether the quota was filled up since the last measurement. Finds out, too, whether it comes
  /// back bit by bit.
  [[nodiscard]] auto has_new_window(instant made, std::size_t in_flight) -> bool;
  /// Whether others have spent of the quota lately; nothing when that cannot be said yet.
  [[nodiscard]] auto sees_others(instant made, std::size_t in_flight) const -> std::optional<bool>;
  /// The part of the quota that this client had in the window so far. The sum over all clients is
  /// at most 1.
  [[nodiscard]] auto share_of_window() const -> double;
  /// The rate after a measurement, which begins again then; nothing while it goes on.
  [[nodiscard]] auto corrected(double rate_before, instant made, std::size_t in_flight)
      -> std::optional<double>;
};

}  // namespace tidegate::TIDEGATE_ABI::ratelimit
