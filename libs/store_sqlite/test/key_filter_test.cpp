// SPDX-License-Identifier: Apache-2.0
#include "key_filter.hpp"

#include <gtest/gtest.h>

namespace tidegate::store_sqlite {
namespace {

auto key_of(int number) -> std::string {
  return "key" + std::to_string(number);
}

auto perhaps(key_filter& filter, std::int64_t index_id, int from, int to) -> int {
  int all = 0;
  for (int i = from; i < to; ++i) {
    all += filter.may_have(index_id, key_of(i)) ? 1 : 0;
  }
  return all;
}

TEST(store_sqlite_key_filter, says_perhaps_until_an_index_is_learned) {
  key_filter filter(1024);
  filter.add(7, "before");  // nobody has asked
  EXPECT_TRUE(filter.may_have(7, "x"));
  ASSERT_NE(filter.next(), nullptr);
  EXPECT_EQ(filter.next()->index_id, 7);
  EXPECT_TRUE(filter.may_have(7, "x"));
  EXPECT_TRUE(filter.may_have(8, "x"));
  filter.add(8, "x");
  EXPECT_EQ(filter.next()->index_id, 8);
  filter.learned();
  EXPECT_TRUE(filter.may_have(8, "x"));
  EXPECT_FALSE(filter.may_have(8, "y"));
  EXPECT_EQ(filter.next()->index_id, 7);
  filter.give_up();
  EXPECT_EQ(filter.next(), nullptr);
  EXPECT_TRUE(filter.may_have(7, "y"));
  EXPECT_EQ(filter.next()->index_id, 7) << "once more";
  filter.learned();
  EXPECT_FALSE(filter.may_have(7, "y"));
  EXPECT_EQ(filter.next(), nullptr);
}

TEST(store_sqlite_key_filter, knows_an_index_from_its_beginning) {
  key_filter filter(1024);
  filter.begin(3);
  EXPECT_EQ(filter.next(), nullptr);
  EXPECT_FALSE(filter.may_have(3, "x"));
  filter.add(3, "x");
  EXPECT_TRUE(filter.may_have(3, "x"));
  EXPECT_FALSE(filter.may_have(3, ""));
  filter.add(3, "");
  EXPECT_TRUE(filter.may_have(3, ""));
}

TEST(store_sqlite_key_filter, forgets_nothing_and_errs_seldom) {
  for (std::size_t const octets : {1U << 18, (1U << 19) - 1}) {
    constexpr int count = (1 << 18) / 4;
    key_filter filter(octets);
    filter.begin(1);
    filter.begin(2);
    for (int i = 0; i < count; ++i) {
      filter.add(1 + i % 2, key_of(i));
    }
    for (int i = 0; i < count; ++i) {
      ASSERT_TRUE(filter.may_have(1 + i % 2, key_of(i)));
    }
    EXPECT_LT(perhaps(filter, 1, count, 2 * count), count / 50);
    EXPECT_LT(perhaps(filter, 2, count, 2 * count), count / 50);
  }
}

TEST(store_sqlite_key_filter, says_perhaps_when_it_is_too_small) {
  for (std::size_t const octets : {0U, 1U, 8U, 64U}) {
    key_filter filter(octets);
    filter.begin(1);
    EXPECT_EQ(perhaps(filter, 1, 0, 1000), 0);
    for (int i = 0; i < 10'000; ++i) {
      filter.add(1, key_of(i));
    }
    EXPECT_EQ(perhaps(filter, 1, 0, 20'000), 20'000);
  }
}

TEST(store_sqlite_key_filter, knows_nothing_of_indexes_with_large_numbers) {
  key_filter filter(1024);
  for (auto const index_id : {std::int64_t{65'536}, std::int64_t{1} << 40, std::int64_t{-1}}) {
    filter.begin(index_id);
    filter.add(index_id, "x");
    EXPECT_TRUE(filter.may_have(index_id, "y"));
    EXPECT_EQ(filter.next(), nullptr);
  }
  filter.begin(65'535);
  EXPECT_FALSE(filter.may_have(65'535, "y"));
}

}  // namespace
}  // namespace tidegate::store_sqlite
