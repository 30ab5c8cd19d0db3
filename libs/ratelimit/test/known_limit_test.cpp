// SPDX-License-Identifier: Apache-2.0
#include <tidegate/ratelimit/known_limit.hpp>

#include <gtest/gtest.h>

#include <cstdint>

namespace tidegate::TIDEGATE_ABI::ratelimit {
namespace {

using namespace std::chrono_literals;

constexpr auto begin = instant(1000s);

/// A quota of 100 in 10 seconds, of which `remaining` are left at `begin`, where a window begins.
auto limit_with(std::int64_t remaining) -> known_limit {
  known_limit limit;
  limit.remaining = remaining;
  limit.quota = 100;
  limit.window = 10;
  limit.has_policy = true;
  limit.reset = begin + 10s;
  limit.measure_from(begin);
  limit.begin_window(begin);
  return limit;
}

TEST(ratelimit_known_limit, spreads_what_remains_until_the_reset) {
  EXPECT_DOUBLE_EQ(limit_with(49).spread_rate(begin), 5);
  auto costly = limit_with(49);
  costly.per_request = 7;
  EXPECT_DOUBLE_EQ(costly.spread_rate(begin), 0.8) << "seven requests, and the first of the next";
}

TEST(ratelimit_known_limit, catches_up_a_quarter_faster_than_its_policy_at_most) {
  auto late = limit_with(99);
  late.reset = begin + 1s;
  EXPECT_DOUBLE_EQ(late.spread_rate(begin), 12.5);
  late.has_policy = false;
  EXPECT_DOUBLE_EQ(late.spread_rate(begin), 100) << "the quota is only what was seen";
}

TEST(ratelimit_known_limit, says_nothing_of_a_rate_while_nothing_remains) {
  EXPECT_EQ(limit_with(0).first_rate(begin), 0);
  EXPECT_GT(limit_with(1).first_rate(begin), 0);
}

TEST(ratelimit_known_limit, sees_others_in_what_they_spent) {
  auto limit = limit_with(100);
  limit.own = 3;
  limit.remaining = 97;
  EXPECT_EQ(limit.sees_others(begin + 1s, 0), false) << "all of it was spent by this client";
  limit.remaining = 90;
  EXPECT_EQ(limit.sees_others(begin + 1s, 0), true);
  EXPECT_NE(limit.sees_others(begin + 1s, 20), true) << "requests under way blur what is seen";
}

TEST(ratelimit_known_limit, has_a_new_window_when_more_came_back_than_could_by_refilling) {
  auto limit = limit_with(10);
  limit.remaining = 20;
  EXPECT_FALSE(limit.has_new_window(begin + 1s, 0)) << "ten a second come back";
  limit.remaining = 90;
  EXPECT_TRUE(limit.has_new_window(begin + 1s, 0));
  EXPECT_FALSE(limit.refills);
}

TEST(ratelimit_known_limit, learns_what_a_request_costs_in_a_unit_of_the_server) {
  known_limit limit;
  limit.learn_cost(0, 1);
  EXPECT_EQ(limit.per_request, 0) << "nothing is known yet";
  limit.ticket = 1;
  limit.learn_cost(40, 2);
  EXPECT_DOUBLE_EQ(limit.per_request, 40);
  limit.ticket = 2;
  limit.learn_cost(160, 4);
  EXPECT_DOUBLE_EQ(limit.per_request, 50) << "a quarter of the way to 80";
}

TEST(ratelimit_known_limit, waits_less_for_a_small_burst_until_it_came_too_early) {
  auto limit = limit_with(5);
  limit.refills = true;
  limit.burst.most = 5;
  ASSERT_TRUE(limit.holds_little(begin));
  limit.learn_patience(false, begin);
  EXPECT_DOUBLE_EQ(limit.burst.patience, 0.7);
  limit.learn_patience(true, begin);
  EXPECT_DOUBLE_EQ(limit.burst.patience, 1);
  EXPECT_FALSE(limit.holds_little(begin + 9s)) << "the reset is waited for, for a window";
  EXPECT_TRUE(limit.holds_little(begin + 10s));
  limit.learn_patience(true, begin + 10s);
  EXPECT_FALSE(limit.holds_little(begin + 29s)) << "twice as long the next time";
}

}  // namespace
}  // namespace tidegate::TIDEGATE_ABI::ratelimit
