// SPDX-License-Identifier: Apache-2.0
//
// A directory whose disk fails at random below SQLite, against a map that knows what was answered.
#include <tidegate/store_sqlite/directory.hpp>

#include "folder.hpp"
#include "power.hpp"
#include "support/directory_contract.hpp"
#include "support/sanitized.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>
#include <random>
#include <semaphore>
#include <thread>

namespace tidegate::store_sqlite {
namespace {

using namespace store::directory_contract_support;
using namespace std::chrono_literals;

using store::directory_outcome;
using store::directory_reader;
using store::directory_writer;

/// More of them are run by setting TIDEGATE_DIRECTORY_ROUNDS.
auto round_count() -> int {
  auto const* const asked = std::getenv("TIDEGATE_DIRECTORY_ROUNDS");
  return asked != nullptr ? std::atoi(asked) : 12;
}

class store_sqlite_directory_failures : public testing::Test {
 protected:
  static constexpr int works_at_once = 300;

  ~store_sqlite_directory_failures() override { mend_disk(); }

  auto open() -> bool {
    // Little memory, so that much of a transaction is in the log before its commit.
    auto made = open_directory({.file = file_,
                                .cache_octets = 128 << 10,
                                .log_octets_max = std::uint64_t{1} << (20 + random_() % 5)},
                               model_);
    why_ = made ? "" : made.error().text;
    directory_ = made ? *std::move(made) : nullptr;
    return directory_ != nullptr;
  }

  static void mend_disk() { power::fail({}); }

  void break_disk() {
    auto const part = std::array{20, 200, 2000, 10'000}[random_() % 4];
    switch (random_() % 8) {
      case 0: power::fail({.log_writes = part}); break;
      case 1: power::fail({.file_writes = part}); break;
      case 2: power::fail({.log_reads = part / 10}); break;
      case 3: power::fail({.truncations = part}); break;
      case 4: power::fail({.log_writes = part, .log_reads = 20}); break;
      case 5: power::fail({.syncs = part}); break;
      case 6: power::fail({.log_writes = part / 10, .syncs = part}); break;
      default: power::fail({.log_writes = part, .file_writes = part}); break;
    }
  }

  void write_some() {
    int const count = 100 + static_cast<int>(random_() % 700);
    for (int i = 0; i < count; ++i) {
      free_.acquire();
      auto const chosen = random_() % 10;
      if (chosen < 4) {
        ++users_made_;
      }
      auto const number =
          chosen < 4 ? users_made_ - 1
                     : static_cast<int>(random_() % static_cast<unsigned>(users_made_ + 1));
      write_one(number, chosen == 9, random_() % 20 == 0, random_() % 100 == 0);
    }
    for (int i = 0; i < works_at_once; ++i) {
      free_.acquire();
    }
    free_.release(works_at_once);
  }

  void write_one(int number, bool is_removed, bool is_undone, bool looks) {
    auto const id = "user" + std::to_string(number);
    auto const user =
        user_of({.id = id,
                 .user_name = "name" + std::to_string(random_()),
                 .title = std::string(random_() % (random_() % 40 == 0 ? 20'000 : 200), 'x')});
    auto const text = to_string(user);
    auto work = [=, this](directory_writer& writer) {
      if (looks && !writer.scan({.type = &users_, .sort_index = 0, .scan = {{}, 50}})) {
        return false;
      }
      auto const there = writer.find(users_, id);
      if (!there) {
        return false;
      }
      bool good = true;
      if (!*there) {
        good = is_removed || insert(writer, users_, user).has_value();
      } else if (is_removed) {
        good = writer.remove(users_, (*there)->rid).has_value();
      } else {
        good = writer.update(users_, (*there)->rid, text, index_entries(users_, user)).has_value();
      }
      return good && !is_undone;
    };
    directory_->write("acme", std::move(work), [=, this](directory_outcome<void> made) {
      std::lock_guard const lock(mutex_);
      if (!made && made.error().fault == store::store_fault::in_doubt && !is_undone) {
        doubtful_[id] = is_removed ? std::nullopt : std::optional(text);
      }
      if (made && !is_undone) {
        doubtful_.erase(id);
        if (is_removed) {
          answered_.erase(id);
        } else {
          answered_[id] = text;
        }
      }
      (made ? good_ : bad_) += 1;
      free_.release();
    });
  }

  /// False: it could not be read.
  auto is_read() -> bool {
    std::binary_semaphore over(0);
    bool good = false;
    directory_->read("acme", [&](directory_outcome<directory_reader*> reader) {
      good = reader && has_what_was_answered(**reader);
      over.release();
    });
    over.acquire();
    return good;
  }

  /// What is in doubt is as it was before, or as it was to be.
  auto settle_doubts(directory_reader& reader) -> bool {
    for (auto const& [id, text] : doubtful_) {
      auto const found = reader.find(users_, id);
      if (!found) {
        return false;
      }
      auto const is = *found ? std::optional((*found)->text) : std::nullopt;
      if (is == text) {
        text ? void(answered_[id] = *text) : void(answered_.erase(id));
      }
    }
    doubtful_.clear();
    return true;
  }

  auto has_what_was_answered(directory_reader& reader) -> bool {
    if (!settle_doubts(reader)) {
      return false;
    }
    for (std::size_t index = 0; index <= users_.indexes.size(); ++index) {
      bool const sorted = index < users_.indexes.size();
      auto const found = reader.scan({.type = &users_,
                                      .sort_index = sorted ? std::optional(index) : std::nullopt,
                                      .scan = {{}, 1'000'000}});
      if (!found) {
        return false;
      }
      EXPECT_EQ(found->rows.size(), answered_.size()) << index;
      for (auto const& row : found->rows) {
        auto const known = answered_.find(row.id);
        EXPECT_TRUE(known != answered_.end() && known->second == row.text) << row.id;
      }
    }
    auto const count = reader.count({.type = &users_});
    if (count) {
      EXPECT_EQ(count->total, answered_.size());
    }
    return count.has_value();
  }

  void expect_all() {
    auto const until = std::chrono::steady_clock::now() + 30s;
    while (!is_read()) {
      ASSERT_LT(std::chrono::steady_clock::now(), until) << "reads do not go on";
      std::this_thread::sleep_for(20ms);
    }
  }

  folder where_;
  std::string file_ = where_.file("directory.db");
  std::shared_ptr<scim::model const> model_ = make_model();
  scim::model_type const& users_ = *model_->find("User");
  std::mt19937 random_{std::random_device{}()};
  std::mutex mutex_;
  std::map<std::string, std::string, std::less<>> answered_;
  std::map<std::string, std::optional<std::string>, std::less<>> doubtful_;
  std::atomic<int> good_ = 0;
  std::atomic<int> bad_ = 0;
  int users_made_ = 0;
  std::counting_semaphore<> free_{works_at_once};
  std::string why_;
  std::unique_ptr<store::directory> directory_;
};

TEST_F(store_sqlite_directory_failures, lose_nothing_that_was_answered) {
  power::fail({});
  ASSERT_TRUE(open()) << why_;
  for (int round = 0; round < round_count() && !HasFailure(); ++round) {
    if (random_() % 2 == 0) {
      std::this_thread::sleep_for(120ms);  // an idle moment: the log goes into the file
    }
    if (random_() % 4 != 0) {
      break_disk();
    }
    write_some();
    if (random_() % 2 == 0) {
      if (random_() % 2 == 0) {
        power::fail({.file_writes = 10'000});  // all has to come from the log
      }
      directory_.reset();
      if (!open()) {
        mend_disk();
        ASSERT_TRUE(open()) << why_;
      }
    }
    mend_disk();
    expect_all();
    int const bad = bad_;
    write_some();
    EXPECT_EQ(bad_, bad) << "errors were over";
    expect_all();
    if (random_() % 3 == 0) {
      directory_.reset();
      auto file = connection::open(file_, sharing::in_process);
      ASSERT_TRUE(file.has_value());
      auto const asked = file->prepare("PRAGMA integrity_check");
      ASSERT_TRUE(asked && file->step(asked->get()).value_or(false));
      EXPECT_EQ(blob(asked->get(), 0), "ok");
      ASSERT_TRUE(open()) << why_;
      expect_all();
    }
  }
  EXPECT_GT(good_, bad_ / 100);
}

}  // namespace
}  // namespace tidegate::store_sqlite
