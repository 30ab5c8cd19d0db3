// SPDX-License-Identifier: Apache-2.0
#include <tidegate/proxy/slewed_clock.hpp>

#include <gtest/gtest.h>

namespace tidegate::gateway {
namespace {

using namespace std::chrono_literals;
using idempotency::wall_time;

constexpr wall_time noon{1'700'000'000'000ms};
constexpr instant start{1h};

TEST(proxy_slewed_clock, shows_the_clock_on_the_wall_while_it_is_not_set) {
  slewed_clock clock(noon, start);
  for (auto passed = 0s; passed < 100s; ++passed) {
    EXPECT_EQ(clock.at(start + passed), noon + passed);
    clock.look(noon + passed, start + passed);
  }
  EXPECT_EQ(clock.at(start + 100s + 500ms), noon + 100s + 500ms);
}

TEST(proxy_slewed_clock, follows_a_clock_that_is_slewed) {
  slewed_clock clock(noon, start);
  for (int second = 1; second <= 1000; ++second) {
    auto const slewed = noon + second * 1s + second * 1ms;
    clock.look(slewed, start + second * 1s);
    EXPECT_EQ(clock.at(start + second * 1s), slewed);
  }
}

TEST(proxy_slewed_clock, runs_half_as_fast_again_after_a_step_forward_until_it_has_caught_up) {
  slewed_clock clock(noon, start);
  for (int second = 1; second <= 20; ++second) {
    clock.look(noon + 1h + second * 1s, start + second * 1s);
  }
  EXPECT_EQ(clock.at(start + 20s), noon + 30s);
  for (int second = 21; second <= 7200; ++second) {
    clock.look(noon + 1h + second * 1s, start + second * 1s);
  }
  EXPECT_EQ(clock.at(start + 2h), noon + 3h);
  clock.look(noon + 1h + 2h + 1s, start + 2h + 1s);
  EXPECT_EQ(clock.at(start + 2h + 1s), noon + 3h + 1s);
}

TEST(proxy_slewed_clock, never_goes_back_and_runs_half_as_fast_after_a_step_back) {
  slewed_clock clock(noon, start);
  auto last = clock.at(start);
  for (int second = 1; second <= 20; ++second) {
    clock.look(noon - 24h + second * 1s, start + second * 1s);
    EXPECT_GT(clock.at(start + second * 1s), last);
    last = clock.at(start + second * 1s);
  }
  EXPECT_EQ(last, noon + 10s);
}

TEST(proxy_slewed_clock, is_not_moved_by_looking_twice_at_one_moment) {
  slewed_clock clock(noon, start);
  clock.look(noon + 1h, start);
  clock.look(noon + 1h, start - 1s);
  EXPECT_EQ(clock.at(start), noon);
}

}  // namespace
}  // namespace tidegate::gateway
