// SPDX-License-Identifier: Apache-2.0
//
// Policies with `algorithm::log` in the table: whose memory the times take, and what becomes of it.
#include <tidegate/store_quota/quota_table.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <string>
#include <thread>
#include <vector>

namespace tidegate::TIDEGATE_ABI::store {
namespace {

using namespace std::chrono_literals;
using ratelimit::algorithm;
using ratelimit::policy;
using ratelimit::quota_unit;

auto at(std::chrono::nanoseconds t) -> instant {
  return instant(t);
}

auto make(std::int64_t quota, std::chrono::seconds window, algorithm a = algorithm::log) -> policy {
  return policy::make({quota, window, quota_unit::requests, a, {}}).value();
}

auto spend(quota_table& table, charge const& c, std::chrono::nanoseconds now) -> bool {
  std::array const charges{c};
  std::array<charged, 1> results;
  return table.spend(charges, at(now), results);
}

TEST(store_quota_log, takes_memory_for_times_only_once_there_are_two) {
  quota_table table({1000, {1, 2, 3, 4}});
  auto const p = make(100, 10s);
  EXPECT_TRUE(spend(table, {&p, 1, "a"}, 1s));
  auto const with_one = table.memory();
  EXPECT_TRUE(spend(table, {&p, 1, "a"}, 1s));
  EXPECT_EQ(table.memory(), with_one) << "at the same time";
  EXPECT_TRUE(spend(table, {&p, 1, "a"}, 2s));
  EXPECT_GT(table.memory(), with_one);
  EXPECT_EQ(table.look({&p, 1, "a"}, at(11s)).remaining, 99);
  EXPECT_TRUE(spend(table, {&p, 1, "a"}, 12s));
  EXPECT_EQ(table.memory(), with_one) << "all of it had ended";
}

TEST(store_quota_log, says_when_the_oldest_comes_back) {
  quota_table table({1000, {1, 2, 3, 4}});
  auto const p = make(3, 10s);
  for (auto t = 1s; t <= 3s; t += 1s) {
    std::array const charges{charge{&p, 1, "a"}};
    std::array<charged, 1> results;
    EXPECT_TRUE(table.spend(charges, at(t), results));
    EXPECT_EQ(results[0].decision.left.reset, 11s - t);
    EXPECT_EQ(table.look({&p, 1, "a"}, at(t)).reset, 11s - t);
  }
}

TEST(store_quota_log,
     releases_the_times_of_what_is_forgotten_and_of_policies_that_count_otherwise) {
  quota_table table({1000, {1, 2, 3, 4}});
  auto const p = make(2, 10s);
  auto const empty = [&] {
    EXPECT_TRUE(spend(table, {&p, 1, "other"}, 1s));
    return table.memory();
  }();
  EXPECT_TRUE(spend(table, {&p, 1, "a"}, 1s));
  EXPECT_TRUE(spend(table, {&p, 1, "a"}, 2s));
  EXPECT_FALSE(spend(table, {&p, 1, "a"}, 3s));
  EXPECT_GT(table.memory(), empty);
  EXPECT_TRUE(table.forget(1, "a"));
  EXPECT_FALSE(table.forget(1, "a"));
  EXPECT_EQ(table.memory(), empty);
  EXPECT_TRUE(spend(table, {&p, 1, "a"}, 3s));
  EXPECT_TRUE(spend(table, {&p, 1, "a"}, 4s));
  auto const fixed = make(2, 10s, algorithm::fixed);
  EXPECT_TRUE(spend(table, {&fixed, 1, "a"}, 4s));
  EXPECT_EQ(table.memory(), empty);
}

TEST(store_quota_log, gives_back_what_was_charged_and_charges_what_was_more) {
  quota_table table({1000, {1, 2, 3, 4}});
  auto const p = make(4, 10s);
  for (auto t = 1s; t <= 4s; t += 1s) {
    EXPECT_TRUE(spend(table, {&p, 1, "a"}, t));
  }
  table.settle({&p, 1, "a"}, {}, at(2s), at(5s), -1);
  EXPECT_TRUE(spend(table, {&p, 1, "a"}, 5s));
  EXPECT_FALSE(spend(table, {&p, 1, "a"}, 5s));
  table.settle({&p, 1, "a"}, {}, at(2s), at(6s), 2);
  EXPECT_FALSE(spend(table, {&p, 1, "a"}, 13s)) << "those of 4s, 5s and twice 6s";
  EXPECT_TRUE(spend(table, {&p, 1, "a"}, 14s));
  table.settle({&p, 1, "b"}, {}, at(2s), at(6s), 3);
  EXPECT_EQ(table.look({&p, 1, "b"}, at(6s)).remaining, 1) << "that was never charged before";
}

TEST(store_quota_log, charges_several_logs_of_a_request_or_none) {
  quota_table table({1000, {1, 2, 3, 4}});
  auto const wide = make(5, 10s);
  auto const narrow = make(3, 4s);
  std::array const charges{charge{&wide, 1, "a"}, charge{&narrow, 2, "a"}};
  std::array<charged, 2> results;
  for (auto t = 1s; t <= 3s; t += 1s) {
    EXPECT_TRUE(table.spend(charges, at(t), results));
  }
  EXPECT_FALSE(table.spend(charges, at(4s), results));
  EXPECT_EQ(results[0].decision.left.remaining, 2) << "not charged after all";
  EXPECT_EQ(results[0].decision.left.reset, 7s);
  EXPECT_EQ(results[1].decision.retry, 1s);
  EXPECT_TRUE(table.spend(charges, at(5s), results));
  EXPECT_EQ(results[0].decision.left.remaining, 1);
}

TEST(store_quota_log, stays_within_its_memory_and_admits_less_rather_than_more) {
  constexpr std::size_t partitions = 200;
  quota_table table({partitions, {1, 2, 3, 4}});
  auto const p = make(50, 60s);
  auto const slots_most = std::size_t{2} * partitions * 64 + 64 * 4096;
  std::vector<int> admitted(partitions);
  for (int i = 0; i < 100; ++i) {
    for (std::size_t k = 0; k < partitions; ++k) {
      auto const name = std::to_string(k);
      admitted[k] += spend(table, {&p, 1, name}, 1s + i * 100ms) ? 1 : 0;
    }
    ASSERT_LE(table.memory(), slots_most);
  }
  EXPECT_LE(std::ranges::max(admitted), 50);
  EXPECT_GE(std::ranges::min(admitted), 50)
      << "without time for them to end it makes no difference";
  // When all of it has ended, those that come then find memory again.
  for (int i = 0; i < 40; ++i) {
    EXPECT_TRUE(spend(table, {&p, 1, "late"}, 200s + i * 1s));
  }
  EXPECT_EQ(table.look({&p, 1, "late"}, at(265s)).remaining, 50 - 34);
}

TEST(store_quota_log, moves_with_its_partition_when_the_table_grows) {
  quota_table table({100'000, {1, 2, 3, 4}});
  auto const p = make(3, 1000s);
  std::vector<std::string> names;
  for (int i = 0; i < 20'000; ++i) {
    names.push_back(std::to_string(i));
  }
  for (auto t = 1s; t <= 3s; t += 1s) {
    for (auto const& name : names) {
      ASSERT_TRUE(spend(table, {&p, 1, name}, t));
    }
  }
  for (auto const& name : names) {
    ASSERT_FALSE(spend(table, {&p, 1, name}, 1000s));
    ASSERT_TRUE(spend(table, {&p, 1, name}, 1001s));
    ASSERT_FALSE(spend(table, {&p, 1, name}, 1001s));
  }
}

TEST(store_quota_log, admits_exactly_the_quota_to_several_threads) {
  quota_table table({1000, {1, 2, 3, 4}});
  auto const p = make(10'000, 3600s);
  std::atomic<int> admitted{0};
  std::atomic<std::int64_t> clock{1'000'000'000};
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        for (int n = 0; n < 5'000; ++n) {
          auto const now = std::chrono::nanoseconds(clock.fetch_add(1'000));
          admitted += spend(table, {&p, 1, "a"}, now) ? 1 : 0;
          if (n % 50 == 0) {
            admitted += spend(table, {&p, 1, std::to_string(n)}, now) ? 0 : 1'000'000;
          }
        }
      });
    }
  }
  EXPECT_EQ(admitted.load(), 10'000);
}

}  // namespace
}  // namespace tidegate::TIDEGATE_ABI::store
