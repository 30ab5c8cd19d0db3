// SPDX-License-Identifier: Apache-2.0
#include "posix_zone.hpp"

#include <tidegate/base/ascii.hpp>

#include <algorithm>
#include <chrono>

namespace tidegate::TIDEGATE_ABI::ratelimit {

namespace {

/// The text that is not read yet.
class rule_reader {
 public:
  explicit rule_reader(std::string_view text) : left_(text) {}

  [[nodiscard]] auto is_at_end() const noexcept -> bool { return left_.empty(); }
  auto take(char c) noexcept -> bool {
    if (!left_.starts_with(c)) {
      return false;
    }
    left_.remove_prefix(1);
    return true;
  }
  auto number(int most) noexcept -> std::optional<int> {
    int value = 0;
    std::size_t digits = 0;
    for (; digits < left_.size() && digits < 4 && left_[digits] >= '0' && left_[digits] <= '9';
         ++digits) {
      value = value * 10 + (left_[digits] - '0');
    }
    left_.remove_prefix(digits);
    return digits == 0 || value > most ? std::nullopt : std::optional(value);
  }
  /// `CET` or `<+03>`, at least three characters.
  auto name() noexcept -> bool {
    bool const is_quoted = take('<');
    std::size_t size = 0;
    while (size < left_.size() &&
           (is_letter(left_[size]) || (is_quoted && is_quoted_part(left_[size])))) {
      ++size;
    }
    left_.remove_prefix(size);
    return size >= 3 && (!is_quoted || take('>'));
  }
  /// `[+-]hh[:mm[:ss]]` in seconds.
  auto time(int hours_max) noexcept -> std::optional<std::int32_t> {
    bool const is_negative = take('-');
    if (!is_negative) {
      take('+');
    }
    auto const hours = number(hours_max);
    if (!hours) {
      return std::nullopt;
    }
    auto seconds = *hours * 3600;
    for (auto const unit : {60, 1}) {
      if (!take(':')) {
        break;
      }
      auto const part = number(59);
      if (!part) {
        return std::nullopt;
      }
      seconds += *part * unit;
    }
    return is_negative ? -seconds : seconds;
  }
  auto day() noexcept -> std::optional<posix_day> {
    posix_day made;
    if (take('M')) {
      constexpr int none = -1;
      made.month = number(12).value_or(0);
      made.week = take('.') ? number(5).value_or(0) : 0;
      made.day = take('.') ? number(6).value_or(none) : none;
      if (made.month == 0 || made.week == 0 || made.day == none) {
        return std::nullopt;
      }
    } else {
      made.kind = take('J') ? posix_day::form::without_leap_day : posix_day::form::day_of_year;
      auto const day = number(365);
      if (!day || (made.kind == posix_day::form::without_leap_day && *day == 0)) {
        return std::nullopt;
      }
      made.day = *day;
    }
    if (take('/')) {
      auto const at = time(167);
      if (!at) {
        return std::nullopt;
      }
      made.time = *at;
    }
    return made;
  }

 private:
  static auto is_letter(char c) noexcept -> bool {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  }
  static auto is_quoted_part(char c) noexcept -> bool {
    return (c >= '0' && c <= '9') || c == '+' || c == '-';
  }

  std::string_view left_;
};

/// In seconds of the clock, from 1970.
auto second_of(posix_day const& day, int year) -> std::int64_t {
  using namespace std::chrono;
  auto const first = sys_days(std::chrono::year(year) / January / 1);
  auto on = first;
  switch (day.kind) {
    case posix_day::form::without_leap_day: {
      auto const after_leap_day = std::chrono::year(year).is_leap() && day.day >= 60 ? 1 : 0;
      on = first + days(day.day - 1 + after_leap_day);
      break;
    }
    case posix_day::form::day_of_year: on = first + days(day.day); break;
    case posix_day::form::weekday_of_month: {
      auto const month =
          std::chrono::year(year) / std::chrono::month(static_cast<unsigned>(day.month));
      std::chrono::weekday const weekday(static_cast<unsigned>(day.day));
      auto const week = static_cast<unsigned>(day.week);
      on = week == 5 ? sys_days(month / weekday[last]) : sys_days(month / weekday[week]);
      break;
    }
  }
  return duration_cast<seconds>(on.time_since_epoch()).count() + day.time;
}

}  // namespace

auto parse_posix_zone(std::string_view text) -> std::optional<posix_zone> {
  rule_reader in(text);
  posix_zone made;
  auto const offset = in.name() ? in.time(24) : std::nullopt;
  if (!offset) {
    return std::nullopt;
  }
  made.standard = made.summer = -*offset;
  if (in.is_at_end()) {
    return made;
  }
  if (!in.name()) {
    return std::nullopt;
  }
  made.summer = made.standard + 3600;
  if (!in.take(',')) {
    auto const summer = in.time(24);
    if (!summer || !in.take(',')) {
      return std::nullopt;
    }
    made.summer = -*summer;
  }
  made.begin = in.day();
  made.end = made.begin && in.take(',') ? in.day() : std::nullopt;
  return made.end && in.is_at_end() ? std::optional(made) : std::nullopt;
}

void append_changes(posix_zone const& rule, std::vector<time_zone::change>& changes) {
  using namespace std::chrono;
  constexpr int last_year = 2262;
  auto const after = changes.back().since;
  bool const is_first = changes.size() == 1;
  if (!rule.begin || !rule.end) {
    // It only says once more what the last change has said, or all that there is.
    changes.back().offset = rule.standard;
    return;
  }
  auto const last_day = sys_seconds(seconds(std::clamp<std::int64_t>(after, 0, 9'000'000'000)));
  int const first_year =
      is_first ? 1900 : static_cast<int>(year_month_day(floor<days>(last_day)).year()) - 1;
  std::vector<time_zone::change> more;
  for (int year = first_year; year <= last_year; ++year) {
    // Where both are at one time, as when summer never ends, its beginning counts.
    more.push_back({second_of(*rule.end, year) - rule.summer, rule.standard});
    more.push_back({second_of(*rule.begin, year) - rule.standard, rule.summer});
  }
  std::ranges::stable_sort(more, {}, &time_zone::change::since);
  for (auto const& each : more) {
    if (is_first || each.since > after) {
      changes.push_back(each);
    }
  }
}

}  // namespace tidegate::TIDEGATE_ABI::ratelimit
