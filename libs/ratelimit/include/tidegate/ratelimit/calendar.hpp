// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/instant.hpp>
#include <tidegate/ratelimit/policy.hpp>
#include <tidegate/ratelimit/time_zone.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

/// Windows by the calendar: the hours, days, weeks and months of a place.
namespace tidegate::TIDEGATE_ABI::ratelimit {
/// How long windows are.
enum class calendar_unit : std::uint8_t { hour, day, week, month };
/// As it is written in a configuration.
[[nodiscard]] auto name_of(calendar_unit unit) noexcept -> std::string_view;
/// Nothing for other names.
[[nodiscard]] auto calendar_unit_named(std::string_view name) noexcept
    -> std::optional<calendar_unit>;

/// How long a window usually is; a month has 31 days.
[[nodiscard]] auto usual_length(calendar_unit unit) noexcept -> std::chrono::seconds;

/// From `begin` on and before `end`.
struct calendar_window {
  std::chrono::sys_seconds begin;
  std::chrono::sys_seconds end;
  auto operator==(calendar_window const&) const -> bool = default;
};

/// The window that a time is in.
///
/// A day, week or month begins at the first moment at which the clocks of the zone show its first
/// second or later; a week on Monday. So it is longer or shorter by what the clocks are moved, and
/// when they are moved back over its beginning, it has begun and does not begin again.
///
/// An hour begins whenever the clocks show a full hour, and when they are moved forward over one:
/// of an hour that they show twice, each has a window.
[[nodiscard]] auto window_at(time_zone const& zone, calendar_unit unit,
                             std::chrono::sys_seconds at) noexcept -> calendar_window;

/// Which windows a policy has.
struct calendar_rule {
  calendar_unit unit = calendar_unit::day;
  std::string zone_name = "UTC";
  std::shared_ptr<time_zone const> zone;  ///< not null
};

/// A policy in the window that contains a moment, which both clocks tell.
[[nodiscard]] auto in_window_of(policy const& p, calendar_rule const& rule, instant now,
                                std::chrono::sys_time<std::chrono::nanoseconds> wall) noexcept
    -> policy;

}  // namespace tidegate::TIDEGATE_ABI::ratelimit
