// SPDX-License-Identifier: Apache-2.0
// What becomes of a store of idempotency keys that was damaged, shortened, replaced or deleted. A
// key whose answer was seen must never look like a new one.
#include <tidegate/store_sqlite/idempotency_store.hpp>

#include "failing_syncs.hpp"
#include "folder.hpp"
#include "killed_child.hpp"
#include "support/idempotency_store_contract.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <random>

namespace tidegate::store_sqlite {
namespace {

namespace fs = std::filesystem;
using namespace store::contract;
using idempotency::record_state;
using store::store_error;
using store::store_fault;

constexpr int keys = 40;

void complete_key(store::idempotency_store& store, int number) {
  auto const claim = claim_of(key_of(std::to_string(number)), 1);
  ASSERT_TRUE(made(store, claim));
  auto answer = complete(claim.key, *claim.next, response_of(std::to_string(number)), start);
  answer.seal = false;
  ASSERT_TRUE(made(store, answer));
}

/// Answers forty keys and ends properly.
void fill(std::string const& file) {
  auto const store = idempotency_store::open({.file = file}, start);
  ASSERT_TRUE(store.has_value()) << store.error().text;
  for (int i = 0; i < keys; ++i) {
    complete_key(**store, i);
  }
}

/// The same by a process that is killed: its log stays.
void fill_and_die(std::string const& file) {
  until_killed(1, [&](int out) {
    auto const store = idempotency_store::open({.file = file}, start);
    for (int i = 0; store && i < keys; ++i) {
      complete_key(**store, i);
    }
    static_cast<void>(!write(out, "x", 1));
    pause();
  });
}

/// True when it was refused as damaged; else every key must have its answer, or say that it has
/// none to show.
auto is_refused_or_whole(std::string const& file) -> bool {
  auto const store = idempotency_store::open({.file = file}, start);
  if (!store) {
    EXPECT_EQ(store.error().fault, store_fault::damaged) << store.error().text;
    return true;
  }
  for (int i = 0; i < keys; ++i) {
    auto const found = find(**store, key_of(std::to_string(i)));
    if (!found) {
      EXPECT_EQ(found.error().fault, store_fault::damaged) << found.error().text;
      continue;
    }
    EXPECT_TRUE(found->has_value()) << "key " << i << " would run again";
    if (*found) {
      EXPECT_EQ((*found)->record.state, record_state::completed) << i;
      EXPECT_EQ((*found)->response->body, std::to_string(i));
    }
  }
  return false;
}

auto error_of(options const& o) -> store_error {
  auto const store = idempotency_store::open(o, start);
  return store ? store_error{} : store.error();
}

auto content_of(std::string const& file) -> std::string {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void put(std::string const& file, std::string const& content) {
  std::ofstream(file, std::ios::binary | std::ios::trunc) << content;
}

/// Flips bits of `damaged`, which belongs to the store `file`, one at a time, and begins each time
/// with the same store.
void flip_bits(folder const& where, std::string const& damaged, int trials) {
  auto const kept = where.file("kept");
  fs::create_directory(kept);
  for (auto const& entry : fs::directory_iterator(fs::path(where.file()).parent_path())) {
    if (entry.is_regular_file()) {
      fs::copy_file(entry.path(), fs::path(kept) / entry.path().filename());
    }
  }
  std::mt19937 random(7);  // NOLINT: the same each time
  auto const whole = content_of(damaged);
  ASSERT_FALSE(whole.empty());
  int refused = 0;
  for (int i = 0; i < trials; ++i) {
    for (auto const& entry : fs::directory_iterator(kept)) {
      fs::copy_file(entry.path(), where.file(entry.path().filename().string()),
                    fs::copy_options::overwrite_existing);
    }
    auto flipped = whole;
    auto const at = random() % flipped.size();
    flipped[at] = static_cast<char>(flipped[at] ^ (1 << (random() % 8)));
    put(damaged, flipped);
    SCOPED_TRACE("bit flipped in octet " + std::to_string(at));
    refused += is_refused_or_whole(where.file()) ? 1 : 0;
    fs::remove(where.file() + "-wal");
    fs::remove(where.file() + "-shm");
  }
  EXPECT_GT(refused, 0);
}

auto trials() -> int {
  auto const* const wanted =
      std::getenv("TIDEGATE_DAMAGE_TRIALS");          // NOLINT(concurrency-mt-unsafe)
  return wanted == nullptr ? 60 : std::atoi(wanted);  // NOLINT(cert-err34-c)
}

TEST(store_sqlite_damage, lets_no_key_run_again_when_a_bit_of_the_file_was_flipped) {
  folder const where;
  fill(where.file());
  flip_bits(where, where.file(), trials());
}

TEST(store_sqlite_damage, lets_no_key_run_again_when_a_bit_of_the_log_was_flipped) {
  folder const where;
  fill_and_die(where.file());
  flip_bits(where, where.file() + "-wal", trials());
}

TEST(store_sqlite_damage, refuses_a_store_whose_log_was_removed_or_shortened) {
  for (bool const removed : {true, false}) {
    folder const where;
    fill_and_die(where.file());
    if (removed) {
      fs::remove(where.file() + "-wal");
    } else {
      fs::resize_file(where.file() + "-wal", fs::file_size(where.file() + "-wal") / 2);
    }
    auto const error = error_of({.file = where.file()});
    EXPECT_EQ(error.fault, store_fault::damaged);
    EXPECT_NE(error.text.find("changes are missing"), std::string::npos) << error.text;
    fs::remove(where.file() + ".commits");
    EXPECT_EQ(error_of({.file = where.file()}).text, "") << "the operator takes what is left";
  }
}

TEST(store_sqlite_damage, refuses_an_empty_a_missing_and_an_older_file) {
  folder const where;
  fill(where.file());
  auto const older = content_of(where.file());
  { complete_key(**idempotency_store::open({.file = where.file()}, start), 1'000); }
  auto const newest = content_of(where.file());

  put(where.file(), "");
  EXPECT_NE(error_of({.file = where.file()}).text.find("is empty"), std::string::npos);
  put(where.file(), older);
  EXPECT_NE(error_of({.file = where.file()}).text.find("changes are missing"), std::string::npos);
  fs::remove(where.file());
  EXPECT_NE(error_of({.file = where.file()}).text.find("is missing"), std::string::npos);
  EXPECT_FALSE(fs::exists(where.file())) << "and none was made";
  put(where.file(), newest);
  EXPECT_EQ(error_of({.file = where.file()}).text, "");
}

TEST(store_sqlite_damage, refuses_another_store_in_its_place) {
  folder const where;
  fill(where.file());
  fill(where.file("other.db"));
  fs::copy_file(where.file("other.db"), where.file(), fs::copy_options::overwrite_existing);
  auto const error = error_of({.file = where.file()});
  EXPECT_EQ(error.fault, store_fault::damaged);
  EXPECT_NE(error.text.find("another file"), std::string::npos) << error.text;
}

TEST(store_sqlite_damage, refuses_a_damaged_mark) {
  folder const where;
  fill(where.file());
  auto mark = content_of(where.file() + ".commits");
  mark[10] = static_cast<char>(mark[10] ^ 1);
  put(where.file() + ".commits", mark);
  EXPECT_EQ(error_of({.file = where.file()}).fault, store_fault::damaged);
  put(where.file() + ".commits", "");
  EXPECT_EQ(error_of({.file = where.file()}).fault, store_fault::damaged);
}

TEST(store_sqlite_damage, takes_no_key_while_its_file_or_log_is_not_in_its_place) {
  for (auto const* const ending : {"", "-wal"}) {
    folder const where;
    auto const store = *idempotency_store::open({.file = where.file()}, start);
    complete_key(*store, 1);
    fs::rename(where.file() + ending, where.file("elsewhere"));
    auto const refused = apply(*store, claim_of(key_of("2"), 1));
    ASSERT_FALSE(refused.has_value()) << ending;
    EXPECT_EQ(refused.error().fault, store_fault::damaged);
    EXPECT_NE(refused.error().text.find("deleted or replaced"), std::string::npos)
        << refused.error().text;
    EXPECT_EQ((*find(*store, key_of("1")))->response->body, "1") << "what is in memory is known";
    put(where.file() + ending, "another file");
    EXPECT_FALSE(apply(*store, claim_of(key_of("2"), 1)).has_value()) << ending;
    fs::rename(where.file("elsewhere"), where.file() + ending);
    EXPECT_TRUE(made(*store, claim_of(key_of("2"), 1))) << "it is back";
  }
}

TEST(store_sqlite_damage, takes_no_key_while_its_mark_is_not_in_its_place) {
  folder const where;
  auto const store = *idempotency_store::open({.file = where.file()}, start);
  complete_key(*store, 1);
  fs::rename(where.file() + ".commits", where.file("elsewhere"));
  auto const refused = apply(*store, claim_of(key_of("2"), 1));
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().fault, store_fault::damaged);
  EXPECT_THAT(refused.error().text, testing::HasSubstr(".commits: was deleted or replaced"));
  fs::rename(where.file("elsewhere"), where.file() + ".commits");
  EXPECT_TRUE(made(*store, claim_of(key_of("2"), 1))) << "it is back";
}

TEST(store_sqlite_damage, takes_no_key_when_its_file_or_log_was_shortened_while_in_use) {
  for (auto const* const ending : {"", "-wal"}) {
    for (auto const part : {0U, 2U}) {
      folder const where;
      auto const store = *idempotency_store::open({.file = where.file()}, start);
      for (int i = 0; i < 20; ++i) {
        complete_key(*store, i);
      }
      auto const name = where.file() + ending;
      fs::resize_file(name, part == 0 ? 0 : fs::file_size(name) / part);
      auto const refused = apply(*store, claim_of(key_of("new"), 1));
      ASSERT_FALSE(refused.has_value()) << name;
      EXPECT_EQ(refused.error().fault, store_fault::damaged);
      EXPECT_THAT(refused.error().text, testing::HasSubstr(name + ": was shortened while in use"));
      EXPECT_EQ((*find(*store, key_of("1")))->response->body, "1") << "what is in memory is known";
      EXPECT_FALSE(apply(*store, claim_of(key_of("new"), 1)).has_value()) << "it stays so";
    }
  }
}

TEST(store_sqlite_damage, does_not_take_its_own_checkpoints_for_damage) {
  folder const where;
  auto const store = *idempotency_store::open({.file = where.file()}, start);
  auto const log = where.file() + "-wal";
  std::uintmax_t longest = 0;
  bool has_restarted = false;  // the file stays as long as it was
  for (int i = 0; i < 500; ++i) {
    complete_key(*store, i);
    auto const now = fs::file_size(log);
    has_restarted = has_restarted || (i > 0 && now == longest);
    longest = std::max(longest, now);
  }
  EXPECT_TRUE(has_restarted) << longest;
  EXPECT_TRUE(made(*store, claim_of(key_of("new"), 1)));
}

TEST(store_sqlite_damage, says_whether_it_was_made_or_found) {
  folder const where;
  EXPECT_TRUE((*idempotency_store::open({.file = where.file()}, start))->is_new());
  EXPECT_FALSE((*idempotency_store::open({.file = where.file()}, start))->is_new());
}

TEST(store_sqlite_damage, refuses_a_store_that_was_made_with_another_secret) {
  folder const where;
  auto const digest = [&](std::string const& text) {
    return options{.file = where.file(), .secret_digest = text};
  };
  EXPECT_EQ(error_of(digest("one")).text, "");
  auto const error = error_of(digest("another"));
  EXPECT_EQ(error.fault, store_fault::damaged);
  EXPECT_NE(error.text.find("another secret"), std::string::npos) << error.text;
  EXPECT_EQ(error_of(digest("one")).text, "");
}

/// Runs SQL on a file that is not open.
void execute(std::string const& file, char const* sql) {
  sqlite3* other = nullptr;
  ASSERT_EQ(sqlite3_open(file.c_str(), &other), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(other, sql, nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_close(other);
}

/// Takes the checksums, and the marks of commits, off each row.
constexpr auto to_first_version =
    "UPDATE record SET record = substr(record, 1, length(record) - 20),"
    " response = substr(response, 1, length(response) - 4);"
    "DROP TABLE store; PRAGMA user_version=1";

TEST(store_sqlite_damage, reads_a_file_from_before_checksums) {
  folder const where;
  fill(where.file());
  execute(where.file(), to_first_version);
  fs::remove(where.file() + ".commits");
  for (int round = 0; round < 2; ++round) {
    EXPECT_FALSE(is_refused_or_whole(where.file())) << round;
  }
}

TEST(store_sqlite_damage, takes_the_last_row_that_was_written_for_the_number_of_commits) {
  folder const where;
  fill(where.file());
  // A row that is newer than all others: with it goes what the last commit has said.
  execute(where.file(),
          "DELETE FROM record WHERE id = (SELECT max(id) FROM record);"
          "UPDATE store SET commits = 1");
  auto const error = error_of({.file = where.file()});
  EXPECT_EQ(error.fault, store_fault::damaged);
}

TEST(store_sqlite_damage, does_not_find_after_a_kill_what_it_refused) {
  folder const where;
  until_killed(1, [&](int out) {
    auto const store = idempotency_store::open({.file = where.file()}, start);
    complete_key(**store, 1);
    std::optional<failing_syncs> fails(std::in_place);
    if (apply(**store, claim_of(key_of("refused"), 1))) {
      _exit(1);
    }
    fails.reset();
    auto const before = (*store)->counted().transactions;
    while ((*store)->counted().transactions == before) {
      (*store)->sweep(start, 1);  // as the gateway does each second
    }
    static_cast<void>(!write(out, "x", 1));
    pause();
  });
  auto const store = idempotency_store::open({.file = where.file()}, start);
  ASSERT_TRUE(store.has_value()) << store.error().text;
  EXPECT_EQ(record_in(**store, key_of("refused")), std::nullopt);
  EXPECT_NE(record_in(**store, key_of("1")), std::nullopt);
}

}  // namespace
}  // namespace tidegate::store_sqlite
