// SPDX-License-Identifier: Apache-2.0
#include <tidegate/store/quota_overrides.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

namespace tidegate::TIDEGATE_ABI::store {
namespace {

using namespace std::chrono_literals;

auto at(std::chrono::nanoseconds t) -> instant {
  return instant(t);
}

TEST(store_quota_overrides, hold_for_one_partition_of_one_policy_until_they_end) {
  quota_overrides all;
  EXPECT_FALSE(all.any());
  EXPECT_TRUE(all.set({1, "a", 50, at(10s)}));
  EXPECT_TRUE(all.any());
  EXPECT_EQ(all.find(1, "a", at(0s)), (quota_overrides::standing{50, at(10s)}));
  EXPECT_EQ(all.find(1, "a", at(10s) - 1ns)->quota, 50);
  EXPECT_EQ(all.find(1, "a", at(10s)), std::nullopt);
  EXPECT_EQ(all.find(2, "a", at(0s)), std::nullopt);
  EXPECT_EQ(all.find(1, "b", at(0s)), std::nullopt);
  EXPECT_EQ(all.find(1, "", at(0s)), std::nullopt);
}

TEST(store_quota_overrides, are_replaced_taken_back_and_taken_out_when_they_have_ended) {
  quota_overrides all;
  EXPECT_TRUE(all.set({1, "a", 50, at(10s)}));
  EXPECT_TRUE(all.set({1, "a", 60, at(30s)}));
  EXPECT_TRUE(all.set({1, "b", 70, at(20s)}));
  EXPECT_EQ(all.list(),
            (std::vector<quota_overrides::entry>{{1, "b", 70, at(20s)}, {1, "a", 60, at(30s)}}));
  EXPECT_TRUE(all.take_ended(at(20s) - 1ns).empty());
  EXPECT_EQ(all.take_ended(at(20s)), (std::vector<quota_overrides::entry>{{1, "b", 70, at(20s)}}));
  EXPECT_FALSE(all.remove(1, "b"));
  EXPECT_TRUE(all.remove(1, "a"));
  EXPECT_FALSE(all.any());
}

TEST(store_quota_overrides, are_bounded_in_number_and_in_octets) {
  quota_overrides many;
  for (std::size_t i = 0; i < quota_overrides::entries_max; ++i) {
    EXPECT_TRUE(many.set({1, std::to_string(i), 1, at(1s)}));
  }
  EXPECT_FALSE(many.set({1, "one more", 1, at(1s)}));
  EXPECT_TRUE(many.set({1, "7", 2, at(1s)}));  // it is there
  EXPECT_TRUE(many.remove(1, "8"));
  EXPECT_TRUE(many.set({1, "one more", 1, at(1s)}));

  quota_overrides large;
  EXPECT_TRUE(
      large.set({1, std::string(quota_overrides::partition_octets_max - 1, 'x'), 1, at(1s)}));
  EXPECT_TRUE(large.set({1, "a", 1, at(1s)}));
  EXPECT_FALSE(large.set({1, "b", 1, at(1s)}));
  EXPECT_EQ(large.take_ended(at(1s)).size(), 2U);
  EXPECT_TRUE(large.set({1, "b", 1, at(2s)}));
}

TEST(store_quota_overrides, are_read_while_they_change) {
  quota_overrides all;
  std::atomic<bool> stop = false;
  std::thread changes([&] {
    for (int i = 0; i < 2000; ++i) {
      (void)all.set({1, "a", 1 + i % 3, at(1s)});
      (void)all.remove(1, "a");
    }
    stop = true;
  });
  while (!stop) {
    if (all.any()) {
      auto const found = all.find(1, "a", at(0s));
      EXPECT_TRUE(!found || (found->quota >= 1 && found->quota <= 3));
    }
  }
  changes.join();
  EXPECT_FALSE(all.any());
}

}  // namespace
}  // namespace tidegate::TIDEGATE_ABI::store
