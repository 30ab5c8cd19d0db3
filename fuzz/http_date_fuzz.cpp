// SPDX-License-Identifier: Apache-2.0
//
// Eight bytes that say what time it is, then any bytes as a date:
//
// - never a crash, and never a look outside of the text;
// - a text is an HTTP-date only if it is, to the letter, one of the forms in which the C library
//   would write the moment that it was read as; two digits of a year mean at most 50 years from
//   now;
// - what is read as a date-time of RFC 3339 is what timegm() makes of its digits;
// - what was read is written and read again as the same moment;
// - a Retry-After is from 0 to its bound, and a date in it is that date less now;
// - whatever time it is, its text in every form is read as that time.
#include "check.hpp"

#include <tidegate/http/date.hpp>
#include <tidegate/http/retry_after.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace tidegate::http;
using std::chrono::seconds;
using std::chrono::sys_seconds;
using tidegate::fuzz::check;

auto broken_down(sys_seconds time) -> std::tm {
  std::time_t const count = time.time_since_epoch().count();
  std::tm fields{};
  check(gmtime_r(&count, &fields) != nullptr, "gmtime_r knows the time");
  return fields;
}

/// The forms of a moment: IMF-fixdate, rfc850-date, asctime-date with a space and with a zero,
/// RFC 3339.
struct forms {
  std::string imf_fixdate, rfc850_date, asctime_date, asctime_date_zero, rfc3339;
};

auto forms_of(sys_seconds time, int leap_second = 0) -> forms {
  constexpr std::array days = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                               "Thursday", "Friday", "Saturday"};
  constexpr std::array months = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                 "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  auto const t = broken_down(time);
  auto const* const day = days[static_cast<std::size_t>(t.tm_wday)];
  auto const* const month = months[static_cast<std::size_t>(t.tm_mon)];
  int const year = t.tm_year + 1900;
  int const two_digits = (year % 100 + 100) % 100;
  int const second = t.tm_sec + leap_second;
  auto print = [](char const* format, auto... values) {
    std::array<char, 128> buffer{};
    auto const size = std::snprintf(buffer.data(), buffer.size(), format, values...);
    return std::string(buffer.data(), static_cast<std::size_t>(size));
  };
  return {
      print("%.3s, %02d %s %04d %02d:%02d:%02d GMT", day, t.tm_mday, month, year, t.tm_hour,
            t.tm_min, second),
      print("%s, %02d-%s-%02d %02d:%02d:%02d GMT", day, t.tm_mday, month, two_digits, t.tm_hour,
            t.tm_min, second),
      print("%.3s %s %2d %02d:%02d:%02d %04d", day, month, t.tm_mday, t.tm_hour, t.tm_min, second,
            year),
      print("%.3s %s %02d %02d:%02d:%02d %04d", day, month, t.tm_mday, t.tm_hour, t.tm_min, second,
            year),
      print("%04d-%02d-%02dT%02d:%02d:%02dZ", year, t.tm_mon + 1, t.tm_mday, t.tm_hour, t.tm_min,
            second),
  };
}

auto writable(sys_seconds time) -> sys_seconds {
  return std::clamp(time, date_min, date_max);
}

void check_written_again(sys_seconds time, sys_seconds now) {
  std::string out = "Date: ";
  append_http_date(out, time);
  check(out.size() == 6 + 29, "an IMF-fixdate has 29 characters");
  check(parse_http_date(std::string_view(out).substr(6), now) == writable(time),
        "what was written is read again as the same moment");
}

void check_http_date(std::string_view text, sys_seconds now) {
  auto const time = parse_http_date(text, now);
  if (!time) {
    return;
  }
  check_written_again(*time, now);
  bool const leap_second = text.find(":60") != std::string_view::npos;
  auto const f = leap_second ? forms_of(*time - seconds(1), 1) : forms_of(*time);
  check(text == f.imf_fixdate || text == f.rfc850_date || text == f.asctime_date ||
            text == f.asctime_date_zero,
        "an HTTP-date is the text of its moment");
  if (text == f.rfc850_date) {
    auto const ahead = broken_down(*time - seconds(leap_second ? 1 : 0)).tm_year -
                       broken_down(writable(now)).tm_year;
    check(ahead >= -50 && ahead <= 50, "two digits mean at most 50 years from now");
  }
}

void check_rfc3339(std::string_view text, sys_seconds now) {
  auto const time = parse_rfc3339(text);
  if (!time) {
    return;
  }
  check_written_again(*time, now);
  check(text.size() >= 20, "a date-time has at least 20 characters");
  auto number = [text](std::size_t begin, std::size_t size) {
    int value = 0;
    for (char c : text.substr(begin, size)) {
      check(c >= '0' && c <= '9', "a number has digits");
      value = value * 10 + (c - '0');
    }
    return value;
  };
  std::tm fields{};
  fields.tm_year = number(0, 4) - 1900;
  fields.tm_mon = number(5, 2) - 1;
  fields.tm_mday = number(8, 2);
  fields.tm_hour = number(11, 2);
  fields.tm_min = number(14, 2);
  fields.tm_sec = number(17, 2);
  std::int64_t offset = 0;
  if (text.back() != 'Z' && text.back() != 'z') {
    auto const size = text.size();
    offset = number(size - 5, 2) * 3600 + number(size - 2, 2) * 60;
    offset = text[size - 6] == '-' ? -offset : offset;
  }
  check(time->time_since_epoch().count() == timegm(&fields) - offset,
        "a date-time is what timegm makes of it");
}

void check_retry_after(std::string_view text, sys_seconds now) {
  auto const delay = parse_retry_after(text, now);
  if (auto const time = parse_http_date(text, now)) {
    check(delay.has_value(), "a date is a Retry-After");
    auto const difference = *time - writable(now);
    check(*delay == std::clamp(difference, seconds(0), retry_after_max),
          "it is that date less now");
  }
  if (delay) {
    check(*delay >= seconds(0) && *delay <= retry_after_max, "a Retry-After is within its bounds");
    check(parse_retry_after(" \t" + std::string(text) + "\t ", now) == delay,
          "spaces around it mean nothing");
  }
}

void check_every_form(sys_seconds now) {
  auto const f = forms_of(now);
  for (auto const& text : {f.imf_fixdate, f.rfc850_date, f.asctime_date, f.asctime_date_zero}) {
    check(parse_http_date(text, now) == now, "every form of a moment is read as that moment");
  }
  check(parse_rfc3339(f.rfc3339) == now, "so is its form of RFC 3339");
  std::string out;
  append_http_date(out, now);
  check(out == f.imf_fixdate, "what is written is the IMF-fixdate");
}

}  // namespace

extern "C" auto LLVMFuzzerTestOneInput(unsigned char const* data, std::size_t size) -> int {
  std::int64_t count = 0;
  if (size < sizeof count) {
    return 0;
  }
  std::memcpy(&count, data, sizeof count);
  // Exactly as many bytes as there are, so that a look behind them is seen.
  std::vector<char> const exact(data + sizeof count, data + size);
  auto const text = std::string_view(exact.data(), exact.size());
  // Any time at all, and one that four digits of a year can say.
  auto const span = (date_max - date_min).count() + 1;
  sys_seconds const anytime{seconds(count)};
  auto const now = date_min + seconds((count % span + span) % span);
  for (auto time : {anytime, now}) {
    check_http_date(text, time);
    check_rfc3339(text, time);
    check_retry_after(text, time);
    check_written_again(time, now);
  }
  check_every_form(now);
  return 0;
}
