// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/ratelimit/time_zone.hpp>

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace tidegate::TIDEGATE_ABI::ratelimit {

/// On which day of a year clocks are moved, and when on it.
struct posix_day {
  enum class form : std::uint8_t {
    without_leap_day,  ///< `Jn`: 1 to 365, where the 29th of February is not counted
    day_of_year,       ///< `n`: 0 to 365
    weekday_of_month,  ///< `Mm.w.d`: the w-th weekday d of month m; the fifth is the last
  };
  form kind = form::weekday_of_month;
  int month = 1;
  int week = 1;
  int day = 0;
  std::int32_t time = 7'200;  ///< seconds of the clock before the change; of other days too
};

/// What the variable TZ says in POSIX, with what RFC 9636 adds.
struct posix_zone {
  std::int32_t standard = 0;  ///< seconds to add to UTC
  std::int32_t summer = 0;    ///< the same, between `begin` and `end` when they are there
  std::optional<posix_day> begin;
  std::optional<posix_day> end;
};

/// Nothing when it is not written as one.
[[nodiscard]] auto parse_posix_zone(std::string_view text) -> std::optional<posix_zone>;

/// Adds what the rule says of the times after the last of `changes`, up to the end of 2262.
void append_changes(posix_zone const& rule, std::vector<time_zone::change>& changes);

}  // namespace tidegate::TIDEGATE_ABI::ratelimit
