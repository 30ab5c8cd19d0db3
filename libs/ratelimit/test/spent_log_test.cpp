// SPDX-License-Identifier: Apache-2.0
#include <tidegate/ratelimit/spent_log.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <deque>
#include <random>
#include <vector>

namespace tidegate::TIDEGATE_ABI::ratelimit {
namespace {

using namespace std::chrono_literals;

auto at(std::chrono::nanoseconds t) -> instant {
  return instant(t);
}

auto make(std::int64_t quota, std::chrono::seconds window) -> policy {
  return policy::make({quota, window, quota_unit::requests, algorithm::log, {}}).value();
}

/// A log with all the memory that it wants.
struct script {
  policy p;
  spent_log log{};

  auto spend(std::chrono::nanoseconds t, std::int64_t cost = 1) -> verdict {
    auto const decided = log.decide(p, at(t), cost);
    if (decided.admitted) {
      add(t, cost);
    }
    return decided;
  }
  void add(std::chrono::nanoseconds t, std::int64_t units) {
    EXPECT_TRUE(log.grow(log.wanted()));
    log.add(at(t), units);
  }
};

TEST(ratelimit_spent_log, admits_the_quota_in_any_window_where_sliding_admits_more) {
  // Most of a window's quota at its end, and of the next one as soon as that has faded.
  std::array<std::deque<std::int64_t>, 2> admitted;
  std::array<std::size_t, 2> most{};
  auto const sliding = policy::make({100, 60s}).value();
  bucket b;
  script s{make(100, 60s)};
  for (auto t = 0ms; t < 300s; t += 10ms) {
    bool const is_busy = t == 0ms || (t > 59s && t < 60s) || t > 110s;
    auto const now = std::chrono::nanoseconds(t).count();
    for (int i = 0; is_busy && i < 100; ++i) {
      if (ratelimit::spend(sliding, b, at(t), 1).admitted) {
        admitted[0].push_back(now);
      }
      if (s.spend(t).admitted) {
        admitted[1].push_back(now);
      }
    }
    for (std::size_t k = 0; k < 2; ++k) {
      while (!admitted[k].empty() && admitted[k].front() <= now - 60'000'000'000) {
        admitted[k].pop_front();
      }
      most[k] = std::max(most[k], admitted[k].size());
    }
  }
  EXPECT_EQ(most[1], 100U);
  EXPECT_GT(most[0], 100U);
}

TEST(ratelimit_spent_log, gives_each_unit_back_a_window_after_it_was_spent) {
  script s{make(3, 10s)};
  EXPECT_EQ(s.log.look(s.p, at(1s)), (service{3, 10s}));
  EXPECT_EQ(s.spend(1s).left, (service{2, 10s}));
  EXPECT_EQ(s.spend(2s, 2).left, (service{0, 9s}));
  auto const refused = s.spend(3s);
  EXPECT_FALSE(refused.admitted);
  EXPECT_EQ(refused.retry, 8s);
  EXPECT_EQ(s.log.decide(s.p, at(3s), 2).retry, 9s) << "two units are there when those of 2s are";
  EXPECT_EQ(s.log.decide(s.p, at(3s), 4).retry, 10s) << "never";
  EXPECT_FALSE(s.spend(11s - 1ns).admitted);
  EXPECT_TRUE(s.spend(11s).admitted);
  EXPECT_EQ(s.log.look(s.p, at(12s)), (service{2, 9s}));
  EXPECT_EQ(s.log.expires(s.p), at(21s));
  EXPECT_EQ(s.log.look(s.p, at(21s)), (service{3, 10s}));
}

TEST(ratelimit_spent_log, gives_back_what_was_admitted_then) {
  script s{make(10, 10s)};
  for (auto t = 1s; t <= 5s; t += 1s) {
    s.spend(t, 2);
  }
  s.log.release(s.p, at(3s), at(6s), 2);
  EXPECT_EQ(s.log.look(s.p, at(6s)).remaining, 2);
  EXPECT_EQ(s.log.look(s.p, at(12s)).remaining, 6) << "those of 1s and 2s have ended";
  EXPECT_EQ(s.log.look(s.p, at(13s)).remaining, 6);
  EXPECT_EQ(s.log.look(s.p, at(14s)).remaining, 8);
  s.log.release(s.p, at(1s), at(6s), 1);
  EXPECT_EQ(s.log.look(s.p, at(6s)).remaining, 3);
  s.log.release(s.p, at(5s), at(6s), 100);
  EXPECT_EQ(s.log.look(s.p, at(6s)).remaining, 5) << "no more than there was then and after";
  s.log.release(s.p, at(4s), at(14s), 2);
  EXPECT_EQ(s.log.look(s.p, at(6s)).remaining, 5) << "long forgotten: nothing comes back";
  s.log.release(s.p, at(0s), at(6s), 100);
  EXPECT_TRUE(s.log.is_empty());
  EXPECT_TRUE(s.spend(6s, 10).admitted);
}

TEST(ratelimit_spent_log, never_gives_units_back_when_the_clock_steps_back) {
  script s{make(10, 10s)};
  EXPECT_TRUE(s.spend(999s, 4).admitted);
  EXPECT_TRUE(s.spend(1000s, 5).admitted);
  EXPECT_TRUE(s.spend(995s, 1).admitted);
  for (auto t : {999s, 990s, 500s, 0s}) {
    auto const refused = s.spend(t);
    EXPECT_FALSE(refused.admitted);
    EXPECT_EQ(refused.left.remaining, 0);
    EXPECT_LE(refused.left.reset, 10s);
  }
  EXPECT_EQ(s.log.look(s.p, at(1009s)).remaining, 4) << "what was spent at 995s counts as of 1000s";
}

TEST(ratelimit_spent_log, counts_an_overshoot_against_what_follows) {
  script s{make(10, 10s)};
  EXPECT_TRUE(s.spend(1s, 3).admitted);
  s.add(2s, 50);
  s.add(4s, 8);
  EXPECT_EQ(s.log.look(s.p, at(4s)), (service{0, 8s}));
  EXPECT_EQ(s.log.decide(s.p, at(4s), 0).admitted, false);
  EXPECT_EQ(s.log.decide(s.p, at(4s), 3).retry, 10s);
  EXPECT_TRUE(s.spend(12s, 2).admitted);
}

TEST(ratelimit_spent_log, admits_less_and_never_more_without_room_for_all_times) {
  auto const p = make(10, 10s);
  spent_log none;
  spent_log little;
  ASSERT_TRUE(little.grow(40));
  script enough{p};
  std::mt19937_64 random(7);
  std::array<int, 3> admitted{};
  std::chrono::nanoseconds t = 0s;
  for (int i = 0; i < 20'000; ++i) {
    t += std::chrono::nanoseconds(random() % 2'000'000'000);
    auto* at_once = &none;
    for (std::size_t k = 0; k < 2; ++k, at_once = &little) {
      if (at_once->decide(p, at(t), 1).admitted) {
        at_once->add(at(t), 1);
        ++admitted[k];
      }
    }
    admitted[2] += enough.spend(t).admitted ? 1 : 0;
  }
  EXPECT_LT(admitted[0], admitted[1]);
  EXPECT_LT(admitted[1], admitted[2]);
  EXPECT_GT(admitted[0], 3'000);
}

TEST(ratelimit_spent_log, takes_a_few_octets_for_a_time) {
  script s{make(10'000, 3600s)};
  for (auto t = 0ns; t < 3600s; t += 360ms) {
    ASSERT_TRUE(s.spend(t).admitted);
  }
  EXPECT_LE(s.log.octets(), 90'000U);
  auto const full = s.log.octets();
  for (auto t = std::chrono::nanoseconds(3600s); t < 36'000s; t += 360ms) {
    ASSERT_TRUE(s.spend(t).admitted) << t.count();
  }
  EXPECT_LE(s.log.octets(), full * 2);
}

TEST(ratelimit_spent_log, keeps_as_many_times_as_a_quota_needs_however_far_it_is_exceeded) {
  script s{make(10, 3600s)};
  for (auto t = 1ns; t < 100us; t += 1ns) {
    s.add(t, 1);
  }
  EXPECT_LE(s.log.octets(), 40'000U);
  EXPECT_EQ(s.log.look(s.p, at(1s)), (service{0, 3600s - 1s + 99'990ns}));
  EXPECT_TRUE(s.spend(3600s + 99'990ns).admitted);
  EXPECT_FALSE(s.spend(3600s + 99'990ns).admitted);
}

// ---- against all that was ever spent ----

class history {
 public:
  explicit history(policy const& p)
      : p_(p), window_(std::chrono::nanoseconds(p.window()).count()) {}

  auto room(std::int64_t now) const -> std::int64_t { return p_.quota() - used(now); }
  auto used(std::int64_t now) const -> std::int64_t {
    std::int64_t units = 0;
    for (auto const& [time, spent] : spent_) {
      units += time > now - window_ ? spent : 0;
    }
    return units;
  }
  /// The first moment from `now` on at which `cost` fits.
  auto fits_at(std::int64_t now, std::int64_t cost) const -> std::int64_t {
    if (cost <= room(now)) {
      return now;
    }
    for (auto const& [time, spent] : spent_) {
      if (time + window_ > now && cost <= room(time + window_)) {
        return time + window_;
      }
    }
    return now + window_;
  }
  void add(std::int64_t now, std::int64_t units) {
    spent_.push_back({now, units});
    while (spent_.front().first <= now - 3 * window_) {
      spent_.pop_front();
    }
  }
  /// One of those that were spent lately.
  auto any(std::uint64_t random) -> std::pair<std::int64_t, std::int64_t>& {
    return spent_[spent_.size() - 1 - random % std::min<std::size_t>(spent_.size(), 40)];
  }
  [[nodiscard]] auto is_empty() const -> bool { return spent_.empty(); }

 private:
  policy p_;
  std::int64_t window_;
  std::deque<std::pair<std::int64_t, std::int64_t>> spent_;
};

void agrees(policy const& p, std::uint64_t seed, int decisions) {
  script s{p};
  history all(p);
  std::mt19937_64 random(seed);
  auto const below = [&](std::int64_t n) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n));
  };
  auto const window = std::chrono::nanoseconds(p.window()).count();
  std::int64_t now = window * 4;
  int admitted = 0;
  for (int i = 0; i < decisions; ++i) {
    switch (below(400)) {
      case 0: now += below(3 * window); break;
      case 1: now += window; break;
      case 2: now += window - 1; break;
      case 3: break;
      default: now += below(3 * window / p.quota()); break;
    }
    if (below(20) == 0 && !all.is_empty()) {
      auto& [time, units] = all.any(random());
      auto const back = std::min(units, 1 + below(3));
      // Others of the same moment cannot be told apart.
      s.log.release(p, at(std::chrono::nanoseconds(time)), at(std::chrono::nanoseconds(now)), back);
      units -= time > now - window ? back : 0;
    }
    if (below(100) == 0) {
      auto const more = 1 + below(3);
      s.add(std::chrono::nanoseconds(now), more);
      all.add(now, more);
    }
    auto const cost = below(20) == 0 ? below(p.quota() + 2) : below(10) == 0 ? 0 : 1;
    auto const room = all.room(now);
    auto const verdict = s.spend(std::chrono::nanoseconds(now), cost);
    ASSERT_EQ(verdict.admitted, cost <= room) << "decision " << i << " of seed " << seed;
    if (!verdict.admitted) {
      ASSERT_EQ(verdict.retry.count(), all.fits_at(now, cost) - now) << "decision " << i;
    } else if (cost > 0) {
      all.add(now, cost);
      ++admitted;
    }
    auto const left = s.log.look(p, at(std::chrono::nanoseconds(now)));
    ASSERT_EQ(verdict.left, left) << "decision " << i;
    ASSERT_EQ(left.remaining, std::max<std::int64_t>(all.room(now), 0)) << "decision " << i;
    if (left.remaining == 0) {
      ASSERT_EQ(left.reset.count(), all.fits_at(now, 1) - now) << "decision " << i;
    }
  }
  EXPECT_GT(admitted, decisions / 4);
  EXPECT_LT(admitted, decisions * 9 / 10);
}

TEST(ratelimit_spent_log, agrees_in_a_million_decisions_with_all_that_was_spent) {
  agrees(make(1, 1s), 1, 100'000);
  agrees(make(7, 10s), 2, 300'000);
  agrees(make(30, 60s), 3, 300'000);
  agrees(make(100, 86'400s), 4, 200'000);
  agrees(make(50, std::chrono::days(7)), 5, 100'000);
}

}  // namespace
}  // namespace tidegate::TIDEGATE_ABI::ratelimit
