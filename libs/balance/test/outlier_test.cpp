// SPDX-License-Identifier: Apache-2.0
#include <tidegate/balance/outlier.hpp>

#include <gtest/gtest.h>

namespace tidegate::balance {
namespace {

using namespace std::chrono_literals;

constexpr outlier_settings settings{.failures = 3, .within = 10s, .eject = 10s};

auto at(std::chrono::nanoseconds since) -> instant {
  return instant(since);
}

TEST(balance_outlier, counts_500_and_502_to_504_as_failures_and_nothing_else) {
  for (int status = 100; status < 600; ++status) {
    EXPECT_EQ(is_failure(status), status == 500 || (status >= 502 && status <= 504)) << status;
  }
}

TEST(balance_outlier, is_full_after_so_many_failures_in_a_row) {
  outlier server;
  EXPECT_FALSE(server.failed(settings, at(1s)));
  EXPECT_FALSE(server.failed(settings, at(2s)));
  EXPECT_TRUE(server.failed(settings, at(3s)));
  EXPECT_EQ(server.in_a_row(), 3U);
}

TEST(balance_outlier, begins_a_new_row_with_any_other_answer) {
  outlier server;
  for (int i = 0; i < 20; ++i) {
    EXPECT_FALSE(server.failed(settings, at(i * 1s)));
    EXPECT_FALSE(server.failed(settings, at(i * 1s)));
    server.answered();
  }
}

TEST(balance_outlier, counts_only_failures_within_its_time) {
  outlier server;
  EXPECT_FALSE(server.failed(settings, at(0s)));
  EXPECT_FALSE(server.failed(settings, at(6s)));
  EXPECT_FALSE(server.failed(settings, at(11s))) << "the first was 11 s ago";
  EXPECT_TRUE(server.failed(settings, at(16s))) << "the last three are within 10 s";
}

TEST(balance_outlier, ejects_for_twice_as_long_each_time_up_to_ten_times) {
  outlier server;
  auto now = at(0s);
  std::vector<std::chrono::nanoseconds> lasted;
  for (int i = 0; i < 6; ++i) {
    lasted.push_back(server.eject(settings, now));
    EXPECT_EQ(server.ejected_until(), now + lasted.back());
    now = server.ejected_until() + 1s;
  }
  EXPECT_EQ(lasted, (std::vector<std::chrono::nanoseconds>{10s, 20s, 40s, 80s, 100s, 100s}));
}

TEST(balance_outlier, begins_again_when_a_server_did_well_for_as_long_as_it_was_ejected) {
  outlier server;
  EXPECT_EQ(server.eject(settings, at(0s)), 10s);
  EXPECT_EQ(server.eject(settings, at(19s)), 20s);
  EXPECT_EQ(server.eject(settings, at(59s)), 10s) << "20 s after 39 s";
}

TEST(balance_outlier, is_not_ejected_again_for_what_was_under_way) {
  outlier server;
  EXPECT_EQ(server.eject(settings, at(0s)), 10s);
  for (int i = 0; i < 50; ++i) {
    EXPECT_FALSE(server.failed(settings, at(1s)));
  }
  EXPECT_EQ(server.in_a_row(), 0U);
  EXPECT_FALSE(server.failed(settings, at(10s)));
  EXPECT_FALSE(server.failed(settings, at(10s)));
  EXPECT_TRUE(server.failed(settings, at(10s)));
}

TEST(balance_outlier, ends_the_row_when_it_ejects) {
  outlier server;
  (void)server.failed(settings, at(0s));
  (void)server.failed(settings, at(0s));
  (void)server.failed(settings, at(0s));
  (void)server.eject(settings, at(0s));
  EXPECT_EQ(server.in_a_row(), 0U);
  EXPECT_FALSE(server.failed(settings, at(10s)));
}

}  // namespace
}  // namespace tidegate::balance
