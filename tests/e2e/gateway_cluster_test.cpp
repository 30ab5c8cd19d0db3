// SPDX-License-Identifier: Apache-2.0
//
// Several gateways, as users run them, that share quotas in a real Redis.
#include "gateway.hpp"
#include "keyed.hpp"

#include "support/redis_server.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace tidegate::e2e {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;
using test::redis_server;

constexpr int quota = 100'000;

/// How many requests each answer came to.
struct tally {
  std::atomic<int> admitted = 0;
  std::atomic<int> refused = 0;
  std::atomic<int> unavailable = 0;
  std::atomic<int> other = 0;
};

/// 64 clients that ask three gateways until nothing was admitted for a while.
class crowd {
 public:
  crowd(std::string const& redis_url, std::string const& counting) {
    auto const config =
        "stores: {quota: \"" + redis_url + "\"}\npolicies:\n  p: {quota: " + std::to_string(quota) +
        ", window: 1h, algorithm: fixed, partition: [], on-store-failure: deny, "
        "counting: " +
        counting + "}\nroutes:\n  - {match: {path: /**}, service: echo, limits: [p]}\n";
    for (int i = 0; i < 3; ++i) {
      gateways_.push_back(std::make_unique<gateway>(config));
    }
  }

  /// `at_half` is called once, when half of the quota is spent.
  void run(tally& seen, std::function<void()> const& at_half = {}) {
    constexpr int connections = 64;
    constexpr int threads_count = 4;
    constexpr int depth = 8;  // requests that follow one another without waiting
    std::atomic<clock::rep> last_admitted = clock::now().time_since_epoch().count();
    std::atomic<bool> half = false;
    std::string burst;
    for (int i = 0; i < depth; ++i) {
      burst += "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    }
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < threads_count; ++thread) {
      threads.emplace_back([&, thread] {
        std::vector<connection> clients;
        for (int i = thread; i < connections; i += threads_count) {
          clients.push_back(gateways_[static_cast<std::size_t>(i) % gateways_.size()]->connect());
        }
        while (clock::now() - clock::time_point(clock::duration(last_admitted)) < 3s) {
          for (auto& client : clients) {
            client.send(burst);
          }
          for (auto& client : clients) {
            for (int i = 0; i < depth; ++i) {
              auto const status = client.read_response().status();
              if (status == 200) {
                ++seen.admitted;
                last_admitted = clock::now().time_since_epoch().count();
              } else {
                ++(status == 429 ? seen.refused : status == 503 ? seen.unavailable : seen.other);
              }
            }
          }
          if (at_half && seen.admitted > quota / 2 && !half.exchange(true)) {
            at_half();
          }
        }
      });
    }
  }

  [[nodiscard]] auto metric(std::string const& name) const -> double {
    double sum = 0;
    for (auto const& each : gateways_) {
      sum += each->metric(name);
    }
    return sum;
  }

 private:
  std::vector<std::unique_ptr<gateway>> gateways_;
};

class gateway_cluster : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (!redis_server::is_installed()) {
      GTEST_SKIP() << redis_server::missing;
    }
  }
};
INSTANTIATE_TEST_SUITE_P(counting, gateway_cluster, testing::Values("exact", "lease"),
                         [](auto const& info) { return info.param; });

TEST_P(gateway_cluster, admits_no_more_than_one_quota_and_nearly_all_of_it) {
  redis_server const redis;
  crowd clients("redis://" + redis.address(), GetParam());
  tally seen;
  clients.run(seen);
  auto const trips = clients.metric("tidegate_quota_store_round_trips_total");
  std::cout << GetParam() << ": " << seen.admitted << " of " << quota << " admitted, "
            << seen.refused << " refused, " << trips << " round trips\n";
  EXPECT_LE(seen.admitted, quota);
  EXPECT_GE(seen.admitted, quota * 99 / 100);
  EXPECT_EQ(seen.other, 0);
  EXPECT_LT(trips, quota / 2);
}

TEST_P(gateway_cluster, exceeds_the_quota_by_little_when_a_replica_takes_over) {
  redis_server first;
  redis_server const second({"--replicaof", "127.0.0.1 " + std::to_string(first.port())});
  redis_server const sentinel({"--sentinel"});
  sentinel.cli("SENTINEL MONITOR primary 127.0.0.1 " + std::to_string(first.port()) + " 1");
  sentinel.cli("SENTINEL SET primary down-after-milliseconds 300");
  sentinel.cli("SENTINEL SET primary failover-timeout 2000");
  ASSERT_TRUE(test::eventually([&] {
    return sentinel.cli("SENTINEL REPLICAS primary").find(std::to_string(second.port())) !=
               std::string::npos &&
           second.cli("INFO replication").find("master_link_status:up") != std::string::npos;
  }));
  crowd clients("redis+sentinel://" + sentinel.address() + "/primary", GetParam());
  tally seen;
  clients.run(seen, [&] { first.kill(); });
  std::cout << GetParam() << ": " << seen.admitted << " of " << quota
            << " admitted over a fail-over, overshoot " << std::max(0, seen.admitted.load() - quota)
            << "; " << seen.refused << " refused, " << seen.unavailable
            << " while there was no master\n";
  // What the replica had not heard of: less than a moment's worth.
  EXPECT_LE(seen.admitted, quota + quota / 100);
  EXPECT_GE(seen.admitted, quota * 99 / 100);
  EXPECT_GT(seen.unavailable, 0);
  EXPECT_EQ(seen.other, 0);
}

TEST(gateway_cluster_failure, says_when_redis_goes_and_when_it_is_back) {
  if (!redis_server::is_installed()) {
    GTEST_SKIP() << redis_server::missing;
  }
  redis_server redis({"--appendonly", "yes", "--appendfsync", "always"});
  gateway with("stores: {quota: \"redis://" + redis.address() +
               "\"}\npolicies:\n  p: {quota: 10, window: 1h, partition: [], on-store-failure: "
               "deny}\nroutes:\n  - {match: {path: /**}, service: echo, limits: [p]}\n");
  EXPECT_EQ(with.get("/").status(), 200);
  redis.kill();
  expect_eventually([&] { return with.get("/").status() == 503; }, "the gateway notices");
  redis.restart();
  expect_eventually([&] { return with.get("/").status() == 200; }, "it goes on");
  EXPECT_THAT(with.get("/").field("RateLimit"), testing::HasSubstr("r=7"));
  EXPECT_GT(with.metric(R"(tidegate_quota_store_decisions_total{by="failure"})"), 0);
  auto const said = with.errors();
  EXPECT_THAT(said, testing::HasSubstr("warning: the store of quotas does not answer ("));
  EXPECT_THAT(said, testing::HasSubstr("warning: the store of quotas answers again\n"));
}

TEST(gateway_cluster_keys, are_replayed_by_another_gateway_which_waits_for_their_answer) {
  if (!redis_server::is_installed()) {
    GTEST_SKIP() << redis_server::missing;
  }
  redis_server const redis;
  origin api;
  data_folder const data;
  auto const config = "secrets: " + data.path() + "/secrets.key\nstores: {idempotency: \"redis://" +
                      redis.address() + "\"}\n" + keyed_config(api.url(), data, "in-flight: wait");
  gateway const first(config);
  gateway const second(config);
  auto owner = first.connect();
  owner.send(post("\"k\""));
  auto server = api.accept();
  (void)server.read_request();
  auto duplicate = second.connect();
  duplicate.send(post("\"k\""));
  expect_eventually([&] { return second.metric("tidegate_idempotency_waiting") == 1; },
                    "the duplicate waits");
  server.send("HTTP/1.1 201 Created\r\nContent-Length: 4\r\n\r\ndone");
  EXPECT_EQ(owner.read_response().status(), 201);
  auto const replayed = duplicate.read_response();
  EXPECT_EQ(replayed.status(), 201);
  EXPECT_EQ(replayed.field("Idempotent-Replayed"), "true");
  EXPECT_EQ(replayed.body, "done");
}

}  // namespace
}  // namespace tidegate::e2e
