// SPDX-License-Identifier: Apache-2.0
//
// Several gateways, as users run them, that share quotas in a real Redis.
#include "gateway.hpp"
#include "keyed.hpp"
#include "scim.hpp"

#include "support/postgres_server.hpp"
#include "support/redis_server.hpp"
#include "support/sanitized.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace tidegate::e2e {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;
using test::redis_server;
using test_support::postgres_server;

constexpr int quota = test_support::sanitized ? 10'000 : 100'000;

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

  /// `at_half` is called once, when half of the quota is spent. Ends when nothing was
  /// admitted for a while: longer as long as much of the quota is left.
  void run(tally& seen, std::function<void()> const& at_half = {},
           clock::duration until_nothing_for = 3s) {
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
        auto const is_over = [&] {
          auto const wait = seen.admitted < quota * 99 / 100 ? until_nothing_for : 3s;
          return clock::now() - clock::time_point(clock::duration(last_admitted)) > wait;
        };
        while (!is_over()) {
          for (auto& client : clients) {
            client.send(burst);
          }
          bool any_decision = false;
          for (auto& client : clients) {
            for (int i = 0; i < depth; ++i) {
              auto const status = client.read_response().status();
              any_decision = any_decision || status != 503;
              if (status == 200) {
                ++seen.admitted;
                last_admitted = clock::now().time_since_epoch().count();
              } else {
                ++(status == 429 ? seen.refused : status == 503 ? seen.unavailable : seen.other);
              }
            }
          }
          // As Retry-After asks, though sooner: an election of a master takes time, too.
          if (!any_decision) {
            std::this_thread::sleep_for(10ms);
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
                         [](auto const& test) { return test.param; });

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
  // The replica has everything up to a moment before the master goes: what is admitted in between
  // it may never hear of.
  int unheard = 0;
  auto const offset_of = [](redis_server const& server, std::string const& name) {
    auto const info = server.cli("INFO replication");
    auto const at = info.find(name + ":");
    return at == std::string::npos ? 0ULL : std::stoull(info.substr(at + name.size() + 1));
  };
  auto const kill_master = [&] {
    auto const before = seen.admitted.load();
    auto const told = offset_of(first, "master_repl_offset");
    EXPECT_TRUE(test::eventually([&] { return offset_of(second, "slave_repl_offset") >= told; }));
    first.kill();
    unheard = seen.admitted - before;
  };
  // A busy machine takes its time to elect another master.
  clients.run(seen, kill_master, 30s);
  auto const overshoot = std::max(0, seen.admitted.load() - quota);
  std::cout << GetParam() << ": " << seen.admitted << " of " << quota
            << " admitted over a fail-over, overshoot " << overshoot << " of " << unheard
            << " that the replica may not have heard of; " << seen.refused << " refused, "
            << seen.unavailable << " while there was no master\n";
  // Besides, what was under way, and what had been taken ahead.
  constexpr int under_way = 64 * 8;
  EXPECT_LE(overshoot, unheard + under_way + (GetParam() == "lease" ? quota / 4 : 0));
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
               "\"}\npolicies:\n  p: {quota: 900000, window: 1h, partition: [], on-store-failure: "
               "deny}\nroutes:\n  - {match: {path: /**}, service: echo, limits: [p]}\n");
  EXPECT_EQ(with.get("/").status(), 200);
  redis.kill();
  expect_eventually([&] { return with.get("/").status() == 503; }, "the gateway notices");
  auto said = with.errors_until("Z warning: the store of quotas does not answer (");
  redis.restart();
  expect_eventually([&] { return with.get("/").status() == 200; }, "it goes on");
  EXPECT_THAT(with.get("/").field("RateLimit"), testing::HasSubstr("r=899997"));
  EXPECT_GT(with.metric(R"(tidegate_quota_store_decisions_total{by="failure"})"), 0);
  expect_eventually(
      [&] {
        (void)with.get("/");
        said += with.errors();
        return said.ends_with("Z info: the store of quotas answers again\n");
      },
      "it says so");
}

/// What gateways share, in a file of the folder.
[[nodiscard]] auto shared_secret(data_folder const& data, char octet = 's') -> std::string {
  auto const file = data.path() + "/secrets.key";
  std::filesystem::remove(file);
  std::ofstream(file) << std::string(32, octet);
  std::filesystem::permissions(file, std::filesystem::perms::owner_read);
  return "secrets: " + file + "\n";
}

/// Has a request run on one gateway and asks for it on another.
void expect_one_key_of_two_gateways(std::string const& store) {
  origin api;
  data_folder const data;
  auto const config = shared_secret(data) + "stores: {idempotency: \"" + store + "\"}\n" +
                      keyed_config(api.url(), data, "in-flight: wait");
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

TEST(gateway_cluster_keys, in_redis_are_replayed_by_another_gateway_which_waits_for_the_answer) {
  if (!redis_server::is_installed()) {
    GTEST_SKIP() << redis_server::missing;
  }
  redis_server const redis;
  expect_one_key_of_two_gateways("redis://" + redis.address());
}

/// An outcome that one gateway does not know is counted by another one too.
void expect_one_count_of_two_gateways(std::string const& store) {
  origin api;
  data_folder const data;
  auto const config = shared_secret(data) + "stores: {idempotency: \"" + store + "\"}\n" +
                      keyed_config(api.url(), data);
  gateway const first(config);
  gateway const second(config);
  auto client = first.connect();
  client.send(post("\"k\""));
  auto server = api.accept();
  (void)server.read_request();
  server.close();
  expect_code(client.read_response(), 502, "outcome-unknown");
  for (auto const* const each : {&first, &second}) {
    expect_eventually([&] { return each->metric("tidegate_idempotency_unresolved") == 1; },
                      "it is counted");
  }
  auto const listed = second.admin("/api/v1/idempotency/unknown").body;
  EXPECT_THAT(listed, testing::HasSubstr(
                          R"("route":"/**","method":"POST","host":"a.example","path":"/a")"));
}

TEST(gateway_cluster_keys, in_redis_whose_outcome_is_unknown_are_counted_by_every_gateway) {
  if (!redis_server::is_installed()) {
    GTEST_SKIP() << redis_server::missing;
  }
  redis_server const redis;
  expect_one_count_of_two_gateways("redis://" + redis.address());
}

TEST(gateway_cluster_keys, in_postgresql_whose_outcome_is_unknown_are_counted_by_every_gateway) {
  if (!postgres_server::is_installed()) {
    GTEST_SKIP() << postgres_server::missing;
  }
  expect_one_count_of_two_gateways(postgres_server::shared().fresh_database());
}

TEST(gateway_cluster_keys, in_redis_are_not_sent_again_by_their_gateway_after_flushall) {
  if (!redis_server::is_installed()) {
    GTEST_SKIP() << redis_server::missing;
  }
  redis_server const redis;
  origin api;
  data_folder const data;
  gateway const with(shared_secret(data) + "stores: {idempotency: \"redis://" + redis.address() +
                     "\"}\n" + keyed_config(api.url(), data));
  auto client = with.connect();
  client.send(post("\"k\""));
  auto server = api.accept();
  (void)server.read_request();
  redis.cli("FLUSHALL");
  expect_code(with.ask(post("\"k\"")), 409, "in-flight");
  server.send(response("201 Created", "once"));
  EXPECT_EQ(client.read_response().body, "once");
  EXPECT_EQ(with.ask(post("\"k\"")).field("Idempotent-Replayed"), "true");
  EXPECT_TRUE(server.is_silent());
  EXPECT_TRUE(api.is_untouched());
}

TEST(gateway_cluster_keys, in_postgresql_are_replayed_by_another_gateway_which_waits) {
  if (!postgres_server::is_installed()) {
    GTEST_SKIP() << postgres_server::missing;
  }
  expect_one_key_of_two_gateways(postgres_server::shared().fresh_database());
}

TEST(gateway_cluster_keys, need_a_secret_that_an_operator_has_made) {
  if (!redis_server::is_installed()) {
    GTEST_SKIP() << redis_server::missing;
  }
  redis_server const redis;
  origin const api;
  data_folder const data;
  try {
    gateway const with("stores: {idempotency: \"redis://" + redis.address() + "\"}\n" +
                       keyed_config(api.url(), data));
    FAIL() << "it starts";
  } catch (std::runtime_error const& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("gateways that share a store need the same"));
  }
}

/// Two gateways with two secrets: the second one is told what to do.
void expect_one_secret(std::string const& store) {
  serving_origin const api(response("201 Created", "once"));
  data_folder const data;
  data_folder const other_data;
  auto const stores = "stores: {idempotency: \"" + store + "\"}\n";
  gateway const first(shared_secret(data) + stores + keyed_config(api.url(), data));
  EXPECT_EQ(first.ask(post("\"k\"")).status(), 201);
  auto const other_config =
      shared_secret(other_data, 'o') + stores + keyed_config(api.url(), other_data);
  try {
    gateway const second(other_config);
    FAIL() << "it starts";
  } catch (std::runtime_error const& error) {
    EXPECT_THAT(error.what(),
                testing::HasSubstr("its keys were stored with another secret, so that none of them "
                                   "would be found: gateways that share a store need the same "
                                   "secrets file; give this one the file of the others"));
  }
  EXPECT_EQ(first.ask(post("\"k\"")).field("Idempotent-Replayed"), "true") << "it is not disturbed";
  gateway const third(shared_secret(other_data) + stores + keyed_config(api.url(), other_data));
  EXPECT_EQ(third.ask(post("\"k\"")).field("Idempotent-Replayed"), "true");
  EXPECT_EQ(api.requests(), 1U);
}

TEST(gateway_cluster_keys, in_redis_refuse_a_gateway_with_another_secret) {
  if (!redis_server::is_installed()) {
    GTEST_SKIP() << redis_server::missing;
  }
  redis_server const redis;
  expect_one_secret("redis://" + redis.address());
}

TEST(gateway_cluster_keys, in_postgresql_refuse_a_gateway_with_another_secret) {
  if (!postgres_server::is_installed()) {
    GTEST_SKIP() << postgres_server::missing;
  }
  expect_one_secret(postgres_server::shared().fresh_database());
}

// ---- the directory ----

TEST(gateway_cluster_directory, is_walked_through_two_gateways_while_a_third_writes) {
  if (!postgres_server::is_installed()) {
    GTEST_SKIP() << postgres_server::missing;
  }
  constexpr int users = 200;
  data_folder const data;
  auto const config =
      scim_config(data, "",
                  shared_secret(data) + "stores: {idempotency: memory, directory: \"" +
                      postgres_server::shared().fresh_database() + "\"}\n");
  gateway const first(config);
  gateway const second(config);
  gateway const third(config);
  auto const user = [](std::string const& name) {
    return R"({"schemas":["urn:ietf:params:scim:schemas:core:2.0:User"],"userName":")" + name +
           "\"}";
  };
  scim_client const writer(third);
  std::vector<std::string> ids;
  for (int i = 0; i < users; ++i) {
    auto const made = writer.post("/Users", user("stays" + std::to_string(i)));
    ASSERT_EQ(made.status(), 201) << made.raw.body;
    ids.push_back(made.id());
  }
  std::atomic<bool> stopping = false;
  std::atomic<int> written = 0;
  std::jthread const writes([&] {
    for (int i = 0; !stopping; ++i) {
      auto const made = writer.post("/Users", user("comes" + std::to_string(i)));
      EXPECT_EQ(made.status(), 201);
      EXPECT_EQ(writer.remove("/Users/" + made.id()).status(), 204);
      (void)writer.patch(
          "/Users/" + ids[static_cast<std::size_t>(i) % ids.size()],
          R"({"op":"replace","path":"title","value":"t)" + std::to_string(i) + "\"}");
      ++written;
    }
  });
  std::array const readers{scim_client(first), scim_client(second)};
  for (auto const* const order :
       {"", "&sortBy=userName", "&sortBy=userName&sortOrder=descending"}) {
    std::map<std::string, int> seen;
    auto const count = [&](scim_message const& page) {
      ASSERT_EQ(page.status(), 200) << page.raw.body;
      // A first page that was reached from behind is filled up with what follows it.
      bool const may_repeat = page.at("previousCursor") == "(none)";
      for (std::size_t i = 0; i < page.count("Resources"); ++i) {
        auto& times = seen[page.at("Resources." + std::to_string(i) + ".userName")];
        times += times > 0 && may_repeat ? 0 : 1;
      }
    };
    auto page = readers[0].get("/Users?cursor&count=7" + std::string(order));
    count(page);
    std::size_t turn = 1;
    for (; page.at("nextCursor") != "(none)"; ++turn) {
      page = readers[turn % 2].get("/Users?count=7" + std::string(order) +
                                   "&cursor=" + page.at("nextCursor"));
      count(page);
    }
    for (int i = 0; i < users; ++i) {
      EXPECT_EQ(seen["stays" + std::to_string(i)], 1) << order;
    }
    // And back again.
    seen.clear();
    count(page);
    for (; page.at("previousCursor") != "(none)"; ++turn) {
      page = readers[turn % 2].get("/Users?count=7" + std::string(order) +
                                   "&cursor=" + page.at("previousCursor"));
      count(page);
    }
    for (int i = 0; i < users; ++i) {
      EXPECT_EQ(seen["stays" + std::to_string(i)], 1) << "backwards " << order;
    }
  }
  stopping = true;
  EXPECT_GT(written, 0);
}

}  // namespace
}  // namespace tidegate::e2e
