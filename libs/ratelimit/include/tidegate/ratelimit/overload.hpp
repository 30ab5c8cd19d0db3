// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/instant.hpp>

#include <chrono>
#include <cstdint>
#include <optional>

namespace tidegate::TIDEGATE_ABI::ratelimit {

/// When a service is overloaded.
struct overload_settings {
  /// So many requests at a time at most.
  std::optional<std::int64_t> max_in_flight = std::nullopt;
  /// Answers that take longer mean that there were too many at a time.
  std::optional<std::chrono::nanoseconds> target_latency = std::nullopt;
};

/// How many requests a service is given at a time: fewer when it slows down or fails, more again as
/// it recovers. What is above that is answered with `problem_type::temporary_reduced_capacity`
/// (draft-09, section 5.2).
///
/// The limit grows by one for as many good answers as it has, as long as it is made use of, and
/// falls by a quarter for a bad one, not more often than once in a time in which the answers to
/// what was sent before can have come. It never falls below one, so that there is always a request
/// to show that the service is well.
///
/// What clients are told recovers by itself: those who obey it send less, so that the limit is not
/// used and does not grow.
class overload_guard {
 public:
  /// Where no bound is set, the limit still has one.
  static constexpr std::int64_t in_flight_default = 10'000;
  /// So long after the last sign of overload all of the capacity is told again.
  static constexpr std::chrono::nanoseconds recovery{std::chrono::seconds(10)};

  explicit overload_guard(overload_settings const& settings) noexcept;

  /// Goes on with other settings. A limit that was lowered stays, but is not above the new bound.
  void use(overload_settings const& settings) noexcept;

  /// May another request go while so many are under way? A refusal is a sign of overload.
  [[nodiscard]] auto admits(std::int64_t in_flight, instant now) noexcept -> bool;
  /// An answer came, or none did in time. `well`: the service did not fail. `in_flight` as of then,
  /// with this one.
  void answered(std::chrono::nanoseconds latency, bool well, std::int64_t in_flight,
                instant now) noexcept;

  /// How many requests may be in flight now.
  [[nodiscard]] auto limit() const noexcept -> std::int64_t {
    return static_cast<std::int64_t>(limit_);
  }
  /// How much of the usual there is now, from 0 to 1: for `advertisement::share`. For a second
  /// after the last sign of overload, which is a bad answer or a refusal, it is the limit's share
  /// of its bound. From there it rises to 1, which it is `recovery` after that sign.
  [[nodiscard]] auto capacity(instant now) const noexcept -> double;

 private:
  std::optional<std::chrono::nanoseconds> target_latency_;
  double most_;
  double limit_;
  instant lowered_until_{instant::min()};  // no further step down before
  instant overloaded_at_{instant::min()};  // the last sign of it
};

}  // namespace tidegate::TIDEGATE_ABI::ratelimit
