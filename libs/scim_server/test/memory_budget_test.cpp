// SPDX-License-Identifier: Apache-2.0
#include <tidegate/scim_server/memory_budget.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <thread>
#include <utility>

namespace tidegate::gateway {
namespace {

using namespace std::chrono_literals;

TEST(gateway_memory_budget, refuses_what_would_exceed_its_bound_until_something_is_given_back) {
  memory_budget budget(100);
  auto first = budget.try_reserve(60);
  ASSERT_TRUE(first);
  EXPECT_FALSE(budget.try_reserve(41));
  auto second = budget.try_reserve(40);
  ASSERT_TRUE(second);
  EXPECT_EQ(budget.octets(), 100U);
  first->release();
  first->release();  // once is enough
  EXPECT_EQ(budget.octets(), 40U);
  EXPECT_TRUE(budget.try_reserve(60));
  EXPECT_EQ(budget.octets(), 40U);
}

TEST(gateway_memory_budget, takes_one_piece_that_is_larger_than_its_bound_when_it_is_alone) {
  memory_budget budget(100);
  auto const large = budget.try_reserve(1000);
  ASSERT_TRUE(large);
  EXPECT_FALSE(budget.try_reserve(1));
}

TEST(gateway_memory_budget, counts_what_is_moved_once_and_lets_it_outlive_the_budget) {
  std::optional<memory_budget> budget(100);
  auto first = budget->reserve(10);
  auto second = std::move(first);
  EXPECT_EQ(budget->octets(), 10U);
  first = budget->reserve(5);
  second = std::move(first);  // the two have changed places
  EXPECT_EQ(budget->octets(), 15U);
  first.release();
  EXPECT_EQ(budget->octets(), 5U);
  budget.reset();
  second.release();
}

TEST(gateway_memory_budget, blocks_a_thread_until_there_is_room) {
  memory_budget budget(100);
  budget.wait(0ms);
  auto held = budget.reserve(101);
  std::atomic<bool> is_past = false;
  std::thread waiting([&] {
    budget.wait(1h);
    is_past = true;
  });
  EXPECT_FALSE(is_past);
  held.release();
  waiting.join();
  EXPECT_TRUE(is_past);
}

TEST(gateway_memory_budget, blocks_no_thread_for_longer_than_asked_for_or_once_it_is_closed) {
  memory_budget budget(100);
  auto const held = budget.reserve(101);
  budget.wait(1ms);
  std::thread waiting([&] { budget.wait(1h); });
  budget.close();
  waiting.join();
  budget.wait(1h);
}

}  // namespace
}  // namespace tidegate::gateway
