// SPDX-License-Identifier: Apache-2.0
#include "protocol/client.hpp"
#include "protocol/cluster_slots.hpp"
#include "support/redis_server.hpp"
#include "turned_loop.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tidegate::store_redis {
namespace {

using namespace std::chrono_literals;
using store::store_fault;
using test::eventually;
using test::redis_cluster;
using test::redis_server;

/// Soon enough for tests.
connection_options const quick{.connect_timeout = 1'000ms,
                               .command_timeout = 5'000ms,
                               .backoff_first = 10ms,
                               .backoff_max = 50ms,
                               .refresh_interval = 100ms,
                               .recovery_interval = 20ms};

class store_redis_client : public turned_loop {
 protected:
  [[nodiscard]] auto to(std::string const& url, connection_options const& options = quick)
      -> std::unique_ptr<client> {
    auto const parsed = parse_server_url(url);
    EXPECT_TRUE(parsed.has_value()) << url;
    auto made = client::make(on(), *parsed, options);
    EXPECT_TRUE(made.has_value());
    return *std::move(made);
  }
  /// Waits until a key can be written again, however often that fails first.
  [[nodiscard]] auto writes_again(client& redis, std::string const& key) -> bool {
    return until([&] { return text(redis, key, command{"SET", key, "again"}) == "OK"; });
  }
};

TEST_F(store_redis_client, asks_one_server) {
  redis_server const redis;
  auto const client = to("redis://" + redis.address());
  EXPECT_TRUE(client->is_up("a"));
  EXPECT_EQ(text(*client, "a", command{"SET", "a", "1"}), "OK");
  EXPECT_NE(redis.cli("INFO commandstats").find("cmdstat_set:calls=1,"), std::string::npos);
}

TEST_F(store_redis_client, says_which_file_of_tls_it_cannot_use) {
  auto const made = client::make(on(), *parse_server_url("rediss://a?ca=/no/ca.pem"));
  ASSERT_FALSE(made.has_value());
  EXPECT_TRUE(made.error().starts_with("cannot use the certificates /no/ca.pem: "));
}

// ---- cluster ----

class store_redis_cluster_client : public store_redis_client {
 protected:
  /// A key of a slot.
  [[nodiscard]] static auto key_in(std::uint16_t slot) -> std::string {
    for (int i = 0;; ++i) {
      if (auto key = "key" + std::to_string(i); slot_of(key) == slot) {
        return key;
      }
    }
  }
};

TEST_F(store_redis_cluster_client, finds_the_server_of_every_key) {
  redis_cluster const cluster;
  auto const client = to("redis+cluster://" + cluster.node(0).address());
  int good = 0;
  for (int i = 0; i < 300; ++i) {
    auto const key = "k" + std::to_string(i);
    client->send(key, {"SET", key, "1"}, [&](answer const& a) { good += a && a->text == "OK"; });
  }
  ASSERT_TRUE(until([&] { return good == 300; }));
  auto total = 0;
  for (std::size_t i = 0; i < 3; ++i) {
    auto const keys = std::stoi(cluster.node(i).cli("DBSIZE"));
    EXPECT_GT(keys, 50);
    total += keys;
  }
  EXPECT_EQ(total, 300);
}

TEST_F(store_redis_cluster_client, follows_a_slot_that_moved_and_one_that_is_moving) {
  redis_cluster const cluster;
  auto options = quick;
  options.refresh_interval = 1h;  // only the servers say where slots are
  options.recovery_interval = 1h;
  auto const client = to(cluster.url(), options);
  auto const key = key_in(100);
  auto& source = cluster.node(0);
  auto& target = cluster.node(2);
  auto const source_id = source.cli("CLUSTER MYID");
  auto const target_id = target.cli("CLUSTER MYID");
  auto const other = "{" + key + "}2";
  ASSERT_EQ(text(*client, key, command{"SET", key, "1"}), "OK");
  ASSERT_EQ(text(*client, key, command{"SET", other, "2"}), "OK");

  // While it moves: what is gone from the source is asked for at the target.
  target.cli("CLUSTER SETSLOT 100 IMPORTING " + source_id);
  source.cli("CLUSTER SETSLOT 100 MIGRATING " + target_id);
  EXPECT_EQ(text(*client, key, command{"GET", key}), "1") << "still here";
  source.cli("MIGRATE 127.0.0.1 " + std::to_string(target.port()) + " " + key + " 0 5000");
  EXPECT_EQ(text(*client, key, command{"GET", key}), "1");
  auto const both = ask(*client, key, command{"GET", key}.then({"STRLEN", key}));
  ASSERT_TRUE(both.has_value());
  ASSERT_EQ(both->items.size(), 2U);
  EXPECT_EQ(both->items[0].text, "1");

  // Some keys here and some there: it passes when all of them are there.
  std::optional<answer> joined;
  client->send(key, {"MGET", key, other}, [&](answer a) { joined = std::move(a); });
  ASSERT_TRUE(until([&] {
    return (source.cli("INFO errorstats") + target.cli("INFO errorstats")).find("TRYAGAIN") !=
           std::string::npos;
  }));
  EXPECT_FALSE(joined.has_value());
  source.cli("MIGRATE 127.0.0.1 " + std::to_string(target.port()) + " " + other + " 0 5000");
  ASSERT_TRUE(until([&] { return joined.has_value(); }));
  ASSERT_TRUE(joined->has_value());
  ASSERT_EQ((*joined)->items.size(), 2U);
  EXPECT_EQ((*joined)->items[1].text, "2");

  // All nodes know now.
  for (std::size_t i = 0; i < 3; ++i) {
    cluster.node(i).cli("CLUSTER SETSLOT 100 NODE " + target_id);
  }
  EXPECT_EQ(text(*client, key, command{"GET", key}), "1");
  EXPECT_EQ(target.cli("GET " + key), "1");
  auto const before = source.cli("INFO errorstats");
  EXPECT_EQ(text(*client, key, command{"GET", key}), "1");
  EXPECT_EQ(source.cli("INFO errorstats"), before) << "it has learnt where the slot is";
}

TEST_F(store_redis_cluster_client, goes_on_with_the_replica_when_a_master_dies) {
  redis_cluster const cluster(3, true);
  auto const client = to(cluster.url());
  auto const key = key_in(100);  // of the first
  ASSERT_EQ(text(*client, key, command{"SET", key, "1"}), "OK");
  ASSERT_EQ(text(*client, key, command{"WAIT", "1", "5000"}), "");
  cluster.node(0).kill();
  ASSERT_TRUE(until([&] { return !client->is_up(key); }));
  EXPECT_NE(client->error_text(key).find(cluster.node(0).address()), std::string::npos);
  auto const others = key_in(10'000);
  ASSERT_TRUE(until([&] { return client->is_up(key); })) << client->error_text(key);
  EXPECT_EQ(text(*client, key, command{"GET", key}), "1");
  EXPECT_TRUE(writes_again(*client, key));
  EXPECT_TRUE(writes_again(*client, others));
}

TEST_F(store_redis_cluster_client, says_what_is_wrong_when_there_is_no_cluster) {
  redis_server const redis;
  auto const client = to("redis+cluster://" + redis.address());
  auto const got = ask(*client, "a", {"PING"});
  ASSERT_FALSE(got.has_value());
  EXPECT_EQ(got.error().fault, store_fault::unavailable);
  EXPECT_EQ(client->error_text("a"),
            redis.address() + ": ERR This instance has cluster support disabled");
  auto const nobody = to("redis+cluster://127.0.0.1:" + std::to_string(test::free_port()));
  EXPECT_FALSE(ask(*nobody, "a", {"PING"}).has_value());
  EXPECT_FALSE(nobody->is_up("a"));
}

// ---- sentinel ----

/// A master, a replica and a sentinel that watches them.
struct watched_pair {
  redis_server first;
  redis_server second{{"--replicaof", "127.0.0.1 " + std::to_string(first.port())}};
  redis_server sentinel{{"--sentinel"}};

  watched_pair() {
    sentinel.cli("SENTINEL MONITOR primary 127.0.0.1 " + std::to_string(first.port()) + " 1");
    sentinel.cli("SENTINEL SET primary down-after-milliseconds 300");
    sentinel.cli("SENTINEL SET primary failover-timeout 2000");
    EXPECT_TRUE(eventually([&] {
      return second.cli("INFO replication").find("master_link_status:up") != std::string::npos &&
             sentinel.cli("SENTINEL REPLICAS primary").find(std::to_string(second.port())) !=
                 std::string::npos;
    }));
  }
  [[nodiscard]] auto url() const -> std::string {
    return "redis+sentinel://127.0.0.1:" + std::to_string(test::free_port()) + "," +
           sentinel.address() + "/primary";
  }
};

class store_redis_sentinel_client : public store_redis_client {};

TEST_F(store_redis_sentinel_client, follows_a_fail_over) {
  watched_pair servers;
  auto const client = to(servers.url());
  EXPECT_EQ(text(*client, "a", command{"SET", "a", "1"}), "OK");
  EXPECT_EQ(servers.first.cli("GET a"), "1");
  ASSERT_EQ(text(*client, "a", command{"WAIT", "1", "5000"}), "");
  servers.first.kill();
  ASSERT_TRUE(until([&] { return !client->is_up("a"); }));
  ASSERT_TRUE(writes_again(*client, "b"));
  EXPECT_EQ(servers.second.cli("GET b"), "again");
  EXPECT_EQ(text(*client, "a", command{"GET", "a"}), "1");
}

TEST_F(store_redis_sentinel_client, leaves_a_master_that_was_made_a_replica) {
  watched_pair servers;
  auto options = quick;
  options.command_timeout = 20s;
  auto const client = to(servers.url(), options);
  ASSERT_EQ(text(*client, "a", command{"SET", "a", "1"}), "OK");
  // As for a gateway that a fail-over has left its connection to.
  servers.second.cli("REPLICAOF NO ONE");
  servers.first.cli("REPLICAOF 127.0.0.1 " + std::to_string(servers.second.port()));
  servers.sentinel.cli("SENTINEL REMOVE primary");
  servers.sentinel.cli("SENTINEL MONITOR primary 127.0.0.1 " +
                       std::to_string(servers.second.port()) + " 1");
  ASSERT_TRUE(writes_again(*client, "b"));
  EXPECT_EQ(servers.second.cli("GET b"), "again");
}

TEST_F(store_redis_sentinel_client, says_what_is_wrong_when_no_sentinel_knows_the_master) {
  redis_server const sentinel({"--sentinel"});
  auto const client = to("redis+sentinel://" + sentinel.address() + "/absent");
  ASSERT_TRUE(until([&] { return !client->is_up("a"); }));
  auto const got = ask(*client, "a", {"PING"});
  ASSERT_FALSE(got.has_value());
  EXPECT_EQ(got.error().text, sentinel.address() + ": it knows no master \"absent\"");
}

}  // namespace
}  // namespace tidegate::store_redis
