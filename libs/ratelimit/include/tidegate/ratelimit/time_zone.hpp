// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/result.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace tidegate::TIDEGATE_ABI::ratelimit {

/// What is wrong with the octets of a time zone.
enum class time_zone_fault : std::uint8_t {
  not_tzif,          ///< it does not begin as RFC 9636 says
  cut_off,           ///< it ends before what it announces
  too_large,         ///< more than 64 KiB, or more than 4,000 changes
  bad_change,        ///< changes that are not in order, or of a kind that is not there
  bad_offset,        ///< further than 26 hours from UTC
  has_leap_seconds,  ///< the clock here has none
  bad_rule,          ///< the rule for later times is not as POSIX and RFC 9636 write it
};

/// What is wrong, for people.
[[nodiscard]] auto message(time_zone_fault fault) noexcept -> std::string_view;

/// How far the clocks of a place are from UTC, and when that changes. Immutable; UTC when made
/// without octets.
class time_zone {
 public:
  /// An offset and since when it is in force.
  struct change {
    std::int64_t since = 0;   ///< seconds from 1970 UTC
    std::int32_t offset = 0;  ///< seconds to add to UTC
    auto operator==(change const&) const -> bool = default;
  };

  /// Of all times.
  time_zone() : changes_{{first_second, 0}} {}

  /// Reads a file of the format TZif, versions 1 to 4 (RFC 9636). What its rule says of later times
  /// is worked out up to the end of 2262, where nanoseconds in 64 bits end.
  [[nodiscard]] static auto parse(std::span<std::byte const> octets)
      -> result<time_zone, time_zone_fault>;

  /// What is in force at a time.
  [[nodiscard]] auto at(std::int64_t second) const noexcept -> std::size_t;
  /// Each in force until the next one, in their order; the first one is in force since ever.
  [[nodiscard]] auto changes() const noexcept -> std::span<change const> { return changes_; }

  auto operator==(time_zone const&) const -> bool = default;

 private:
  static constexpr std::int64_t first_second = -(std::int64_t{1} << 40);

  std::vector<change> changes_;
};

}  // namespace tidegate::TIDEGATE_ABI::ratelimit
