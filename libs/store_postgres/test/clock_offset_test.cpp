// SPDX-License-Identifier: Apache-2.0
#include "keys/clock_offset.hpp"

#include <gtest/gtest.h>

namespace tidegate::store_postgres {
namespace {

using namespace std::chrono_literals;
using idempotency::wall_time;

constexpr wall_time noon{1'700'000'000'000ms};

TEST(store_postgres_clock_offset, is_zero_where_the_clocks_may_be_the_same) {
  clock_offset offset;
  offset.update(noon, noon + 3ms, noon + 5ms);
  EXPECT_EQ(offset.get(), 0ms);
  offset.update(noon, noon + 6ms, noon + 5ms);
  EXPECT_EQ(offset.get(), 0ms) << "what was rounded down may be the same";
}

TEST(store_postgres_clock_offset, moves_no_further_than_it_must) {
  clock_offset offset;
  offset.update(noon, noon + 1h, noon + 10ms);
  EXPECT_EQ(offset.get(), 1h - 11ms) << "that much at least";
  offset.update(noon + 1s, noon + 1h + 1s, noon + 1s + 2ms);
  EXPECT_EQ(offset.get(), 1h - 3ms) << "an answer that came sooner says more";
  offset.update(noon + 2s, noon + 1h + 2s, noon + 3s);
  EXPECT_EQ(offset.get(), 1h - 3ms) << "one that came late says nothing new";
  offset.update(noon + 4s, noon - 1h, noon + 4s);
  EXPECT_EQ(offset.get(), -1h - 4s + 1ms) << "a clock was set";
}

TEST(store_postgres_clock_offset, is_not_changed_while_a_clock_goes_back) {
  clock_offset offset;
  offset.update(noon, noon + 1h, noon - 1ms);
  EXPECT_EQ(offset.get(), 0ms);
}

TEST(store_postgres_clock_offset, moves_the_times_that_are_there) {
  clock_offset offset;
  offset.update(noon, noon + 1h, noon);
  idempotency::record record;
  record.created = noon;
  record.changed = noon + 1s;
  auto const moved = offset.to_server(record);
  EXPECT_EQ(moved.created, noon + offset.get());
  EXPECT_EQ(moved.changed, noon + 1s + offset.get());
  EXPECT_EQ(moved.lease_until, wall_time()) << "there is none";
  EXPECT_EQ(offset.to_ours(moved), record);
}

}  // namespace
}  // namespace tidegate::store_postgres
