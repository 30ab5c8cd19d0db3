// SPDX-License-Identifier: Apache-2.0
//
// The scripts, run by a real server at times that the test chooses, against the limiters in memory:
// every number of every answer has to be the same.
#include "quotas/quota_script.hpp"
#include "script_server.hpp"
#include "support/sanitized.hpp"

#include <tidegate/ratelimit/limiter.hpp>
#include <tidegate/store_quota/quota_table.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tidegate::store_redis {
namespace {

using namespace std::chrono_literals;
using ratelimit::algorithm;
using ratelimit::bucket;
using ratelimit::policy;
using ratelimit::quota_unit;
using std::chrono::microseconds;

constexpr int steps_of_a_run = test_support::sanitized ? 10'000 : 40'000;

constexpr auto policies = std::size_t{48};
constexpr auto partitions = std::size_t{3};
/// How long a window lasts in which nothing was granted does not matter.
constexpr std::int64_t no_window = -1;
constexpr microseconds always(std::int64_t{1} << 52);

auto at(std::int64_t us) -> instant {
  return instant(microseconds(us));
}

/// Chooses what a run does.
class chooser {
 public:
  explicit chooser(std::uint64_t seed) : random_(seed) {}

  auto below(std::int64_t end) -> std::int64_t {
    return std::uniform_int_distribution<std::int64_t>(0, end - 1)(random_);
  }
  auto one_in(std::int64_t n) -> bool { return below(n) == 0; }
  /// Any number of digits is as likely as any other.
  auto up_to(std::int64_t most) -> std::int64_t {
    auto const digits = std::uniform_real_distribution(0.0, std::log(double(most) + 1))(random_);
    return std::min(static_cast<std::int64_t>(std::exp(digits)), most);
  }

  auto window() -> std::chrono::seconds {
    constexpr std::array usual{1s, 10s, 60s, 3600s, 86400s, 366 * 86400s};
    return one_in(2) ? usual[static_cast<std::size_t>(below(usual.size()))]
                     : std::chrono::seconds(1 + below(one_in(2) ? 1000 : 366 * 86400));
  }

  auto any_policy() -> policy {
    if (one_in(8)) {
      return policy::make({up_to(1000), 0s, quota_unit::concurrent_requests, algorithm::fixed, {}})
          .value();
    }
    while (true) {
      ratelimit::policy_settings settings{
          .quota = one_in(30) ? 0 : up_to(999'999'999'999'999),
          .window = window(),
          .unit = one_in(2) ? quota_unit::requests : quota_unit::content_bytes,
          .algorithm = static_cast<algorithm>(below(3)),
          .burst = {},
      };
      if (settings.algorithm == algorithm::gcra && one_in(2)) {
        settings.burst = 1 + up_to(one_in(2) ? 1000 : settings.quota);
      }
      if (auto made = policy::make(settings)) {
        return *made;
      }
    }
  }

  /// Costs of every size, and often what just fits or just does not.
  auto cost(std::int64_t remaining, policy const& p) -> std::int64_t {
    switch (below(8)) {
      case 0: return below(3);
      case 1: return remaining + below(3) - 1;
      case 2: return up_to(std::max<std::int64_t>(remaining, 1));
      case 3: return p.cost_max() + below(3) - 1;
      case 4: return up_to(std::numeric_limits<std::int64_t>::max() / 2);
      default: return 1 + up_to(std::max<std::int64_t>(p.cost_max() / 50, 1));
    }
  }

 private:
  std::mt19937_64 random_;
};

struct kept {
  policy limits;
  bucket state{};
  std::string key;
};

class run {
 public:
  run(script_server& redis, std::uint64_t seed, std::int64_t begin, bool steady)
      : redis_(redis), choose_(seed), begin_(begin), now_(begin) {
    if (steady) {
      table_.emplace(store::quota_table::options{.partitions_max = 1'000, .randomness = {}});
    }
    spend_ = redis.load(spend_script());
    settle_ = redis.load(settle_script());
    take_ = redis.load(take_script());
    for (std::size_t i = 0; i < policies; ++i) {
      auto const p = choose_.any_policy();
      for (std::size_t j = 0; j < partitions; ++j) {
        kept_.push_back({p,
                         {},
                         "tidegate:{" + std::to_string(seed) + "}" + std::to_string(i) + "/" +
                             std::to_string(j)});
      }
    }
  }

  void steps(int count) {
    for (int i = 0; i < count && !testing::Test::HasFailure(); ++i) {
      time_passes();
      switch (choose_.below(12)) {
        case 0: reload(); break;
        case 1:
        case 2:
        case 3: settle(); break;
        case 4: take(); break;
        default: spend();
      }
      if (asked_ % 500 == 0) {
        redis_.wait();
      }
    }
    redis_.wait();
  }

  [[nodiscard]] auto admitted() const -> int { return admitted_; }
  [[nodiscard]] auto refused() const -> int { return refused_; }

 private:
  void time_passes() {
    auto const& one = any();
    auto const window = microseconds(one.limits.window()).count();
    auto const end = one.state.time / 1000;
    switch (choose_.below(10)) {
      case 0: break;
      case 1:
        if (!table_) {
          now_ -= choose_.up_to(std::max<std::int64_t>(window, 1'000'000));
        }
        break;
      case 2: now_ += choose_.up_to(2 * window + 1); break;
      case 3:  // around where a window ends, or one later
        if (end > now_) {
          now_ = end + choose_.below(3) - 1 + (choose_.one_in(2) ? window : 0);
        }
        break;
      case 4: now_ += 1; break;
      default: now_ += choose_.up_to(10'000'000);
    }
    now_ = std::max(now_, begin_);
    if (!table_ && now_ > begin_ + 40'000'000'000'000) {  // more than a year
      now_ = begin_ + choose_.below(1'000'000);
    }
  }

  auto any() -> kept& {
    return kept_[static_cast<std::size_t>(choose_.below(static_cast<std::int64_t>(kept_.size())))];
  }

  /// The server keeps no bucket that has drained.
  static void forget(kept& of) {
    if (of.limits.algorithm() == algorithm::gcra &&
        of.limits.unit() != quota_unit::concurrent_requests && of.state.used == 0 &&
        of.state.previous == 0) {
      of.state = {};
    }
  }

  static auto argument(kept const& of, std::int64_t cost, bool enforced = true) -> std::string {
    return charge_argument(of.limits, cost, enforced, "gateway", always);
  }

  auto charge_of(kept const& of, std::int64_t cost, bool enforced = true) const -> store::charge {
    return {&of.limits, static_cast<std::uint32_t>(&of - kept_.data()), of.key, cost, enforced};
  }

  static void expect(std::vector<std::int64_t>& answer, ratelimit::service const& left,
                     std::chrono::nanoseconds retry) {
    answer.push_back(left.remaining);
    answer.push_back(left.reset.count() / 1000);
    answer.push_back(retry.count() / 1000);
    answer.push_back(left.reset.count() % 1000 * 1000 + retry.count() % 1000);
  }

  /// One to four requests in one call.
  void spend() {
    std::string sizes;
    std::vector<std::string> keys;
    std::vector<std::string> arguments;
    std::vector<std::int64_t> answer{now_};
    for (auto requests = choose_.one_in(2) ? 1 : choose_.below(4) + 1; requests > 0; --requests) {
      auto const count = choose_.one_in(3) ? 1 : 1 + choose_.below(choose_.one_in(4) ? 16 : 3);
      sizes += static_cast<char>(count);
      request(count, keys, arguments, answer);
    }
    std::vector<std::string> words{"EVALSHA", spend_, std::to_string(keys.size())};
    words.insert(words.end(), keys.begin(), keys.end());
    words.push_back(sizes);
    words.insert(words.end(), arguments.begin(), arguments.end());
    ask(std::move(words), std::move(answer));
  }

  void request(std::int64_t count, std::vector<std::string>& keys,
               std::vector<std::string>& arguments, std::vector<std::int64_t>& answer) {
    std::vector<kept*> of;
    std::vector<bucket> nexts;
    std::vector<store::charge> charges;
    std::vector<ratelimit::verdict> verdicts;
    bool admitted = true;
    for (int i = 0; i < count; ++i) {
      // Often the same few, so that requests of one call meet.
      auto* one = choose_.one_in(2) ? &any() : &kept_[static_cast<std::size_t>(choose_.below(20))];
      while (std::ranges::find(of, one) != of.end()) {
        one = &any();
      }
      of.push_back(one);
      auto const remaining = ratelimit::look(one->limits, one->state, at(now_)).remaining;
      auto const cost = std::max<std::int64_t>(choose_.cost(remaining, one->limits), 0);
      bool const enforced = !choose_.one_in(4);
      charges.push_back(charge_of(*one, cost, enforced));
      keys.push_back(one->key);
      arguments.push_back(argument(*one, cost, enforced));
      nexts.push_back(one->state);
      verdicts.push_back(ratelimit::spend(one->limits, nexts.back(), at(now_), cost));
      admitted = admitted && (verdicts.back().admitted || !enforced);
    }
    answer.push_back(admitted ? 1 : 0);
    for (std::size_t i = 0; i < of.size(); ++i) {
      if (verdicts[i].admitted && !admitted) {
        verdicts[i].left = ratelimit::look(of[i]->limits, of[i]->state, at(now_));
      } else if (verdicts[i].admitted) {
        of[i]->state = nexts[i];
      }
      answer.push_back(verdicts[i].admitted ? 1 : 0);
      expect(answer, verdicts[i].left, verdicts[i].retry);
    }
    (admitted ? admitted_ : refused_) += 1;
    if (table_) {
      std::array<store::charged, store::quota_table::charges_max> charged;
      EXPECT_EQ(table_->spend(charges, at(now_), charged), admitted);
      for (std::size_t i = 0; i < of.size(); ++i) {
        EXPECT_EQ(charged[i].decision.left.remaining, verdicts[i].left.remaining);
        EXPECT_EQ(charged[i].decision.left.reset, verdicts[i].left.reset);
        EXPECT_EQ(charged[i].decision.retry, verdicts[i].retry);
      }
    }
  }

  void settle() {
    auto& one = any();
    auto const window = microseconds(one.limits.window()).count();
    auto const end = one.state.time / 1000;
    auto const admitted_at = choose_.one_in(4) ? end - window * choose_.below(4) - choose_.below(2)
                                               : now_ - choose_.up_to(3 * window + 1000);
    bool const back = choose_.one_in(2);
    auto const most = back ? std::max<std::int64_t>(one.state.used, one.state.previous) + 10
                           : std::min(units_max - one.state.used, one.limits.cost_max() * 2 + 1);
    auto const units = (back ? -1 : 1) * choose_.up_to(most);
    one.state = ratelimit::settle(one.limits, one.state, at(admitted_at), at(now_), units);
    if (table_) {
      table_->settle(charge_of(one, 0), {}, at(admitted_at), at(now_), units);
    }
    ask({"EVALSHA", settle_, "1", one.key, argument(one, units), std::to_string(admitted_at)},
        {now_});
  }

  void take() {
    auto& one = any();
    if (one.limits.algorithm() == algorithm::gcra &&
        one.limits.unit() != quota_unit::concurrent_requests) {
      return;
    }
    auto const wanted = 1 + choose_.up_to(std::max<std::int64_t>(one.limits.quota(), 1));
    auto const least = choose_.one_in(2) ? 1 : 1 + choose_.up_to(wanted);
    auto const parts = 1 + choose_.below(10);
    auto const room = ratelimit::look(one.limits, one.state, at(now_)).remaining;
    auto const granted =
        room < least ? 0 : std::min(std::max(std::min(wanted, room / parts), least), room);
    auto const verdict =
        ratelimit::spend(one.limits, one.state, at(now_), granted > 0 ? granted : least);
    if (std::array<store::charged, 1> charged; table_) {
      std::array const charges{charge_of(one, granted > 0 ? granted : least)};
      EXPECT_EQ(table_->spend(charges, at(now_), charged), verdict.admitted);
    }
    bool const concurrent = one.limits.unit() == quota_unit::concurrent_requests;
    auto const window = microseconds(one.limits.window()).count();
    auto const& b = one.state;
    auto valid = std::min(b.time / 1000 - now_, window);
    if (concurrent) {
      valid = always.count();
    } else if (granted == 0) {
      valid = no_window;
    }
    std::vector<std::int64_t> answer{now_, granted, valid};
    expect(answer, verdict.left, verdict.retry);
    ask({"EVALSHA", take_, "1", one.key, argument(one, wanted), std::to_string(least),
         std::to_string(parts)},
        std::move(answer));
  }

  /// The limits of a policy change and its buckets stay.
  void reload() {
    auto& one = any();
    auto const& p = one.limits;
    if (p.unit() == quota_unit::concurrent_requests || table_) {
      return;  // the table forgets by the limits that were in force when a bucket changed
    }
    if (choose_.one_in(2)) {
      one.limits = p.reduced(static_cast<double>(choose_.below(101)) / 100);
      return;
    }
    if (auto made = policy::make({std::max<std::int64_t>(p.quota(), 1 + choose_.below(1000)),
                                  choose_.window(),
                                  p.unit(),
                                  p.algorithm(),
                                  {}})) {
      one.limits = *made;
    }
  }

  void ask(std::vector<std::string> words, std::vector<std::int64_t> answer) {
    words.push_back(std::to_string(now_));
    for (auto& one : kept_) {
      forget(one);
    }
    ++asked_;
    redis_.send(words, [words, answer = std::move(answer)](resp_value const& value) {
      auto got = numbers_of(value);
      if (answer.size() == 7 && answer[2] == no_window && got.size() == 7) {
        got[2] = no_window;
      }
      if (!testing::Test::HasFailure()) {
        EXPECT_EQ(got, answer) << testing::PrintToString(words);
      }
    });
  }

  script_server& redis_;
  chooser choose_;
  std::int64_t begin_;
  std::int64_t now_;
  std::string spend_;
  std::string settle_;
  std::string take_;
  std::vector<kept> kept_;
  std::optional<store::quota_table> table_;  // when time never steps back
  int asked_ = 0;
  int admitted_ = 0;
  int refused_ = 0;
};

class store_redis_quota_script : public testing::Test {
 protected:
  void SetUp() override {
    if (!test::redis_server::is_installed()) {
      GTEST_SKIP() << test::redis_server::missing;
    }
  }

  static void runs(bool steady) {
    script_server redis;
    // Ahead of the server's clock, so that it lets no bucket expire.
    auto const begin = redis.time() + 86'400'000'000;
    int admitted = 0;
    int refused = 0;
    for (std::uint64_t seed = 1; seed <= 4 && !HasFailure(); ++seed) {
      run r(redis, seed, begin, steady);
      r.steps(steps_of_a_run / 4);
      admitted += r.admitted();
      refused += r.refused();
    }
    EXPECT_GT(admitted, steps_of_a_run / 10);
    EXPECT_GT(refused, steps_of_a_run / 10);
  }
};

TEST_F(store_redis_quota_script, decides_as_the_limiters_do_to_the_last_nanosecond) {
  runs(false);
}

TEST_F(store_redis_quota_script, decides_as_the_table_in_memory_does) {
  runs(true);
}

/// Concurrent requests of one partition, with as many gateways as a test names.
class slots {
 public:
  slots(script_server& redis, std::int64_t quota)
      : redis_(redis),
        limits_(*policy::make({quota, 0s, quota_unit::concurrent_requests, algorithm::fixed, {}})) {
  }

  auto spend(std::string const& gateway, std::int64_t cost) -> bool {
    auto const got = asked(spend_script(), {"\1", argument(gateway, cost)});
    left = got.at(3);
    return got.at(1) == 1;
  }
  void settle(std::string const& gateway, std::int64_t units) {
    asked(settle_script(), {argument(gateway, units), "0"});
  }
  void report(std::string const& gateway, std::int64_t count) {
    asked(hold_script(), {argument(gateway, count)});
  }

  std::int64_t now = 1'000'000'000;
  std::int64_t left = -1;

 private:
  auto argument(std::string const& gateway, std::int64_t cost) -> std::string {
    return charge_argument(limits_, cost, true, gateway, 10s);
  }
  auto asked(std::string const& script, std::vector<std::string> const& arguments)
      -> script_server::numbers {
    std::vector<std::string> words{"EVAL", script, "1", "slots"};
    words.insert(words.end(), arguments.begin(), arguments.end());
    words.push_back(std::to_string(base_ + now));
    return numbers_of(redis_.asked(words));
  }

  script_server& redis_;
  policy limits_;
  std::int64_t base_ = redis_.time();
};

TEST_F(store_redis_quota_script, gives_back_the_slots_of_a_gateway_that_is_not_heard_of) {
  script_server redis;
  slots of(redis, 10);
  EXPECT_TRUE(of.spend("dies", 4));
  of.now += 5'000'000;
  EXPECT_TRUE(of.spend("lives", 5));
  EXPECT_EQ(of.left, 1);
  EXPECT_FALSE(of.spend("lives", 2));
  of.now += 4'999'999;
  EXPECT_FALSE(of.spend("lives", 2)) << "it may still live";
  of.now += 1;
  EXPECT_TRUE(of.spend("lives", 2));
  EXPECT_EQ(of.left, 3);
  of.settle("dies", -4);
  EXPECT_TRUE(of.spend("other", 0));
  EXPECT_EQ(of.left, 3) << "what it held was given back before";
}

TEST_F(store_redis_quota_script, believes_a_gateway_for_as_long_as_it_says_that_it_lives) {
  script_server redis;
  slots of(redis, 10);
  EXPECT_TRUE(of.spend("a", 4));
  for (int i = 0; i < 5; ++i) {
    of.now += 9'000'000;
    of.report("a", -1);
  }
  EXPECT_TRUE(of.spend("b", 1));
  EXPECT_EQ(of.left, 5);
  of.report("a", 2);
  EXPECT_TRUE(of.spend("b", 1));
  EXPECT_EQ(of.left, 6) << "it says how many it holds";
  of.settle("a", -9);
  EXPECT_TRUE(of.spend("b", 1));
  EXPECT_EQ(of.left, 7) << "a gateway does not release what others hold";
  of.settle("b", -3);
  EXPECT_EQ(redis.asked({"EXISTS", "slots"}).integer, 0);
  of.report("a", 6);
  EXPECT_FALSE(of.spend("b", 5)) << "one that was forgotten still holds what it says";
}

TEST_F(store_redis_quota_script, lets_nothing_outlive_its_use) {
  script_server redis;
  slots of(redis, 10);
  EXPECT_TRUE(of.spend("a", 4));
  auto const lives = redis.asked({"PTTL", "slots"}).integer;
  EXPECT_GT(lives, 1'000'000);  // the test's time is ahead of the server's
  EXPECT_LE(lives, 1'010'001);
  for (auto const kind : {algorithm::fixed, algorithm::sliding, algorithm::gcra, algorithm::log}) {
    auto const p = *policy::make({10, 10s, quota_unit::requests, kind, {}});
    redis.asked({"EVAL", spend_script(), "1", "bucket", "\1", charge_argument(p, 5, true, "", 0s)});
    auto const expires = redis.asked({"PTTL", "bucket"}).integer;
    auto const most = kind == algorithm::fixed || kind == algorithm::log ? 10'001
                      : kind == algorithm::sliding                       ? 20'001
                                                                         : 5'001;
    EXPECT_LE(expires, most);
    EXPECT_GT(expires, most - 1'000);
    redis.asked({"DEL", "bucket"});
  }
}

TEST_F(store_redis_quota_script, takes_no_numbers_that_it_did_not_write) {
  script_server redis;
  for (auto const* const numbers :
       {"0/0, 1, 1", "1/0, 1, 1", "-1, 1, 1", "0, 1e300, 0", "0, 1/0, 1", "1, -1, 0",
        "1, 2^51 + 1, 0", "1, 1, 1e300", "1, 1, -1/0", "1, 1, 2^52", "1, 1, 0/0", "1, 1, 1, 1000",
        "1, 1, 1, -1"}) {
    auto const fields = std::ranges::count(std::string_view(numbers), ',') + 1;
    for (auto const kind : {algorithm::fixed, algorithm::sliding, algorithm::gcra}) {
      auto const p = *policy::make({10, 366 * 86400s, quota_unit::requests, kind, {}});
      auto const write = "redis.call('SET', KEYS[1], struct.pack('<" +
                         std::string(static_cast<std::size_t>(fields), 'd') + "', " + numbers +
                         "))";
      redis.asked({"EVAL", write, "1", "bucket"});
      auto const argument = charge_argument(p, 1, true, "", 0s);
      EXPECT_TRUE(redis.error({"EVAL", spend_script(), "1", "bucket", "\1", argument})) << numbers;
      EXPECT_TRUE(redis.error({"EVAL", settle_script(), "1", "bucket", argument, "0"})) << numbers;
      EXPECT_TRUE(redis.error({"EVAL", take_script(), "1", "bucket", argument, "1", "1"}))
          << numbers;
    }
  }
}

TEST_F(store_redis_quota_script, takes_no_log_that_it_did_not_write) {
  script_server redis;
  auto const p = *policy::make({10, 60s, quota_unit::requests, algorithm::log, {}});
  auto const argument = charge_argument(p, 1, true, "", 0s);
  for (auto const* const write :
       {"redis.call('SET', KEYS[1], 'x')", "redis.call('RPUSH', KEYS[1], 'x', 'y')",
        "redis.call('RPUSH', KEYS[1], '1', 'y')", "redis.call('RPUSH', KEYS[1], 'nan', '1234567')",
        "redis.call('RPUSH', KEYS[1], '-1', '1234567')", "redis.call('RPUSH', KEYS[1], '1', '')",
        "redis.call('RPUSH', KEYS[1], '1e300', '12345671234567')"}) {
    redis.asked({"EVAL", std::string(write) + " return 1", "1", "log"});
    EXPECT_TRUE(redis.error({"EVAL", spend_script(), "1", "log", "\1", argument})) << write;
    EXPECT_TRUE(redis.error({"EVAL", settle_script(), "1", "log", argument, "0"})) << write;
    redis.asked({"DEL", "log"});
  }
}

TEST_F(store_redis_quota_script, counts_the_gateways_with_a_heartbeat) {
  script_server redis;
  auto const count_after = [&](std::string const& name, std::int64_t at) {
    return numbers_of(redis.asked({"EVAL", gateways_script(), "1", "gateways", name, "6000000",
                                   std::to_string(at)}))
        .at(1);
  };
  EXPECT_EQ(count_after("a", 1'000'000), 1);
  EXPECT_EQ(count_after("b", 2'000'000), 2);
  EXPECT_EQ(count_after("a", 4'000'000), 2);
  EXPECT_EQ(count_after("c", 7'999'999), 3);
  EXPECT_EQ(count_after("c", 8'000'000), 2);
  EXPECT_EQ(count_after("c", 20'000'000), 1);
}

}  // namespace
}  // namespace tidegate::store_redis
