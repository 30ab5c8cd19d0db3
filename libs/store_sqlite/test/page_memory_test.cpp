// SPDX-License-Identifier: Apache-2.0
#include "page_memory.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <set>
#include <thread>

namespace tidegate::store_sqlite {
namespace {

constexpr auto chunk = page_slots::chunk_octets;

TEST(store_sqlite_page_memory, gives_each_slot_to_one_only_until_all_are_taken) {
  page_slots memory;
  ASSERT_TRUE(memory.reserve(3));
  std::set<std::byte*> taken;
  while (auto* const slot = memory.take()) {
    std::memset(slot, 0xff, page_slots::slot_octets);
    EXPECT_TRUE(memory.has(slot));
    EXPECT_TRUE(memory.has(static_cast<std::byte*>(slot) + page_slots::slot_octets - 1));
    taken.insert(static_cast<std::byte*>(slot));
  }
  EXPECT_EQ(taken.size(), 3 * page_slots::slots);
  EXPECT_TRUE(std::ranges::adjacent_find(taken, [](auto* a, auto* b) {
                return b - a < static_cast<std::ptrdiff_t>(page_slots::slot_octets);
              }) == taken.end());
  EXPECT_EQ(memory.octets(), 3 * chunk);
  auto* const any = *taken.begin();
  memory.give_back(any);
  EXPECT_EQ(memory.take(), any);
  EXPECT_EQ(memory.take(), nullptr);
}

TEST(store_sqlite_page_memory, gives_back_what_nobody_uses) {
  page_slots memory;
  ASSERT_TRUE(memory.reserve(8));
  std::mt19937 random(7);
  std::vector<unsigned char*> taken;
  for (int i = 0; i < 20'000; ++i) {
    if (random() % 100 < (i / 2000 % 2 == 0 ? 70 : 30)) {
      if (auto* const slot = memory.take()) {
        taken.push_back(static_cast<unsigned char*>(slot));
        std::memset(slot, static_cast<int>(taken.size() % 251), page_slots::slot_octets);
        *taken.back() = 42;
      }
    } else if (!taken.empty()) {
      std::swap(taken[random() % taken.size()], taken.back());
      EXPECT_EQ(*taken.back(), 42);  // what others do with theirs does not reach it
      memory.give_back(taken.back());
      taken.pop_back();
    }
  }
  for (auto* const slot : taken) {
    memory.give_back(slot);
  }
  EXPECT_EQ(memory.octets(), 0U);
  auto* const again = static_cast<unsigned char*>(memory.take());
  EXPECT_EQ(std::count(again, again + page_slots::slot_octets, 0),
            static_cast<std::ptrdiff_t>(page_slots::slot_octets));  // it is the system's, and new
}

TEST(store_sqlite_page_memory, knows_what_is_not_its_own) {
  page_slots memory;
  EXPECT_EQ(memory.take(), nullptr);  // before it has any
  EXPECT_FALSE(memory.has(&memory));
  EXPECT_FALSE(memory.has(nullptr));
  ASSERT_TRUE(memory.reserve(1));
  EXPECT_FALSE(memory.has(&memory));
  EXPECT_FALSE(memory.has(nullptr));
  auto* const first = static_cast<std::byte*>(memory.take());
  EXPECT_FALSE(memory.has(first - 1));
  EXPECT_FALSE(memory.has(first + chunk));
}

TEST(store_sqlite_page_memory, is_for_several_threads) {
  page_slots memory;
  ASSERT_TRUE(memory.reserve(4));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&memory, t] {
      std::vector<void*> taken;
      for (int i = 0; i < 2000; ++i) {
        if (i % 3 < 2) {
          taken.push_back(memory.take());
          ASSERT_NE(taken.back(), nullptr);
          std::memset(taken.back(), t, page_slots::slot_octets);
        }
        if (i % 3 == 2 || taken.size() > 300) {
          EXPECT_EQ(*static_cast<unsigned char*>(taken.back()), t);
          memory.give_back(taken.back());
          taken.pop_back();
        }
      }
      for (auto* const slot : taken) {
        memory.give_back(slot);
      }
    });
  }
  for (auto& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(memory.octets(), 0U);
}

}  // namespace
}  // namespace tidegate::store_sqlite
