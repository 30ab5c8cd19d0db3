// SPDX-License-Identifier: Apache-2.0
#include "support/cut_proxy.hpp"
#include "support/redis_server.hpp"
#include "support/sanitized.hpp"
#include "turned_loop.hpp"

#include <tidegate/store_redis/quota_store.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <iostream>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

namespace tidegate::store_redis {
namespace {

using namespace std::chrono_literals;
using ratelimit::algorithm;
using ratelimit::policy;
using ratelimit::quota_unit;
using store::counting;
using store::shared_charge;
using test::redis_cluster;
using test::redis_server;

auto limit(std::int64_t quota, std::chrono::seconds window, algorithm how = algorithm::fixed,
           std::optional<std::int64_t> burst = {}) -> policy {
  return *policy::make({quota, window, quota_unit::requests, how, burst});
}
auto slots(std::int64_t quota) -> policy {
  return *policy::make({quota, 0s, quota_unit::concurrent_requests, algorithm::fixed, {}});
}

auto charge(policy const& of, std::string_view partition, counting how = counting::exact,
            std::int64_t cost = 1, std::uint32_t id = 1) -> shared_charge {
  return {{&of, id, partition, cost, true}, "policy", how};
}

class store_redis_quota_store : public turned_loop {
 protected:
  [[nodiscard]] static auto open(engine::loop& on, std::string const& url,
                                 quota_store_options const& options = {.gateway = "a"})
      -> std::unique_ptr<store::quota_store> {
    return *open_quota_store(on, *parse_server_url(url), options);
  }
  [[nodiscard]] static auto url_of(redis_server const& redis) -> std::string {
    return "redis://" + redis.address();
  }

  struct decided {
    bool admitted = false;
    bool here = false;
    std::vector<store::charged> results{};
    std::optional<store::store_error> error{};
  };

  /// As a gateway does it.
  auto spend(store::quota_store& quotas, std::vector<shared_charge> const& charges) -> decided {
    decided got;
    std::array<store::charged, 16> results{};
    auto const here = quotas.spend_here(charges, on().now(), results);
    if (!here || *here) {
      got.here = true;
      if (here) {
        got.admitted = **here;
        got.results.assign(results.begin(), results.begin() + std::ssize(charges));
      } else {
        got.error = here.error();
      }
      return got;
    }
    bool is_answered = false;
    quotas.spend(charges, on().now(), [&](store::spend_answer answer) {
      is_answered = true;
      if (answer) {
        got.admitted = answer->admitted;
        got.results.assign(answer->results.begin(), answer->results.begin() + std::ssize(charges));
      } else {
        got.error = answer.error();
      }
    });
    EXPECT_FALSE(is_answered) << "answers come retry_queue";
    EXPECT_TRUE(until([&] { return is_answered; }));
    return got;
  }
  auto spend(store::quota_store& quotas, shared_charge const& one) -> decided {
    return spend(quotas, std::vector{one});
  }
  /// Spends again and again until there is a slice.
  auto is_decided_here(store::quota_store& quotas, shared_charge const& one) -> bool {
    bool is_here = false;
    return until([&] {
      if (!is_here) {
        auto const got = spend(quotas, one);
        is_here = got.admitted && got.here;
      }
      return is_here;
    });
  }
  /// Asks again and again.
  auto is_admitted_in_the_end(store::quota_store& quotas, shared_charge const& one) -> bool {
    bool is_admitted = false;
    return until([&] { return is_admitted = is_admitted || spend(quotas, one).admitted; });
  }
};

// ---- cuts ----

TEST_F(store_redis_quota_store, admits_no_more_than_the_quota_behind_whichever_octet_it_is_cut) {
  redis_server const redis;
  test_support::cut_proxy proxy(redis.port());
  auto const direct = open(on(), url_of(redis), {.gateway = "b"});
  auto const url = "redis://127.0.0.1:" + std::to_string(proxy.port());
  struct kind {
    policy of;
    counting how;
    std::int64_t lost_max;  // units that a cut may charge and no request uses
  };
  std::array const kinds{kind{limit(3, 3600s), counting::exact, 1},
                         kind{limit(3, 3600s, algorithm::sliding), counting::exact, 1},
                         kind{limit(3, 3600s, algorithm::gcra, 3), counting::exact, 1},
                         kind{limit(40, 3600s), counting::lease, 40}};
  bool const all = std::getenv("TIDEGATE_EVERY_OCTET") != nullptr;
  std::size_t cuts = 0;
  int count = 10'000;
  for (auto const& each : kinds) {
    for (auto const which : {test_support::cut_proxy::direction::to_client,
                             test_support::cut_proxy::direction::to_server}) {
      std::size_t octets = 1;  // known after the first time, which is not cut
      bool is_first = true;
      for (std::size_t k = 0; k < octets && !HasFailure();) {
        auto const partition = "p" + std::to_string(++count);
        auto const one = charge(each.of, partition, each.how);
        std::int64_t admitted = 0;
        std::int64_t unanswered = 0;
        {
          auto const quotas = open(on(), url);
          EXPECT_TRUE(spend(*quotas, charge(each.of, "warm")).error == std::nullopt);
          auto const before = proxy.octets(which);
          if (!is_first) {
            proxy.cut_behind(which, k);
          }
          auto const got = spend(*quotas, one);
          admitted += got.admitted ? 1 : 0;
          unanswered += got.error ? 1 : 0;
          octets = is_first ? proxy.octets(which) - before : octets;
          cuts += !is_first && proxy.has_cut() ? 1U : 0U;
          // Of a slice that it has, it spends on.
          for (int i = 0; each.how == counting::lease && i < 5; ++i) {
            admitted += spend(*quotas, one).admitted ? 1 : 0;
          }
        }
        // Another gateway takes what is left.
        for (bool more = true; more;) {
          auto const got = spend(*direct, charge(each.of, partition));
          EXPECT_FALSE(got.error);
          admitted += got.admitted ? 1 : 0;
          more = got.admitted;
        }
        auto const quota = each.of.quota();
        EXPECT_LE(admitted, quota) << "cut behind " << k;
        EXPECT_GE(admitted,
                  quota - (unanswered > 0 || each.how == counting::lease ? each.lost_max : 0))
            << "cut behind " << k;
        if (!std::exchange(is_first, false)) {
          std::size_t const step = which == test_support::cut_proxy::direction::to_client ? 1U : 7U;
          k += all ? 1U : test_support::sanitized ? 23U : step;
        }
      }
    }
  }
  EXPECT_GT(cuts, test_support::sanitized ? 20U : 200U);
  RecordProperty("cuts", std::to_string(cuts));
}

// ---- exact ----

TEST_F(store_redis_quota_store, admits_the_quota_and_knows_a_refusal_until_the_cost_will_fit) {
  redis_server const redis;
  auto const quotas = open(on(), url_of(redis));
  auto const five = limit(5, 3600s);
  for (int i = 0; i < 5; ++i) {
    auto const got = spend(*quotas, charge(five, "p"));
    EXPECT_TRUE(got.admitted);
    EXPECT_FALSE(got.here);
    ASSERT_EQ(got.results.size(), 1U);
    EXPECT_EQ(got.results[0].decision.left.remaining, 4 - i);
  }
  auto const refused = spend(*quotas, charge(five, "p"));
  EXPECT_FALSE(refused.admitted || refused.here || refused.error);
  EXPECT_GT(refused.results[0].decision.retry, 3590s);
  EXPECT_LE(refused.results[0].decision.retry, 3600s);
  auto const again = spend(*quotas, charge(five, "p"));
  EXPECT_TRUE(!again.admitted && again.here);
  EXPECT_GT(again.results[0].decision.retry, 3590s);
  EXPECT_LE(again.results[0].decision.retry, refused.results[0].decision.retry);
  EXPECT_TRUE(spend(*quotas, charge(five, "other")).admitted);
  EXPECT_EQ(quotas->status().asked, 7U);
  EXPECT_EQ(quotas->status().here, 1U);
  EXPECT_EQ(quotas->look(charge(five, "p"), on().now()).remaining, 0);
  EXPECT_EQ(quotas->look(charge(five, "other"), on().now()).remaining, 4);
  EXPECT_EQ(quotas->look(charge(five, "new"), on().now()).remaining, 5);
}

TEST_F(store_redis_quota_store, asks_again_when_a_refusal_has_been_believed_for_long_enough) {
  redis_server const redis;
  auto const quotas = open(on(), url_of(redis), {.gateway = "a", .refusals_believed = 20ms});
  auto const one = limit(1, 3600s);
  EXPECT_TRUE(spend(*quotas, charge(one, "p")).admitted);
  EXPECT_FALSE(spend(*quotas, charge(one, "p")).admitted);
  redis.cli("FLUSHALL");
  EXPECT_TRUE(is_admitted_in_the_end(*quotas, charge(one, "p")));
}

TEST_F(store_redis_quota_store, decides_the_requests_of_a_turn_by_one_call) {
  redis_server const redis;
  auto const quotas = open(on(), url_of(redis));
  auto const most = limit(40, 3600s, algorithm::sliding);
  EXPECT_TRUE(spend(*quotas, charge(most, "p")).admitted);
  redis.cli("CONFIG RESETSTAT");
  auto const before = quotas->status().round_trips;
  int admitted = 0;
  int answered = 0;
  for (int i = 0; i < 60; ++i) {
    std::array const charges{charge(most, "p")};
    quotas->spend(charges, on().now(), [&](store::spend_answer const& answer) {
      ++answered;
      admitted += answer && answer->admitted ? 1 : 0;
    });
  }
  ASSERT_TRUE(until([&] { return answered == 60; }));
  EXPECT_EQ(admitted, 39);
  EXPECT_EQ(quotas->status().round_trips - before, 1U);
  auto const stats = redis.cli("INFO commandstats");
  auto const calls = stats.substr(stats.find("evalsha:calls=")).substr(14, 2);
  EXPECT_TRUE(calls == "1," || calls == "2,") << stats;  // a heartbeat may be one
}

TEST_F(store_redis_quota_store, spends_all_charges_of_a_request_or_none) {
  redis_server const redis;
  auto const quotas = open(on(), url_of(redis));
  auto const ten = limit(10, 3600s, algorithm::gcra);
  auto const two = limit(2, 3600s);
  auto const shadow = limit(1, 3600s);
  auto const both = [&] {
    std::vector charges{charge(ten, "p"), charge(two, "q", counting::exact, 1, 2),
                        charge(shadow, "r", counting::exact, 1, 3)};
    charges[0].policy_name = "ten";
    charges[1].policy_name = "two";
    charges[2].policy_name = "shadow";
    charges[2].local.enforced = false;
    return charges;
  };
  EXPECT_TRUE(spend(*quotas, both()).admitted);
  auto const second = spend(*quotas, both());
  EXPECT_TRUE(second.admitted) << "a shadow refuses no request";
  EXPECT_FALSE(second.results[2].decision.admitted);
  auto const third = spend(*quotas, both());
  EXPECT_FALSE(third.admitted || third.here);
  EXPECT_TRUE(third.results[0].decision.admitted);
  EXPECT_EQ(third.results[0].decision.left.remaining, 8);
  EXPECT_FALSE(third.results[1].decision.admitted);
  auto const fourth = spend(*quotas, both());
  EXPECT_TRUE(!fourth.admitted && fourth.here);
  EXPECT_EQ(fourth.results[0].decision.left.remaining, 8);
  EXPECT_EQ(spend(*quotas, charge(ten, "p", counting::exact, 8)).error, std::nullopt);
}

TEST_F(store_redis_quota_store, gives_back_what_is_settled) {
  redis_server const redis;
  auto const quotas = open(on(), url_of(redis), {.gateway = "a", .refusals_believed = 1ms});
  for (auto const kind : {algorithm::fixed, algorithm::sliding, algorithm::gcra, algorithm::log}) {
    auto const one = limit(1, 3600s, kind);
    auto const partition = std::to_string(static_cast<int>(kind));
    auto const what = charge(one, partition, counting::exact, 1, static_cast<std::uint32_t>(kind));
    auto const admitted_at = on().now();
    EXPECT_TRUE(spend(*quotas, what).admitted);
    EXPECT_FALSE(spend(*quotas, what).admitted);
    quotas->settle(what, admitted_at, on().now(), -1);
    EXPECT_TRUE(is_admitted_in_the_end(*quotas, what));
    quotas->settle(what, admitted_at, on().now(), 5);
    quotas->settle(what, admitted_at, on().now(), -5);
    EXPECT_FALSE(spend(*quotas, what).admitted);
  }
}

TEST_F(store_redis_quota_store, forgets_what_a_partition_has_spent_here_and_in_redis) {
  redis_server const redis;
  auto const quotas = open(on(), url_of(redis));
  auto const others = open(on(), url_of(redis), {.gateway = "b"});
  auto const forget = [&](shared_charge const& what) {
    std::optional<result<void, store::store_error>> made;
    quotas->forget(what, [&](result<void, store::store_error> got) { made = std::move(got); });
    EXPECT_TRUE(until([&] { return made.has_value(); }));
    return made->has_value();
  };
  for (auto const how : {counting::exact, counting::lease}) {
    for (auto const by : {algorithm::fixed, algorithm::sliding, algorithm::gcra, algorithm::log}) {
      auto const three = limit(3, 3600s, by);
      auto const partition =
          "p" + std::to_string(static_cast<int>(how)) + std::to_string(static_cast<int>(by));
      for (int i = 0; i < 4; ++i) {
        (void)spend(*quotas, charge(three, partition, how));
      }
      EXPECT_FALSE(spend(*quotas, charge(three, partition, how)).admitted);
      EXPECT_TRUE(spend(*quotas, charge(three, "else", how)).admitted || how == counting::lease);
      EXPECT_TRUE(forget(charge(three, partition, how)));
      // What is left is asked for by a charge of nothing.
      EXPECT_EQ(spend(*others, charge(three, partition, counting::exact, 0))
                    .results[0]
                    .decision.left.remaining,
                3);
      EXPECT_TRUE(spend(*quotas, charge(three, partition, how)).admitted);
    }
  }
  // What is held is held.
  auto const two = slots(2);
  EXPECT_TRUE(spend(*quotas, charge(two, "held", counting::exact, 2)).admitted);
  EXPECT_TRUE(forget(charge(two, "held")));
  EXPECT_FALSE(spend(*others, charge(two, "held")).admitted);
}

TEST_F(store_redis_quota_store, keeps_no_partition_readable_in_redis) {
  redis_server const redis;
  auto const quotas = open(on(), url_of(redis));
  auto const one = limit(1, 3600s);
  EXPECT_TRUE(spend(*quotas, charge(one, "{secret}")).admitted);
  auto const keys = redis.cli("KEYS '*'");
  EXPECT_EQ(keys.find("secret"), std::string::npos);
  EXPECT_NE(keys.find("}:spent:policy"), std::string::npos) << keys;
}

TEST_F(store_redis_quota_store, calls_scripts_by_the_names_that_servers_give_them) {
  redis_server const redis;
  auto const quotas = open(on(), url_of(redis));
  auto const many = limit(100, 3600s);
  EXPECT_TRUE(spend(*quotas, charge(many, "p")).admitted);
  redis.cli("CONFIG RESETSTAT");
  EXPECT_TRUE(spend(*quotas, charge(many, "p")).admitted);
  auto const calls = redis.cli("INFO commandstats");
  EXPECT_NE(calls.find("cmdstat_evalsha:calls=1,"), std::string::npos) << calls;
  EXPECT_EQ(calls.find("cmdstat_script"), std::string::npos) << calls;
}

TEST_F(store_redis_quota_store, sends_scripts_as_texts_to_a_server_that_does_not_name_them) {
  redis_server const redis;
  EXPECT_EQ(redis.cli("ACL SETUSER default -script"), "OK");
  auto const quotas = open(on(), url_of(redis));
  auto const many = limit(100, 3600s);
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(spend(*quotas, charge(many, "p")).admitted);
  }
}

// ---- failures ----

TEST_F(store_redis_quota_store, goes_on_when_the_scripts_are_forgotten) {
  redis_server const redis;
  auto const quotas = open(on(), url_of(redis));
  auto const many = limit(100, 3600s);
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(spend(*quotas, charge(many, "p")).admitted);
    EXPECT_EQ(redis.cli("SCRIPT FLUSH"), "OK");
  }
  EXPECT_EQ(spend(*quotas, charge(many, "p")).results.at(0).decision.left.remaining, 96);
}

TEST_F(store_redis_quota_store, says_at_once_that_the_store_is_down_and_comes_back) {
  redis_server redis;
  auto const quotas = open(on(), url_of(redis), {.gateway = "a"});
  auto const many = limit(100, 3600s);
  EXPECT_TRUE(spend(*quotas, charge(many, "p")).admitted);
  redis.kill();
  ASSERT_TRUE(until([&] { return spend(*quotas, charge(many, "p")).here; }));
  EXPECT_TRUE(spend(*quotas, charge(many, "p")).error.has_value());
  redis.restart();
  ASSERT_TRUE(is_admitted_in_the_end(*quotas, charge(many, "p")));
  EXPECT_GT(quotas->status().failed, 0U);
}

TEST_F(store_redis_quota_store, answers_within_its_time_when_the_store_is_silent) {
  redis_server const redis;
  auto const quotas = open(on(), url_of(redis), {.gateway = "a", .command_timeout = 200ms});
  auto const many = limit(100, 3600s);
  EXPECT_TRUE(is_admitted_in_the_end(*quotas, charge(many, "p")));
  redis.freeze();
  auto const begin = std::chrono::steady_clock::now();
  EXPECT_TRUE(spend(*quotas, charge(many, "p")).error.has_value());
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 10s);
  redis.thaw();
}

TEST_F(store_redis_quota_store, answers_what_waits_when_it_is_closed) {
  redis_server const redis;
  auto quotas = open(on(), url_of(redis));
  auto const many = limit(100, 3600s);
  EXPECT_TRUE(spend(*quotas, charge(many, "p")).admitted);
  std::vector<store::store_fault> faults;
  auto const ask = [&] {
    std::array const charges{charge(many, "p")};
    quotas->spend(charges, on().now(), [&](store::spend_answer const& answer) {
      ASSERT_FALSE(answer.has_value());
      faults.push_back(answer.error().fault);
    });
  };
  ask();
  redis.freeze();
  on().turn(0ms);
  on().turn(0ms);
  ask();
  quotas.reset();
  EXPECT_EQ(faults, (std::vector{store::store_fault::stopped, store::store_fault::stopped}));
}

TEST_F(store_redis_quota_store, fails_when_something_else_is_in_the_place_of_a_bucket) {
  redis_server const redis;
  auto const quotas = open(on(), url_of(redis));
  auto const many = limit(100, 3600s);
  EXPECT_TRUE(spend(*quotas, charge(many, "p")).admitted);
  auto const key = redis.cli("--raw KEYS '*policy'");
  for (auto const* const value :
       {"\"\"", "short", "\"$(head -c 24 /dev/zero | tr '\\0' '\\377')\""}) {
    redis.cli("SET '" + key + "' " + value);
    auto const got = spend(*quotas, charge(many, "p"));
    EXPECT_TRUE(got.error.has_value()) << value;
  }
  redis.cli("DEL '" + key + "'");
  redis.cli("LPUSH '" + key + "' a");
  EXPECT_TRUE(spend(*quotas, charge(many, "p")).error.has_value());
  redis.cli("DEL '" + key + "'");
  EXPECT_TRUE(spend(*quotas, charge(many, "p")).admitted);
}

// ---- concurrent requests ----

TEST_F(store_redis_quota_store, holds_slots_of_concurrent_requests_until_they_are_settled) {
  redis_server const redis;
  auto const a = open(on(), url_of(redis));
  auto const b = open(on(), url_of(redis), {.gateway = "b"});
  auto const three = slots(3);
  EXPECT_TRUE(spend(*a, charge(three, "p")).admitted);
  EXPECT_TRUE(spend(*a, charge(three, "p")).admitted);
  EXPECT_TRUE(spend(*b, charge(three, "p")).admitted);
  EXPECT_FALSE(spend(*b, charge(three, "p")).admitted);
  a->settle(charge(three, "p"), on().now(), on().now(), -1);
  EXPECT_TRUE(is_admitted_in_the_end(*b, charge(three, "p")));
  EXPECT_FALSE(spend(*a, charge(three, "p")).admitted);
}

TEST_F(store_redis_quota_store, frees_the_slots_of_a_gateway_that_died_and_of_no_other) {
  redis_server const redis;
  auto a = open(on(), url_of(redis), {.gateway = "a", .alive_for = 1s});
  auto const b = open(on(), url_of(redis), {.gateway = "b", .alive_for = 1s});
  auto const three = slots(3);
  EXPECT_TRUE(spend(*a, charge(three, "p", counting::exact, 2)).admitted);
  EXPECT_TRUE(spend(*b, charge(three, "p")).admitted);
  EXPECT_TRUE(until([&] { return b->status().gateways == 2; }));
  a.reset();
  auto const died = std::chrono::steady_clock::now();
  EXPECT_TRUE(is_admitted_in_the_end(*b, charge(three, "p", counting::exact, 2)));
  EXPECT_GT(std::chrono::steady_clock::now() - died, 150ms) << "it might have lived";
  EXPECT_FALSE(spend(*b, charge(three, "p")).admitted) << "three are held by one that lives";
  EXPECT_TRUE(until([&] { return b->status().gateways == 1; }));
}

TEST_F(store_redis_quota_store, says_what_it_holds_to_a_store_that_has_forgotten) {
  redis_server redis;
  auto const a = open(on(), url_of(redis), {.gateway = "a", .alive_for = 1s});
  auto const b = open(on(), url_of(redis), {.gateway = "b"});
  auto const three = slots(3);
  EXPECT_TRUE(spend(*a, charge(three, "p", counting::exact, 2)).admitted);
  redis.restart();
  bool is_told = false;
  EXPECT_TRUE(until([&] {
    auto const got = spend(*b, charge(three, "p"));
    if (got.admitted) {
      b->settle(charge(three, "p"), on().now(), on().now(), -1);
    }
    is_told = is_told || (got.admitted && got.results[0].decision.left.remaining == 0);
    return is_told;
  }));
}

// ---- lease ----

TEST_F(store_redis_quota_store, spends_of_slices_without_asking) {
  redis_server const redis;
  auto const quotas = open(on(), url_of(redis));
  auto const many = limit(1'000'000, 3600s);
  auto const what = charge(many, "p", counting::lease);
  EXPECT_TRUE(is_decided_here(*quotas, what));
  auto const before = quotas->status();
  int admitted = 0;
  for (int turns = 0; turns < 200; ++turns) {
    for (int i = 0; i < 10; ++i) {
      admitted += spend(*quotas, what).admitted ? 1 : 0;
    }
    on().turn(0ms);
  }
  auto const after = quotas->status();
  EXPECT_EQ(admitted, 2'000);
  EXPECT_GT(after.here - before.here, 1'500U);
  EXPECT_LT(after.round_trips - before.round_trips, 200U);
  auto const left = quotas->look(what, on().now());
  EXPECT_LT(left.remaining, 1'000'000 - 2'000 + 1);
  EXPECT_GT(left.remaining, 990'000);
}

TEST_F(store_redis_quota_store, counts_a_partition_exactly_that_is_seldom_used) {
  redis_server const redis;
  auto const quotas = open(on(), url_of(redis));
  auto const many = limit(100, 3600s);
  EXPECT_FALSE(spend(*quotas, charge(many, "p", counting::lease)).here);
  EXPECT_EQ(spend(*open(on(), url_of(redis)), charge(many, "p")).results[0].decision.left.remaining,
            98);
}

TEST_F(store_redis_quota_store, counts_gcra_and_log_exactly_whatever_it_is_told) {
  redis_server const redis;
  auto const quotas = open(on(), url_of(redis));
  for (auto const how : {algorithm::gcra, algorithm::log}) {
    auto const p = limit(10, 3600s, how);
    auto const partition = std::to_string(static_cast<int>(how));
    auto const what = charge(p, partition, counting::lease);
    for (int i = 0; i < 10; ++i) {
      auto const got = spend(*quotas, what);
      EXPECT_TRUE(got.admitted && !got.here);
    }
    EXPECT_FALSE(spend(*quotas, what).admitted);
  }
}

TEST_F(store_redis_quota_store, gives_back_a_slice_that_is_not_used) {
  redis_server const redis;
  for (auto const kind : {algorithm::fixed, algorithm::sliding}) {
    redis.cli("FLUSHALL");
    auto const a = open(on(), url_of(redis));
    auto const b = open(on(), url_of(redis), {.gateway = "b", .refusals_believed = 10ms});
    auto const p = limit(1'000, 3600s, kind);
    int spent = 0;
    ASSERT_TRUE(until([&] {
      auto const got = spend(*a, charge(p, "p", counting::lease));
      spent += got.admitted ? 1 : 0;
      return got.here;
    }));
    while (spent < 1'000) {
      ASSERT_TRUE(is_admitted_in_the_end(*b, charge(p, "p")));
      ++spent;
    }
    EXPECT_FALSE(spend(*b, charge(p, "p")).admitted);
    EXPECT_FALSE(spend(*a, charge(p, "p", counting::lease)).admitted);
  }
}

TEST_F(store_redis_quota_store, gives_its_slices_back_when_it_is_closed) {
  redis_server const redis;
  for (auto const kind : {algorithm::fixed, algorithm::sliding}) {
    redis.cli("FLUSHALL");
    auto a = open(on(), url_of(redis), {.gateway = "a", .lease_idle = 1h});
    auto const b = open(on(), url_of(redis), {.gateway = "b", .refusals_believed = 10ms});
    auto const p = limit(1'000, 3600s, kind);
    int spent = 0;
    ASSERT_TRUE(until([&] {
      auto const got = spend(*a, charge(p, "p", counting::lease));
      spent += got.admitted ? 1 : 0;
      return got.here;
    }));
    a.reset();
    while (spent < 1'000) {
      ASSERT_TRUE(is_admitted_in_the_end(*b, charge(p, "p"))) << spent;
      ++spent;
    }
    EXPECT_FALSE(spend(*b, charge(p, "p")).admitted);
  }
}

TEST_F(store_redis_quota_store, counts_from_zero_when_the_unit_of_a_policy_changes) {
  redis_server const redis;
  auto const quotas = open(on(), url_of(redis));
  auto const requests = limit(10, 3600s);
  auto const held = slots(10);
  EXPECT_TRUE(spend(*quotas, charge(requests, "p")).admitted);
  EXPECT_TRUE(spend(*quotas, charge(held, "p")).admitted);
  EXPECT_TRUE(spend(*quotas, charge(requests, "p")).admitted);
}

// ---- several quotas for one partition ----

TEST_F(store_redis_quota_store, does_not_take_the_refusal_of_one_quota_for_that_of_another) {
  redis_server const redis;
  auto const quotas = open(on(), url_of(redis));
  auto const small = limit(2, 3600s);
  auto const large = limit(10, 3600s);
  EXPECT_TRUE(spend(*quotas, charge(small, "p")).admitted);
  EXPECT_TRUE(spend(*quotas, charge(small, "p")).admitted);
  EXPECT_FALSE(spend(*quotas, charge(small, "p")).admitted);
  auto const other = spend(*quotas, charge(large, "p"));
  EXPECT_TRUE(other.admitted);
  EXPECT_EQ(other.results.at(0).decision.left.remaining, 7);
  auto const again = spend(*quotas, charge(small, "p"));
  EXPECT_FALSE(again.admitted);
  EXPECT_TRUE(again.here);
}

TEST_F(store_redis_quota_store, spends_no_slice_of_a_larger_quota) {
  redis_server const redis;
  auto const quotas = open(on(), url_of(redis));
  auto const small = limit(2, 3600s);
  auto const large = limit(1'000'000, 3600s);
  EXPECT_TRUE(is_decided_here(*quotas, charge(large, "p", counting::lease)));
  EXPECT_FALSE(spend(*quotas, charge(small, "p", counting::lease)).admitted);
  EXPECT_TRUE(spend(*quotas, charge(large, "p", counting::lease)).admitted);
}

TEST_F(store_redis_quota_store, gives_no_slots_of_a_larger_quota) {
  redis_server const redis;
  auto const quotas = open(on(), url_of(redis));
  auto const small = slots(2);
  auto const large = slots(1'000);
  auto const of_large = charge(large, "p", counting::lease);
  for (int i = 0; i < 40; ++i) {
    EXPECT_TRUE(spend(*quotas, of_large).admitted);
    on().turn(1ms);
  }
  EXPECT_TRUE(is_decided_here(*quotas, of_large));
  EXPECT_FALSE(spend(*quotas, charge(small, "p", counting::lease)).admitted);
  EXPECT_TRUE(is_decided_here(*quotas, of_large));
  // Nor those that came back.
  quotas->settle(of_large, on().now(), on().now(), -1);
  EXPECT_FALSE(spend(*quotas, charge(small, "p", counting::lease)).admitted);
  EXPECT_TRUE(spend(*quotas, of_large).admitted);
}

TEST_F(store_redis_quota_store, spends_no_slice_after_the_end_of_its_window) {
  redis_server const redis;
  for (auto const kind : {algorithm::fixed, algorithm::sliding}) {
    redis.cli("FLUSHALL");
    auto const a = open(on(), url_of(redis), {.gateway = "a", .lease_idle = 1h});
    auto const b = open(on(), url_of(redis), {.gateway = "b", .refusals_believed = 1ms});
    auto const p = limit(100, 1s, kind);
    auto const what = charge(p, "p", counting::lease);
    EXPECT_TRUE(is_decided_here(*a, what));
    auto const end = std::chrono::steady_clock::now() + 1s;
    ASSERT_TRUE(until([&] { return std::chrono::steady_clock::now() >= end; }));
    // In the next window another gateway spends all that there is.
    int others = 0;
    while (spend(*b, charge(p, "p")).admitted) {
      ++others;
    }
    EXPECT_GT(others, 50);
    if (kind == algorithm::fixed) {
      EXPECT_EQ(others, 100);
    }
    auto const refused = spend(*a, what);
    EXPECT_FALSE(refused.here);
    EXPECT_FALSE(refused.admitted && kind == algorithm::fixed);
  }
}

TEST_F(store_redis_quota_store, gives_back_to_the_slice_what_is_settled) {
  redis_server const redis;
  auto const quotas = open(on(), url_of(redis));
  auto const p = limit(100'000, 3600s);
  auto const what = charge(p, "p", counting::lease);
  EXPECT_TRUE(is_decided_here(*quotas, what));
  on().turn(0ms);
  auto const admitted_at = on().now();
  auto const before = quotas->look(what, admitted_at).remaining;
  auto const trips = quotas->status().round_trips;
  quotas->settle(what, admitted_at, admitted_at, -1);
  EXPECT_EQ(quotas->look(what, admitted_at).remaining, before + 1);
  quotas->settle(what, admitted_at, admitted_at, 1);
  EXPECT_EQ(quotas->look(what, admitted_at).remaining, before);
  EXPECT_EQ(quotas->status().round_trips, trips);
}

TEST_F(store_redis_quota_store, spends_what_it_has_while_the_store_is_down) {
  redis_server redis;
  auto const quotas = open(on(), url_of(redis), {.gateway = "a"});
  auto const p = limit(1'000'000, 3600s);
  auto const what = charge(p, "p", counting::lease, 5);
  EXPECT_TRUE(is_decided_here(*quotas, what));
  for (int i = 0; i < 20; ++i) {
    EXPECT_TRUE(spend(*quotas, what).admitted);
  }
  redis.kill();
  int admitted = 0;
  ASSERT_TRUE(until([&] {
    auto const got = spend(*quotas, what);
    admitted += got.admitted ? 1 : 0;
    return got.here && got.error.has_value();
  }));
  EXPECT_GT(admitted, 0);
}

TEST_F(store_redis_quota_store, leases_slots_of_concurrent_requests) {
  redis_server const redis;
  auto const a = open(on(), url_of(redis));
  auto const b = open(on(), url_of(redis), {.gateway = "b"});
  auto const ten = slots(10);
  auto const what = charge(ten, "p", counting::lease);
  int held = 0;
  ASSERT_TRUE(until([&] {
    held += spend(*a, what).admitted ? 1 : 0;
    return held == 10;
  }));
  EXPECT_FALSE(spend(*a, what).admitted);
  EXPECT_FALSE(spend(*b, what).admitted);
  a->settle(what, on().now(), on().now(), -1);
  EXPECT_TRUE(spend(*a, what).here) << "a slot that came back is here";
  EXPECT_FALSE(spend(*b, what).admitted);
  for (int i = 0; i < 10; ++i) {
    a->settle(what, on().now(), on().now(), -1);
  }
  held = 0;
  ASSERT_TRUE(until([&] {
    held += spend(*b, what).admitted ? 1 : 0;
    return held == 10;
  })) << "what is not used is released";
  EXPECT_FALSE(spend(*a, what).admitted);
}

TEST_F(store_redis_quota_store, has_slices_of_so_many_partitions_and_no_more) {
  redis_server const redis;
  auto const quotas =
      open(on(), url_of(redis), {.gateway = "a", .cached_verdicts_max = 4, .leases_max = 3});
  auto const p = limit(10, 3600s);
  auto const three = slots(3);
  for (int round = 0; round < 10; ++round) {
    for (int i = 0; i < 20; ++i) {
      auto const name = std::to_string(i);
      EXPECT_TRUE(spend(*quotas, charge(p, name, counting::lease)).admitted);
    }
  }
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(is_admitted_in_the_end(*quotas, charge(three, "s" + std::to_string(i))));
  }
  auto const full = spend(*quotas, charge(three, "s3"));
  ASSERT_TRUE(full.error.has_value());
  EXPECT_EQ(full.error->fault, store::store_fault::full);
  EXPECT_TRUE(spend(*quotas, charge(p, "exact", counting::lease)).admitted);
}

// ---- cluster ----

TEST_F(store_redis_quota_store,
       gives_back_in_a_cluster_what_was_spent_before_another_slot_refused) {
  redis_cluster const cluster;
  auto const quotas = open(on(), cluster.url(), {.gateway = "a", .refusals_believed = 1ms});
  auto const first = limit(1, 3600s);
  ASSERT_TRUE(is_admitted_in_the_end(*quotas, charge(first, "first", counting::exact, 1, 9)));
  auto const ten = limit(10, 3600s);
  auto const two = limit(2, 3600s);
  auto const held = slots(10);
  for (int i = 0; i < 10; ++i) {
    auto const one = "one" + std::to_string(i);
    auto const other = "other" + std::to_string(i);
    auto const third = "third" + std::to_string(i);
    std::vector charges{charge(ten, one), charge(held, other, counting::exact, 1, 2),
                        charge(two, third, counting::exact, 1, 3),
                        charge(two, one, counting::exact, 1, 4)};
    charges[1].policy_name = "held";
    charges[2].policy_name = "two";
    charges[3].policy_name = "shadow";
    charges[3].local.enforced = false;
    for (int admitted = 0; admitted < 2; ++admitted) {
      auto const got = spend(*quotas, charges);
      EXPECT_TRUE(got.admitted) << i << (got.error ? got.error->text : "");
    }
    for (int again = 0; again < 3; ++again) {
      auto const refused = spend(*quotas, charges);
      EXPECT_FALSE(refused.admitted || refused.error) << i;
      EXPECT_TRUE(refused.results[0].decision.admitted);
      EXPECT_GE(refused.results[0].decision.left.remaining, 5) << "some may be on their way back";
      EXPECT_TRUE(refused.results[1].decision.admitted);
      EXPECT_FALSE(refused.results[2].decision.admitted);
    }
    charges[0].local.cost = 8;
    EXPECT_TRUE(is_admitted_in_the_end(*quotas, charges[0])) << "what was spent is there again";
    charges[1].local.cost = 8;
    EXPECT_TRUE(is_admitted_in_the_end(*quotas, charges[1]));
  }
}

// ---- many ----

/// What many clients of several gateways get, each gateway with a thread of its own.
class crowd {
 public:
  struct outcome {
    std::int64_t admitted = 0;
    store::quota_store_status counts;
    bool is_over_time = false;
  };

  crowd(std::string url, std::size_t gateways, std::size_t clients)
      : url_(std::move(url)), gateways_(gateways), clients_(clients) {}

  /// Every client asks again and again until `is_done` says so of what was admitted, and `more`
  /// times after.
  auto run(policy const& of, counting how, std::function<bool(std::int64_t)> is_done, int more)
      -> outcome {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < gateways_; ++i) {
      threads.emplace_back([&, i] { work(i, of, how, is_done, more); });
    }
    threads.clear();
    outcome_.admitted = admitted_;
    return outcome_;
  }

 private:
  void work(std::size_t number, policy const& of, counting how,
            std::function<bool(std::int64_t)> const& is_done, int more) {
    auto const loop = *engine::loop::make();
    auto const quotas = *open_quota_store(*loop, *parse_server_url(url_),
                                          {.gateway = "gateway" + std::to_string(number)});
    auto const one = charge(of, "partition", how);
    auto const end = std::chrono::steady_clock::now() + 60s;
    std::size_t waiting = 0;
    int afterwards = 0;
    while (afterwards < more && std::chrono::steady_clock::now() < end) {
      for (auto idle = clients_ - waiting; idle > 0; --idle) {
        afterwards += is_done(admitted_) ? 1 : 0;
        std::array<store::charged, 1> result{};
        std::array const charges{one};
        auto const here = quotas->spend_here(charges, loop->now(), result);
        if (here && *here) {
          admitted_ += **here ? 1 : 0;
        } else if (here) {
          ++waiting;
          quotas->spend(charges, loop->now(), [&](store::spend_answer const& answer) {
            --waiting;
            admitted_ += answer && answer->admitted ? 1 : 0;
          });
        }
      }
      loop->turn(waiting == clients_ ? 10ms : 0ms);
    }
    while (waiting > 0) {
      loop->turn(10ms);
    }
    std::lock_guard const lock(mutex_);
    auto const counts = quotas->status();
    outcome_.counts.asked += counts.asked;
    outcome_.counts.here += counts.here;
    outcome_.counts.round_trips += counts.round_trips;
    outcome_.counts.failed += counts.failed;
    outcome_.is_over_time = outcome_.is_over_time || afterwards < more;
  }

  std::string url_;
  std::size_t gateways_;
  std::size_t clients_;
  std::atomic<std::int64_t> admitted_ = 0;
  std::mutex mutex_;
  outcome outcome_;
};

void print(std::string const& what, crowd::outcome const& got) {
  auto const decisions = got.counts.asked + got.counts.here;
  std::cout << "[          ] " << what << ": " << got.admitted << " admitted, " << decisions
            << " decisions, " << got.counts.here << " of them here, " << got.counts.round_trips
            << " round trips\n";
}

TEST_F(store_redis_quota_store, never_admits_more_than_the_quota_to_three_gateways_and_nearly_all) {
  redis_server const redis;
  constexpr std::int64_t quota = 20'000;
  for (auto const kind : {algorithm::fixed, algorithm::sliding}) {
    for (auto const how : {counting::exact, counting::lease}) {
      redis.cli("FLUSHALL");
      crowd of(url_of(redis), 3, 21);
      auto const p = limit(quota, 3600s * 24, kind);
      auto const got = of.run(
          p, how, [](std::int64_t admitted) { return admitted >= quota * 99 / 100; }, 50'000);
      EXPECT_FALSE(got.is_over_time);
      EXPECT_LE(got.admitted, quota);
      EXPECT_GE(got.admitted, quota * 99 / 100);
      EXPECT_EQ(got.counts.failed, 0U);
      EXPECT_LT(got.counts.round_trips, got.counts.asked + got.counts.here);
      print(std::string(kind == algorithm::fixed ? "fixed" : "sliding") +
                (how == counting::exact ? ", exact" : ", lease"),
            got);
    }
  }
}

TEST_F(store_redis_quota_store, never_admits_more_than_the_quota_of_any_window) {
  redis_server const redis;
  constexpr std::int64_t quota = 1'000;
  for (auto const kind : {algorithm::fixed, algorithm::sliding, algorithm::log}) {
    for (auto const how : {counting::exact, counting::lease}) {
      if (kind == algorithm::log && how == counting::lease) {
        continue;  // which it is not
      }
      redis.cli("FLUSHALL");
      crowd of(url_of(redis), 3, 5);
      auto const p = limit(quota, 1s, kind);
      auto const begin = std::chrono::steady_clock::now();
      auto const end = begin + 2200ms;
      auto const got = of.run(
          p, how, [&](std::int64_t) { return std::chrono::steady_clock::now() >= end; }, 1);
      auto const windows = (std::chrono::steady_clock::now() - begin) / 1s + 1;
      EXPECT_FALSE(got.is_over_time);
      EXPECT_LE(got.admitted, windows * quota);
      EXPECT_GE(got.admitted, 2 * quota);
      print("windows of a second, " +
                std::string(kind == algorithm::fixed     ? "fixed"
                            : kind == algorithm::sliding ? "sliding"
                                                         : "log") +
                (how == counting::exact ? ", exact" : ", lease"),
            got);
    }
  }
}

TEST_F(store_redis_quota_store,
       never_holds_more_slots_than_there_are_though_scripts_are_forgotten) {
  redis_server const redis;
  constexpr std::int64_t quota = 10;
  auto const p = slots(quota);
  for (auto const how : {counting::exact, counting::lease}) {
    redis.cli("FLUSHALL");
    std::atomic<std::int64_t> held = 0;
    std::atomic<std::int64_t> most = 0;
    std::atomic<std::int64_t> admitted = 0;
    auto const gateway = [&](std::stop_token const& stop, std::string const& name) {
      auto const loop = *engine::loop::make();
      auto const quotas = open(*loop, url_of(redis), {.gateway = name, .alive_for = 6s});
      auto const one = charge(p, "p", how);
      std::size_t waiting = 0;
      std::int64_t mine = 0;
      std::uint64_t turns = 0;
      auto const take = [&] {
        ++mine;
        ++admitted;
        auto const now = ++held;
        auto before = most.load();
        while (before < now && !most.compare_exchange_weak(before, now)) {
        }
      };
      while (!stop.stop_requested()) {
        std::array<store::charged, 1> result{};
        std::array const charges{one};
        auto const here = quotas->spend_here(charges, loop->now(), result);
        if (here && *here && **here) {
          take();
        } else if (here && !*here && waiting < 5) {
          ++waiting;
          quotas->spend(charges, loop->now(), [&](store::spend_answer const& answer) {
            --waiting;
            if (answer && answer->admitted) {
              take();
            }
          });
        }
        loop->turn(0ms);
        if (++turns % 4 == 0) {
          for (; mine > 0; --mine) {
            --held;
            quotas->settle(one, loop->now(), loop->now(), -1);
          }
        }
      }
      while (waiting > 0) {
        loop->turn(10ms);
      }
    };
    {
      std::vector<std::jthread> threads;
      for (auto const* const name : {"a", "b", "c"}) {
        threads.emplace_back(gateway, name);
      }
      // Long enough for a heartbeat of each.
      auto const begin = std::chrono::steady_clock::now();
      EXPECT_TRUE(test::eventually(
          [&] {
            redis.cli("SCRIPT FLUSH");
            return admitted > 100 && std::chrono::steady_clock::now() - begin > 2500ms;
          },
          60s));
    }
    EXPECT_LE(most, quota);
    EXPECT_GT(most, 1);
    std::cout << "[          ] " << admitted << " requests, at most " << most << " at a time\n";
  }
}

}  // namespace
}  // namespace tidegate::store_redis
