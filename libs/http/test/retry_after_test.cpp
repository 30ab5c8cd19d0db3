// SPDX-License-Identifier: Apache-2.0
#include <tidegate/http/date.hpp>
#include <tidegate/http/retry_after.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace tidegate::TIDEGATE_ABI::http {
namespace {

using namespace std::chrono_literals;
using std::chrono::sys_seconds;

// Fri, 31 Dec 1999 23:59:59 GMT
constexpr sys_seconds last_second_of_1999(946'684'799s);

TEST(http_retry_after, reads_the_examples_of_rfc_9110) {
  EXPECT_EQ(parse_retry_after("Fri, 31 Dec 1999 23:59:59 GMT", last_second_of_1999 - 90s), 90s);
  EXPECT_EQ(parse_retry_after("120", last_second_of_1999), 120s);
}

TEST(http_retry_after, reads_seconds_up_to_a_bound) {
  struct row {
    std::string text;
    std::chrono::seconds delay;
  };
  for (auto const& [text, delay] : {
           row{"0", 0s},
           {"1", 1s},
           {"000120", 120s},
           {"999999999", 999'999'999s},
           {"1000000000", retry_after_max},
           {"1000000001", retry_after_max},
           {"2147483648", retry_after_max},
           {"9223372036854775807", retry_after_max},
           {"9223372036854775808", retry_after_max},
           {"18446744073709551617", retry_after_max},
           {std::string(10'000, '9'), retry_after_max},
           {std::string(10'000, '0') + "7", 7s},
       }) {
    EXPECT_EQ(parse_retry_after(text, last_second_of_1999), delay) << text;
  }
}

TEST(http_retry_after, reads_dates_in_every_form_as_seconds_from_now) {
  struct row {
    std::string_view text;
    sys_seconds now;
    std::chrono::seconds delay;
  };
  auto const date = last_second_of_1999;
  for (auto const& [text, now, delay] : {
           row{"Fri, 31 Dec 1999 23:59:59 GMT", date - 1s, 1s},
           {"Fri, 31 Dec 1999 23:59:59 GMT", date, 0s},
           {"Fri, 31 Dec 1999 23:59:59 GMT", date + 1s, 0s},
           {"Fri, 31 Dec 1999 23:59:59 GMT", date + 1000 * 24h, 0s},
           {"Friday, 31-Dec-99 23:59:59 GMT", date - 60s, 60s},
           {"Friday, 31-Dec-99 23:59:59 GMT", date + 60s, 0s},
           {"Fri Dec 31 23:59:59 1999", date - 3600s, 3600s},
           {"Fri, 31 Dec 1999 23:59:60 GMT", date, 1s},
           {"Fri, 31 Dec 1999 23:59:59 GMT", date - retry_after_max, retry_after_max},
           {"Fri, 31 Dec 1999 23:59:59 GMT", date - retry_after_max - 1s, retry_after_max},
           {"Fri, 31 Dec 9999 23:59:59 GMT", date, retry_after_max},
           {"Fri, 31 Dec 9999 23:59:59 GMT", sys_seconds::min(), retry_after_max},
           {"Sat, 01 Jan 0000 00:00:00 GMT", sys_seconds::min(), 0s},
           {"Sat, 01 Jan 0000 00:00:00 GMT", sys_seconds::max(), 0s},
           {"Fri, 31 Dec 9999 23:59:59 GMT", sys_seconds::max(), 0s},
       }) {
    EXPECT_EQ(parse_retry_after(text, now), delay)
        << text << " at " << now.time_since_epoch().count();
  }
}

TEST(http_retry_after, leaves_spaces_and_tabs_around_the_value_out) {
  for (std::string_view text : {" 120", "120 ", "\t120", "120\t", " \t 120 \t "}) {
    EXPECT_EQ(parse_retry_after(text, last_second_of_1999), 120s) << text;
  }
  EXPECT_EQ(parse_retry_after("\t Fri, 31 Dec 1999 23:59:59 GMT\t ", last_second_of_1999 - 5s), 5s);
}

TEST(http_retry_after, is_invalid_when_it_is_anything_else) {
  for (std::string_view text : {
           "",
           " ",
           "\t",
           "-1",
           "+1",
           "1.5",
           "1,5",
           "1e3",
           "0x10",
           "120s",
           "120 s",
           "1 20",
           "120,",
           "120, 60",
           "soon",
           "\"120\"",
           "\n120",
           "120\r\n",
           "\v120",
           "12\xb2",
           "1999-12-31T23:59:59Z",
           "Thu, 31 Dec 1999 23:59:59 GMT",
           "fri, 31 Dec 1999 23:59:59 GMT",
           "Fri, 31 Dec 1999 23:59:59",
           "Fri, 31 Dec 1999 23:59:59 GMT;",
           "Fri, 31 Dec 1999",
       }) {
    EXPECT_EQ(parse_retry_after(text, last_second_of_1999), std::nullopt) << '"' << text << '"';
  }
  using namespace std::string_view_literals;
  EXPECT_EQ(parse_retry_after("120\0"sv, last_second_of_1999), std::nullopt);
}

}  // namespace
}  // namespace tidegate::TIDEGATE_ABI::http
