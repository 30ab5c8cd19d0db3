// SPDX-License-Identifier: Apache-2.0
#include <tidegate/store_redis/idempotency_store.hpp>

#include "keys/stored_record.hpp"
#include "support/idempotency_cut.hpp"
#include "support/idempotency_store_contract.hpp"
#include "support/redis_server.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace tidegate::store_redis {
namespace {

using namespace std::chrono_literals;
using namespace store::contract;
using idempotency::record_state;
using idempotency::wall_time;
using store::store_error;
using store::store_fault;
using test::eventually;
using test::redis_cluster;
using test::redis_server;

using opened = std::unique_ptr<store::idempotency_store>;

auto options_for(std::string const& url) -> idempotency_options {
  auto const parsed = parse_server_url(url);
  EXPECT_TRUE(parsed.has_value()) << url;
  return {.where = parsed.value_or(server_url{}), .clock = [] { return start; }};
}
auto options_for(redis_server const& redis) -> idempotency_options {
  return options_for("redis://" + redis.address());
}

/// The same for a gateway with a secret.
auto options_for(std::string const& url, std::string const& secret_digest) -> idempotency_options {
  auto options = options_for(url);
  options.secret_digest = secret_digest;
  return options;
}
auto options_for(redis_server const& redis, std::string const& secret_digest)
    -> idempotency_options {
  return options_for("redis://" + redis.address(), secret_digest);
}

auto open(idempotency_options options) -> opened {
  auto store = open_idempotency_store(std::move(options));
  EXPECT_TRUE(store.has_value()) << (store ? "" : store.error().text);
  return store ? *std::move(store) : nullptr;
}

auto key_with(std::uint32_t id, unsigned char octet) -> store::seal_key {
  store::seal_key key{id, {}};
  key.octets.fill(static_cast<std::byte>(octet));
  return key;
}

struct redis_maker {
  std::unique_ptr<redis_server> redis;
  [[nodiscard]] static auto missing() -> char const* {
    return redis_server::is_installed() ? "" : redis_server::missing;
  }
  [[nodiscard]] auto make(std::size_t records_max) -> std::unique_ptr<store::idempotency_store> {
    redis = std::make_unique<redis_server>();
    auto options = options_for(*redis);
    options.records_max = records_max;
    return open(std::move(options));
  }
};
/// Sealed responses, in a cluster.
struct cluster_maker {
  std::unique_ptr<redis_cluster> redis;
  static constexpr bool is_on_several_servers = true;
  [[nodiscard]] static auto missing() -> char const* { return redis_maker::missing(); }
  [[nodiscard]] auto make(std::size_t records_max) -> std::unique_ptr<store::idempotency_store> {
    redis = std::make_unique<redis_cluster>();
    auto options = options_for(redis->url());
    options.records_max = records_max;
    options.seal_keys = {key_with(1, 1)};
    options.secret_digest = "one";
    return open(std::move(options));
  }
};

INSTANTIATE_TYPED_TEST_SUITE_P(redis, store_contract, redis_maker);
INSTANTIATE_TYPED_TEST_SUITE_P(redis_cluster, store_contract, cluster_maker);

class store_redis_idempotency : public testing::Test {
 protected:
  void SetUp() override {
    if (!redis_server::is_installed()) {
      GTEST_SKIP() << redis_server::missing;
    }
  }

  static void store_answer(store::idempotency_store& store, std::string_view key,
                           std::string const& body) {
    auto const claim = claim_of(key_of(key), 1);
    ASSERT_TRUE(made(store, claim));
    ASSERT_TRUE(made(store, complete(claim.key, *claim.next, response_of(body), start)));
  }
  static auto body_of(store::idempotency_store& store, std::string_view key) -> std::string {
    auto const found = find(store, key_of(key));
    if (!found) {
      return "error: " + found.error().text;
    }
    return *found && (*found)->response ? (*found)->response->body : "none";
  }
  static auto error_of(idempotency_options options) -> store_error {
    auto const store = open_idempotency_store(std::move(options));
    return store ? store_error{} : store.error();
  }
};

TEST_F(store_redis_idempotency, makes_each_change_once_behind_whichever_octet_it_is_cut) {
  redis_server const redis;
  auto const open_at = [](std::uint16_t port) {
    return open(options_for("redis://127.0.0.1:" + std::to_string(port), "one"));
  };
  auto const direct = open_at(redis.port());
  ASSERT_NE(direct, nullptr);
  auto const cuts = change_behind_every_cut({redis.port(), open_at, true}, *direct);
  EXPECT_GT(cuts, test_support::sanitized ? 40U : 150U);
  // What is counted is what is there.
  auto const records = redis.cli("--scan --pattern 'tidegate:*:record:*' | wc -l");
  EXPECT_EQ(records, std::to_string(direct->used().records));
  RecordProperty("cuts", std::to_string(cuts));
}

TEST_F(store_redis_idempotency, lets_one_of_two_gateways_win_and_shows_the_other_why) {
  redis_server const redis;
  auto const one = open(options_for(redis));
  auto const two = open(options_for(redis));
  for (int i = 0; i < 100; ++i) {
    auto const key = key_of(std::to_string(i));
    std::promise<store::apply_answer> first;
    std::promise<store::apply_answer> second;
    one->apply(claim_of(key, 1), [&](store::apply_answer a) { first.set_value(std::move(a)); });
    two->apply(claim_of(key, 2), [&](store::apply_answer a) { second.set_value(std::move(a)); });
    auto const by_one = first.get_future().get();
    auto const by_two = second.get_future().get();
    ASSERT_TRUE(by_one && by_two);
    EXPECT_NE(by_one->made, by_two->made);
    auto const& loser = by_one->made ? *by_two : *by_one;
    ASSERT_TRUE(loser.found.has_value());
    EXPECT_EQ(loser.found->record.token, by_one->made ? 1U : 2U);
  }
  EXPECT_EQ(record_in(*one, key_of("0"))->token, record_in(*two, key_of("0"))->token);
}

TEST_F(store_redis_idempotency, touches_nothing_of_other_gateways_when_it_is_opened) {
  redis_server const redis;
  auto const one = open(options_for(redis));
  auto const claim = claim_of(key_of("a"), 1);
  ASSERT_TRUE(made(*one, claim));
  auto const two = open(options_for(redis));
  EXPECT_EQ(record_in(*one, key_of("a")), claim.next);
  EXPECT_EQ(two->used().records, 1U);
  EXPECT_TRUE(made(*two, complete(claim.key, *claim.next, response_of("x"), start)))
      << "a gateway with the token may complete it";
  EXPECT_EQ(body_of(*one, "a"), "x");
}

/// Moved to the clock of the reader, but for the time that messages take.
auto is_about(wall_time at, wall_time expected) -> bool {
  return at > expected - 5s && at < expected + 5s;
}

TEST_F(store_redis_idempotency, moves_the_times_of_others_to_its_own_clock) {
  redis_server const redis;
  auto slow = options_for(redis);
  slow.clock = [] { return start; };
  auto fast = options_for(redis);
  fast.clock = [] { return start + 3h; };
  auto const one = open(std::move(slow));
  auto const two = open(std::move(fast));
  auto const claim = claim_of(key_of("a"), 1);
  ASSERT_TRUE(made(*one, claim));
  EXPECT_EQ(record_in(*one, key_of("a")), claim.next) << "one's own is what it was";

  auto const seen = record_in(*two, key_of("a"));
  ASSERT_TRUE(seen.has_value());
  EXPECT_TRUE(is_about(seen->created, start + 3h));
  EXPECT_TRUE(is_about(seen->changed, start + 3h));
  EXPECT_TRUE(is_about(seen->lease_until, claim.next->lease_until + 3h));
  EXPECT_EQ(state_at(*seen, start + 3h), record_state::dispatched) << "its owner lives";

  // What is written again keeps its distance to now.
  ASSERT_TRUE(made(
      *two, mark_unknown(claim.key, *seen, idempotency::unknown_reason::no_answer, start + 3h)));
  auto const lost = record_in(*one, key_of("a"));
  ASSERT_TRUE(lost.has_value());
  EXPECT_TRUE(is_about(lost->created, start));
  EXPECT_TRUE(is_about(lost->changed, start));
  EXPECT_EQ(lost->lease_until, wall_time{});
}

TEST_F(store_redis_idempotency, ends_the_lease_of_another_gateway_by_the_clock_of_redis) {
  redis_server const redis;
  auto const one = open(options_for(redis));
  auto fast = options_for(redis);
  fast.clock = [] { return start + 3h; };
  auto const two = open(std::move(fast));
  auto const claim = claim_of(key_of("a"), 1);
  ASSERT_TRUE(made(*one, claim));
  auto const lease = claim.next->lease_until - start;
  auto const sweep = [&](wall_time now) {
    two->sweep(now, 1000);
    EXPECT_TRUE(find(*two, key_of("none")).has_value());
    return record_in(*two, key_of("a"))->state;
  };
  EXPECT_EQ(sweep(start + 3h), record_state::dispatched) << "three hours ahead, and no harm done";
  EXPECT_EQ(sweep(start + 3h + lease - 5s), record_state::dispatched);
  EXPECT_EQ(sweep(start + 3h + lease + 5s), record_state::unknown);
  auto const lost = record_in(*one, key_of("a"));
  EXPECT_EQ(lost->reason, idempotency::unknown_reason::gateway_stopped);
  EXPECT_TRUE(is_about(lost->changed, start + lease));
}

TEST_F(store_redis_idempotency, takes_the_time_of_the_last_sweep_where_it_has_no_clock) {
  redis_server const redis;
  auto options = options_for(redis);
  options.clock = nullptr;
  auto const one = open(options);
  auto const two = open(options);
  one->sweep(start, 10);
  two->sweep(start + 3h, 10);
  auto const claim = claim_of(key_of("a"), 1);
  ASSERT_TRUE(made(*one, claim));
  EXPECT_TRUE(is_about(record_in(*two, key_of("a"))->created, start + 3h));
}

TEST_F(store_redis_idempotency, refuses_a_server_that_may_drop_keys) {
  redis_server const redis({"--maxmemory-policy", "allkeys-lru"});
  auto const error = error_of(options_for(redis));
  EXPECT_EQ(error.fault, store_fault::unavailable);
  EXPECT_EQ(error.text, "redis://" + redis.address() +
                            ": its maxmemory-policy is \"allkeys-lru\", by which it may drop keys: "
                            "it has to be noeviction");
  redis.cli("CONFIG SET maxmemory-policy noeviction");
  EXPECT_NE(open(options_for(redis)), nullptr);
}

TEST_F(store_redis_idempotency, takes_no_new_keys_while_the_server_may_drop_them) {
  redis_server const redis;
  auto const store = open(options_for(redis));
  auto const claim = claim_of(key_of("a"), 1);
  ASSERT_TRUE(made(*store, claim));
  redis.cli("CONFIG SET maxmemory-policy allkeys-lru");
  std::optional<store_error> refused;
  ASSERT_TRUE(test::eventually([&, number = 0]() mutable {
    store->sweep(start, 10);
    auto const applied = apply(*store, claim_of(key_of("b" + std::to_string(++number)), 1));
    refused = applied ? std::nullopt : std::optional(applied.error());
    return refused.has_value();
  }));
  EXPECT_EQ(refused->fault, store_fault::unavailable);
  EXPECT_NE(refused->text.find("allkeys-lru"), std::string::npos) << refused->text;
  EXPECT_EQ(record_in(*store, key_of("a")), claim.next);
  EXPECT_TRUE(made(*store, release(claim.key, *claim.next, start))) << "what is there goes on";
  redis.cli("CONFIG SET maxmemory-policy noeviction");
  EXPECT_TRUE(test::eventually([&] {
    store->sweep(start, 10);
    return apply(*store, claim_of(key_of("c"), 1)).has_value();
  }));
}

TEST_F(store_redis_idempotency, says_why_it_cannot_be_opened) {
  auto const port = test::free_port();
  auto options = options_for("redis://127.0.0.1:" + std::to_string(port));
  options.open_timeout = 100ms;
  auto const error = error_of(options);
  EXPECT_EQ(error.fault, store_fault::unavailable);
  EXPECT_EQ(error.text, "127.0.0.1:" + std::to_string(port) + ": connect: Connection refused");
  options.where = *parse_server_url("rediss://127.0.0.1?ca=/no/ca.pem");
  EXPECT_TRUE(error_of(options).text.starts_with(
      "rediss://127.0.0.1:6379: cannot use the certificates /no/ca.pem"));
}

TEST_F(store_redis_idempotency, has_no_space_when_redis_has_no_memory) {
  redis_server const redis;
  auto const store = open(options_for(redis));
  auto const claim = claim_of(key_of("a"), 1);
  ASSERT_TRUE(made(*store, claim));
  redis.cli("CONFIG SET maxmemory 1");
  auto const refused = apply(*store, claim_of(key_of("b"), 1));
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().fault, store_fault::no_space);
  EXPECT_EQ(record_in(*store, key_of("a")), claim.next);
  EXPECT_TRUE(made(*store, release(claim.key, *claim.next, start))) << "that makes room";
  redis.cli("CONFIG SET maxmemory 0");
  auto once = claim_of(key_of("b"), 1);
  once.scope_keys_max = 1;
  EXPECT_TRUE(made(*store, once)) << "nothing was counted that is not there";
}

TEST_F(store_redis_idempotency, has_what_it_answered_after_a_crash_of_redis) {
  redis_server redis({"--appendonly", "yes", "--appendfsync", "always"});
  auto const store = open(options_for(redis));
  store_answer(*store, "a", "before");
  redis.kill();
  EXPECT_TRUE(eventually([&] { return !find(*store, key_of("a")).has_value(); }));
  auto const failed = apply(*store, claim_of(key_of("b"), 1));
  ASSERT_FALSE(failed.has_value());
  EXPECT_EQ(failed.error().fault, store_fault::unavailable);
  redis.restart();
  ASSERT_TRUE(eventually([&] { return find(*store, key_of("a")).has_value(); }));
  EXPECT_EQ(body_of(*store, "a"), "before");
  EXPECT_TRUE(made(*store, claim_of(key_of("b"), 1)));
}

TEST_F(store_redis_idempotency, sends_its_scripts_again_when_redis_has_forgotten_them) {
  redis_server const redis;
  auto const store = open(options_for(redis));
  redis.cli("SCRIPT FLUSH");
  auto const claim = claim_of(key_of("a"), 1);
  EXPECT_TRUE(made(*store, claim));
  redis.cli("SCRIPT FLUSH");
  store->sweep(start + 1h, 100);
  EXPECT_TRUE(
      eventually([&] { return record_in(*store, key_of("a"))->state == record_state::unknown; }));
}

TEST_F(store_redis_idempotency, answers_when_as_many_replicas_have_a_change_as_it_wants) {
  redis_server const redis;
  redis_server const replica({"--replicaof", "127.0.0.1 " + std::to_string(redis.port())});
  ASSERT_TRUE(eventually([&] {
    return replica.cli("INFO replication").find("master_link_status:up") != std::string::npos;
  }));
  auto options = options_for(redis);
  options.replicas_min = 1;
  options.replicas_timeout = 5s;
  {
    auto const store = open(options);
    store_answer(*store, "a", "x");
    EXPECT_EQ(replica.cli("DBSIZE"), redis.cli("DBSIZE"));
    redis.cli("SCRIPT FLUSH");
    auto const refused = apply(*store, claim_of(key_of("a"), 2));
    ASSERT_TRUE(refused.has_value() && refused->found.has_value());
  }
  options.replicas_min = 2;
  options.replicas_timeout = 50ms;
  auto const store = open(options);
  auto const failed = apply(*store, claim_of(key_of("b"), 1));
  ASSERT_FALSE(failed.has_value());
  EXPECT_EQ(failed.error().fault, store_fault::unavailable);
  EXPECT_EQ(failed.error().text, "redis://" + redis.address() + ": a change is on 1 replicas of 2");
}

TEST_F(store_redis_idempotency, seals_responses_unless_it_is_told_otherwise) {
  redis_server const redis;
  auto options = options_for(redis);
  options.seal_keys = {key_with(1, 1)};
  auto const sealing = open(options);
  store_answer(*sealing, "a", "very-secret-body");
  auto const claim = claim_of(key_of("b"), 1);
  ASSERT_TRUE(made(*sealing, claim));
  auto open_one = complete(claim.key, *claim.next, response_of("plain-body"), start);
  open_one.seal = false;
  ASSERT_TRUE(made(*sealing, open_one));
  auto const everything = [&] {
    return redis.cli(
        "--raw EVAL \"local out = '' for _, k in ipairs(redis.call('KEYS', '*response*')) do out = "
        "out .. redis.call('GET', k) end return out\" 0");
  }();
  EXPECT_EQ(everything.find("very-secret-body"), std::string::npos);
  EXPECT_NE(everything.find("plain-body"), std::string::npos);
  EXPECT_EQ(body_of(*sealing, "a"), "very-secret-body");
  EXPECT_EQ(body_of(*sealing, "b"), "plain-body");

  // With another key first and the old one still there it opens both.
  options.seal_keys = {key_with(2, 2), key_with(1, 1)};
  auto const later = open(options);
  EXPECT_EQ(body_of(*later, "a"), "very-secret-body");
  options.seal_keys = {key_with(2, 2)};
  auto const stranger = open(options);
  EXPECT_FALSE(find(*stranger, key_of("a")).has_value());
}

TEST_F(store_redis_idempotency, says_that_a_record_is_damaged) {
  redis_server const redis;
  auto const store = open(options_for(redis));
  auto const claim = claim_of(key_of("a"), 1);
  ASSERT_TRUE(made(*store, claim));
  auto const key = record_key_prefix(bucket_of(claim.key)) + to_string(claim.key);
  auto const fault = [&]() -> std::string {
    auto const found = find(*store, claim.key);
    EXPECT_FALSE(found.has_value());
    EXPECT_EQ(found ? store_fault::stopped : found.error().fault, store_fault::damaged);
    return found ? "" : found.error().text;
  };
  auto const name = "redis://" + redis.address() + ": ";
  redis.cli("APPEND '" + key + "' x");
  EXPECT_TRUE(fault().starts_with(name + "a record "));
  redis.cli("SET '" + key + "' short");
  EXPECT_EQ(fault(), name + "a record is too short");
  redis.cli("SET '" + key + "' " + std::string(200, 'x'));
  EXPECT_EQ(fault(), name + "a record does not say when it was written");
  store_answer(*store, "b", "x");
  redis.cli("DEL '" + response_key_prefix(bucket_of(key_of("b"))) + to_string(key_of("b")) + "'");
  auto const found = find(*store, key_of("b"));
  ASSERT_FALSE(found.has_value());
  EXPECT_EQ(found.error().text, name + "a response is missing");
}

TEST_F(store_redis_idempotency, does_not_count_for_ever_what_was_deleted_by_hand) {
  redis_server const redis;
  auto const store = open(options_for(redis));
  auto const claim = claim_of(key_of("a"), 1);
  ASSERT_TRUE(made(*store, claim));
  redis.cli("DEL '" + record_key_prefix(bucket_of(claim.key)) + to_string(claim.key) + "'");
  EXPECT_EQ(store->used().records, 1U);
  store->sweep(start + 1h, 1000);
  EXPECT_TRUE(eventually([&] { return store->used().records == 0; }));
}

TEST_F(store_redis_idempotency, bounds_what_waits) {
  redis_server const redis;
  auto options = options_for(redis);
  options.queue_max = 10;
  options.queue_octets_max = 1'000;
  options.command_timeout = 20s;
  auto const store = open(std::move(options));
  // Nothing is asked before: what was answered counts until its answer has returned.
  auto const claim = claim_of(key_of("a"), 1);
  auto const large = complete(claim.key, *claim.next, response_of(std::string(1'000, 'x')), start);
  EXPECT_EQ(apply(*store, large).error().fault, store_fault::unavailable);
  redis.freeze();
  std::atomic<int> good = 0;
  std::atomic<int> refused = 0;
  for (int i = 0; i < 15; ++i) {
    store->find(key_of("a"), [&](store::find_answer const& a) { ++(a ? good : refused); });
  }
  EXPECT_EQ(refused, 5);
  redis.thaw();
  EXPECT_TRUE(eventually([&] { return good == 10; }));
}

TEST_F(store_redis_idempotency, answers_everything_before_it_is_gone) {
  redis_server const redis;
  std::atomic<int> answers = 0;
  {
    auto const store = open(options_for(redis));
    for (int i = 0; i < 100; ++i) {
      store->apply(claim_of(key_of(std::to_string(i)), 1),
                   [&](store::apply_answer const& a) { answers += a && a->made ? 1 : 0; });
    }
  }
  EXPECT_EQ(answers, 100);
}

TEST_F(store_redis_idempotency, leaves_nothing_in_redis_that_was_forgotten) {
  redis_server const redis;
  auto const store = open(options_for(redis));
  for (int i = 0; i < 50; ++i) {
    store_answer(*store, std::to_string(i), "x");
  }
  store->sweep(start + 24h, 10'000);
  ASSERT_TRUE(eventually([&] { return redis.cli("--raw KEYS '*:response:*'").empty(); }));
  store->sweep(start + 192h, 10'000);
  EXPECT_TRUE(eventually([&] { return redis.cli("DBSIZE") == "0"; })) << redis.cli("KEYS '*'");
}

// ---- the secret ----

/// What a gateway is told whose secret is another one.
void expect_another_secret(store_error const& error) {
  EXPECT_EQ(error.fault, store_fault::damaged);
  EXPECT_TRUE(error.text.starts_with("redis")) << error.text;
  EXPECT_TRUE(error.text.ends_with(
      ": its keys were stored with another secret, so that none of them would be found: gateways "
      "that share a store need the same secrets file; give this one the file of the others"))
      << error.text;
}

/// Gives every bucket of a server a digest.
void set_digest(redis_server const& redis, std::string const& digest) {
  redis.cli(
      "EVAL \"for i = 0, 63 do redis.call('SET', 'tidegate:idempotency:{i' .. i .. "
      "'}:secret', '" +
      digest + "') end\" 0");
}

/// The digests that a server has, each with its number.
auto digests_in(redis_server const& redis) -> std::string {
  return redis.cli(
      "--raw EVAL \"local counts = {} "
      "for _, key in ipairs(redis.call('KEYS', 'tidegate:*:secret')) do "
      "local digest = redis.call('GET', key) counts[digest] = (counts[digest] or 0) + 1 end "
      "local out = '' for digest, count in pairs(counts) do out = out .. count .. ' ' .. digest "
      "end return out\" 0");
}

class store_redis_idempotency_secret : public store_redis_idempotency {
 protected:
  static void expect_refused(std::string const& url) {
    auto const first = open(options_for(url, "one"));
    ASSERT_NE(first, nullptr);
    auto const claim = claim_of(key_of("a"), 1);
    ASSERT_TRUE(made(*first, claim));
    auto const second = open(options_for(url, "one"));
    ASSERT_NE(second, nullptr);
    EXPECT_TRUE(record_in(*second, key_of("a")).has_value());
    auto options = options_for(url, "another");
    options.open_timeout = 1h;  // which it does not wait for
    expect_another_secret(error_of(options));
    EXPECT_EQ(error_of(options_for(url, "one")), store_error{});
  }
};

TEST_F(store_redis_idempotency_secret, must_be_that_of_the_first_gateway_on_a_server) {
  redis_server const redis;
  expect_refused("redis://" + redis.address());
  EXPECT_EQ(digests_in(redis), "64 one");
}

TEST_F(store_redis_idempotency_secret, must_be_that_of_the_first_gateway_on_a_cluster) {
  redis_cluster const redis;
  expect_refused(redis.url());
}

TEST_F(store_redis_idempotency_secret, must_be_that_of_the_first_gateway_by_sentinels) {
  redis_server const redis;
  redis_server const sentinel({"--sentinel"});
  sentinel.cli("SENTINEL MONITOR primary 127.0.0.1 " + std::to_string(redis.port()) + " 1");
  expect_refused("redis+sentinel://" + sentinel.address() + "/primary");
}

TEST_F(store_redis_idempotency_secret, is_left_in_a_store_from_before_there_was_a_digest) {
  redis_server const redis;
  {
    auto const before = open(options_for(redis));
    ASSERT_TRUE(made(*before, claim_of(key_of("a"), 1)));
  }
  EXPECT_EQ(digests_in(redis), "");
  auto const store = open(options_for(redis, "one"));
  EXPECT_TRUE(record_in(*store, key_of("a")).has_value());
  expect_another_secret(error_of(options_for(redis, "another")));
}

TEST_F(store_redis_idempotency_secret, is_one_of_two_that_come_at_once) {
  redis_server const redis;
  for (int round = 0; round < 10; ++round) {
    redis.cli("FLUSHALL");
    auto other =
        std::async(std::launch::async, [&] { return error_of(options_for(redis, "another")); });
    auto const one = error_of(options_for(redis, "one"));
    auto const another = other.get();
    EXPECT_NE(one == store_error{}, another == store_error{});
    expect_another_secret(one == store_error{} ? another : one);
    EXPECT_EQ(digests_in(redis), one == store_error{} ? "64 one" : "64 another");
  }
}

TEST_F(store_redis_idempotency_secret, that_becomes_another_lets_no_key_be_taken_or_found) {
  redis_server const redis;
  auto const store = open(options_for(redis, "one"));
  auto const claim = claim_of(key_of("a"), 1);
  ASSERT_TRUE(made(*store, claim));
  set_digest(redis, "another");
  auto const keys = redis.cli("DBSIZE");
  auto const refused = apply(*store, claim_of(key_of("b"), 1));
  ASSERT_FALSE(refused.has_value());
  expect_another_secret(refused.error());
  auto const found = find(*store, key_of("a"));
  ASSERT_FALSE(found.has_value());
  expect_another_secret(found.error());
  EXPECT_EQ(redis.cli("DBSIZE"), keys) << "nothing was written";
  set_digest(redis, "one");
  EXPECT_EQ(record_in(*store, key_of("a")), claim.next);
  EXPECT_TRUE(made(*store, claim_of(key_of("b"), 1)));
}

TEST_F(store_redis_idempotency_secret, comes_back_with_the_next_key_after_flushall) {
  redis_server const redis;
  auto const store = open(options_for(redis, "one"));
  redis.cli("FLUSHALL");
  EXPECT_EQ(record_in(*store, key_of("a")), std::nullopt);
  EXPECT_TRUE(made(*store, claim_of(key_of("a"), 1)));
  EXPECT_EQ(digests_in(redis), "1 one");
  expect_another_secret(error_of(options_for(redis, "another")));
  EXPECT_EQ(digests_in(redis), "1 one") << "it leaves nothing behind";
  EXPECT_EQ(error_of(options_for(redis, "one")), store_error{});
}

TEST_F(store_redis_idempotency_secret, comes_with_the_first_key_where_redis_takes_no_writes_yet) {
  redis_server const redis({"--min-replicas-to-write", "1"});
  auto const store = open(options_for(redis, "one"));
  ASSERT_NE(store, nullptr);
  EXPECT_EQ(apply(*store, claim_of(key_of("a"), 1)).error().fault, store_fault::unavailable);
  redis.cli("CONFIG SET min-replicas-to-write 0");
  EXPECT_TRUE(made(*store, claim_of(key_of("a"), 1)));
  EXPECT_EQ(digests_in(redis), "1 one");
}

}  // namespace
}  // namespace tidegate::store_redis
