// SPDX-License-Identifier: Apache-2.0
#include <tidegate/ratelimit/overload.hpp>

#include <gtest/gtest.h>

#include <functional>
#include <queue>
#include <vector>

namespace tidegate::TIDEGATE_ABI::ratelimit {
namespace {

using namespace std::chrono_literals;

constexpr auto begin = instant(1000s);

TEST(ratelimit_overload, admits_up_to_its_bound_while_all_is_well) {
  overload_guard guard({.max_in_flight = 3});
  EXPECT_TRUE(guard.admits(2, begin));
  EXPECT_FALSE(guard.admits(3, begin));
  guard.answered(10s, true, 3, begin);
  EXPECT_EQ(guard.limit(), 3) << "no latency is aimed at";
  EXPECT_EQ(guard.capacity(begin), 1);
}

TEST(ratelimit_overload, lowers_the_limit_once_for_the_answers_of_one_time) {
  overload_guard guard({.max_in_flight = 100, .target_latency = 200ms});
  guard.answered(201ms, true, 80, begin);
  EXPECT_EQ(guard.limit(), 60) << "a quarter below what was under way";
  guard.answered(300ms, true, 70, begin + 100ms);
  EXPECT_EQ(guard.limit(), 60);
  guard.answered(300ms, true, 60, begin + 201ms);
  EXPECT_EQ(guard.limit(), 45);
  EXPECT_EQ(guard.capacity(begin + 201ms), 0.45);
}

TEST(ratelimit_overload, tells_of_its_whole_capacity_again_though_the_limit_is_not_used) {
  overload_guard guard({.max_in_flight = 100, .target_latency = 200ms});
  guard.answered(300ms, true, 80, begin);
  EXPECT_EQ(guard.capacity(begin), 0.6);
  // Polite clients send one at a time now.
  for (auto now = begin; now < begin + 5s; now += 10ms) {
    guard.answered(10ms, true, 1, now);
  }
  EXPECT_EQ(guard.capacity(begin + 1s), 0.6) << "more signs may come";
  EXPECT_DOUBLE_EQ(guard.capacity(begin + 5500ms), 0.8) << "half of the way after half of the time";
  EXPECT_EQ(guard.capacity(begin + 10s), 1);
  EXPECT_EQ(guard.capacity(begin + 1h), 1);
  EXPECT_EQ(guard.limit(), 60) << "no more is needed";
  EXPECT_EQ(guard.capacity(begin - 1s), 0.6) << "a clock that steps back";
}

TEST(ratelimit_overload, tells_of_less_for_as_long_as_there_are_signs_of_overload) {
  overload_guard guard({.max_in_flight = 10});
  guard.answered(1ms, false, 10, begin);
  EXPECT_EQ(guard.limit(), 7);
  auto const lowered = guard.capacity(begin);
  EXPECT_EQ(lowered, 0.75);
  // Who comes beyond the limit is refused.
  EXPECT_FALSE(guard.admits(7, begin + 9s));
  EXPECT_EQ(guard.capacity(begin + 9s), lowered);
  EXPECT_TRUE(guard.admits(6, begin + 14s));
  EXPECT_GT(guard.capacity(begin + 14s), lowered);
  // So is a failure that does not lower the limit, being one of many.
  guard.answered(1ms, false, 7, begin + 15s);
  auto const limit = guard.limit();
  guard.answered(1ms, false, 7, begin + 15s + 500ms);
  EXPECT_EQ(guard.limit(), limit);
  EXPECT_EQ(guard.capacity(begin + 15s + 500ms), guard.capacity(begin + 15s));
}

TEST(ratelimit_overload, keeps_what_it_has_learnt_under_other_settings) {
  overload_guard guard({.max_in_flight = 100});
  guard.use({.max_in_flight = 50});
  EXPECT_EQ(guard.limit(), 50) << "it was not lowered";
  guard.answered(1ms, false, 40, begin);
  EXPECT_EQ(guard.limit(), 30);
  guard.use({.max_in_flight = 200});
  EXPECT_EQ(guard.limit(), 30);
  EXPECT_EQ(guard.capacity(begin), 0.15);
  guard.use({.max_in_flight = 20, .target_latency = 10ms});
  EXPECT_EQ(guard.limit(), 20);
  guard.answered(11ms, true, 20, begin + 10s);
  EXPECT_EQ(guard.limit(), 15) << "the new latency";
}

TEST(ratelimit_overload, lowers_the_limit_for_failures_too_but_never_below_one) {
  overload_guard guard({.max_in_flight = 10});
  auto now = begin;
  for (int i = 0; i < 50; ++i) {
    guard.answered(1ms, false, 10, now += 1s);
  }
  EXPECT_EQ(guard.limit(), 1);
  EXPECT_TRUE(guard.admits(0, now));
}

TEST(ratelimit_overload, recovers_as_answers_are_good_again_and_the_limit_is_used) {
  overload_guard guard({.max_in_flight = 10});
  guard.answered(1ms, false, 10, begin);
  EXPECT_EQ(guard.limit(), 7);
  for (int i = 0; i < 1000; ++i) {
    guard.answered(1ms, true, 1, begin + 10s);
  }
  EXPECT_EQ(guard.limit(), 7) << "no more is needed";
  for (int i = 0; i < 1000; ++i) {
    guard.answered(1ms, true, 7, begin + 10s);
  }
  EXPECT_EQ(guard.limit(), 10);
}

TEST(ratelimit_overload, finds_how_much_a_service_takes_within_a_latency) {
  // A service that does 16 things at a time, 10 ms each; what is above that queues.
  overload_guard guard({.target_latency = 50ms});
  struct done {
    instant at;
    instant sent;
    auto operator>(done const& other) const -> bool { return at > other.at; }
  };
  std::priority_queue<done, std::vector<done>, std::greater<>> under_way;
  std::vector<instant> free_at(16, begin);
  std::int64_t good = 0;
  std::int64_t slow = 0;
  for (auto now = begin; now < begin + 60s;
       now += 200us) {  // 5,000 a second are wanted, 1,600 possible
    while (!under_way.empty() && under_way.top().at <= now) {
      auto const each = under_way.top();
      guard.answered(each.at - each.sent, true, static_cast<std::int64_t>(under_way.size()),
                     each.at);
      if (now > begin + 10s) {
        ++(each.at - each.sent <= 50ms ? good : slow);
      }
      under_way.pop();
    }
    if (guard.admits(static_cast<std::int64_t>(under_way.size()), now)) {
      auto& server = *std::min_element(free_at.begin(), free_at.end());
      server = std::max(server, now) + 10ms;
      under_way.push({server, now});
    }
  }
  // In the fifty seconds after it has settled: nearly all that is possible, and nearly all in time.
  EXPECT_GT(good, 50 * 1600 * 9 / 10);
  EXPECT_LT(slow * 10, good);
}

}  // namespace
}  // namespace tidegate::TIDEGATE_ABI::ratelimit
