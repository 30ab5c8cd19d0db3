// SPDX-License-Identifier: Apache-2.0
#include "services/date_clock.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace tidegate::gateway {
namespace {

using namespace std::chrono_literals;

TEST(proxy_date_clock, is_a_whole_line) {
  date_clock clock;
  EXPECT_THAT(
      std::string(clock.line(instant(1h))),
      testing::MatchesRegex("Date: [A-Z][a-z][a-z], [0-9][0-9] [A-Z][a-z][a-z] "
                            "[0-9][0-9][0-9][0-9] [0-9][0-9]:[0-9][0-9]:[0-9][0-9] GMT\r\n"));
}

TEST(proxy_date_clock, shows_the_clock_on_the_wall) {
  date_clock clock;
  auto const before = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  auto const shown = clock.wall_clock(instant(1h));
  EXPECT_GE(shown, before);
  EXPECT_LE(shown, std::chrono::system_clock::now());
}

TEST(proxy_date_clock, is_read_once_until_the_second_is_over) {
  date_clock clock;
  auto const shown = clock.wall_clock(instant(1h));
  auto const* const text = clock.line(instant(1h)).data();
  EXPECT_EQ(clock.wall_clock(instant(1h)), shown);
  EXPECT_EQ(clock.line(instant(1h)).data(), text);
  EXPECT_GE(clock.wall_clock(instant(1h + 1s)), shown) << "it is read again";
}

TEST(proxy_date_clock, works_from_the_first_instant_on) {
  date_clock clock;
  EXPECT_FALSE(clock.line(instant::min() + 1ns).empty());
}

}  // namespace
}  // namespace tidegate::gateway
