// SPDX-License-Identifier: Apache-2.0
#include "support/allocations.hpp"
#include "support/sanitized.hpp"

#include <tidegate/http/date.hpp>

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tidegate::TIDEGATE_ABI::http {
namespace {

using namespace std::chrono_literals;
using std::chrono::sys_days;
using std::chrono::sys_seconds;

constexpr auto at(std::int64_t seconds) -> sys_seconds {
  return sys_seconds(std::chrono::seconds(seconds));
}

constexpr auto at(int year, unsigned month, unsigned day, int hour = 0, int minute = 0,
                  int second = 0) -> sys_seconds {
  return sys_days(std::chrono::year(year) / static_cast<int>(month) / static_cast<int>(day)) +
         std::chrono::hours(hour) + std::chrono::minutes(minute) + std::chrono::seconds(second);
}

auto written(sys_seconds time) -> std::string {
  std::string out;
  append_http_date(out, time);
  return out;
}

constexpr auto now_2024 = at(2024, 5, 17, 12);
constexpr auto example = at(784'111'777);  // Sunday, 6 November 1994, 08:49:37

// ---- the calendar, counted by hand: what the tests below compare with ----

constexpr std::array<std::string_view, 7> long_days = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                                       "Thursday", "Friday", "Saturday"};
constexpr std::array<std::string_view, 12> months = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

auto is_leap(int year) -> bool {
  return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

auto days_in(int year, int month) -> int {
  constexpr std::array<int, 12> days = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  return month == 2 && is_leap(year) ? 29 : days[static_cast<std::size_t>(month - 1)];
}

struct counted_day {
  int year;
  int month;
  int day;
  int weekday;  // from Sunday

  [[nodiscard]] auto name() const -> std::string_view {
    return long_days[static_cast<std::size_t>(weekday)];
  }
  [[nodiscard]] auto month_name() const -> std::string_view {
    return months[static_cast<std::size_t>(month - 1)];
  }
  void step() {
    weekday = (weekday + 1) % 7;
    if (++day > days_in(year, month)) {
      day = 1;
      if (++month > 12) {
        month = 1;
        ++year;
      }
    }
  }
};

/// Writes dates into one buffer, as there are millions of them.
class text_writer {
 public:
  /// HH:MM:SS
  auto clock(int second) -> std::string const& {
    text_.clear();
    return digits(second / 3600, 2)
        .add(":")
        .digits(second / 60 % 60, 2)
        .add(":")
        .digits(second % 60, 2)
        .text_;
  }
  auto imf_fixdate(counted_day const& d, std::string_view time) -> std::string const& {
    return begin(d.name().substr(0, 3))
        .add(", ")
        .digits(d.day, 2)
        .add(" ")
        .add(d.month_name())
        .add(" ")
        .digits(d.year, 4)
        .add(" ")
        .add(time)
        .add(" GMT")
        .text_;
  }
  auto rfc850_date(counted_day const& d, std::string_view time) -> std::string const& {
    return begin(d.name())
        .add(", ")
        .digits(d.day, 2)
        .add("-")
        .add(d.month_name())
        .add("-")
        .digits(d.year % 100, 2)
        .add(" ")
        .add(time)
        .add(" GMT")
        .text_;
  }
  auto asctime_date(counted_day const& d, std::string_view time) -> std::string const& {
    return begin(d.name().substr(0, 3))
        .add(" ")
        .add(d.month_name())
        .add(d.day < 10 ? "  " : " ")
        .digits(d.day, d.day < 10 ? 1 : 2)
        .add(" ")
        .add(time)
        .add(" ")
        .digits(d.year, 4)
        .text_;
  }
  auto rfc3339(counted_day const& d, std::string_view time) -> std::string const& {
    return begin("")
        .digits(d.year, 4)
        .add("-")
        .digits(d.month, 2)
        .add("-")
        .digits(d.day, 2)
        .add("T")
        .add(time)
        .add("Z")
        .text_;
  }

 private:
  auto begin(std::string_view text) -> text_writer& {
    text_.assign(text);
    return *this;
  }
  auto add(std::string_view text) -> text_writer& {
    text_.append(text);
    return *this;
  }
  auto digits(int value, int count) -> text_writer& {
    for (int divisor = count == 4 ? 1000 : count == 2 ? 10 : 1; divisor != 0; divisor /= 10) {
      text_.push_back(static_cast<char>('0' + value / divisor % 10));
    }
    return *this;
  }

  std::string text_;
};

// ---- HTTP-date ----

TEST(http_date, reads_the_examples_of_rfc_9110) {
  for (std::string_view text : {
           "Sun, 06 Nov 1994 08:49:37 GMT",   // 5.6.7, IMF-fixdate
           "Sunday, 06-Nov-94 08:49:37 GMT",  // 5.6.7, rfc850-date
           "Sun Nov  6 08:49:37 1994",        // 5.6.7, asctime-date
       }) {
    EXPECT_EQ(parse_http_date(text, now_2024), example) << text;
  }
  EXPECT_EQ(parse_http_date("Tue, 15 Nov 1994 08:12:31 GMT", now_2024),  // 6.6.1, Date
            at(1994, 11, 15, 8, 12, 31));
  EXPECT_EQ(parse_http_date("Tue, 15 Nov 1994 12:45:26 GMT", now_2024),  // 8.8.2, Last-Modified
            at(1994, 11, 15, 12, 45, 26));
  EXPECT_EQ(parse_http_date("Sat, 29 Oct 1994 19:43:31 GMT", now_2024),  // 13.1.3
            at(1994, 10, 29, 19, 43, 31));
  EXPECT_EQ(parse_http_date("Fri, 31 Dec 1999 23:59:59 GMT", now_2024),  // 10.2.3, Retry-After
            at(1999, 12, 31, 23, 59, 59));
}

TEST(http_date, reads_moments_of_every_kind) {
  struct row {
    std::string_view text;
    sys_seconds time;
  };
  for (auto const& [text, time] : {
           row{"Thu, 01 Jan 1970 00:00:00 GMT", at(0)},
           {"Wed, 31 Dec 1969 23:59:59 GMT", at(-1)},
           {"Tue, 19 Jan 2038 03:14:08 GMT", at(2'147'483'648)},
           {"Sat, 01 Jan 0000 00:00:00 GMT", at(-62'167'219'200)},
           {"Mon, 01 Jan 0001 00:00:00 GMT", at(-62'135'596'800)},
           {"Fri, 31 Dec 9999 23:59:59 GMT", at(253'402'300'799)},
           {"Fri Dec 31 23:59:59 9999", at(253'402'300'799)},
           {"Thu, 29 Feb 2024 00:00:00 GMT", at(2024, 2, 29)},
           {"Thu Feb 29 00:00:00 2024", at(2024, 2, 29)},
           {"Thursday, 29-Feb-24 00:00:00 GMT", at(2024, 2, 29)},
           {"Wed May  1 00:00:00 2024", at(2024, 5, 1)},
           {"Wed May 01 00:00:00 2024", at(2024, 5, 1)},  // 2DIGIT may begin with 0
           {"Wednesday, 01-May-24 00:00:00 GMT", at(2024, 5, 1)},
       }) {
    EXPECT_EQ(parse_http_date(text, now_2024), time) << text;
  }
}

TEST(http_date, takes_the_leap_second_as_the_one_after_it) {
  for (std::string_view text : {"Sat, 31 Dec 2016 23:59:60 GMT", "Saturday, 31-Dec-16 23:59:60 GMT",
                                "Sat Dec 31 23:59:60 2016"}) {
    EXPECT_EQ(parse_http_date(text, now_2024), at(2017, 1, 1)) << text;
  }
  EXPECT_EQ(parse_http_date("Fri, 31 Dec 9999 23:59:60 GMT", now_2024), date_max + 1s);
  for (std::string_view text : {
           "Sat, 31 Dec 2016 23:59:61 GMT",
           "Sat, 31 Dec 2016 23:58:60 GMT",
           "Sat, 31 Dec 2016 22:59:60 GMT",
           "Sat, 31 Dec 2016 00:00:60 GMT",
       }) {
    EXPECT_EQ(parse_http_date(text, now_2024), std::nullopt) << text;
  }
}

TEST(http_date, refuses_what_the_grammar_does_not_have) {
  for (std::string_view text : {
           // nothing, and pieces
           "",
           " ",
           "GMT",
           "Sun",
           "Sun,",
           "Sunday",
           "Sunday,",
           "0",
           "784111777",
           "Sun, 06 Nov 1994",
           "Sun, 06 Nov 1994 08:49:37",
           "Sun, 06 Nov 1994 08:49:37 ",
           "Sun, 06 Nov 1994 08:49:37 GM",
           "06 Nov 1994 08:49:37 GMT",
           "Sun Nov  6 08:49:37",
           "Sun Nov  6 08:49:37 199",
           "Sunday, 06-Nov-94 08:49:37",
           // names in another case
           "sun, 06 Nov 1994 08:49:37 GMT",
           "SUN, 06 Nov 1994 08:49:37 GMT",
           "Sun, 06 nov 1994 08:49:37 GMT",
           "Sun, 06 NOV 1994 08:49:37 GMT",
           "Sun, 06 Nov 1994 08:49:37 gmt",
           "Sun, 06 Nov 1994 08:49:37 Gmt",
           "sunday, 06-Nov-94 08:49:37 GMT",
           "sun Nov  6 08:49:37 1994",
           "Sun nov  6 08:49:37 1994",
           // names that are none, or of another form
           "Son, 06 Nov 1994 08:49:37 GMT",
           "Sun, 06 Nom 1994 08:49:37 GMT",
           "Sunday, 06 Nov 1994 08:49:37 GMT",
           "Sun, 06-Nov-94 08:49:37 GMT",
           "Sun, 06-Nov-1994 08:49:37 GMT",
           "Sunday, 06-Nov-1994 08:49:37 GMT",
           "Sunday Nov  6 08:49:37 1994",
           "Sun, 06 November 1994 08:49:37 GMT",
           // other zones
           "Sun, 06 Nov 1994 08:49:37 UTC",
           "Sun, 06 Nov 1994 08:49:37 EST",
           "Sun, 06 Nov 1994 08:49:37 +0000",
           "Sun, 06 Nov 1994 08:49:37Z",
           "Sun Nov  6 08:49:37 1994 GMT",
           "Sun Nov  6 08:49:37 GMT 1994",
           // spaces too many, too few, or tabs
           " Sun, 06 Nov 1994 08:49:37 GMT",
           "Sun, 06 Nov 1994 08:49:37 GMT ",
           "Sun,06 Nov 1994 08:49:37 GMT",
           "Sun,  06 Nov 1994 08:49:37 GMT",
           "Sun,\t06 Nov 1994 08:49:37 GMT",
           "Sun, 06 Nov 1994  08:49:37 GMT",
           "Sun Nov 6 08:49:37 1994",
           "Sun Nov   6 08:49:37 1994",
           "Sun Nov\t 6 08:49:37 1994",
           "Sunday,06-Nov-94 08:49:37 GMT",
           "Sunday, 06-Nov-94  08:49:37 GMT",
           // digits too few, too many, or none
           "Sun, 6 Nov 1994 08:49:37 GMT",
           "Sun,  6 Nov 1994 08:49:37 GMT",
           "Sun, 006 Nov 1994 08:49:37 GMT",
           "Sun, 06 Nov 94 08:49:37 GMT",
           "Sun, 06 Nov 01994 08:49:37 GMT",
           "Sun, 06 Nov +994 08:49:37 GMT",
           "Sun, 06 Nov -994 08:49:37 GMT",
           "Sun, 06 Nov 1994 8:49:37 GMT",
           "Sun, 06 Nov 1994 08:49 GMT",
           "Sun, 06 Nov 1994 08:49:37.5 GMT",
           "Sun, 06 Nov 1994 08-49-37 GMT",
           "Sun, 06 Nov 1994 0x:49:37 GMT",
           "Sun, 06 Nov 1994 08:4 :37 GMT",
           "Sunday, 6-Nov-94 08:49:37 GMT",
           "Sunday, 06-Nov-4 08:49:37 GMT",
           "Sunday, 06/Nov/94 08:49:37 GMT",
           // behind the end
           "Sun, 06 Nov 1994 08:49:37 GMTx",
           "Sunday, 06-Nov-94 08:49:37 GMT ",
           "Sun Nov  6 08:49:37 1994 ",
           "Sun Nov  6 08:49:37 19940",
           "Sun, 06 Nov 1994 08:49:37 GMT, Sun, 06 Nov 1994 08:49:37 GMT",
           // other notations
           "1994-11-06T08:49:37Z",
           "11/06/94 08:49:37",
           "Sun, 06 Nov 1994 08:49:37 AM GMT",
       }) {
    EXPECT_EQ(parse_http_date(text, now_2024), std::nullopt) << '"' << text << '"';
  }
  using namespace std::string_view_literals;
  EXPECT_EQ(parse_http_date("Sun, 06 Nov 1994 08:49:37 GM\0"sv, now_2024), std::nullopt);
  EXPECT_EQ(parse_http_date("Sun, 06 Nov 1994 08:49:3\xb7 GMT"sv, now_2024), std::nullopt);
}

TEST(http_date, refuses_days_and_hours_that_do_not_exist) {
  for (std::string_view text : {
           "Sun, 00 Nov 1994 08:49:37 GMT",
           "Thu, 31 Nov 1994 08:49:37 GMT",
           "Thu, 32 Dec 1994 08:49:37 GMT",
           "Wed, 29 Feb 2023 00:00:00 GMT",
           "Thu, 30 Feb 2024 00:00:00 GMT",
           "Sun, 06 Nov 1994 24:00:00 GMT",
           "Sun, 06 Nov 1994 08:60:00 GMT",
           "Sun, 06 Nov 1994 99:99:99 GMT",
           "Sun Nov  0 08:49:37 1994",
           "Thu Nov 31 08:49:37 1994",
           "Sunday, 00-Nov-94 08:49:37 GMT",
           "Thursday, 31-Nov-94 08:49:37 GMT",
       }) {
    EXPECT_EQ(parse_http_date(text, now_2024), std::nullopt) << text;
  }
}

TEST(http_date, refuses_every_name_of_a_day_but_the_right_one) {
  counted_day day{1994, 11, 6, 0};
  for (day.weekday = 0; day.weekday < 7; ++day.weekday) {
    auto const expected = day.weekday == 0 ? std::optional(example) : std::nullopt;
    for (auto const& text :
         {text_writer().imf_fixdate(day, "08:49:37"), text_writer().rfc850_date(day, "08:49:37"),
          text_writer().asctime_date(day, "08:49:37")}) {
      EXPECT_EQ(parse_http_date(text, now_2024), expected) << text;
    }
  }
}

TEST(http_date, knows_the_length_of_every_month_in_leap_years_and_others) {
  text_writer text;
  for (int year : {1, 4, 100, 400, 1582, 1900, 1996, 1999, 2000, 2023, 2024, 2100, 2400, 9999}) {
    for (int month = 1; month <= 12; ++month) {
      for (int day = 0; day <= 32; ++day) {
        int found = 0;
        for (int weekday = 0; weekday < 7; ++weekday) {
          counted_day const d{year, month, day, weekday};
          found += parse_http_date(text.imf_fixdate(d, "00:00:00"), now_2024).has_value() ? 1 : 0;
        }
        bool const exists = day >= 1 && day <= days_in(year, month);
        EXPECT_EQ(found, exists ? 1 : 0) << year << '-' << month << '-' << day;
        EXPECT_EQ(parse_rfc3339(text.rfc3339({year, month, day, 0}, "00:00:00")).has_value(),
                  exists)
            << year << '-' << month << '-' << day;
      }
    }
  }
}

TEST(http_date, gives_two_digits_the_latest_year_that_is_not_more_than_50_ahead) {
  struct row {
    std::string_view name;
    sys_seconds now;
    std::string_view text;
    std::optional<sys_seconds> time;
  };
  for (auto const& [name, now, text, time] : {
           row{"this year", at(2024, 5, 17), "Friday, 17-May-24 00:00:00 GMT", at(2024, 5, 17)},
           {"last century", at(2024, 5, 17), "Sunday, 06-Nov-94 08:49:37 GMT", example},
           {"at the time of the example", example, "Sunday, 06-Nov-94 08:49:37 GMT", example},
           {"next century", at(1999, 12, 31), "Saturday, 01-Jan-00 00:00:00 GMT", at(2000, 1, 1)},
           {"next century, far", at(2094, 1, 1), "Friday, 06-Nov-05 00:00:00 GMT", at(2105, 11, 6)},
           {"50 years", at(2024, 5, 17, 12), "Thursday, 17-May-74 12:00:00 GMT",
            at(2074, 5, 17, 12)},
           {"50 years and a second: 1974, a Friday", at(2024, 5, 17, 12),
            "Friday, 17-May-74 12:00:01 GMT", at(1974, 5, 17, 12, 0, 1)},
           {"50 years and a second: no longer 2074, a Thursday", at(2024, 5, 17, 12),
            "Thursday, 17-May-74 12:00:01 GMT", std::nullopt},
           {"50 years and a minute", at(2024, 5, 17, 12), "Friday, 17-May-74 12:01:00 GMT",
            at(1974, 5, 17, 12, 1)},
           {"50 years and an hour", at(2024, 5, 17, 12), "Friday, 17-May-74 13:00:00 GMT",
            at(1974, 5, 17, 13)},
           {"50 years and a day", at(2024, 5, 17, 12), "Saturday, 18-May-74 00:00:00 GMT",
            at(1974, 5, 18)},
           {"50 years and a month", at(2024, 5, 17, 12), "Saturday, 01-Jun-74 00:00:00 GMT",
            at(1974, 6, 1)},
           {"51 years", at(2024, 5, 17, 12), "Wednesday, 01-Jan-75 00:00:00 GMT", at(1975, 1, 1)},
           {"50 years less a second", at(2024, 5, 17, 12), "Thursday, 17-May-74 11:59:59 GMT",
            at(2074, 5, 17, 11, 59, 59)},
           {"from 29 February: 28 February", at(2024, 2, 29), "Wednesday, 28-Feb-74 00:00:00 GMT",
            at(2074, 2, 28)},
           {"from 29 February: 1 March", at(2024, 2, 29), "Friday, 01-Mar-74 00:00:00 GMT",
            at(1974, 3, 1)},
           {"2100 has no 29 February", at(2060, 1, 1), "Tuesday, 29-Feb-00 00:00:00 GMT",
            std::nullopt},
           {"2000 has one", at(2050, 2, 28), "Tuesday, 29-Feb-00 00:00:00 GMT", at(2000, 2, 29)},
           {"the first years", at(0, 1, 1), "Monday, 01-Jan-01 00:00:00 GMT", at(1, 1, 1)},
           {"before the first year", at(0, 1, 1), "Friday, 01-Jan-99 00:00:00 GMT", at(-1, 1, 1)},
           {"before all years", sys_seconds::min(), "Monday, 01-Jan-01 00:00:00 GMT", at(1, 1, 1)},
           {"after all years", sys_seconds::max(), "Friday, 31-Dec-99 23:59:59 GMT", date_max},
       }) {
    EXPECT_EQ(parse_http_date(text, now), time) << name << ": " << text;
  }
}

TEST(http_date, looks_at_now_for_two_digits_only) {
  for (auto now : {sys_seconds::min(), date_min, at(0), now_2024, date_max, sys_seconds::max()}) {
    EXPECT_EQ(parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT", now), example);
    EXPECT_EQ(parse_http_date("Sun Nov  6 08:49:37 1994", now), example);
  }
}

TEST(http_date, writes_an_imf_fixdate_at_the_end) {
  std::string out = "Date: ";
  append_http_date(out, example);
  EXPECT_EQ(out, "Date: Sun, 06 Nov 1994 08:49:37 GMT");
  EXPECT_EQ(written(at(0)), "Thu, 01 Jan 1970 00:00:00 GMT");
  EXPECT_EQ(written(at(-1)), "Wed, 31 Dec 1969 23:59:59 GMT");
}

TEST(http_date, writes_what_four_digits_cannot_say_as_the_nearest_that_they_can) {
  constexpr std::string_view first = "Sat, 01 Jan 0000 00:00:00 GMT";
  constexpr std::string_view last = "Fri, 31 Dec 9999 23:59:59 GMT";
  EXPECT_EQ(written(date_min), first);
  EXPECT_EQ(written(date_min - 1s), first);
  EXPECT_EQ(written(sys_seconds::min()), first);
  EXPECT_EQ(written(date_max), last);
  EXPECT_EQ(written(date_max + 1s), last);
  EXPECT_EQ(written(sys_seconds::max()), last);
}

TEST(http_date, writes_rfc_3339_in_utc) {
  auto const written_3339 = [](sys_seconds time) {
    std::string out;
    append_rfc3339(out, time);
    return out;
  };
  EXPECT_EQ(written_3339(example), "1994-11-06T08:49:37Z");
  EXPECT_EQ(written_3339(at(-1)), "1969-12-31T23:59:59Z");
  EXPECT_EQ(written_3339(sys_seconds::min()), "0000-01-01T00:00:00Z");
  EXPECT_EQ(written_3339(sys_seconds::max()), "9999-12-31T23:59:59Z");
  EXPECT_EQ(parse_rfc3339(written_3339(now_2024)), now_2024);
}

TEST(http_date, allocates_nothing_when_the_buffer_is_large_enough) {
  std::string out;
  out.reserve(64);
  auto const before = test::allocations();
  append_http_date(out, example);
  EXPECT_EQ(parse_http_date(out, now_2024), example);
  EXPECT_EQ(parse_rfc3339("1994-11-06T08:49:37Z"), example);
  EXPECT_EQ(test::allocations(), before);
}

TEST(http_date, reads_back_every_day_from_year_0_to_9999) {
  text_writer text;
  text_writer clock_text;
  std::string out;
  counted_day day{0, 1, 1, 6};
  std::int64_t count = 0;
  for (auto today = date_min; day.year < 10'000; today += 24h, day.step(), ++count) {
    if (test_support::sanitized && count % 16 != 0) {
      continue;
    }
    auto const second = static_cast<int>(count * 7919 % 86'400);  // another time on every day
    auto const time = today + std::chrono::seconds(second);
    out.clear();
    append_http_date(out, time);
    bool const right_day =
        out.starts_with(day.name().substr(0, 3)) && (out[5] - '0') * 10 + (out[6] - '0') == day.day;
    ASSERT_TRUE(right_day && parse_http_date(out, now_2024) == time) << out;
    // The whole text and every form: on the first of each month, and often enough for every weekday
    // and every day of a month to come by.
    if (day.day == 1 || count % 29 == 0) {
      auto const& clock = clock_text.clock(second);
      ASSERT_EQ(out, text.imf_fixdate(day, clock));
      ASSERT_EQ(parse_http_date(text.rfc850_date(day, clock), time), time) << out;
      ASSERT_EQ(parse_http_date(text.asctime_date(day, clock), now_2024), time) << out;
      ASSERT_EQ(parse_rfc3339(text.rfc3339(day, clock)), time) << out;
    }
  }
  EXPECT_EQ(count, 3'652'425);  // 25 times 400 years of 146,097 days
}

// ---- RFC 3339 ----

TEST(http_rfc3339, reads_the_examples_of_the_rfc) {
  struct row {
    std::string_view text;
    sys_seconds time;
  };
  for (auto const& [text, time] : {
           row{"1985-04-12T23:20:50.52Z", at(1985, 4, 12, 23, 20, 50)},
           {"1996-12-19T16:39:57-08:00", at(1996, 12, 20, 0, 39, 57)},
           {"1996-12-20T00:39:57Z", at(1996, 12, 20, 0, 39, 57)},
           {"1990-12-31T23:59:60Z", at(1991, 1, 1)},
           {"1990-12-31T15:59:60-08:00", at(1991, 1, 1)},
           {"1937-01-01T12:00:27.87+00:20", at(1937, 1, 1, 11, 40, 27)},
       }) {
    EXPECT_EQ(parse_rfc3339(text), time) << text;
  }
}

TEST(http_rfc3339, reads_moments_of_every_kind) {
  struct row {
    std::string_view text;
    sys_seconds time;
  };
  for (auto const& [text, time] : {
           row{"1994-11-06T08:49:37Z", example},
           {"1994-11-06t08:49:37z", example},
           {"1994-11-06T08:49:37z", example},
           {"1994-11-06T08:49:37+00:00", example},
           {"1994-11-06T08:49:37-00:00", example},
           {"1994-11-06T08:49:37.0Z", example},
           {"1994-11-06T08:49:37.999999999999999999999999999999Z", example},
           {"1994-11-06T09:19:37.5+00:30", example},
           {"1994-11-07T08:48:37+23:59", example},
           {"1994-11-05T08:50:37-23:59", example},
           {"1969-12-31T23:59:59.9Z", at(-1)},
           {"0000-01-01T00:00:00Z", date_min},
           {"9999-12-31T23:59:59Z", date_max},
           {"0000-01-01T00:00:00+23:59", date_min - 23h - 59min},
           {"9999-12-31T23:59:59-23:59", date_max + 23h + 59min},
           {"2024-02-29T00:00:00Z", at(2024, 2, 29)},
           {"2017-01-01T01:29:60.25+01:30", at(2017, 1, 1)},
       }) {
    EXPECT_EQ(parse_rfc3339(text), time) << text;
  }
}

TEST(http_rfc3339, refuses_everything_else) {
  for (std::string_view text : {
           "",
           "Z",
           "1994",
           "1994-11-06",
           "08:49:37Z",
           "1994-11-06T",
           "1994-11-06T08:49Z",
           "1994-11-06T08:49:37",
           "1994-11-06 08:49:37Z",
           "1994-11-06_08:49:37Z",
           "1994-11-06  08:49:37Z",
           " 1994-11-06T08:49:37Z",
           "1994-11-06T08:49:37Z ",
           "1994-11-06T08:49:37 Z",
           "1994-11-06T08:49:37ZZ",
           "1994-11-06T08:49:37Z+00:00",
           "19941106T084937Z",
           "1994-11-06T084937Z",
           "94-11-06T08:49:37Z",
           "1994-1-06T08:49:37Z",
           "1994-11-6T08:49:37Z",
           "01994-11-06T08:49:37Z",
           "+1994-11-06T08:49:37Z",
           "-1994-11-06T08:49:37Z",
           "1994/11/06T08:49:37Z",
           "1994-310T08:49:37Z",
           "1994-W44-7T08:49:37Z",
           "1994-11-06T8:49:37Z",
           // fractions
           "1994-11-06T08:49:37.Z",
           "1994-11-06T08:49:37,5Z",
           "1994-11-06T08:49:37.5",
           "1994-11-06T08:49:37.-5Z",
           "1994-11-06T08:49:37.5.5Z",
           "1994-11-06T08:49:37.",
           // offsets
           "1994-11-06T08:49:37+",
           "1994-11-06T08:49:37+01",
           "1994-11-06T08:49:37+0100",
           "1994-11-06T08:49:37+1:00",
           "1994-11-06T08:49:37+24:00",
           "1994-11-06T08:49:37+00:60",
           "1994-11-06T08:49:37+01:00Z",
           "1994-11-06T08:49:37+01:000",
           "1994-11-06T08:49:37-+1:00",
           "1994-11-06T08:49:37GMT",
           "1994-11-06T08:49:37+01:0",
           // what does not exist
           "1994-00-06T08:49:37Z",
           "1994-13-06T08:49:37Z",
           "1994-11-00T08:49:37Z",
           "1994-11-31T08:49:37Z",
           "2023-02-29T00:00:00Z",
           "1900-02-29T00:00:00Z",
           "1994-11-06T24:00:00Z",
           "1994-11-06T08:60:00Z",
           "1994-11-06T08:49:61Z",
           // 60 where it is not the end of a day in UTC
           "1994-11-06T08:49:60Z",
           "1990-12-31T23:59:60-08:00",
           "1990-12-31T23:59:60+00:01",
       }) {
    EXPECT_EQ(parse_rfc3339(text), std::nullopt) << '"' << text << '"';
  }
}

}  // namespace
}  // namespace tidegate::TIDEGATE_ABI::http
