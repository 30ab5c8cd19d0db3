// SPDX-License-Identifier: Apache-2.0
//
// Directories as versions before this one left them when they were killed: `FILE.journal` has
// writes that were answered and are not in the file.
#include "crc32c.hpp"
#include "directory_helpers.hpp"
#include "killed_child.hpp"

#include "connection.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

namespace tidegate::store_sqlite {
namespace {

constexpr std::uint64_t identity = 0x1122'3344'5566'7788;

auto number(std::uint64_t value) -> std::string {
  std::string octets;
  for (int i = 0; i < 8; ++i) {
    octets += static_cast<char>(value >> (8 * i));
  }
  return octets;
}

auto text(std::string_view of) -> std::string {
  return number(of.size()).append(of);
}

/// As `directory_redo` of those versions wrote it.
auto change(int what, std::uint64_t rid, std::string_view type, std::string_view id,
            std::string_view content, std::uint64_t member = 0) -> std::string {
  return static_cast<char>(what) + number(rid) + number(member) + text("acme") + text(type) +
         text(id) + text(content);
}

/// As `directory_journal` wrote it; at blocks, or one behind the other as the first of them did.
auto journal_of(std::vector<std::string> const& groups, bool at_blocks, std::uint64_t of = identity)
    -> std::string {
  std::string all;
  std::uint64_t at = 0;
  for (auto const& content : groups) {
    auto const rest = number(99) + number(of) + number(++at) + content;
    all += number(content.size()) +
           number(crc32c(rest) | (at_blocks ? std::uint64_t{1} << 32 : 0)) + rest;
    if (at_blocks) {
      all.resize((all.size() + 4095) / 4096 * 4096);
    }
  }
  return all;
}

void put_file(std::string const& name, std::string_view content) {
  std::ofstream(name, std::ios::binary) << content;
}

class store_sqlite_old_journal : public testing::Test {
 protected:
  /// A file of version 2 with the users 0 and 1, of which it has `applied` groups of the journal.
  void SetUp() override {
    {
      auto const d = open({.file = file_}, model_);
      ASSERT_NE(d, nullptr);
      add_users(*d, users_, 0, 2);
      reading(*d, "acme", [&](directory_reader& reader) {
        first_rid_ = (*reader.find(users_, name_of(0)))->rid;
      });
    }
    auto file = connection::open(file_, sharing::in_process);
    ASSERT_TRUE(file.has_value());
    auto const made =
        "CREATE TABLE journal (identity INTEGER NOT NULL, applied INTEGER NOT NULL);"
        "INSERT INTO journal VALUES (" +
        std::to_string(static_cast<std::int64_t>(identity)) + ", 1); PRAGMA user_version=2";
    ASSERT_TRUE(file->execute(made.c_str()));
  }

  [[nodiscard]] static auto user(std::string const& id) -> std::string {
    return to_string(user_of({.id = id, .user_name = id + "-name"}));
  }
  /// The first of them is in the file.
  [[nodiscard]] auto groups() const -> std::vector<std::string> {
    return {change(1, first_rid_ + 1, "User", name_of(1), user(name_of(1))),
            change(1, first_rid_ + 2, "User", "b", user("b")) +
                change(2, first_rid_, "User", "", user(name_of(0))),
            change(3, first_rid_ + 1, "User", "", "")};
  }
  void expect_all(store::directory& d) const {
    EXPECT_EQ(text_in(d, "acme", users_, name_of(0)), user(name_of(0)));
    EXPECT_EQ(text_in(d, "acme", users_, name_of(1)), "none");
    EXPECT_EQ(text_in(d, "acme", users_, "b"), user("b"));
    EXPECT_EQ(found(d, users_, R"(userName eq "b-name")"), std::vector<std::string>{"b"});
    EXPECT_EQ(
        reading(d, "acme",
                [&](directory_reader& reader) { return reader.count({.type = &users_})->total; }),
        2U);
  }

  folder where_;
  std::string file_ = where_.file("directory.db");
  std::shared_ptr<scim::model const> model_ = make_model();
  scim::model_type const& users_ = *model_->find("User");
  std::uint64_t first_rid_ = 0;
};

TEST_F(store_sqlite_old_journal, is_carried_over_once) {
  for (bool const at_blocks : {false, true}) {
    auto const copy = where_.file(at_blocks ? "blocks.db" : "plain.db");
    std::filesystem::copy_file(file_, copy);
    put_file(copy + ".journal", journal_of(groups(), at_blocks));
    for (int i = 0; i < 2; ++i) {
      auto const d = open({.file = copy}, model_);
      ASSERT_NE(d, nullptr);
      expect_all(*d);
      EXPECT_FALSE(std::filesystem::exists(copy + ".journal"));
    }
  }
}

TEST_F(store_sqlite_old_journal, ends_with_the_last_group_that_is_whole) {
  auto const whole = journal_of(groups(), true);
  for (auto const octets : {whole.size() - 4096 + 10, whole.size() - 4096}) {
    auto const copy = where_.file(std::to_string(octets) + ".db");
    std::filesystem::copy_file(file_, copy);
    put_file(copy + ".journal", std::string_view(whole).substr(0, octets));
    auto const d = open({.file = copy}, model_);
    ASSERT_NE(d, nullptr);
    EXPECT_EQ(text_in(*d, "acme", users_, "b"), user("b"));
    EXPECT_NE(text_in(*d, "acme", users_, name_of(1)), "none") << "its removal was not answered";
  }
}

TEST_F(store_sqlite_old_journal, loses_nothing_when_it_is_killed_half_way) {
  std::vector<std::string> many{change(1, first_rid_ + 1, "User", name_of(1), user(name_of(1)))};
  constexpr int count = 3000;
  for (int i = 0; i < count; ++i) {
    auto const id = "many" + std::to_string(i);
    many.push_back(change(1, first_rid_ + 2 + static_cast<std::uint64_t>(i), "User", id, user(id)));
  }
  put_file(file_ + ".journal", journal_of(many, true));
  for (int round = 0; round < 5; ++round) {
    (void)until_killed(1, [&](int answers) {
      std::thread([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(20 + 10 * round));
        (void)!write(answers, "x", 1);
      }).detach();
      auto const d = open_directory({.file = file_}, model_);
      std::this_thread::sleep_for(std::chrono::seconds(10));
      _exit(d ? 0 : 1);
    });
  }
  auto const d = open({.file = file_}, model_);
  ASSERT_NE(d, nullptr);
  EXPECT_EQ(
      reading(*d, "acme",
              [&](directory_reader& reader) { return reader.count({.type = &users_})->total; }),
      count + 2U);
}

TEST_F(store_sqlite_old_journal, must_be_of_this_directory_and_of_its_types) {
  put_file(file_ + ".journal", journal_of(groups(), true, identity + 1));
  EXPECT_EQ(error_of({.file = file_}),
            (store_error{store_fault::damaged, file_ + ".journal: is of another directory"}));
  put_file(file_ + ".journal", journal_of({groups()[0], change(1, 1, "Device", "d", "{}")}, true));
  EXPECT_EQ(error_of({.file = file_}),
            (store_error{store_fault::unavailable,
                         file_ + ".journal: has changes of the resource type \"Device\", which does"
                                 " not exist any more"}));
  put_file(file_ + ".journal", journal_of(groups(), true));
  auto const d = open({.file = file_}, model_);
  ASSERT_NE(d, nullptr);
  expect_all(*d);
}

TEST_F(store_sqlite_old_journal, need_not_be_there) {
  auto const d = open({.file = file_}, model_);
  ASSERT_NE(d, nullptr);
  EXPECT_NE(text_in(*d, "acme", users_, name_of(1)), "none");
}

TEST_F(store_sqlite_old_journal, was_unknown_to_the_first_version) {
  ASSERT_TRUE(connection::open(file_, sharing::in_process)
                  ->execute("DROP TABLE journal; PRAGMA user_version=1"));
  auto const d = open({.file = file_}, model_);
  ASSERT_NE(d, nullptr);
  EXPECT_NE(text_in(*d, "acme", users_, name_of(1)), "none");
}

}  // namespace
}  // namespace tidegate::store_sqlite
