// SPDX-License-Identifier: Apache-2.0
#include <tidegate/http/date.hpp>

#include <tidegate/base/ascii.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <tuple>

namespace tidegate::TIDEGATE_ABI::http {

namespace {

using std::chrono::sys_seconds;

constexpr std::array<std::string_view, 7> day_names = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                                       "Thursday", "Friday", "Saturday"};
constexpr std::array<std::string_view, 12> month_names = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                          "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

/// Short names are three letters each.
constexpr std::size_t name_size = 3;

/// A date and time as it was written: nothing is checked but that numbers are numbers.
struct written_time {
  unsigned weekday = 0;  // from Sunday
  int year = 0;
  unsigned month = 0;  // from 1
  unsigned day = 0;
  unsigned hour = 0;
  unsigned minute = 0;
  unsigned second = 0;
};

/// True when `text` looks like `shape`, in which "0" stands for a digit, "*" for a character that
/// is looked at later, and everything else for itself.
[[nodiscard]] auto has_shape(std::string_view text, std::string_view shape) noexcept -> bool {
  if (text.size() != shape.size()) {
    return false;
  }
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == '0' ? !is_digit(text[i]) : shape[i] != '*' && shape[i] != text[i]) {
      return false;
    }
  }
  return true;
}

/// The number that the `count` digits at `begin` make.
[[nodiscard]] auto number(std::string_view text, std::size_t begin, std::size_t count) noexcept
    -> unsigned {
  unsigned value = 0;
  for (std::size_t i = begin; i < begin + count; ++i) {
    value = value * 10 + static_cast<unsigned>(text[i] - '0');
  }
  return value;
}

/// Which of `names` stands at `begin`, in its first three letters; the number of names when none
/// does, which no day of the week and no month has.
[[nodiscard]] auto short_name(std::string_view text, std::size_t begin,
                              std::span<std::string_view const> names) noexcept -> unsigned {
  auto const is_here = [&](std::string_view name) {
    return name[0] == text[begin] && name[1] == text[begin + 1] && name[2] == text[begin + 2];
  };
  return static_cast<unsigned>(std::ranges::find_if(names, is_here) - names.begin());
}

/// time-of-day = hour ":" minute ":" second
void take_time_of_day(written_time& time, std::string_view text, std::size_t begin) noexcept {
  time.hour = number(text, begin, 2);
  time.minute = number(text, begin + 3, 2);
  time.second = number(text, begin + 6, 2);
}

/// IMF-fixdate = day-name "," SP date1 SP time-of-day SP GMT, where date1 = day SP month SP year
[[nodiscard]] auto take_imf_fixdate(std::string_view text) noexcept -> std::optional<written_time> {
  if (!has_shape(text, "***, 00 *** 0000 00:00:00 GMT")) {
    return std::nullopt;
  }
  written_time time;
  time.weekday = short_name(text, 0, day_names);
  time.day = number(text, 5, 2);
  time.month = short_name(text, 8, month_names) + 1;
  time.year = static_cast<int>(number(text, 12, 4));
  take_time_of_day(time, text, 17);
  return time;
}

/// rfc850-date = day-name-l "," SP date2 SP time-of-day SP GMT, where date2 = day "-" month "-"
/// 2DIGIT
[[nodiscard]] auto take_rfc850_date(std::string_view text) noexcept -> std::optional<written_time> {
  constexpr std::string_view shape = ", 00-***-00 00:00:00 GMT";
  if (text.size() < shape.size()) {
    return std::nullopt;
  }
  auto const day_name = text.substr(0, text.size() - shape.size());
  text.remove_prefix(day_name.size());
  if (!has_shape(text, shape)) {
    return std::nullopt;
  }
  written_time time;
  time.weekday = static_cast<unsigned>(std::ranges::find(day_names, day_name) - day_names.begin());
  time.day = number(text, 2, 2);
  time.month = short_name(text, 5, month_names) + 1;
  time.year = static_cast<int>(number(text, 9, 2));
  take_time_of_day(time, text, 12);
  return time;
}

/// asctime-date = day-name SP date3 SP time-of-day SP year, where
/// date3 = month SP ( 2DIGIT / ( SP 1DIGIT ))
[[nodiscard]] auto take_asctime_date(std::string_view text) noexcept
    -> std::optional<written_time> {
  if (!has_shape(text, "*** *** 00 00:00:00 0000") &&
      !has_shape(text, "*** ***  0 00:00:00 0000")) {
    return std::nullopt;
  }
  written_time time;
  time.weekday = short_name(text, 0, day_names);
  time.month = short_name(text, 4, month_names) + 1;
  time.day = text[8] == ' ' ? number(text, 9, 1) : number(text, 8, 2);
  take_time_of_day(time, text, 11);
  time.year = static_cast<int>(number(text, 20, 4));
  return time;
}

[[nodiscard]] auto calendar_day(written_time const& time) noexcept -> std::chrono::year_month_day {
  return std::chrono::year(time.year) / std::chrono::month(time.month) / std::chrono::day(time.day);
}

/// The moment at which a clock that is `offset` ahead of UTC shows `time`, if it ever does.
[[nodiscard]] auto moment(written_time const& time, std::chrono::minutes offset) noexcept
    -> std::optional<sys_seconds> {
  auto const day = calendar_day(time);
  if (!day.ok() || time.hour > 23 || time.minute > 59 || time.second > 60) {
    return std::nullopt;
  }
  sys_seconds const moment = std::chrono::sys_days(day) + std::chrono::hours(time.hour) +
                             std::chrono::minutes(time.minute) + std::chrono::seconds(time.second) -
                             offset;
  // A leap second comes only before midnight in UTC. Which days have one is not known here.
  if (time.second == 60 && std::chrono::floor<std::chrono::days>(moment) != moment) {
    return std::nullopt;
  }
  return moment;
}

/// The same in UTC, if the name of the day is right.
[[nodiscard]] auto moment_of_weekday(written_time const& time) noexcept
    -> std::optional<sys_seconds> {
  auto const found = moment(time, std::chrono::minutes(0));
  if (!found || std::chrono::weekday(calendar_day(time)).c_encoding() != time.weekday) {
    return std::nullopt;
  }
  return found;
}

[[nodiscard]] auto writable(sys_seconds time) noexcept -> sys_seconds {
  return std::clamp(time, date_min, date_max);
}

/// RFC 9110, section 5.6.7: a date that appears to be more than 50 years in the future is the most
/// recent one in the past with these two digits. Fields are compared, not moments, so that 29
/// February and a day that does not exist have their place too.
[[nodiscard]] auto full_year(written_time const& time, sys_seconds now) noexcept -> int {
  auto const today = std::chrono::floor<std::chrono::days>(writable(now));
  std::chrono::year_month_day const day(today);
  std::chrono::hh_mm_ss const clock(writable(now) - today);
  auto const latest = std::tuple(
      static_cast<unsigned>(day.month()), static_cast<unsigned>(day.day()),
      static_cast<unsigned>(clock.hours().count()), static_cast<unsigned>(clock.minutes().count()),
      static_cast<unsigned>(clock.seconds().count()));
  auto const latest_year = static_cast<int>(day.year()) + 50;
  auto const year = latest_year - (latest_year + 100 - time.year) % 100;
  bool const too_late = year == latest_year && std::tuple(time.month, time.day, time.hour,
                                                          time.minute, time.second) > latest;
  return too_late ? year - 100 : year;
}

void put_digits(char* begin, std::size_t count, unsigned value) noexcept {
  for (auto* p = begin + count; p != begin; value /= 10) {
    *--p = static_cast<char>('0' + value % 10);
  }
}

}  // namespace

auto parse_http_date(std::string_view text, sys_seconds now) noexcept
    -> std::optional<sys_seconds> {
  auto time = take_imf_fixdate(text);
  if (!time) {
    time = take_asctime_date(text);
  }
  if (!time) {
    time = take_rfc850_date(text);
    if (time) {
      time->year = full_year(*time, now);
    }
  }
  return time ? moment_of_weekday(*time) : std::nullopt;
}

void append_http_date(std::string& out, sys_seconds time) {
  auto const today = std::chrono::floor<std::chrono::days>(writable(time));
  std::chrono::year_month_day const day(today);
  std::chrono::hh_mm_ss const clock(writable(time) - today);
  constexpr std::string_view blank = "Sun, 00 Jan 0000 00:00:00 GMT";
  std::array<char, blank.size()> text;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  std::ranges::copy(blank, text.begin());
  auto const day_name = day_names[std::chrono::weekday(today).c_encoding()];
  std::ranges::copy(day_name.substr(0, name_size), text.begin());
  put_digits(&text[5], 2, static_cast<unsigned>(day.day()));
  std::ranges::copy(month_names[static_cast<unsigned>(day.month()) - 1], text.begin() + 8);
  put_digits(&text[12], 4, static_cast<unsigned>(static_cast<int>(day.year())));
  put_digits(&text[17], 2, static_cast<unsigned>(clock.hours().count()));
  put_digits(&text[20], 2, static_cast<unsigned>(clock.minutes().count()));
  put_digits(&text[23], 2, static_cast<unsigned>(clock.seconds().count()));
  out.append(text.data(), text.size());
}

void append_rfc3339(std::string& out, sys_seconds time) {
  auto const today = std::chrono::floor<std::chrono::days>(writable(time));
  std::chrono::year_month_day const day(today);
  std::chrono::hh_mm_ss const clock(writable(time) - today);
  constexpr std::string_view blank = "0000-00-00T00:00:00Z";
  std::array<char, blank.size()> text;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  std::ranges::copy(blank, text.begin());
  put_digits(text.data(), 4, static_cast<unsigned>(static_cast<int>(day.year())));
  put_digits(&text[5], 2, static_cast<unsigned>(day.month()));
  put_digits(&text[8], 2, static_cast<unsigned>(day.day()));
  put_digits(&text[11], 2, static_cast<unsigned>(clock.hours().count()));
  put_digits(&text[14], 2, static_cast<unsigned>(clock.minutes().count()));
  put_digits(&text[17], 2, static_cast<unsigned>(clock.seconds().count()));
  out.append(text.data(), text.size());
}

auto parse_rfc3339(std::string_view text) noexcept -> std::optional<sys_seconds> {
  constexpr std::string_view shape = "0000-00-00*00:00:00";
  if (!has_shape(text.substr(0, shape.size()), shape) || (text[10] != 'T' && text[10] != 't')) {
    return std::nullopt;
  }
  written_time time;
  time.year = static_cast<int>(number(text, 0, 4));
  time.month = number(text, 5, 2);
  time.day = number(text, 8, 2);
  take_time_of_day(time, text, 11);
  text.remove_prefix(shape.size());

  // time-secfrac = "." 1*DIGIT
  if (text.starts_with('.')) {
    auto const end = std::find_if_not(text.begin() + 1, text.end(), is_digit);
    if (end == text.begin() + 1) {
      return std::nullopt;
    }
    text.remove_prefix(static_cast<std::size_t>(end - text.begin()));
  }

  // time-offset = "Z" / time-numoffset, where time-numoffset = ("+" / "-") time-hour ":"
  // time-minute
  if (text == "Z" || text == "z") {
    return moment(time, std::chrono::minutes(0));
  }
  if (!has_shape(text, "+00:00") && !has_shape(text, "-00:00")) {
    return std::nullopt;
  }
  auto const hours = number(text, 1, 2);
  auto const minutes = number(text, 4, 2);
  if (hours > 23 || minutes > 59) {
    return std::nullopt;
  }
  auto const offset = std::chrono::hours(hours) + std::chrono::minutes(minutes);
  return moment(time, text[0] == '-' ? -offset : offset);
}

}  // namespace tidegate::TIDEGATE_ABI::http
