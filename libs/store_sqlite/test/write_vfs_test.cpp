// SPDX-License-Identifier: Apache-2.0
#include "write_vfs.hpp"

#include "connection.hpp"
#include "folder.hpp"
#include "power.hpp"

#include <gtest/gtest.h>

#include <filesystem>

namespace tidegate::store_sqlite {
namespace {

constexpr int page_octets = 4096;

auto opened(std::string const& file, char const* vfs) -> connection {
  auto made = connection::open(file, sharing::in_process, vfs);
  EXPECT_TRUE(made.has_value());
  EXPECT_TRUE(made->execute("PRAGMA mmap_size=2147418112; PRAGMA wal_autocheckpoint=0"));
  return *std::move(made);
}

void add_rows(connection& to, int from, int last) {
  auto const statement = "WITH RECURSIVE c(x) AS (SELECT " + std::to_string(from) +
                         " UNION ALL SELECT x + 1 FROM c WHERE x < " + std::to_string(last) +
                         ") INSERT INTO t SELECT x, randomblob(2000) FROM c";
  EXPECT_TRUE(to.execute(statement.c_str()));
}

auto is_whole(connection& file) -> bool {
  auto const asked = file.prepare("PRAGMA integrity_check");
  return asked && file.step(asked->get()).value_or(false) && blob(asked->get(), 0) == "ok";
}

auto rows_in(connection& file) -> std::int64_t {
  return file.number("SELECT count(*) FROM t").value_or(-1);
}

class store_sqlite_write_vfs : public testing::Test {
 protected:
  store_sqlite_write_vfs() {
    power::fill_file(-1);
    power::fill_log(-1);
    writer_.emplace(opened(file_, write_vfs_name()));
    EXPECT_TRUE(writer_->execute("CREATE TABLE t (a INTEGER PRIMARY KEY, b BLOB)"));
    add_rows(*writer_, 1, 100);
    EXPECT_EQ(checkpoint(SQLITE_CHECKPOINT_RESTART), SQLITE_OK);
    pages_ = writer_->number("PRAGMA page_count").value_or(0);
  }
  ~store_sqlite_write_vfs() override {
    power::fill_file(-1);
    power::fill_log(-1);
  }

  auto checkpoint(int how) -> int {
    return sqlite3_wal_checkpoint_v2(writer_->get(), nullptr, how, nullptr, nullptr);
  }
  void expect_whole_after_all_is_closed(std::int64_t rows) {
    writer_.reset();
    auto again = opened(file_, nullptr);
    EXPECT_EQ(rows_in(again), rows);
    EXPECT_TRUE(is_whole(again));
  }

  folder where_;
  std::string file_ = where_.file("t.db");
  std::optional<connection> writer_;
  std::int64_t pages_ = 0;
};

TEST_F(store_sqlite_write_vfs, keeps_the_log_while_the_file_cannot_be_written) {
  add_rows(*writer_, 101, 120);
  for (auto const how :
       {SQLITE_CHECKPOINT_PASSIVE, SQLITE_CHECKPOINT_RESTART, SQLITE_CHECKPOINT_TRUNCATE}) {
    for (auto const from : {pages_ + 2, pages_, pages_ / 2, std::int64_t{0}}) {
      power::fill_file(from * page_octets);
      EXPECT_NE(checkpoint(how), SQLITE_OK) << how << " " << from;
    }
  }
  power::fill_file(-1);
  {
    auto reader = opened(file_, nullptr);
    EXPECT_EQ(rows_in(reader), 120);
    EXPECT_TRUE(is_whole(reader));
  }
  add_rows(*writer_, 121, 130);
  EXPECT_EQ(checkpoint(SQLITE_CHECKPOINT_RESTART), SQLITE_OK);
  add_rows(*writer_, 131, 140);
  expect_whole_after_all_is_closed(140);
}

TEST_F(store_sqlite_write_vfs, keeps_the_log_while_a_part_of_it_cannot_be_written) {
  add_rows(*writer_, 101, 120);
  auto reader = opened(file_, nullptr);
  EXPECT_TRUE(reader.execute("BEGIN; SELECT count(*) FROM t"));
  add_rows(*writer_, 121, 121);  // which the reader does not see, so it has to stay in the log
  power::fill_file((pages_ + 2) * page_octets);
  EXPECT_NE(checkpoint(SQLITE_CHECKPOINT_PASSIVE), SQLITE_OK);
  power::fill_file(-1);
  EXPECT_TRUE(is_whole(reader));
  EXPECT_TRUE(reader.execute("COMMIT"));
  EXPECT_EQ(rows_in(reader), 121);
  EXPECT_TRUE(is_whole(reader));
  reader = connection();
  expect_whole_after_all_is_closed(121);
}

TEST_F(store_sqlite_write_vfs, has_all_of_a_transaction_or_nothing_when_the_log_cannot_be_written) {
  // With few pages in memory, the others go to the log before the commit.
  EXPECT_TRUE(writer_->execute("PRAGMA cache_size=10; PRAGMA cache_spill=ON"));
  std::int64_t rows = 100;
  for (int octets = 0; octets < 600'000; octets += 50'000) {
    EXPECT_EQ(checkpoint(SQLITE_CHECKPOINT_TRUNCATE), SQLITE_OK);
    EXPECT_TRUE(writer_->execute("BEGIN"));
    power::fill_log(octets);
    bool good = true;
    for (int i = 1; i <= 50 && good; ++i) {
      auto const one = std::to_string(rows + i);
      // An error of one statement must not be survived by the others.
      static_cast<void>(
          writer_->execute(("INSERT INTO t VALUES (" + one + ", randomblob(10000))").c_str()));
      static_cast<void>(writer_->execute("UPDATE t SET b = randomblob(3000) WHERE a % 10 = 0"));
      good = writer_->in_transaction();
    }
    power::fill_log(-1);
    bool const committed = writer_->in_transaction() && writer_->execute("COMMIT").has_value();
    if (!committed) {
      writer_->rollback();
      forget_lost_log(writer_->get());
    }
    EXPECT_FALSE(committed) << octets;
    EXPECT_EQ(rows_in(*writer_), rows);
    add_rows(*writer_, static_cast<int>(rows) + 1, static_cast<int>(rows) + 5);
    rows += 5;
    EXPECT_EQ(rows_in(*writer_), rows);
    EXPECT_TRUE(is_whole(*writer_));
  }
  expect_whole_after_all_is_closed(rows);
}

TEST_F(store_sqlite_write_vfs, refuses_a_commit_whose_checksums_sqlite_forgets) {
  EXPECT_TRUE(writer_->execute("PRAGMA cache_size=10; PRAGMA cache_spill=ON"));
  std::int64_t rows = 100;
  int refused = 0;
  for (int round = 0; round < 20; ++round) {
    EXPECT_TRUE(
        writer_->execute("BEGIN; UPDATE t SET b = randomblob(1500) WHERE a < 3; SAVEPOINT s;"
                         "UPDATE t SET b = randomblob(2000)"));
    for (int i = 0; i < round; ++i) {
      EXPECT_TRUE(writer_->execute("UPDATE t SET b = randomblob(2100) WHERE a > 50"));
    }
    EXPECT_TRUE(writer_->execute("ROLLBACK TO s; RELEASE s"));
    add_rows(*writer_, static_cast<int>(rows) + 1, static_cast<int>(rows) + 5);
    bool const committed = writer_->execute("COMMIT").has_value();
    if (committed) {
      rows += 5;
    } else {
      writer_->rollback();
      forget_lost_log(writer_->get());
      ++refused;
    }
    EXPECT_EQ(rows_in(*writer_), rows);
    // Without what is beside it in memory, as after a crash.
    auto const copy = where_.file("copy" + std::to_string(round));
    std::filesystem::copy_file(file_, copy);
    std::filesystem::copy_file(file_ + "-wal", copy + "-wal");
    auto after = opened(copy, nullptr);
    EXPECT_EQ(rows_in(after), rows) << round;
    EXPECT_TRUE(is_whole(after));
  }
  constexpr int version_without = 3'050'002;
  if (sqlite3_libversion_number() >= version_without) {
    EXPECT_EQ(refused, 0);
  } else if (sqlite3_libversion() == std::string_view("3.40.1")) {
    EXPECT_GT(refused, 0);
  }
  EXPECT_LT(refused, 20);
  expect_whole_after_all_is_closed(rows);
}

TEST_F(store_sqlite_write_vfs, commits_what_follows_when_all_of_a_new_log_was_undone) {
  EXPECT_TRUE(writer_->execute("PRAGMA cache_size=10; PRAGMA cache_spill=ON"));
  std::int64_t rows = 100;
  for (auto const how : {SQLITE_CHECKPOINT_TRUNCATE, SQLITE_CHECKPOINT_RESTART}) {
    for (int round = 0; round < 4; ++round) {
      EXPECT_EQ(checkpoint(how), SQLITE_OK);
      // Pages are written once more, from the first one on, and others behind them.
      EXPECT_TRUE(writer_->execute(
          "BEGIN; SAVEPOINT s; UPDATE t SET b = randomblob(1900);"
          "UPDATE t SET b = randomblob(1900) WHERE a < 50; UPDATE t SET b = randomblob(3000);"
          "ROLLBACK TO s; RELEASE s"));
      add_rows(*writer_, static_cast<int>(rows) + 1, static_cast<int>(rows) + 50);
      EXPECT_TRUE(writer_->execute("COMMIT")) << round;
      rows += 50;
      EXPECT_EQ(rows_in(*writer_), rows);
    }
  }
  expect_whole_after_all_is_closed(rows);
}

}  // namespace
}  // namespace tidegate::store_sqlite
