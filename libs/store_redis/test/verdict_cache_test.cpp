// SPDX-License-Identifier: Apache-2.0
#include "quotas/verdict_cache.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>

namespace tidegate::store_redis {
namespace {

using namespace std::chrono_literals;

auto id(std::uint64_t number) -> store::key_hash {
  return {.low = number, .high = 0};
}

TEST(store_redis_verdict_cache, replaces_the_entry_that_was_asked_about_longest_ago) {
  verdict_cache cache(4);
  for (std::uint64_t i = 1; i <= 4; ++i) {
    cache.entry(id(i)).at = instant(std::chrono::seconds(i));
  }
  cache.entry(id(1)).at = instant(9s);
  cache.entry(id(5)).at = instant(10s);
  EXPECT_EQ(cache.find(id(2)), nullptr);
  EXPECT_NE(cache.find(id(1)), nullptr);
  cache.forget(id(1));
  EXPECT_EQ(cache.find(id(1)), nullptr);
}

TEST(store_redis_verdict_cache, refuses_as_much_or_more_until_a_time) {
  cached_verdict verdict;
  EXPECT_FALSE(verdict.refuses(1'000, instant(1s)));
  verdict.refused_cost = 5;
  verdict.refused_until = instant(2s);
  EXPECT_FALSE(verdict.refuses(4, instant(1s)));
  EXPECT_TRUE(verdict.refuses(5, instant(1s)));
  EXPECT_FALSE(verdict.refuses(5, instant(2s)));
}

TEST(store_redis_verdict_cache, says_what_was_left_with_the_time_that_has_passed) {
  cached_verdict verdict;
  verdict.at = instant(10s);
  verdict.left = {7, 3s};
  EXPECT_EQ(verdict.left_at(instant(11s)).remaining, 7);
  EXPECT_EQ(verdict.left_at(instant(11s)).reset, 2s);
  EXPECT_EQ(verdict.left_at(instant(20s)).reset, 0s);
}

}  // namespace
}  // namespace tidegate::store_redis
