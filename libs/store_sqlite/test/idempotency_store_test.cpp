// SPDX-License-Identifier: Apache-2.0
#include <tidegate/store_sqlite/idempotency_store.hpp>

#include "file_limit.hpp"
#include "folder.hpp"
#include "killed_child.hpp"
#include "support/idempotency_store_contract.hpp"

#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <semaphore>

namespace tidegate::store_sqlite {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using namespace store::contract;
using idempotency::change;
using idempotency::record_state;
using store::store_error;
using store::store_fault;

using opened = std::unique_ptr<idempotency_store>;

auto open(options const& o, idempotency::wall_time now = start) -> opened {
  auto store = idempotency_store::open(o, now);
  EXPECT_TRUE(store.has_value()) << (store ? "" : store.error().text);
  return store ? *std::move(store) : nullptr;
}

auto error_of(options const& o) -> store_error {
  auto const store = idempotency_store::open(o, start);
  return store ? store_error{} : store.error();
}

/// A completed record with `body`.
void store_answer(store::idempotency_store& store, std::string_view key, std::string const& body) {
  auto const claim = claim_of(key_of(key), 1);
  ASSERT_TRUE(made(store, claim));
  ASSERT_TRUE(made(store, complete(claim.key, *claim.next, response_of(body), start)));
}

auto body_of(store::idempotency_store& store, std::string_view key) -> std::string {
  auto const found = find(store, key_of(key));
  if (!found) {
    return "error: " + found.error().text;
  }
  return *found && (*found)->response ? (*found)->response->body : "none";
}

auto key_with(std::uint32_t id, unsigned char octet) -> seal_key {
  seal_key key{id, {}};
  key.octets.fill(static_cast<std::byte>(octet));
  return key;
}

struct sqlite_maker {
  folder where;
  [[nodiscard]] auto make(std::size_t records_max) -> std::unique_ptr<store::idempotency_store> {
    return open({.file = where.file(), .records_max = records_max});
  }
};
/// Every response is read from the disk and sealed.
struct sealed_without_cache_maker {
  folder where;
  [[nodiscard]] auto make(std::size_t records_max) -> std::unique_ptr<store::idempotency_store> {
    return open({.file = where.file(),
                 .records_max = records_max,
                 .response_cache_octets_max = 0,
                 .seal_keys = {key_with(1, 1)}});
  }
};

INSTANTIATE_TYPED_TEST_SUITE_P(sqlite, store_contract, sqlite_maker);
INSTANTIATE_TYPED_TEST_SUITE_P(sqlite_sealed, store_contract, sealed_without_cache_maker);

TEST(store_sqlite, keeps_records_and_responses_over_a_restart) {
  folder const where;
  {
    auto const store = open({.file = where.file()});
    store_answer(*store, "a", "first");
    store_answer(*store, "b", std::string("\0\xff", 2));
    EXPECT_TRUE(made(*store, claim_of(key_of("gone"), 1)));
    auto const gone = record_in(*store, key_of("gone"));
    EXPECT_TRUE(made(*store, release(key_of("gone"), *gone, start)));
  }
  auto const store = open({.file = where.file()}, start + 1h);
  EXPECT_EQ(store->used().records, 2U);
  EXPECT_EQ(body_of(*store, "a"), "first");
  EXPECT_EQ(body_of(*store, "b"), std::string("\0\xff", 2));
  EXPECT_EQ(body_of(*store, "a"), "first") << "from memory now";
  EXPECT_EQ(record_in(*store, key_of("gone")), std::nullopt);
}

TEST(store_sqlite, loses_what_was_dispatched_when_the_last_process_ended) {
  folder const where;
  auto const claim = claim_of(key_of("a"), 7);
  { EXPECT_TRUE(made(*open({.file = where.file()}), claim)); }
  for (int round = 0; round < 2; ++round) {
    auto const store = open({.file = where.file()}, start + 1s);
    auto const record = record_in(*store, key_of("a"));
    ASSERT_TRUE(record.has_value());
    EXPECT_EQ(record->state, record_state::unknown);
    EXPECT_EQ(record->reason, idempotency::unknown_reason::gateway_stopped);
    EXPECT_EQ(record->changed, start + 1s);
    EXPECT_EQ(record->token, 7U);
  }
}

TEST(store_sqlite, refuses_a_file_that_another_process_uses) {
  folder const where;
  std::array<int, 2> from_child{};
  std::array<int, 2> to_child{};
  ASSERT_EQ(pipe(from_child.data()), 0);
  ASSERT_EQ(pipe(to_child.data()), 0);
  auto const child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    close(to_child[1]);
    close(from_child[0]);
    auto const store = idempotency_store::open({.file = where.file()}, start);
    char const done = store ? 'y' : 'n';
    bool const told = write(from_child[1], &done, 1) == 1;
    all_from(to_child[0]);
    _exit(told ? 0 : 1);
  }
  close(to_child[0]);
  close(from_child[1]);
  char opened_there = 0;
  EXPECT_EQ(read(from_child[0], &opened_there, 1), 1);
  EXPECT_EQ(opened_there, 'y');
  auto const error = error_of({.file = where.file()});
  EXPECT_EQ(error.fault, store_fault::unavailable);
  EXPECT_EQ(error.text, where.file() + ": in use by another process");
  close(to_child[1]);
  close(from_child[0]);
  EXPECT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_NE(open({.file = where.file()}), nullptr) << "it is free again";
}

TEST(store_sqlite, reports_an_io_error_and_goes_on_when_it_is_over) {
  folder const where;
  auto const store = open({.file = where.file()});
  store_answer(*store, "before", "x");
  auto const claim = claim_of(key_of("a"), 1);
  std::optional<file_limit> limit(0);  // every write fails
  auto const failed = apply(*store, claim);
  auto const read_all_the_same = find(*store, key_of("before"));
  limit.reset();
  ASSERT_FALSE(failed.has_value());
  EXPECT_EQ(failed.error().fault, store_fault::unavailable);
  EXPECT_TRUE(read_all_the_same.has_value());
  EXPECT_EQ(record_in(*store, key_of("a")), std::nullopt) << "no reader sees what is not stored";
  EXPECT_TRUE(made(*store, claim));
  EXPECT_EQ(body_of(*store, "before"), "x");
}

TEST(store_sqlite, refuses_a_file_that_is_in_use) {
  folder const where;
  auto const store = open({.file = where.file()});
  auto const error = error_of({.file = where.file()});
  EXPECT_EQ(error.fault, store_fault::unavailable);
  EXPECT_EQ(error.text, where.file() + ": in use by another process");
  store_answer(*store, "a", "x");
}

TEST(store_sqlite, refuses_files_that_are_none_of_its_own) {
  folder const where;
  EXPECT_EQ(error_of({.file = where.file() + "/nowhere"}).fault, store_fault::unavailable);
  std::ofstream(where.file()) << std::string(5000, 'x');
  EXPECT_EQ(error_of({.file = where.file()}).fault, store_fault::damaged);
  fs::remove(where.file());
  sqlite3* other = nullptr;
  ASSERT_EQ(sqlite3_open(where.file().c_str(), &other), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(other, "CREATE TABLE t (x)", nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_close(other);
  EXPECT_EQ(error_of({.file = where.file()}).fault, store_fault::damaged);
}

TEST(store_sqlite, refuses_to_start_on_a_record_that_it_cannot_read) {
  for (auto const* damage : {
           "UPDATE record SET record = x'ff'",
           "UPDATE record SET lookup = x'00'",
           "INSERT INTO record (lookup, record) SELECT lookup, record FROM record",
       }) {
    folder const where;
    { store_answer(*open({.file = where.file()}), "a", "x"); }
    sqlite3* other = nullptr;
    ASSERT_EQ(sqlite3_open(where.file().c_str(), &other), SQLITE_OK);
    ASSERT_EQ(sqlite3_exec(other, damage, nullptr, nullptr, nullptr), SQLITE_OK);
    sqlite3_close(other);
    auto const error = error_of({.file = where.file()});
    EXPECT_EQ(error.fault, store_fault::damaged) << damage;
    EXPECT_NE(error.text.find(": row "), std::string::npos) << error.text;
  }
}

TEST(store_sqlite, seals_responses_when_it_has_a_key) {
  for (bool const sealed : {false, true}) {
    folder const where;
    std::vector<seal_key> const keys = {key_with(1, 1)};
    {
      auto const store =
          open({.file = where.file(), .seal_keys = sealed ? keys : std::vector<seal_key>{}});
      store_answer(*store, "a", "a very secret body");
      EXPECT_EQ(where.content().find("a very secret body") == std::string::npos, sealed);
      EXPECT_EQ(where.content().find("Location") == std::string::npos, sealed) << "and the fields";
    }
    EXPECT_EQ(where.content().find("a very secret body") == std::string::npos, sealed);
    EXPECT_EQ(body_of(*open({.file = where.file(), .seal_keys = keys}), "a"), "a very secret body")
        << "what is in clear can be read with keys too";
  }
}

TEST(store_sqlite, leaves_in_clear_what_need_not_be_sealed) {
  folder const where;
  options const o{.file = where.file(), .seal_keys = {key_with(1, 1)}};
  {
    auto const store = open(o);
    auto const claim = claim_of(key_of("a"), 1);
    ASSERT_TRUE(made(*store, claim));
    auto answer = complete(claim.key, *claim.next, response_of("no secret at all"), start);
    answer.seal = false;
    ASSERT_TRUE(made(*store, answer));
    EXPECT_NE(where.content().find("no secret at all"), std::string::npos);
  }
  EXPECT_EQ(body_of(*open(o), "a"), "no secret at all");
}

TEST(store_sqlite, opens_what_older_keys_have_sealed) {
  folder const where;
  auto const old = key_with(1, 1);
  auto const current = key_with(2, 2);
  { store_answer(*open({.file = where.file(), .seal_keys = {old}}), "a", "by the old key"); }
  { store_answer(*open({.file = where.file(), .seal_keys = {current, old}}), "b", "by the new"); }
  {
    auto const store = open({.file = where.file(), .seal_keys = {old, current}});
    EXPECT_EQ(body_of(*store, "a"), "by the old key");
    EXPECT_EQ(body_of(*store, "b"), "by the new");
  }
  auto const store = open({.file = where.file(), .seal_keys = {current}});
  EXPECT_EQ(body_of(*store, "b"), "by the new");
  auto const answer = find(*store, key_of("a"));
  ASSERT_FALSE(answer.has_value());
  EXPECT_EQ(answer.error().fault, store_fault::damaged);
  EXPECT_NE(answer.error().text.find("key 1"), std::string::npos) << answer.error().text;
  EXPECT_FALSE(apply(*store, claim_of(key_of("a"), 9)).has_value()) << "it never runs again";
}

TEST(store_sqlite, notices_a_sealed_response_that_was_changed_or_moved) {
  for (auto const* damage : {
           "UPDATE record SET response = substr(response, 1, length(response) - 1) || x'00'",
           "UPDATE record SET response = x'01'",
           "UPDATE record SET response = x'02'",
           "UPDATE record SET response = x''",
           "UPDATE record SET response = x'0002'",
           "UPDATE record SET response = NULL",
           "UPDATE record SET response = (SELECT max(response) FROM record)",
       }) {
    folder const where;
    options const o{.file = where.file(), .seal_keys = {key_with(1, 1)}};
    {
      auto const store = open(o);
      store_answer(*store, "a", "one");
      store_answer(*store, "b", "two");
    }
    sqlite3* other = nullptr;
    ASSERT_EQ(sqlite3_open(where.file().c_str(), &other), SQLITE_OK);
    ASSERT_EQ(sqlite3_exec(other, damage, nullptr, nullptr, nullptr), SQLITE_OK);
    sqlite3_close(other);
    auto const store = open(o);
    std::size_t wrong = 0;
    for (auto const* key : {"a", "b"}) {
      auto const answer = find(*store, key_of(key));
      if (!answer) {
        EXPECT_EQ(answer.error().fault, store_fault::damaged) << damage;
        ++wrong;
      }
    }
    EXPECT_GE(wrong, 1U) << damage;
  }
}

TEST(store_sqlite, says_of_each_change_whether_the_disk_was_full) {
  folder const where;
  auto const store = open({.file = where.file(), .file_octets_max = 100'000});
  auto const large = claim_of(key_of("large"), 1);
  ASSERT_TRUE(made(*store, large));
  // In one transaction, as it may happen: the large one fails, and takes no other with it.
  std::vector<std::promise<store::apply_answer>> answers(21);
  auto const ask = [&](std::size_t i, change c) {
    store->apply(std::move(c),
                 [&answers, i](store::apply_answer a) { answers[i].set_value(std::move(a)); });
  };
  for (std::size_t i = 0; i < 20; ++i) {
    ask(i, claim_of(key_of(std::to_string(i)), 1));
  }
  ask(20, complete(large.key, *large.next, response_of(std::string(200'000, 'x')), start));
  for (std::size_t i = 0; i < 20; ++i) {
    auto const answer = answers[i].get_future().get();
    EXPECT_TRUE(answer.has_value() && answer->made) << i;
  }
  auto const full = answers[20].get_future().get();
  ASSERT_FALSE(full.has_value());
  EXPECT_EQ(full.error().fault, store_fault::unavailable);
  EXPECT_NE(full.error().text.find("full"), std::string::npos) << full.error().text;
  EXPECT_EQ(record_in(*store, large.key), large.next) << "nothing of it was kept";
  EXPECT_TRUE(made(*store, complete(large.key, *large.next, response_of("small"), start)))
      << "and it can be finished later";
}

TEST(store_sqlite, has_room_again_when_answers_have_expired) {
  folder const where;
  auto const store = open({.file = where.file(), .file_octets_max = 400'000});
  auto const complete_one = [&](int i, idempotency::wall_time now) {
    auto const claim = claim_of(key_of(std::to_string(i)), 1, now);
    EXPECT_TRUE(made(*store, claim));
    auto const answer = response_of(std::string(20'000, 'x'));
    return made(*store, complete(claim.key, *claim.next, answer, now));
  };
  int stored = 0;
  while (stored < 100 && complete_one(stored, start)) {
    ++stored;
  }
  EXPECT_GT(stored, 10);
  EXPECT_LT(stored, 100) << "the disk should be full";
  store->sweep(start + 24h, 1000);
  EXPECT_TRUE(complete_one(1000, start + 24h));
  EXPECT_EQ(record_in(*store, key_of("0"))->state, record_state::tombstone);
}

TEST(store_sqlite, shares_a_transaction_among_changes_that_come_together) {
  folder const where;
  auto const store = open({.file = where.file()});
  constexpr std::size_t changes = 2'000;
  std::atomic<std::size_t> done = 0;
  std::promise<void> all;
  for (std::size_t i = 0; i < changes; ++i) {
    store->apply(claim_of(key_of(std::to_string(i)), 1), [&](store::apply_answer answer) {
      EXPECT_TRUE(answer.has_value() && answer->made);
      if (++done == changes) {
        all.set_value();
      }
    });
  }
  all.get_future().wait();
  auto const counts = store->counted();
  EXPECT_EQ(counts.changes, changes);
  EXPECT_LT(counts.transactions, changes / 2);
}

TEST(store_sqlite, answers_all_that_was_asked_before_it_closes) {
  folder const where;
  std::atomic<int> answered = 0;
  {
    auto const store = open({.file = where.file()});
    for (int i = 0; i < 500; ++i) {
      store->apply(claim_of(key_of(std::to_string(i)), 1), [&](store::apply_answer answer) {
        EXPECT_TRUE(answer.has_value() && answer->made);
        ++answered;
      });
    }
  }
  EXPECT_EQ(answered, 500);
  EXPECT_EQ(open({.file = where.file()})->used().records, 500U);
}

TEST(store_sqlite, bounds_what_waits) {
  folder const where;
  auto const store = open({.file = where.file(), .queue_max = 0});
  auto const answer = apply(*store, claim_of(key_of("a"), 1));
  ASSERT_FALSE(answer.has_value());
  EXPECT_EQ(answer.error().fault, store_fault::unavailable);
}

TEST(store_sqlite, keeps_no_more_responses_in_memory_than_it_may) {
  folder const where;
  auto const store = open({.file = where.file(), .response_cache_octets_max = 10'000});
  for (int i = 0; i < 100; ++i) {
    store_answer(*store, std::to_string(i), std::string(1'000, static_cast<char>('a' + i % 26)));
    EXPECT_LE(store->used().response_octets, 10'000U);
  }
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(body_of(*store, std::to_string(i)),
              std::string(1'000, static_cast<char>('a' + i % 26)));
    EXPECT_LE(store->used().response_octets, 10'000U);
  }
}

/// What the child of the next test was answered.
struct answered_step {
  std::uint32_t number;
  bool completed;  // else claimed
};

/// Claims and completes keys, many at a time and with sweeps in between, and says of each step when
/// it was answered; until it is killed.
[[noreturn]] void store_until_killed(std::string const& file, int out) {
  auto const store = idempotency_store::open({.file = file, .seal_keys = {key_with(1, 1)}}, start);
  if (!store) {
    _exit(1);
  }
  std::counting_semaphore<> in_flight(32);
  auto const tell = [out](answered_step const& step) {
    if (write(out, &step, sizeof step) != sizeof step) {
      _exit(1);
    }
  };
  for (std::uint32_t i = 0;; ++i) {
    in_flight.acquire();
    auto const claim = claim_of(key_of(std::to_string(i)), i + 1);
    (*store)->apply(claim, [&, i, claim](store::apply_answer claimed) {
      if (!claimed || !claimed->made) {
        _exit(1);
      }
      tell({i, false});
      auto answer = complete(claim.key, *claim.next, response_of(std::to_string(i)), start);
      (*store)->apply(std::move(answer), [&, i](store::apply_answer completed) {
        if (!completed || !completed->made) {
          _exit(1);
        }
        tell({i, true});
        in_flight.release();
      });
    });
    if (i % 16 == 0) {
      (*store)->sweep(start, 100);
    }
  }
}

TEST(store_sqlite, says_how_far_the_clock_had_come) {
  folder const where;
  {
    auto const store = open({.file = where.file()}, start);
    EXPECT_EQ(store->newest(), idempotency::wall_time::min());
    EXPECT_TRUE(made(*store, claim_of(key_of("a"), 1, start + 1h)));
    EXPECT_TRUE(made(*store, claim_of(key_of("b"), 2, start)));
  }
  EXPECT_EQ(open({.file = where.file()}, start)->newest(), start + 1h);
}

TEST(store_sqlite, counts_the_keys_of_a_scope_over_a_restart) {
  folder const where;
  auto claim = claim_of(key_of("a"), 1);
  claim.scope_keys_max = 1;
  EXPECT_TRUE(made(*open({.file = where.file()}, start), claim));
  claim = claim_of(key_of("b"), 2);
  claim.scope_keys_max = 1;
  auto const refused = apply(*open({.file = where.file()}, start), claim);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().fault, store::store_fault::scope_full);
}

TEST(store_sqlite, has_after_a_kill_whatever_was_answered_before) {
  std::mt19937 random(1);
  for (int round = 0; round < 10; ++round) {
    folder const where;
    auto const octets =
        until_killed(sizeof(answered_step) * (1 + random() % 500),
                     [&](int answers) { store_until_killed(where.file(), answers); });

    auto const store = open({.file = where.file(), .seal_keys = {key_with(1, 1)}}, start + 1s);
    for (std::size_t i = 0; i + sizeof(answered_step) <= octets.size();
         i += sizeof(answered_step)) {
      answered_step step{};
      std::memcpy(&step, octets.data() + i, sizeof step);
      auto const name = std::to_string(step.number);
      auto const record = record_in(*store, key_of(name));
      ASSERT_TRUE(record.has_value()) << name;
      EXPECT_NE(record->state, record_state::dispatched) << name;
      if (step.completed) {
        EXPECT_EQ(record->state, record_state::completed) << name;
        EXPECT_EQ(body_of(*store, name), name);
      }
    }
  }
}

}  // namespace
}  // namespace tidegate::store_sqlite
