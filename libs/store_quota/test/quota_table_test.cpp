// SPDX-License-Identifier: Apache-2.0
#include <tidegate/store_quota/quota_table.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <random>
#include <set>
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

auto make(std::int64_t quota, std::chrono::seconds window, algorithm a = algorithm::fixed)
    -> policy {
  return policy::make({quota, window, quota_unit::requests, a, {}}).value();
}

struct table_of {
  quota_table table;
  explicit table_of(std::size_t partitions_max = 1000) : table({partitions_max, {1, 2, 3, 4}}) {}

  auto spend(std::vector<charge> const& charges, std::chrono::nanoseconds now)
      -> std::pair<bool, std::vector<charged>> {
    std::vector<charged> results(charges.size());
    bool const admitted = table.spend(charges, at(now), results);
    return {admitted, results};
  }
};

TEST(store_quota_table, counts_each_partition_and_each_policy_for_itself) {
  table_of t;
  auto const two = make(2, 10s);
  auto const one = make(1, 10s);
  EXPECT_TRUE(t.spend({{&two, 1, "a"}}, 0s).first);
  EXPECT_TRUE(t.spend({{&two, 1, "a"}}, 0s).first);
  EXPECT_FALSE(t.spend({{&two, 1, "a"}}, 0s).first);
  EXPECT_TRUE(t.spend({{&two, 1, "b"}}, 0s).first);
  EXPECT_TRUE(t.spend({{&one, 2, "a"}}, 0s).first);
  EXPECT_FALSE(t.spend({{&one, 2, "a"}}, 0s).first);
  EXPECT_TRUE(t.spend({{&two, 1, ""}}, 0s).first);
  EXPECT_EQ(t.table.size(), 4U);
}

TEST(store_quota_table, forgets_what_one_partition_has_spent) {
  table_of t;
  auto const two = make(2, 10s);
  for (auto const* const partition : {"a", "b"}) {
    EXPECT_TRUE(t.spend({{&two, 1, partition, 2}}, 0s).first);
    EXPECT_FALSE(t.spend({{&two, 1, partition}}, 0s).first);
  }
  EXPECT_TRUE(t.spend({{&two, 2, "a", 2}}, 0s).first);
  EXPECT_TRUE(t.table.forget(1, "a"));
  EXPECT_EQ(t.table.look({&two, 1, "a"}, at(1s)).remaining, 2);
  EXPECT_TRUE(t.spend({{&two, 1, "a", 2}}, 1s).first);
  EXPECT_FALSE(t.spend({{&two, 1, "b"}}, 1s).first);
  EXPECT_FALSE(t.spend({{&two, 2, "a"}}, 1s).first);
  // Others are found beyond the place that was given up.
  EXPECT_TRUE(t.table.forget(1, "a"));
  EXPECT_FALSE(t.table.forget(1, "a"));
  EXPECT_FALSE(t.table.forget(1, "never"));
  EXPECT_TRUE(t.spend({{&two, 1, "new"}}, 1s).first);
  EXPECT_EQ(t.table.look({&two, 1, "b"}, at(1s)).remaining, 0);
}

TEST(store_quota_table, takes_back_what_was_spent_of_a_larger_quota) {
  table_of t;
  auto const usual = make(10, 60s, algorithm::gcra);
  auto const larger = make(1000, 60s, algorithm::gcra);
  EXPECT_TRUE(t.spend({{&larger, 1, "a", 900}}, 0s).first);
  EXPECT_FALSE(t.spend({{&usual, 1, "a"}}, 600s).first) << "900 drain in an hour and a half";
  t.table.forgive({&usual, 1, "a"}, at(600s));
  EXPECT_FALSE(t.spend({{&usual, 1, "a"}}, 600s).first);
  EXPECT_TRUE(t.spend({{&usual, 1, "a"}}, 606s).first);
  t.table.forgive({&usual, 1, "a"}, at(606s));
  EXPECT_FALSE(t.spend({{&usual, 1, "a"}}, 606s).first) << "what is within the policy stays spent";
  t.table.forgive({&usual, 1, "never"}, at(606s));
  EXPECT_EQ(t.table.look({&usual, 1, "never"}, at(606s)).remaining, 10);
}

TEST(store_quota_table, gives_back_nothing_that_was_forgotten_meanwhile) {
  for (auto const a : {algorithm::fixed, algorithm::sliding, algorithm::gcra}) {
    table_of t;
    auto const two = make(2, 10s, a);
    auto const [admitted, results] = t.spend({{&two, 1, "a", 2}}, 100s);
    EXPECT_TRUE(admitted);
    EXPECT_TRUE(t.table.forget(1, "a"));
    t.table.settle({&two, 1, "a", 2}, results[0], at(100s), at(101s), -2);
    EXPECT_EQ(t.table.look({&two, 1, "a"}, at(101s)).remaining, 2);
    EXPECT_TRUE(t.spend({{&two, 1, "a", 2}}, 101s).first);
    EXPECT_FALSE(t.spend({{&two, 1, "a"}}, 101s).first);
  }
}

TEST(store_quota_table, charges_all_policies_of_a_request_or_none) {
  table_of t;
  auto const burst = make(1, 10s);
  auto const daily = make(10, 24h);
  std::vector<charge> const both = {{&burst, 1, "k"}, {&daily, 2, "k", 3}};
  auto const first = t.spend(both, 0s);
  EXPECT_TRUE(first.first);
  EXPECT_EQ(first.second[0].decision.left.remaining, 0);
  EXPECT_EQ(first.second[1].decision.left.remaining, 7);
  auto const second = t.spend(both, 1s);
  EXPECT_FALSE(second.first);
  EXPECT_FALSE(second.second[0].decision.admitted);
  EXPECT_EQ(second.second[0].decision.retry, 9s);
  EXPECT_TRUE(second.second[1].decision.admitted) << "daily was not violated";
  EXPECT_EQ(second.second[1].decision.left.remaining, 7) << "and was not charged";
  EXPECT_EQ(t.table.look(both[1], at(1s)).remaining, 7);
}

TEST(store_quota_table, lets_a_shadow_policy_count_but_not_refuse) {
  table_of t;
  auto const shadow = make(1, 10s);
  auto const real = make(3, 10s);
  std::vector<charge> const both = {{&shadow, 1, "k", 1, false}, {&real, 2, "k"}};
  EXPECT_TRUE(t.spend(both, 0s).second[0].decision.admitted);
  auto const over = t.spend(both, 0s);
  EXPECT_TRUE(over.first);
  EXPECT_FALSE(over.second[0].decision.admitted);
  EXPECT_TRUE(t.spend(both, 0s).first);
  EXPECT_FALSE(t.spend(both, 0s).first);
}

TEST(store_quota_table, settles_what_was_charged) {
  table_of t;
  auto const bytes =
      policy::make({100, 10s, quota_unit::content_bytes, algorithm::fixed, {}}).value();
  charge const c{&bytes, 1, "k", 10};
  auto const first = t.spend({c}, 0s);
  t.table.settle(c, first.second[0], at(0s), at(1s), 60);
  EXPECT_EQ(t.table.look(c, at(1s)).remaining, 30);
  t.table.settle(c, first.second[0], at(0s), at(1s), -70);
  EXPECT_EQ(t.table.look(c, at(1s)).remaining, 100);
  // An overshoot that comes when the bucket is long forgotten counts in the next window.
  t.table.settle({&bytes, 1, "new", 10}, first.second[0], at(0s), at(100s), 40);
  EXPECT_EQ(t.table.look({&bytes, 1, "new"}, at(100s)).remaining, 60);
}

TEST(store_quota_table, gives_held_requests_back) {
  table_of t;
  auto const slots =
      policy::make({2, 0s, quota_unit::concurrent_requests, algorithm::fixed, {}}).value();
  charge const c{&slots, 1, "k"};
  auto const held = t.spend({c}, 0s);
  EXPECT_TRUE(t.spend({c}, 0s).first);
  EXPECT_FALSE(t.spend({c}, 1000s).first);
  t.table.settle(c, held.second[0], at(0s), at(1000s), -1);
  EXPECT_TRUE(t.spend({c}, 1000s).first);
}

TEST(store_quota_table, reuses_what_has_expired_and_stays_within_its_memory) {
  table_of t(10'000);
  auto const p = make(5, 1s);
  std::size_t largest = 0;
  for (int round = 0; round < 50; ++round) {
    for (int i = 0; i < 5'000; ++i) {
      auto const key = std::to_string(round) + "/" + std::to_string(i);
      EXPECT_FALSE(t.spend({{&p, 1, key}}, 2s * round).second[0].shared);
    }
    largest = std::max(largest, t.table.memory());
  }
  EXPECT_LT(largest, 10'000U * 100);
  EXPECT_LE(t.table.size(), 10'000U);
}

TEST(store_quota_table, never_admits_more_than_the_quota_when_it_is_full) {
  table_of t(100);
  auto const p = make(3, 60s);
  std::map<int, int> admitted;
  int shared = 0;
  for (int round = 0; round < 5; ++round) {
    for (int i = 0; i < 1'000; ++i) {
      auto const answer = t.spend({{&p, 1, std::to_string(i)}}, 0s);
      admitted[i] += answer.first ? 1 : 0;
      shared += answer.second[0].shared ? 1 : 0;
    }
  }
  EXPECT_GT(shared, 0);
  EXPECT_LT(t.table.memory(), 100'000U);
  int total = 0;
  for (auto const& [key, count] : admitted) {
    EXPECT_LE(count, 3) << key;
    total += count;
  }
  EXPECT_GE(total, 300);
  EXPECT_TRUE(t.spend({{&p, 1, "later"}}, 120s).first);
}

TEST(store_quota_table, releases_from_the_bucket_that_was_shared) {
  table_of t(1);
  auto const slots =
      policy::make({1, 0s, quota_unit::concurrent_requests, algorithm::fixed, {}}).value();
  std::vector<std::pair<charge, charged>> held;
  std::vector<std::string> keys(500);
  for (int i = 0; i < 500; ++i) {
    keys[static_cast<std::size_t>(i)] = std::to_string(i);
    charge const c{&slots, 1, keys[static_cast<std::size_t>(i)]};
    if (auto const answer = t.spend({c}, 0s); answer.first) {
      held.emplace_back(c, answer.second[0]);
    }
  }
  EXPECT_LT(held.size(), 500U);
  EXPECT_TRUE(held.back().second.shared);
  t.table.settle(held.back().first, held.back().second, at(0s), at(1s), -1);
  EXPECT_TRUE(t.spend({{&slots, 1, "one more"}}, 1s).first);
}

TEST(store_quota_table, agrees_with_a_plain_map_over_random_requests) {
  std::mt19937_64 random(5);
  table_of t(100'000);
  std::array<policy, 3> const policies = {make(3, 10s), make(20, 60s, algorithm::sliding),
                                          make(10, 5s, algorithm::gcra)};
  std::map<std::pair<std::uint32_t, std::string>, ratelimit::bucket> plain;
  std::int64_t now = 0;
  for (int i = 0; i < 200'000; ++i) {
    now += static_cast<std::int64_t>(random() % 20'000'000);
    auto const key = "partition-" + std::to_string(random() % 2'000);
    std::vector<charge> charges;
    for (std::uint32_t p = 0; p < 3; ++p) {
      if (random() % 2 == 0) {
        charges.push_back({&policies[p], p, key, static_cast<std::int64_t>(random() % 3), true});
      }
    }
    std::vector<ratelimit::decision> expected;
    bool all = true;
    for (auto const& c : charges) {
      expected.push_back(ratelimit::decide(*c.policy, plain[{c.policy_id, key}],
                                           at(std::chrono::nanoseconds(now)), c.cost));
      all = all && expected.back().admitted;
    }
    auto const answer = t.spend(charges, std::chrono::nanoseconds(now));
    ASSERT_EQ(answer.first, all);
    for (std::size_t c = 0; c < charges.size(); ++c) {
      ASSERT_EQ(answer.second[c].decision.admitted, expected[c].admitted);
      ASSERT_FALSE(answer.second[c].shared);
      if (all) {
        ASSERT_EQ(answer.second[c].decision.left.remaining, expected[c].left.remaining);
        plain[{charges[c].policy_id, key}] = expected[c].next;
      }
    }
  }
}

TEST(store_quota_table, admits_exactly_the_quota_to_several_threads) {
  table_of t(10'000);
  auto const p = make(10'000, 3600s, algorithm::sliding);
  auto const q = make(7'000, 3600s, algorithm::gcra);
  std::atomic<int> admitted{0};
  std::atomic<int> both{0};
  auto work = [&](int worker) {
    std::array<charged, 2> results;
    // More than the quota, and more keys than there is room for.
    for (int i = 0; i < 3'000; ++i) {
      std::array<charge, 1> const one = {{{&p, 1, "hot"}}};
      admitted += t.table.spend(one, at(1s), results) ? 1 : 0;
      // Two policies in either order: neither thread waits for the other.
      std::array<charge, 2> two = {{{&p, 2, "x"}, {&q, 3, "y"}}};
      if (worker % 2 == 0) {
        std::swap(two[0], two[1]);
      }
      both += t.table.spend(two, at(1s), results) ? 1 : 0;
      auto const own = std::to_string(worker) + "/" + std::to_string(i);
      std::array<charge, 1> const cold = {{{&p, 4, own}}};
      EXPECT_TRUE(t.table.spend(cold, at(1s), results) || results[0].shared);
    }
  };
  {
    std::vector<std::jthread> threads;
    for (int worker = 0; worker < 4; ++worker) {
      threads.emplace_back(work, worker);
    }
  }
  EXPECT_EQ(admitted, 10'000);
  EXPECT_EQ(both, 7'000);
}

TEST(store_quota_table, keeps_every_promise_at_once_to_several_threads) {
  table_of t(10'000);
  auto const requests = make(3'000, 3600s, algorithm::sliding);
  auto const level = make(2'000, 3600s, algorithm::gcra);
  auto const shadow = make(500, 3600s);
  auto const held =
      policy::make({2, 0s, quota_unit::concurrent_requests, algorithm::fixed, {}}).value();
  auto const bytes =
      policy::make({1'000'000, 3600s, quota_unit::content_bytes, algorithm::fixed, {}}).value();
  std::array<std::atomic<std::int64_t>, 5> spent{};
  std::atomic<int> running{0};
  auto work = [&](unsigned worker) {
    std::mt19937_64 random(worker);
    for (int i = 0; i < 5'000; ++i) {
      std::vector<charge> charges = {
          {&held, 0, "h"},
          {&requests, 1, "r"},
          {&level, 2, "l"},
          {&shadow, 3, "s", 1, false},
          {&bytes, 4, "b", 200 + static_cast<std::int64_t>(random() % 100)}};
      // The one that is held, with one to three of the others, in any order.
      std::shuffle(charges.begin() + 1, charges.end(), random);
      charges.resize(2 + random() % 3);
      std::swap(charges[0], charges[random() % charges.size()]);
      std::vector<charged> results(charges.size());
      if (!t.table.spend(charges, at(1s), results)) {
        continue;
      }
      EXPECT_LE(++running, 2);
      --running;
      for (std::size_t c = 0; c < charges.size(); ++c) {
        if (!results[c].decision.admitted) {
          EXPECT_FALSE(charges[c].enforced);
          continue;
        }
        auto units = charges[c].cost;
        if (charges[c].policy_id == 0) {
          t.table.settle(charges[c], results[c], at(1s), at(1s), -1);
          units = 0;
        } else if (charges[c].policy_id == 4) {
          auto const less = -static_cast<std::int64_t>(random() % 100);
          t.table.settle(charges[c], results[c], at(1s), at(1s), less);
          units += less;
        }
        spent[charges[c].policy_id] += units;
      }
    }
  };
  {
    std::vector<std::jthread> threads;
    for (unsigned worker = 0; worker < 4; ++worker) {
      threads.emplace_back(work, worker);
    }
  }
  std::array<policy const*, 5> const policies = {&held, &requests, &level, &shadow, &bytes};
  std::array<char const*, 5> const keys = {"h", "r", "l", "s", "b"};
  for (std::uint32_t p = 0; p < policies.size(); ++p) {
    EXPECT_GE(policies[p]->quota(), spent[p]) << keys[p];
    EXPECT_EQ(t.table.look({policies[p], p, keys[p]}, at(1s)).remaining,
              policies[p]->quota() - spent[p])
        << keys[p];
  }
  EXPECT_EQ(spent[3], 500);
}

// ---- other states ----

struct failures {
  std::int64_t first = 0;
  std::uint32_t count = 0;
};

constexpr std::uint32_t domain = 1'000'000;

TEST(store_quota_table, keeps_another_state_until_it_may_be_forgotten) {
  table_of t;
  auto fail = [&](std::string_view key, std::chrono::seconds now) {
    failures seen;
    EXPECT_TRUE(t.table.update<failures>(domain, key, at(now), [&](failures& f) {
      f.first = f.count == 0 ? now.count() : f.first;
      ++f.count;
      seen = f;
      return at(now + 10s);
    }));
    return std::pair(seen.first, seen.count);
  };
  EXPECT_EQ(fail("a", 1s), std::pair(1L, 1U));
  EXPECT_EQ(fail("a", 5s), std::pair(1L, 2U));
  EXPECT_EQ(fail("b", 5s), std::pair(5L, 1U));
  EXPECT_EQ(t.table.peek<failures>(domain, "a", at(14s)).count, 2U);
  EXPECT_EQ(t.table.peek<failures>(domain, "a", at(15s)).count, 0U);
  EXPECT_EQ(t.table.peek<failures>(domain, "c", at(5s)).count, 0U);
  EXPECT_EQ(t.table.peek<failures>(domain + 1, "a", at(5s)).count, 0U);
  EXPECT_EQ(fail("a", 15s), std::pair(15L, 1U));
  EXPECT_EQ(t.table.size(), 2U);
}

TEST(store_quota_table, takes_any_instant_for_when_a_state_may_be_forgotten) {
  table_of t;
  for (auto forget : {instant::min(), at(-1s), at(0s), instant::max()}) {
    for (int i = 0; i < 200; ++i) {
      EXPECT_TRUE(t.table.update<failures>(domain, std::to_string(i), at(0s), [&](failures& f) {
        EXPECT_EQ(f.count, 0U);
        f.count = 1;
        return forget;
      }));
    }
  }
  EXPECT_EQ(t.table.peek<failures>(domain, "7", at(1000h)).count, 1U);
}

TEST(store_quota_table, shares_a_state_of_the_domain_when_it_is_full) {
  table_of t(1);
  std::uint32_t own = 0;
  std::uint32_t shared = 0;
  for (int i = 0; i < 500; ++i) {
    std::uint32_t count = 0;
    bool const is_own =
        t.table.update<failures>(domain, std::to_string(i), at(0s), [&](failures& f) {
          count = ++f.count;
          return at(10s);
        });
    own += is_own ? 1 : 0;
    shared += is_own ? 0 : 1;
    EXPECT_EQ(count, is_own ? 1 : shared);
  }
  EXPECT_GT(own, 0U);
  EXPECT_GT(shared, 0U);
  // When all of them may be forgotten there is room again.
  EXPECT_TRUE(t.table.update<failures>(domain, "later", at(10s), [&](failures& f) {
    EXPECT_EQ(f.count, 0U);
    return at(20s);
  }));
}

TEST(store_quota_table, loses_no_change_of_a_state_to_several_threads) {
  table_of t(100'000);
  constexpr int rounds = 5'000;
  auto work = [&](int worker) {
    for (int i = 0; i < rounds; ++i) {
      auto count = [](failures& f) {
        ++f.count;
        ++f.first;
        return instant::max();
      };
      EXPECT_TRUE(t.table.update<failures>(domain, std::to_string(i % 10), at(0s), count));
      // Others come and make the table grow meanwhile.
      auto const cold = std::to_string(worker) + "/" + std::to_string(i);
      EXPECT_TRUE(t.table.update<failures>(domain, cold, at(0s), count));
      auto const seen = t.table.peek<failures>(domain, std::to_string(i % 7), at(0s));
      EXPECT_EQ(seen.first, seen.count);
    }
  };
  {
    std::vector<std::jthread> threads;
    for (int worker = 0; worker < 4; ++worker) {
      threads.emplace_back(work, worker);
    }
  }
  for (int key = 0; key < 10; ++key) {
    EXPECT_EQ(t.table.peek<failures>(domain, std::to_string(key), at(0s)).count, 4U * rounds / 10);
  }
}

TEST(store_keyed_hash, depends_on_key_domain_and_seed) {
  hash_seed const seed({1, 2, 3, 4});
  std::set<std::pair<std::uint64_t, std::uint64_t>> seen;
  auto add = [&seen](key_hash h) { return seen.insert({h.low, h.high}).second; };
  for (std::size_t size = 0; size < 100; ++size) {
    std::string key(size, '\0');
    EXPECT_TRUE(add(hash_key(seed, 0, key))) << size;
    EXPECT_TRUE(add(hash_key(seed, 1, key))) << size;
    EXPECT_TRUE(add(hash_key(hash_seed({1, 2, 3, 5}), 0, key))) << size;
    for (std::size_t i = 0; i < size; ++i) {
      key[i] = 'x';
      EXPECT_TRUE(add(hash_key(seed, 0, key))) << size << " " << i;
      key[i] = '\0';
    }
  }
}

}  // namespace
}  // namespace tidegate::TIDEGATE_ABI::store
