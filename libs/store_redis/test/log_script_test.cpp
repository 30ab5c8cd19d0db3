// SPDX-License-Identifier: Apache-2.0
//
// Policies with `algorithm::log`: the scripts, run by a real server at times that the test chooses,
// against the table in memory. Every number of every answer has to be the same.
#include "quotas/quota_script.hpp"
#include "script_server.hpp"
#include "support/sanitized.hpp"

#include <tidegate/ratelimit/calendar.hpp>
#include <tidegate/store_quota/quota_table.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace tidegate::store_redis {
namespace {

using namespace std::chrono_literals;
using ratelimit::policy;
using std::chrono::microseconds;

auto at(std::int64_t us) -> instant {
  return instant(microseconds(us));
}

auto make(std::int64_t quota, std::chrono::seconds window) -> policy {
  return *policy::make(
      {quota, window, ratelimit::quota_unit::requests, ratelimit::algorithm::log, {}});
}

class run {
 public:
  run(script_server& redis, std::uint64_t seed, std::int64_t begin)
      : redis_(redis), random_(seed), now_(begin), seed_(seed) {
    spend_ = redis.load(spend_script());
    settle_ = redis.load(settle_script());
  }

  void steps(int count) {
    for (int i = 0; i < count && !testing::Test::HasFailure(); ++i) {
      switch (below(200)) {
        case 0: now_ += below(120'000'000); break;
        case 1: now_ += 10'000'000; break;
        case 2: now_ += 1'000'000; break;
        case 3: break;
        default: now_ += below(600'000); break;
      }
      if (below(4) == 0) {
        settle();
      } else {
        spend();
      }
      if (i % 300 == 0) {
        redis_.wait();
      }
    }
    redis_.wait();
  }

  int admitted = 0;
  int refused = 0;

 private:
  static constexpr std::size_t partitions = 3;
  struct admitted_units {
    std::size_t policy;
    std::string name;
    std::int64_t time;
    std::int64_t units;
  };

  auto below(std::int64_t n) -> std::int64_t {
    return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(n));
  }
  auto charge_of(std::size_t i, std::string const& name, std::int64_t cost, bool enforced) const
      -> store::charge {
    return {&policies_[i], static_cast<std::uint32_t>(i), name, cost, enforced};
  }
  auto key(std::size_t i, std::string const& name) const -> std::string {
    return "tidegate:{" + name + "}:log:" + std::to_string(seed_) + "/" + std::to_string(i);
  }

  void spend() {
    std::string sizes;
    std::vector<std::string> keys;
    std::vector<std::string> arguments;
    std::vector<std::int64_t> answer{now_};
    for (auto requests = 1 + below(3); requests > 0; --requests) {
      std::vector<std::size_t> met{0, 1, 2, 3};
      std::shuffle(met.begin(), met.end(), random_);
      met.resize(static_cast<std::size_t>(1 + below(4)));
      auto const name = "p" + std::to_string(below(partitions));
      std::vector<store::charge> charges;
      for (auto const i : met) {
        auto const quota = policies_[i].quota();
        charges.push_back(
            charge_of(i, name, below(8) == 0 ? below(quota + 2) : below(3), below(4) != 0));
        keys.push_back(key(i, name));
        arguments.push_back(
            charge_argument(policies_[i], charges.back().cost, charges.back().enforced, "", 0s));
      }
      std::array<store::charged, 4> results;
      bool const all = table_.spend(charges, at(now_), results);
      (all ? admitted : refused) += 1;
      sizes += static_cast<char>(met.size());
      answer.push_back(all ? 1 : 0);
      for (std::size_t i = 0; i < met.size(); ++i) {
        auto const& verdict = results[i].decision;
        answer.push_back(verdict.admitted ? 1 : 0);
        answer.push_back(verdict.left.remaining);
        answer.push_back(verdict.left.reset.count() / 1000);
        answer.push_back(verdict.retry.count() / 1000);
        answer.push_back(0);
        if (all && verdict.admitted && charges[i].cost > 0) {
          admitted_.push_back({met[i], name, now_, charges[i].cost});
        }
      }
    }
    std::vector<std::string> words{"EVALSHA", spend_, std::to_string(keys.size())};
    words.insert(words.end(), keys.begin(), keys.end());
    words.push_back(sizes);
    words.insert(words.end(), arguments.begin(), arguments.end());
    ask(std::move(words), std::move(answer));
  }

  void settle() {
    if (admitted_.empty()) {
      return;
    }
    auto const last = std::min<std::int64_t>(std::ssize(admitted_), 60);
    auto& one = admitted_[admitted_.size() - 1 - static_cast<std::size_t>(below(last))];
    auto const more = below(3) == 0;
    auto const units = more ? 1 + below(5) : -std::min(one.units, 1 + below(5));
    if (units == 0) {
      return;
    }
    one.units += more ? 0 : units;
    // Sometimes it is only known to have been a little later.
    auto const since = one.time - (below(4) == 0 ? below(1'000'000) : 0);
    table_.settle(charge_of(one.policy, one.name, 0, true), {}, at(since), at(now_), units);
    ask({"EVALSHA", settle_, "1", key(one.policy, one.name),
         charge_argument(policies_[one.policy], units, true, "", 0s), std::to_string(since)},
        {now_});
  }

  void ask(std::vector<std::string> words, std::vector<std::int64_t> answer) {
    words.push_back(std::to_string(now_));
    redis_.send(words, [answer = std::move(answer)](resp_value const& value) {
      if (!testing::Test::HasFailure()) {
        auto const got = numbers_of(value);
        auto const differs = std::ranges::mismatch(got, answer).in1 - got.begin();
        EXPECT_EQ(got, answer) << value.text << " number " << differs << " of "
                               << testing::PrintToString(
                                      std::vector(got.begin() + differs, got.end()));
      }
    });
  }

  script_server& redis_;
  std::mt19937_64 random_;
  std::int64_t now_;
  std::uint64_t seed_;
  std::string spend_;
  std::string settle_;
  std::array<policy, 4> const policies_{make(5, 10s), make(20, 60s), make(300, 3600s), make(1, 1s)};
  store::quota_table table_{{.partitions_max = 1'000, .randomness = {}}};
  std::vector<admitted_units> admitted_;
};

class store_redis_log_script : public testing::Test {
 protected:
  void SetUp() override {
    if (!test::redis_server::is_installed()) {
      GTEST_SKIP() << test::redis_server::missing;
    }
  }
};

TEST_F(store_redis_log_script, decides_as_the_table_in_memory_does) {
  constexpr int steps = test_support::sanitized ? 3'000 : 10'000;
  script_server redis;
  // Ahead of the server's clock, so that it lets no log expire.
  auto const begin = redis.time() + 86'400'000'000;
  int admitted = 0;
  int refused = 0;
  for (std::uint64_t seed = 1; seed <= 4 && !HasFailure(); ++seed) {
    run r(redis, seed, begin);
    r.steps(steps);
    admitted += r.admitted;
    refused += r.refused;
  }
  EXPECT_GT(admitted, steps / 2);
  EXPECT_GT(refused, steps / 2);
}

TEST_F(store_redis_log_script, never_gives_units_back_when_the_clock_steps_back) {
  script_server redis;
  auto const begin = redis.time() + 86'400'000'000;
  auto const argument = charge_argument(make(2, 10s), 1, true, "", 0s);
  auto const spend = [&](std::int64_t at) {
    return numbers_of(redis.asked(
        {"EVAL", spend_script(), "1", "log", "\1", argument, std::to_string(begin + at)}));
  };
  EXPECT_EQ(spend(5'000'000).at(1), 1);
  EXPECT_EQ(spend(1'000'000).at(1), 1);
  auto const refused = spend(2'000'000);
  EXPECT_EQ(refused.at(1), 0);
  EXPECT_EQ(refused.at(4), 10'000'000) << "reset is never longer than the window";
  EXPECT_EQ(refused.at(5), 13'000'000);
  EXPECT_EQ(spend(14'999'999).at(1), 0);
  EXPECT_EQ(spend(15'000'000).at(1), 1);
}

/// Fixed windows by the calendar: the same, by the clock of the gateway.
TEST_F(store_redis_log_script, decides_by_the_calendar_as_the_limiter_does) {
  script_server redis;
  ratelimit::calendar_rule const rule{ratelimit::calendar_unit::hour, "UTC",
                                      std::make_shared<ratelimit::time_zone const>()};
  auto const p = *policy::make({.quota = 20,
                                .window = 3600s,
                                .algorithm = ratelimit::algorithm::fixed,
                                .is_calendar = true});
  auto const spend = redis.load(spend_script());
  auto const settle = redis.load(settle_script());
  std::mt19937_64 random(3);
  auto const below = [&](std::int64_t n) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n));
  };
  // The clock of the server says something else, which does not matter.
  std::chrono::sys_time<microseconds> const begin{microseconds(1'800'000'000'000'000)};
  std::int64_t elapsed = 0;
  ratelimit::bucket state;
  std::int64_t admitted_at = 0;
  int admitted = 0;
  for (int i = 0; i < 5'000; ++i) {
    elapsed += below(100) == 0 ? below(7'200'000'000) : below(200'000'000);
    auto const skew = below(20) == 0 ? below(5'000'000) : 0;  // of another gateway
    instant const now{5h + microseconds(elapsed)};
    auto const current =
        ratelimit::in_window_of(p, rule, now, begin + microseconds(elapsed + skew));
    auto const words = [&](std::int64_t cost) {
      return charge_argument(current, cost, true, "", 0s, now);
    };
    if (below(4) == 0) {
      auto const units = below(9) - 4;
      state = ratelimit::settle(current, state, instant(microseconds(admitted_at)), now, units);
      redis.asked({"EVALSHA", settle, "1", "calendar", words(units),
                   std::to_string(wall_time(current, instant(microseconds(admitted_at))))});
      continue;
    }
    auto const cost = below(4);
    auto const verdict = ratelimit::spend(current, state, now, cost);
    auto const got =
        numbers_of(redis.asked({"EVALSHA", spend, "1", "calendar", "\1", words(cost)}));
    ASSERT_EQ(got.at(1) == 1, verdict.admitted) << i;
    ASSERT_EQ(got.at(3), verdict.left.remaining) << i;
    ASSERT_EQ(got.at(4), std::chrono::floor<microseconds>(verdict.left.reset).count()) << i;
    ASSERT_EQ(got.at(5), std::chrono::floor<microseconds>(verdict.retry).count()) << i;
    if (verdict.admitted) {
      ++admitted;
      admitted_at = microseconds(5h).count() + elapsed;
    }
  }
  EXPECT_GT(admitted, 1'000);
  EXPECT_LT(admitted, 3'000);
  EXPECT_LE(redis.asked({"PTTL", "calendar"}).integer, 3'600'001);
}

TEST_F(store_redis_log_script, keeps_no_more_times_than_the_largest_quota) {
  script_server redis;
  auto const begin = redis.time() + 86'400'000'000;
  auto const p = make(10, 3600s);
  std::string const settle = redis.load(settle_script());
  auto const argument = charge_argument(p, 1, true, "", 0s);
  for (int i = 0; i < 10'100; ++i) {
    redis.send({"EVALSHA", settle, "1", "log", argument, "0", std::to_string(begin + i)},
               [](resp_value const&) {});
  }
  redis.wait();
  EXPECT_EQ(redis.asked({"LLEN", "log"}).integer, 10'001);
  EXPECT_LE(redis.asked({"MEMORY", "USAGE", "log"}).integer, 130'000);
  auto const got = numbers_of(redis.asked(
      {"EVAL", spend_script(), "1", "log", "\1", argument, std::to_string(begin + 10'100)}));
  EXPECT_EQ(got.at(4), 3'600'000'000 - 10) << "when fewer than ten are left of 10,100";
}

}  // namespace
}  // namespace tidegate::store_redis
