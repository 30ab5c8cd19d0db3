// SPDX-License-Identifier: Apache-2.0
#include "quotas/lease_size.hpp"

#include <gtest/gtest.h>

namespace tidegate::store_redis {
namespace {

using namespace std::chrono_literals;

auto at(std::chrono::milliseconds time) -> instant {
  return instant(1h + time);
}

TEST(store_redis_lease_size, is_what_is_used_in_a_period) {
  EXPECT_EQ(lease_size(2, 1'000'000, 1), 2);
  EXPECT_EQ(lease_size(99.5, 1'000'000, 1), 100);
  EXPECT_EQ(lease_size(1e30, 999'999'999'999'999, 1), 499'999'999'999'999);
}

TEST(store_redis_lease_size, is_nothing_when_next_to_nothing_is_used) {
  EXPECT_EQ(lease_size(0, 1'000'000, 1), 0);
  EXPECT_EQ(lease_size(1.9, 1'000'000, 1), 0);
}

TEST(store_redis_lease_size, leaves_something_to_the_others) {
  EXPECT_EQ(lease_size(1'000, 1'000, 1), 500);
  EXPECT_EQ(lease_size(1'000, 1'000, 10), 50);
  EXPECT_EQ(lease_size(1'000, 10, 10), 1);
  EXPECT_EQ(lease_size(1'000, 0, 10), 1) << "there may be more by now";
  EXPECT_EQ(lease_size(1'000, 1'000, 0), 500);
}

TEST(store_redis_lease_size, has_slots_for_a_quarter_more_requests_than_there_are) {
  EXPECT_EQ(slots_ahead(0, 100, 1), 1);
  EXPECT_EQ(slots_ahead(40, 100, 1), 11);
  EXPECT_EQ(slots_ahead(40, 10, 1), 5);
  EXPECT_EQ(slots_ahead(40, 0, 1), 1);
}

TEST(store_redis_lease_size, asks_for_more_at_the_half_and_gives_back_above_the_double) {
  EXPECT_TRUE(is_low(49, 100));
  EXPECT_FALSE(is_low(50, 100));
  EXPECT_FALSE(is_low(0, 0));
  EXPECT_TRUE(is_low(0, 1));
  EXPECT_EQ(excess(200, 100), 0);
  EXPECT_EQ(excess(201, 100), 101);
}

TEST(store_redis_lease_size, follows_the_use_of_the_last_periods) {
  use_rate rate;
  EXPECT_EQ(rate.per_period(at(0ms)), 0);
  for (int i = 0; i < 10; ++i) {
    rate.add(at(i * 10ms), 10);
  }
  EXPECT_EQ(rate.per_period(at(99ms)), 100) << "at once when there is much";
  EXPECT_EQ(rate.per_period(at(100ms)), 50);
  for (int i = 10; i < 200; ++i) {
    rate.add(at(i * 10ms), 10);
  }
  EXPECT_NEAR(rate.per_period(at(2'000ms)), 100, 1);
  EXPECT_NEAR(rate.per_period(at(2'100ms)), 50, 1);
  EXPECT_NEAR(rate.per_period(at(2'500ms)), 3, 1);
  EXPECT_LT(rate.per_period(at(10h)), 1e-9);
}

TEST(store_redis_lease_size, takes_no_harm_from_a_time_that_is_earlier) {
  use_rate rate;
  rate.add(at(500ms), 10);
  rate.add(at(100ms), 10);
  EXPECT_EQ(rate.per_period(at(0ms)), 20);
}

}  // namespace
}  // namespace tidegate::store_redis
