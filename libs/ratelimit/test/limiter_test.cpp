// SPDX-License-Identifier: Apache-2.0
#include <tidegate/ratelimit/limiter.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <random>
#include <string>
#include <vector>

namespace tidegate::TIDEGATE_ABI::ratelimit {
namespace {

using namespace std::chrono_literals;
__extension__ using int128 = __int128;

auto at(std::chrono::nanoseconds t) -> instant {
  return instant(t);
}

auto make(std::int64_t quota, std::chrono::seconds window, algorithm a,
          std::optional<std::int64_t> burst = {}) -> policy {
  return policy::make({quota, window, quota_unit::requests, a, burst}).value();
}

// ---- what a policy may be ----

TEST(ratelimit_policy, refuses_impossible_settings) {
  using enum policy_fault;
  using enum quota_unit;
  struct row {
    policy_settings settings;
    policy_fault fault;
  };
  for (auto const& [settings, fault] : {
           row{{-1, 1s, requests, algorithm::fixed, {}}, quota_out_of_range},
           {{1'000'000'000'000'000, 1s, requests, algorithm::fixed, {}}, quota_out_of_range},
           {{1, 0s, requests, algorithm::fixed, {}}, window_out_of_range},
           {{1, 367 * 24h, requests, algorithm::fixed, {}}, window_out_of_range},
           {{1, 1s, concurrent_requests, algorithm::fixed, {}}, window_not_allowed},
           {{1, 1s, other, algorithm::fixed, {}}, unit_not_allowed},
           {{1, 1s, requests, algorithm::fixed, 1}, burst_not_allowed},
           {{1, 1s, requests, algorithm::sliding, 1}, burst_not_allowed},
           {{1, 1s, requests, algorithm::gcra, 0}, burst_out_of_range},
           {{1, 24h, requests, algorithm::gcra, 10'000}, burst_out_of_range},
       }) {
    auto const made = policy::make(settings);
    ASSERT_FALSE(made.has_value());
    EXPECT_EQ(made.error(), fault);
  }
}

TEST(ratelimit_policy, takes_the_quota_as_the_burst_unless_told_otherwise) {
  EXPECT_EQ(make(100, 60s, algorithm::gcra).burst(), 100);
  EXPECT_EQ(make(100, 60s, algorithm::gcra, 5).burst(), 5);
  EXPECT_EQ(make(100, 60s, algorithm::gcra, 5).cost_max(), 5);
  EXPECT_EQ(make(100, 60s, algorithm::fixed).cost_max(), 100);
}

// ---- scripts ----

struct script {
  policy p;
  bucket b{};

  auto spend(std::chrono::nanoseconds t, std::int64_t cost = 1) -> decision {
    auto d = decide(p, b, at(t), cost);
    if (d.admitted) {
      b = d.next;
    } else {
      EXPECT_EQ(d.next, b) << "a refusal changes nothing";
    }
    return d;
  }
};

TEST(ratelimit_fixed, starts_its_window_with_the_first_request) {
  script s{make(2, 10s, algorithm::fixed)};
  auto const first = s.spend(100s);
  EXPECT_TRUE(first.admitted);
  EXPECT_EQ(first.left.remaining, 1);
  EXPECT_EQ(first.left.reset, 10s);
  EXPECT_EQ(s.spend(104s).left.reset, 6s);
  auto const refused = s.spend(109s);
  EXPECT_FALSE(refused.admitted);
  EXPECT_EQ(refused.left.remaining, 0);
  EXPECT_EQ(refused.retry, 1s);
  EXPECT_TRUE(s.spend(110s).admitted);
  EXPECT_EQ(look(s.p, s.b, at(125s)).remaining, 2);
}

TEST(ratelimit_sliding, counts_the_window_before_in_proportion) {
  script s{make(100, 60s, algorithm::sliding)};
  EXPECT_TRUE(s.spend(0s, 100).admitted);
  auto const refused = s.spend(1ns);
  EXPECT_FALSE(refused.admitted);
  EXPECT_EQ(refused.retry, 60s - 1ns);
  EXPECT_LE(refused.left.reset, 60s);
  EXPECT_EQ(look(s.p, s.b, at(60s)).remaining, 1);
  EXPECT_EQ(look(s.p, s.b, at(90s)).remaining, 51);
  EXPECT_EQ(look(s.p, s.b, at(119s)).remaining, 99);
  EXPECT_EQ(look(s.p, s.b, at(120s)).remaining, 100);
}

TEST(ratelimit_sliding, lets_one_request_a_window_through_when_the_quota_is_one) {
  script s{make(1, 60s, algorithm::sliding)};
  EXPECT_TRUE(s.spend(5s).admitted);
  EXPECT_FALSE(s.spend(64s).admitted);
  EXPECT_TRUE(s.spend(65s).admitted);
  EXPECT_FALSE(s.spend(124s).admitted);
  EXPECT_TRUE(s.spend(125s).admitted);
}

TEST(ratelimit_gcra, admits_a_burst_and_then_one_unit_at_a_time) {
  script s{make(60, 60s, algorithm::gcra, 3)};
  EXPECT_EQ(s.spend(0s).left.remaining, 2);
  EXPECT_EQ(s.spend(0s).left.remaining, 1);
  auto const last = s.spend(0s);
  EXPECT_EQ(last.left.remaining, 0);
  EXPECT_EQ(last.left.reset, 1s);
  auto const refused = s.spend(0s);
  EXPECT_FALSE(refused.admitted);
  EXPECT_EQ(refused.retry, 1s);
  EXPECT_FALSE(s.spend(1s - 1ns).admitted);
  EXPECT_TRUE(s.spend(1s).admitted);
  EXPECT_FALSE(s.spend(1s).admitted);
  EXPECT_EQ(look(s.p, s.b, at(10s)).remaining, 3);
}

TEST(ratelimit_gcra, loses_nothing_to_rounding_when_the_quota_does_not_divide_the_window) {
  script s{make(7, 1s, algorithm::gcra, 2)};
  EXPECT_TRUE(s.spend(0s, 2).admitted);
  // From then on a unit is due every seventh of a second, to the nanosecond, for ever.
  for (std::int64_t n = 1; n < 700; ++n) {
    auto const due = std::chrono::nanoseconds((n * 1'000'000'000 + 6) / 7);
    ASSERT_FALSE(s.spend(due - 1ns).admitted) << n;
    ASSERT_TRUE(s.spend(due).admitted) << n;
  }
}

TEST(ratelimit_concurrent, holds_units_until_they_are_given_back) {
  auto const p =
      policy::make({2, 0s, quota_unit::concurrent_requests, algorithm::sliding, {}}).value();
  script s{p};
  EXPECT_EQ(s.spend(0s).left.remaining, 1);
  EXPECT_EQ(s.spend(0s).left.remaining, 0);
  auto const refused = s.spend(1000s);
  EXPECT_FALSE(refused.admitted);
  EXPECT_EQ(refused.retry, 1s);
  EXPECT_EQ(refused.left.reset, 0s);
  EXPECT_EQ(expires(p, s.b), instant::max());
  s.b = settle(p, s.b, at(0s), at(1000s), -1);
  EXPECT_TRUE(s.spend(1000s).admitted);
  s.b = settle(p, s.b, at(0s), at(1000s), -5);
  EXPECT_EQ(s.b.used, 0);
}

TEST(ratelimit_limiter, gives_a_charge_back_while_its_window_counts) {
  for (auto a : {algorithm::fixed, algorithm::sliding, algorithm::gcra}) {
    script s{make(10, 10s, a)};
    EXPECT_TRUE(s.spend(0s, 10).admitted);
    s.b = settle(s.p, s.b, at(0s), at(1s), -4);
    EXPECT_GE(look(s.p, s.b, at(1s)).remaining, 4);
    EXPECT_TRUE(s.spend(1s, 4).admitted);
    EXPECT_TRUE(s.spend(50s, 10).admitted);
    s.b = settle(s.p, s.b, at(1s), at(51s), -4);  // long forgotten: nothing comes back
    EXPECT_LE(look(s.p, s.b, at(51s)).remaining, a == algorithm::gcra ? 5 : 0);
  }
}

TEST(ratelimit_limiter, counts_an_overshoot_against_what_follows) {
  for (auto a : {algorithm::fixed, algorithm::sliding, algorithm::gcra}) {
    script s{make(100, 10s, a)};
    EXPECT_TRUE(s.spend(0s, 50).admitted);
    s.b = settle(s.p, s.b, at(0s), at(0s), 150);
    EXPECT_EQ(look(s.p, s.b, at(0s)).remaining, 0);
    EXPECT_FALSE(s.spend(0s, 1).admitted);
    EXPECT_FALSE(s.spend(0s, 0).admitted && a == algorithm::gcra);
    EXPECT_TRUE(s.spend(40s, 100).admitted);
  }
}

TEST(ratelimit_limiter, never_gives_units_back_when_the_clock_steps_back) {
  for (auto a : {algorithm::fixed, algorithm::sliding, algorithm::gcra}) {
    script s{make(10, 10s, a)};
    EXPECT_TRUE(s.spend(1000s, 10).admitted);
    for (auto t : {999s, 990s, 500s, 0s}) {
      auto const refused = s.spend(t);
      EXPECT_FALSE(refused.admitted);
      EXPECT_EQ(refused.left.remaining, 0);
      EXPECT_LE(refused.left.reset, 10s);
    }
    EXPECT_TRUE(s.spend(1020s, 10).admitted);
  }
}

TEST(ratelimit_limiter, admits_less_at_reduced_capacity_and_keeps_what_was_spent) {
  for (auto a : {algorithm::fixed, algorithm::sliding, algorithm::gcra}) {
    auto const full = make(100, 10s, a);
    EXPECT_EQ(full.reduced(1), full);
    EXPECT_EQ(full.reduced(0.505).quota(), 50);
    script s{full.reduced(0.5)};
    EXPECT_TRUE(s.spend(0s, 50).admitted);
    EXPECT_FALSE(s.spend(0s).admitted);
    s.p = full;
    EXPECT_TRUE(s.spend(0s, 50).admitted);
    s.p = full.reduced(0);
    EXPECT_FALSE(s.spend(100s).admitted);
    EXPECT_EQ(look(s.p, s.b, at(100s)).remaining, 0);
    EXPECT_EQ(full.reduced(-1).quota(), 0);
    EXPECT_EQ(full.reduced(7).quota(), 100);
  }
}

TEST(ratelimit_limiter, keeps_what_was_spent_when_the_quota_changes) {
  for (auto a : {algorithm::fixed, algorithm::sliding, algorithm::gcra}) {
    auto const usual = make(10, 10s, a);
    EXPECT_EQ(usual.with_quota(10), usual);
    script s{usual};
    EXPECT_TRUE(s.spend(1s, 10).admitted);
    EXPECT_FALSE(s.spend(1s).admitted);
    s.p = *usual.with_quota(25);
    EXPECT_EQ(look(s.p, s.b, at(1s)).remaining, 15);
    EXPECT_TRUE(s.spend(1s, 15).admitted);
    EXPECT_FALSE(s.spend(1s).admitted);
    s.p = usual;
    EXPECT_EQ(look(s.p, s.b, at(1s)).remaining, 0);
    EXPECT_FALSE(s.spend(1s).admitted);
    s.p = *usual.with_quota(0);
    EXPECT_FALSE(s.spend(100s).admitted);
  }
  EXPECT_EQ(make(10, 10s, algorithm::fixed).with_quota(-1),
            failure(policy_fault::quota_out_of_range));
  EXPECT_EQ(make(10, 10s, algorithm::fixed).with_quota(1'000'000'000'000'000),
            failure(policy_fault::quota_out_of_range));
}

TEST(ratelimit_limiter, changes_the_burst_as_much_as_the_quota) {
  auto const usual = policy::make({100, 10s, quota_unit::requests, algorithm::gcra, 15}).value();
  EXPECT_EQ(usual.with_quota(200)->burst(), 30);
  EXPECT_EQ(usual.with_quota(50)->burst(), 8);
  EXPECT_EQ(usual.with_quota(1)->burst(), 1);
  EXPECT_EQ(usual.with_quota(0)->burst(), 0);
  EXPECT_EQ(usual.with_quota(999'999'999'999'999)->burst(), 150'000'000'000'000);
  auto const long_burst =
      policy::make({100, 10s, quota_unit::requests, algorithm::gcra, 1000}).value();
  EXPECT_EQ(long_burst.with_quota(999'999'999'999'999)->burst(), 999'999'999'999'999);
}

TEST(ratelimit_limiter, refuses_everything_when_the_quota_is_zero) {
  for (auto a : {algorithm::fixed, algorithm::sliding, algorithm::gcra}) {
    script s{make(0, 10s, a)};
    auto const d = s.spend(5s);
    EXPECT_FALSE(d.admitted);
    EXPECT_EQ(d.left.remaining, 0);
    EXPECT_EQ(d.retry, 10s);
  }
}

TEST(ratelimit_limiter, stays_within_its_numbers_at_the_edges) {
  constexpr std::int64_t quota = 999'999'999'999'999;
  for (auto a : {algorithm::fixed, algorithm::sliding, algorithm::gcra}) {
    script s{make(quota, 366 * 24h, a)};
    auto const start = std::chrono::nanoseconds(24h * 365 * 100);
    EXPECT_TRUE(s.spend(start, quota).admitted);
    EXPECT_FALSE(s.spend(start, 1).admitted);
    s.b = settle(s.p, s.b, at(start), at(start), quota);
    s.b = settle(s.p, s.b, at(start), at(start), std::numeric_limits<std::int64_t>::max() / 2);
    EXPECT_FALSE(s.spend(start + 24h, 1).admitted);
    EXPECT_EQ(look(s.p, s.b, at(start + 24h)).remaining, 0);
    EXPECT_FALSE(decide(s.p, {}, at(start), std::numeric_limits<std::int64_t>::max()).admitted);
  }
}

// ---- oracles: the same promise, worked out the slow and obvious way from what was admitted ----

struct event {
  std::int64_t time;
  std::int64_t cost;
};

/// At most the quota in windows that start with the first unit after the one before has ended.
class fixed_oracle {
 public:
  fixed_oracle(std::int64_t quota, std::int64_t window) : quota_(quota), window_(window) {}

  auto room(std::int64_t now) -> std::int64_t {
    if (log_.empty() || now >= log_.front().time + window_) {
      log_.clear();
    }
    std::int64_t used = 0;
    for (auto const& e : log_) {
      used += e.cost;
    }
    return quota_ - used;
  }
  void admit(event e) {
    if (e.cost > 0 || !log_.empty()) {
      log_.push_back(e);
    }
  }

 private:
  std::int64_t quota_;
  std::int64_t window_;
  std::vector<event> log_;
};

/// Windows in a row from the first unit on; sums over the log of each.
class sliding_oracle {
 public:
  sliding_oracle(std::int64_t quota, std::int64_t window) : quota_(quota), window_(window) {}

  auto room(std::int64_t now) -> std::int64_t {
    std::erase_if(log_,
                  [&](event const& e) { return begin_of(e.time) + 2 * window_ <= begin_of(now); });
    if (log_.empty()) {
      origin_ = now;
    }
    int128 previous = 0;
    std::int64_t current = 0;
    for (auto const& e : log_) {
      if (begin_of(e.time) == begin_of(now)) {
        current += e.cost;
      } else {
        previous += e.cost;
      }
    }
    auto const into = now - begin_of(now);
    auto const weight = previous * (window_ - 1 - into) / window_;
    return quota_ - current - static_cast<std::int64_t>(weight);
  }
  void admit(event e) {
    if (e.cost > 0) {
      log_.push_back(e);
    }
  }

 private:
  auto begin_of(std::int64_t t) const -> std::int64_t {
    return origin_ + (t - origin_) / window_ * window_;
  }

  std::int64_t quota_;
  std::int64_t window_;
  std::int64_t origin_ = 0;
  std::vector<event> log_;
};

/// A bucket of `burst` tokens that fills at quota / window, in whole numbers of 1/window tokens.
class token_oracle {
 public:
  token_oracle(std::int64_t quota, std::int64_t window, std::int64_t burst)
      : quota_(quota), window_(window), full_(int128(burst) * window), level_(full_) {}

  auto room(std::int64_t now) -> std::int64_t {
    level_ = std::min(full_, level_ + int128(now - last_) * quota_);
    last_ = now;
    return static_cast<std::int64_t>(level_ / window_);
  }
  void admit(event e) { level_ -= int128(e.cost) * window_; }

 private:
  std::int64_t quota_;
  std::int64_t window_;
  std::int64_t last_ = 0;
  int128 full_;
  int128 level_;
};

/// Random traffic: bursts, lulls, odd costs, and times that fall on the edges of windows.
template <class Oracle>
void agrees_with_the_oracle(policy const& p, Oracle oracle, unsigned seed, int decisions) {
  std::mt19937_64 random(seed);
  auto below = [&random](std::int64_t n) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n));
  };
  auto const window = std::chrono::nanoseconds(p.window()).count();
  auto const mean = window / std::max<std::int64_t>(p.quota(), 1);
  std::int64_t now = below(window);
  bucket b;
  int admitted = 0;
  for (int i = 0; i < decisions; ++i) {
    switch (below(16)) {
      case 0: now += below(3 * window); break;
      case 1: now += window; break;
      case 2: now += window - 1; break;
      case 3: now = b.time > now ? b.time : now; break;
      case 4: now = b.time > now ? b.time - 1 : now; break;
      case 5: break;
      default: now += below(2 * mean + 1); break;
    }
    auto const cost = below(8) == 0 ? below(p.cost_max() + 2) : below(4) == 0 ? 0 : 1;
    auto const room = oracle.room(now);
    auto const d = decide(p, b, at(std::chrono::nanoseconds(now)), cost);
    ASSERT_EQ(d.admitted, cost <= room)
        << "decision " << i << ", cost " << cost << ", room " << room;
    auto const left = std::max<std::int64_t>(d.admitted ? room - cost : room, 0);
    ASSERT_EQ(d.left.remaining, left) << "decision " << i;
    ASSERT_LE(d.left.reset.count(), window);
    ASSERT_GE(d.left.reset.count(), 0);
    if (!d.admitted && cost <= p.cost_max()) {
      // The wait is exact: with nothing in between, not a nanosecond earlier.
      auto const then = std::chrono::nanoseconds(now) + d.retry;
      ASSERT_GT(d.retry.count(), 0);
      ASSERT_TRUE(decide(p, b, at(then), cost).admitted) << "decision " << i;
      ASSERT_FALSE(decide(p, b, at(then - 1ns), cost).admitted) << "decision " << i;
    }
    if (d.admitted) {
      ++admitted;
      oracle.admit({now, cost});
      b = d.next;
    }
    // What has expired decides like a bucket that was never used.
    auto const gone = std::max(expires(p, b), at(std::chrono::nanoseconds(now)));
    ASSERT_EQ(look(p, b, gone).remaining, look(p, {}, gone).remaining);
  }
  EXPECT_GT(admitted, decisions / 20);
  EXPECT_LT(admitted, decisions);
}

// Together a million decisions for each algorithm.
constexpr int decisions = 100'000;

TEST(ratelimit_oracle, agrees_with_fixed_in_a_million_random_decisions) {
  for (unsigned seed = 0; seed < 10; ++seed) {
    auto const quota = std::vector<std::int64_t>{1, 2, 3, 7, 10, 25, 50, 60, 13, 5}[seed];
    auto const window = std::chrono::seconds(1 + seed % 4 * 20);
    agrees_with_the_oracle(make(quota, window, algorithm::fixed),
                           fixed_oracle(quota, std::chrono::nanoseconds(window).count()), seed,
                           decisions);
  }
}

TEST(ratelimit_oracle, agrees_with_sliding_in_a_million_random_decisions) {
  for (unsigned seed = 0; seed < 10; ++seed) {
    auto const quota = std::vector<std::int64_t>{1, 2, 3, 7, 10, 25, 50, 60, 13, 5}[seed];
    auto const window = std::chrono::seconds(1 + seed % 4 * 20);
    agrees_with_the_oracle(make(quota, window, algorithm::sliding),
                           sliding_oracle(quota, std::chrono::nanoseconds(window).count()), seed,
                           decisions);
  }
}

TEST(ratelimit_oracle, agrees_with_gcra_in_a_million_random_decisions) {
  for (unsigned seed = 0; seed < 10; ++seed) {
    auto const quota = std::vector<std::int64_t>{1, 2, 3, 7, 10, 999, 50, 60, 13, 1'000'000}[seed];
    auto const burst = std::vector<std::int64_t>{1, 1, 9, 7, 10, 1000, 5, 120, 1, 30}[seed];
    auto const window = std::chrono::seconds(1 + seed % 4 * 20);
    agrees_with_the_oracle(make(quota, window, algorithm::gcra, burst),
                           token_oracle(quota, std::chrono::nanoseconds(window).count(), burst),
                           seed, decisions);
  }
}

TEST(ratelimit_oracle, finds_no_span_with_more_than_gcra_promises) {
  std::mt19937_64 random(7);
  auto const p = make(10, 60s, algorithm::gcra, 4);
  auto const window = std::chrono::nanoseconds(60s).count();
  std::deque<event> log;
  bucket b;
  std::int64_t now = 0;
  for (int i = 0; i < 20'000; ++i) {
    now += static_cast<std::int64_t>(random() % 6'000'000'000U);
    auto const d = decide(p, b, at(std::chrono::nanoseconds(now)), 1);
    if (!d.admitted) {
      continue;
    }
    b = d.next;
    log.push_back({now, 1});
    if (log.size() > 100) {
      log.pop_front();
    }
    std::int64_t sum = 0;
    for (auto e = log.rbegin(); e != log.rend(); ++e) {
      sum += e->cost;
      ASSERT_LE(int128(sum - 4) * window, int128(now - e->time) * 10);
    }
  }
}

}  // namespace
}  // namespace tidegate::TIDEGATE_ABI::ratelimit
