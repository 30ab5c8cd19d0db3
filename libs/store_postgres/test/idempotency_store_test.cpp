// SPDX-License-Identifier: Apache-2.0
#include <tidegate/store_postgres/idempotency_store.hpp>

#include "support/idempotency_cut.hpp"
#include "support/idempotency_store_contract.hpp"
#include "support/postgres_server.hpp"

#include "keys/idempotency_worker.hpp"

#include <gtest/gtest.h>
#include <libpq-fe.h>

#include <atomic>
#include <csignal>
#include <future>
#include <thread>

namespace tidegate::store_postgres {
namespace {

using namespace std::chrono_literals;
using namespace store::contract;
using test_support::postgres_server;

auto open(idempotency_options const& o) -> std::unique_ptr<store::idempotency_store> {
  auto store = open_idempotency_store(o);
  EXPECT_TRUE(store.has_value()) << (store ? "" : store.error().text);
  return store ? *std::move(store) : nullptr;
}

auto key_with(std::uint32_t id, unsigned char octet) -> store::seal_key {
  store::seal_key key{id, {}};
  key.octets.fill(static_cast<std::byte>(octet));
  return key;
}

struct postgres_maker {
  [[nodiscard]] auto make(std::size_t records_max) -> std::unique_ptr<store::idempotency_store> {
    return open({.url = postgres_server::shared().fresh_database(),
                 .records_max = records_max,
                 .seal_keys = {key_with(1, 1)},
                 .secret_digest = "one"});
  }
};

INSTANTIATE_TYPED_TEST_SUITE_P(postgres, store_contract, postgres_maker);

using idempotency::change;
using idempotency::record_state;
using idempotency::wall_time;
using store::store_error;
using store::store_fault;

/// A completed record with `body`.
void store_answer(store::idempotency_store& store, std::string_view key, std::string const& body,
                  bool seal = true) {
  auto const claim = claim_of(key_of(key), 1);
  ASSERT_TRUE(made(store, claim));
  auto done = complete(claim.key, *claim.next, response_of(body), start);
  done.seal = seal;
  ASSERT_TRUE(made(store, std::move(done)));
}

auto body_of(store::idempotency_store& store, std::string_view key) -> std::string {
  auto const found = find(store, key_of(key));
  if (!found) {
    return "error: " + found.error().text;
  }
  return *found && (*found)->response ? (*found)->response->body : "none";
}

auto system_time() -> wall_time {
  return std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
}

class store_postgres_idempotency : public testing::Test {
 protected:
  postgres_server& server_ = postgres_server::shared();
  std::string url_ = server_.fresh_database();
  std::string database_ = url_.substr(url_.rfind('/') + 1);

  auto sql(std::string const& text) -> std::string { return server_.run_sql(text, database_); }
};

// ---- cuts ----

TEST_F(store_postgres_idempotency, makes_each_change_once_behind_whichever_octet_it_is_cut) {
  auto const options_for = [&](std::uint16_t port) {
    return idempotency_options{
        .url = "postgres://tidegate@127.0.0.1:" + std::to_string(port) + "/" + database_,
        .clock = [] { return start; },
        .secret_digest = "one"};
  };
  auto const direct = open(options_for(server_.port()));
  ASSERT_NE(direct, nullptr);
  auto const cuts = change_behind_every_cut(
      {server_.port(), [&](std::uint16_t port) { return open(options_for(port)); }}, *direct);
  EXPECT_GT(cuts, test_support::sanitized ? 40U : 150U);
  EXPECT_EQ(sql("SELECT count(*) = (SELECT sum(keys) FROM tidegate.idempotency_scope)"
                " FROM tidegate.idempotency_record"),
            "t");
  RecordProperty("cuts", std::to_string(cuts));
}

// ---- several gateways ----

TEST_F(store_postgres_idempotency, shows_each_gateway_a_record_in_its_own_time) {
  auto const fast_clock = [] { return system_time() + 1h; };
  auto const slow_clock = [] { return system_time() - 2h; };
  auto const fast = open({.url = url_, .clock = fast_clock});
  auto const slow = open({.url = url_, .clock = slow_clock});
  auto const key = key_of("a");
  auto const claim = claim_of(key, 1, fast_clock());
  ASSERT_TRUE(made(*fast, claim));
  // As it wrote it, but for how far apart it has found the clocks since.
  EXPECT_LT(std::chrono::abs(record_in(*fast, key)->created - claim.next->created), 100ms);

  auto const seen = record_in(*slow, key);
  ASSERT_TRUE(seen.has_value());
  auto const lease = claim.next->lease_until - claim.next->created;
  EXPECT_EQ(seen->lease_until - seen->created, lease);
  EXPECT_LT(std::chrono::abs(seen->created - claim.next->created + 3h), 100ms);
  EXPECT_EQ(state_at(*seen, slow_clock()), record_state::dispatched);

  // By its own clock the lease of the slow one ends when it ends on the server.
  auto const sweep_at = [&](wall_time now) {
    slow->sweep(now, 1000);
    return record_in(*slow, key_of("none")) ? record_state::completed
                                            : record_in(*slow, key)->state;
  };
  EXPECT_EQ(sweep_at(slow_clock()), record_state::dispatched);
  EXPECT_EQ(sweep_at(slow_clock() + lease), record_state::unknown);
  EXPECT_EQ(record_in(*fast, key)->state, record_state::unknown);
}

TEST_F(store_postgres_idempotency, leaves_alone_what_other_gateways_have_dispatched) {
  auto const first = open({.url = url_});
  auto const claim = claim_of(key_of("a"), 1, system_time());
  ASSERT_TRUE(made(*first, claim));
  auto const second = open({.url = url_});
  EXPECT_EQ(record_in(*second, key_of("a"))->state, record_state::dispatched);
  // Its owner renews the lease, and it does not expire by the one before.
  auto const later = claim.next->lease_until + 1s;
  ASSERT_TRUE(made(*first, renew(claim.key, *claim.next, {}, later)));
  second->sweep(later, 1000);
  EXPECT_EQ(record_in(*second, key_of("none")), std::nullopt);
  EXPECT_EQ(record_in(*second, key_of("a"))->state, record_state::dispatched);
  EXPECT_EQ(record_in(*second, key_of("a"))->lease_until, later + idempotency::policy{}.lease);
}

TEST_F(store_postgres_idempotency, lets_one_of_many_gateways_win_each_key) {
  std::vector<std::unique_ptr<store::idempotency_store>> stores;
  for (int i = 0; i < 3; ++i) {
    stores.push_back(open({.url = url_}));
  }
  constexpr int keys = 60;
  std::atomic<int> won = 0;
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 6; ++t) {
    threads.emplace_back([&, t] {
      auto& store = *stores[t % 3];
      for (int i = 0; i < keys; ++i) {
        // Not all in the same order.
        auto const key = key_of(std::to_string(t % 2 == 0 ? i : keys - 1 - i));
        auto const claim = claim_of(key, t + 1);
        auto const answer = apply(store, claim);
        EXPECT_TRUE(answer.has_value()) << (answer ? "" : answer.error().text);
        if (answer && answer->made) {
          ++won;
          EXPECT_TRUE(
              made(store, complete(key, *claim.next, response_of(std::to_string(t + 1)), start)));
        }
      }
    });
  }
  for (auto& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(won, keys);
  for (int i = 0; i < keys; ++i) {
    auto const found = find(*stores[0], key_of(std::to_string(i)));
    ASSERT_TRUE(found && *found && (*found)->response);
    EXPECT_EQ((*found)->response->body, std::to_string((*found)->record.token));
  }
  EXPECT_EQ(sql("SELECT keys FROM tidegate.idempotency_scope"), std::to_string(keys));
}

TEST_F(store_postgres_idempotency, counts_the_keys_of_a_scope_exactly_for_many_gateways) {
  auto const first = open({.url = url_});
  auto const second = open({.url = url_});
  std::atomic<int> claimed = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 40; ++i) {
        auto claim = claim_of(key_of(std::to_string(t) + "/" + std::to_string(i)), 1);
        claim.scope_keys_max = 70;
        claimed += made(t % 2 == 0 ? *first : *second, std::move(claim)) ? 1 : 0;
      }
    });
  }
  for (auto& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(claimed, 70);
  EXPECT_EQ(sql("SELECT count(*) FROM tidegate.idempotency_record"), "70");
  // What goes makes room, and the counter goes with the last one.
  auto const sweep_to = [&](wall_time now) {
    first->sweep(now, 1000);
    EXPECT_EQ(record_in(*first, key_of("none")), std::nullopt);  // the sweep comes before it
    EXPECT_EQ(record_in(*first, key_of("none")), std::nullopt);  // and what it found to do
  };
  sweep_to(start + 1h);
  EXPECT_EQ(sql("SELECT DISTINCT state FROM tidegate.idempotency_record"), "2") << "unknown";
  sweep_to(start + 10'000h);
  EXPECT_EQ(sql("SELECT count(*) FROM tidegate.idempotency_scope"), "0");
}

// ---- what it stores ----

TEST_F(store_postgres_idempotency, seals_responses_but_not_what_need_not_be_sealed) {
  {
    auto const store = open({.url = url_, .seal_keys = {key_with(1, 1)}});
    store_answer(*store, "a", "for her eyes only");
    store_answer(*store, "b", "for everybody", false);
  }
  auto const stored = [&](std::string_view text) {
    return sql("SELECT count(*) FROM tidegate.idempotency_record WHERE position('" +
               std::string(text) + "'::bytea IN response) > 0");
  };
  EXPECT_EQ(stored("for her eyes only"), "0");
  EXPECT_EQ(stored("for everybody"), "1");
  auto const rotated = open({.url = url_, .seal_keys = {key_with(2, 2), key_with(1, 1)}});
  EXPECT_EQ(body_of(*rotated, "a"), "for her eyes only");
  auto const without = open({.url = url_});
  EXPECT_EQ(body_of(*without, "b"), "for everybody");
  EXPECT_TRUE(body_of(*without, "a").starts_with("error"));
}

TEST_F(store_postgres_idempotency, says_that_a_record_is_damaged) {
  auto const store = open({.url = url_});
  store_answer(*store, "a", "x");
  sql("UPDATE tidegate.idempotency_record SET record = 'nonsense'");
  EXPECT_EQ(find(*store, key_of("a")).error().fault, store_fault::damaged);
  EXPECT_EQ(apply(*store, claim_of(key_of("a"), 2)).error().fault, store_fault::damaged);
  store->sweep(start + 10'000h, 1000);
  EXPECT_EQ(find(*store, key_of("a")).error().fault, store_fault::damaged) << "and stays";
}

// ---- work ----

TEST_F(store_postgres_idempotency, shares_a_transaction_among_requests_that_come_together) {
  auto const store = open({.url = url_});
  constexpr int many = 500;
  std::atomic<int> answered = 0;
  std::promise<void> done;
  for (int i = 0; i < many; ++i) {
    store->apply(claim_of(key_of(std::to_string(i)), 1), [&](store::apply_answer answer) {
      EXPECT_TRUE(answer && answer->made);
      if (++answered == many) {
        done.set_value();
      }
    });
  }
  done.get_future().wait();
  EXPECT_LT(dynamic_cast<idempotency_worker const&>(*store).counted().transactions, many / 4U);
  EXPECT_EQ(store->used().records, 500U);
}

TEST_F(store_postgres_idempotency, makes_the_others_when_one_of_a_transaction_fails) {
  auto const store = open({.url = url_, .secret_digest = "one"});
  sql("ALTER TABLE tidegate.idempotency_record ADD CHECK (octet_length(response) < 1000)");
  std::vector<change> changes;
  for (int i = 0; i < 20; ++i) {
    auto const claim = claim_of(key_of(std::to_string(i)), 1);
    ASSERT_TRUE(made(*store, claim));
    changes.push_back(
        complete(claim.key, *claim.next, response_of(std::string(i == 7 ? 2000 : 1, 'x')), start));
  }
  std::vector<std::promise<store::apply_answer>> answers(changes.size());
  for (std::size_t i = 0; i < changes.size(); ++i) {
    store->apply(std::move(changes[i]),
                 [&, i](store::apply_answer answer) { answers[i].set_value(std::move(answer)); });
  }
  for (std::size_t i = 0; i < answers.size(); ++i) {
    auto const answer = answers[i].get_future().get();
    EXPECT_EQ(answer.has_value() && answer->made, i != 7) << i;
  }
}

TEST_F(store_postgres_idempotency, answers_all_that_was_asked_before_it_closes) {
  std::atomic<int> answered = 0;
  {
    auto const store = open({.url = url_});
    for (int i = 0; i < 300; ++i) {
      store->apply(claim_of(key_of(std::to_string(i)), 1), [&](store::apply_answer answer) {
        EXPECT_TRUE(answer.has_value());
        ++answered;
      });
    }
  }
  EXPECT_EQ(answered, 300);
}

TEST_F(store_postgres_idempotency, bounds_what_waits_in_number_time_and_octets) {
  auto const store =
      open({.url = url_, .queue_max = 3, .queue_octets_max = 5000, .timeout = 400ms});
  auto const claim = claim_of(key_of("a"), 1);
  ASSERT_TRUE(made(*store, claim));
  {
    auto done = complete(claim.key, *claim.next, response_of(std::string(6000, 'x')), start);
    EXPECT_EQ(apply(*store, std::move(done)).error().fault, store_fault::unavailable);
  }
  // Another client has locked the table.
  std::unique_ptr<PGconn, void (*)(PGconn*)> const rude(PQconnectdb(url_.c_str()), PQfinish);
  PQclear(PQexec(rude.get(), "BEGIN; LOCK TABLE tidegate.idempotency_record"));
  std::vector<std::promise<store::find_answer>> answers(5);
  for (auto& answer : answers) {
    store->find(key_of("a"), [&](store::find_answer found) { answer.set_value(std::move(found)); });
  }
  for (auto& answer : answers) {
    EXPECT_EQ(answer.get_future().get().error().fault, store_fault::unavailable);
  }
  PQclear(PQexec(rude.get(), "ROLLBACK"));
  while (!find(*store, key_of("a"))) {
    std::this_thread::yield();
  }
  EXPECT_EQ(store->used().memory, 0U) << "nothing waits any more";
}

// ---- the secret ----

/// What a gateway is told whose secret is another one.
void expect_another_secret(store_error const& error, std::string const& database) {
  EXPECT_EQ(error.fault, store_fault::damaged);
  EXPECT_EQ(error.text,
            "postgres://127.0.0.1:" + std::to_string(postgres_server::shared().port()) + "/" +
                database +
                ": its keys were stored with another secret, so that none of them would be found: "
                "gateways that share a store need the same secrets file; give this one the file of "
                "the others");
}

auto error_of(idempotency_options const& options) -> store_error {
  auto const store = open_idempotency_store(options);
  return store ? store_error{} : store.error();
}

TEST_F(store_postgres_idempotency, refuses_a_gateway_with_another_secret) {
  auto const first = open({.url = url_, .secret_digest = "one"});
  ASSERT_TRUE(made(*first, claim_of(key_of("a"), 1)));
  auto const second = open({.url = url_, .secret_digest = "one"});
  EXPECT_TRUE(record_in(*second, key_of("a")).has_value());
  expect_another_secret(error_of({.url = url_, .secret_digest = "another"}), database_);
  EXPECT_EQ(error_of({.url = url_, .secret_digest = "one"}), store_error{});
}

TEST_F(store_postgres_idempotency, takes_a_store_from_before_there_was_a_digest_as_it_is) {
  {
    auto const before = open({.url = url_});
    ASSERT_TRUE(made(*before, claim_of(key_of("a"), 1)));
    sql("SET search_path TO tidegate; DROP TABLE idempotency_secret;"
        "DROP FUNCTION idempotency_check_secret; DELETE FROM schema_version WHERE version > 4");
  }
  auto const store = open({.url = url_, .secret_digest = "one"});
  EXPECT_TRUE(record_in(*store, key_of("a")).has_value());
  expect_another_secret(error_of({.url = url_, .secret_digest = "another"}), database_);
}

TEST_F(store_postgres_idempotency, belongs_to_one_of_two_secrets_that_come_at_once) {
  ASSERT_NE(open({.url = url_}), nullptr);  // the tables are there
  for (int round = 0; round < 5; ++round) {
    sql("DELETE FROM tidegate.idempotency_secret");
    auto other = std::async(std::launch::async,
                            [&] { return error_of({.url = url_, .secret_digest = "another"}); });
    auto const one = error_of({.url = url_, .secret_digest = "one"});
    auto const another = other.get();
    EXPECT_NE(one == store_error{}, another == store_error{});
    expect_another_secret(one == store_error{} ? another : one, database_);
  }
}

TEST_F(store_postgres_idempotency, changes_and_finds_nothing_while_the_secret_is_another) {
  auto const store = open({.url = url_, .secret_digest = "one"});
  auto const claim = claim_of(key_of("a"), 1);
  ASSERT_TRUE(made(*store, claim));
  sql("UPDATE tidegate.idempotency_secret SET digest = 'another'");
  auto const refused = apply(*store, claim_of(key_of("b"), 1));
  ASSERT_FALSE(refused.has_value());
  expect_another_secret(refused.error(), database_);
  auto const found = find(*store, key_of("a"));
  ASSERT_FALSE(found.has_value());
  expect_another_secret(found.error(), database_);
  // Nor by a connection that it makes meanwhile.
  sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '" + database_ +
      "' AND pid <> pg_backend_pid()");
  store_error error;
  do {
    auto const again = apply(*store, claim_of(key_of("b"), 1));
    ASSERT_FALSE(again.has_value());
    error = again.error();
  } while (error.fault == store_fault::unavailable);
  expect_another_secret(error, database_);
  EXPECT_EQ(sql("SELECT count(*) FROM tidegate.idempotency_record"), "1");
  sql("UPDATE tidegate.idempotency_secret SET digest = 'one'");
  while (!find(*store, key_of("a"))) {
    std::this_thread::yield();
  }
  EXPECT_EQ(record_in(*store, key_of("a"))->token, 1U);
  EXPECT_TRUE(made(*store, claim_of(key_of("b"), 1)));
}

TEST_F(store_postgres_idempotency, leaves_its_digest_again_when_the_tables_were_emptied) {
  auto const store = open({.url = url_, .secret_digest = "one"});
  sql("TRUNCATE tidegate.idempotency_record, tidegate.idempotency_scope,"
      " tidegate.idempotency_secret");
  EXPECT_EQ(record_in(*store, key_of("a")), std::nullopt);
  expect_another_secret(error_of({.url = url_, .secret_digest = "another"}), database_);
  EXPECT_TRUE(made(*store, claim_of(key_of("a"), 1)));
}

// ---- failures ----

TEST_F(store_postgres_idempotency, does_not_know_what_became_of_a_commit_whose_answer_is_lost) {
  auto const store = open({.url = url_, .timeout = 60s});
  // A commit waits for a standby that does not exist, and then its connection ends.
  server_.run_sql("ALTER SYSTEM SET synchronous_standby_names TO 'absent'");
  server_.run_sql("SELECT pg_reload_conf()");
  auto const waits =
      "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
      " AND datname = '" +
      database_ + "'";
  change claim;
  std::future<store::apply_answer> answer;
  int made_before = 0;
  for (bool is_waiting = false; !is_waiting; made_before += is_waiting ? 0 : 1) {
    // Until the server has read it, commits are made.
    claim = claim_of(key_of(std::to_string(made_before)), 1);
    auto promise = std::make_shared<std::promise<store::apply_answer>>();
    answer = promise->get_future();
    store->apply(claim,
                 [promise](store::apply_answer made) { promise->set_value(std::move(made)); });
    while (!is_waiting && answer.wait_for(0s) != std::future_status::ready) {
      is_waiting = server_.run_sql(waits) != "0";
    }
  }
  EXPECT_EQ(sql("SELECT count(*) FROM tidegate.idempotency_record"), std::to_string(made_before))
      << "no reader sees it yet";
  server_.run_sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '" +
                  database_ + "'");
  auto const told = answer.get();
  ASSERT_FALSE(told.has_value());
  EXPECT_EQ(told.error().fault, store_fault::unavailable);
  server_.run_sql("ALTER SYSTEM RESET synchronous_standby_names");
  server_.run_sql("SELECT pg_reload_conf()");
  auto found = find(*store, claim.key);
  while (!found) {
    found = find(*store, claim.key);
  }
  ASSERT_TRUE(found->has_value()) << "it was made";
  EXPECT_EQ((*found)->record, *claim.next);
}

TEST(store_postgres_idempotency_restart, has_after_a_kill_whatever_was_answered_before) {
  postgres_server server;
  auto const store = open({.url = server.fresh_database()});
  std::atomic<bool> over = false;
  std::atomic<int> answered = 0;
  std::vector<std::vector<change>> kept(3);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < kept.size(); ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; !over; ++i) {
        auto claim = claim_of(key_of(std::to_string(t) + "/" + std::to_string(i)), 1);
        if (made(*store, claim)) {
          kept[t].push_back(std::move(claim));
          ++answered;
        }
      }
    });
  }
  auto const wait_for_more = [&] {
    for (int const before = answered; answered < before + 50;) {
      std::this_thread::yield();
    }
  };
  for (int round = 0; round < 2; ++round) {
    wait_for_more();
    server.stop(SIGKILL);
    server.start();
  }
  wait_for_more();
  over = true;
  for (auto& thread : threads) {
    thread.join();
  }
  for (auto const& claims : kept) {
    for (auto const& claim : claims) {
      EXPECT_EQ(record_in(*store, claim.key), claim.next);
    }
  }
}

TEST(store_postgres_idempotency_restart, says_unavailable_at_once_while_there_is_no_server) {
  postgres_server server;
  auto const url = server.fresh_database();
  auto const store = open({.url = url});
  auto const claim = claim_of(key_of("a"), 1);
  ASSERT_TRUE(made(*store, claim));
  server.stop(SIGINT);
  while (find(*store, key_of("a"))) {
    std::this_thread::yield();
  }
  auto const refused = apply(*store, claim_of(key_of("b"), 1));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().fault, store_fault::unavailable);
  EXPECT_FALSE(open_idempotency_store({.url = url}));
  server.start();
  auto found = find(*store, key_of("a"));
  while (!found) {
    found = find(*store, key_of("a"));
  }
  EXPECT_EQ((*found)->record, *claim.next);
}

}  // namespace
}  // namespace tidegate::store_postgres
