// SPDX-License-Identifier: Apache-2.0
#include <tidegate/ratelimit/calendar.hpp>

#include <algorithm>
#include <array>
#include <utility>

namespace tidegate::TIDEGATE_ABI::ratelimit {

namespace {

using std::chrono::days;
using std::chrono::floor;
using std::chrono::sys_days;
using std::chrono::sys_seconds;

constexpr std::array<std::pair<calendar_unit, std::string_view>, 4> unit_names = {
    {{calendar_unit::hour, "hour"},
     {calendar_unit::day, "day"},
     {calendar_unit::week, "week"},
     {calendar_unit::month, "month"}}};

/// What clocks show, as seconds in which no hour is missing or comes twice.
using clock_time = std::int64_t;

/// When the day, week or month of a clock time begins, and the one after it.
auto span_of(calendar_unit unit, clock_time shown) -> std::pair<clock_time, clock_time> {
  auto const seconds = [](sys_days day) {
    return std::chrono::duration_cast<std::chrono::seconds>(day.time_since_epoch()).count();
  };
  auto const day = floor<days>(sys_seconds(std::chrono::seconds(shown)));
  switch (unit) {
    case calendar_unit::week: {
      auto const monday = day - (std::chrono::weekday(day) - std::chrono::Monday);
      return {seconds(monday), seconds(monday + days(7))};
    }
    case calendar_unit::month: {
      auto const date = std::chrono::year_month_day(day);
      auto const month = date.year() / date.month();
      return {seconds(sys_days(month / 1)),
              seconds(sys_days((month + std::chrono::months(1)) / 1))};
    }
    default: return {seconds(day), seconds(day + days(1))};
  }
}

/// The first moment at which clocks show `shown` or later.
auto first_showing(time_zone const& zone, clock_time shown) noexcept -> std::int64_t {
  constexpr std::int64_t furthest = std::int64_t{26} * 3600;
  auto const changes = zone.changes();
  auto i = zone.at(shown - furthest);
  for (;; ++i) {
    auto const from = i == 0 ? shown - 2 * furthest : changes[i].since;
    auto const at = std::max(shown - changes[i].offset, from);
    if (i + 1 == changes.size() || at < changes[i + 1].since) {
      return at;
    }
  }
}

/// The window of a day, week or month: clocks that are moved back do not begin it again.
auto span_at(time_zone const& zone, calendar_unit unit, std::int64_t at) noexcept
    -> calendar_window {
  auto shown = span_of(unit, at + zone.changes()[zone.at(at)].offset);
  auto end = first_showing(zone, shown.second);
  while (end <= at) {
    shown = span_of(unit, shown.second);
    end = first_showing(zone, shown.second);
  }
  return {sys_seconds(std::chrono::seconds(first_showing(zone, shown.first))),
          sys_seconds(std::chrono::seconds(end))};
}

constexpr std::int64_t hour = 3600;

auto hour_of(clock_time shown) noexcept -> clock_time {
  return (shown >= 0 ? shown : shown - (hour - 1)) / hour;
}

/// Whether clocks show a full hour at a change, or are moved forward over one.
auto is_hour_at_change(std::span<time_zone::change const> changes, std::size_t i) noexcept -> bool {
  auto const shown = changes[i].since + changes[i].offset;
  auto const before = changes[i].since - 1 + changes[i - 1].offset;
  return hour_of(shown) * hour == shown || hour_of(shown) > hour_of(before);
}

auto hour_at(time_zone const& zone, std::int64_t at) noexcept -> calendar_window {
  auto const changes = zone.changes();
  auto const here = zone.at(at);
  auto begin = at;
  for (auto i = here;; --i) {
    begin = hour_of(begin + changes[i].offset) * hour - changes[i].offset;
    if (i == 0 || begin >= changes[i].since) {
      break;
    }
    begin = changes[i].since;
    if (is_hour_at_change(changes, i)) {
      break;
    }
    begin -= 1;
  }
  auto end = at;
  for (auto i = here;; ++i) {
    end = (hour_of(end + changes[i].offset) + 1) * hour - changes[i].offset;
    if (i + 1 == changes.size() || end < changes[i + 1].since) {
      break;
    }
    end = changes[i + 1].since;
    if (is_hour_at_change(changes, i + 1)) {
      break;
    }
  }
  return {sys_seconds(std::chrono::seconds(begin)), sys_seconds(std::chrono::seconds(end))};
}

}  // namespace

auto name_of(calendar_unit unit) noexcept -> std::string_view {
  return std::ranges::find(unit_names, unit, &std::pair<calendar_unit, std::string_view>::first)
      ->second;
}

auto calendar_unit_named(std::string_view name) noexcept -> std::optional<calendar_unit> {
  auto const* const found =
      std::ranges::find(unit_names, name, &std::pair<calendar_unit, std::string_view>::second);
  return found == unit_names.end() ? std::nullopt : std::optional(found->first);
}

auto usual_length(calendar_unit unit) noexcept -> std::chrono::seconds {
  switch (unit) {
    case calendar_unit::hour: return std::chrono::hours(1);
    case calendar_unit::day: return days(1);
    case calendar_unit::week: return days(7);
    case calendar_unit::month: break;
  }
  return days(31);
}

auto window_at(time_zone const& zone, calendar_unit unit, sys_seconds at) noexcept
    -> calendar_window {
  // Nanoseconds in 64 bits end in 2262, and years of chrono in 32767.
  constexpr std::int64_t furthest = 9'300'000'000;
  auto const second = std::clamp(at.time_since_epoch().count(), -furthest, furthest);
  return unit == calendar_unit::hour ? hour_at(zone, second) : span_at(zone, unit, second);
}

auto in_window_of(policy const& p, calendar_rule const& rule, instant now,
                  std::chrono::sys_time<std::chrono::nanoseconds> wall) noexcept -> policy {
  auto const window = window_at(*rule.zone, rule.unit, floor<std::chrono::seconds>(wall));
  auto const into = wall - std::chrono::sys_time<std::chrono::nanoseconds>(window.begin);
  return p.in_window(now - into, window.begin, window.end - window.begin);
}

}  // namespace tidegate::TIDEGATE_ABI::ratelimit
