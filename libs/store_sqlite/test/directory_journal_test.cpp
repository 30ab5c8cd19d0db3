// SPDX-License-Identifier: Apache-2.0
#include "directory_journal.hpp"

#include "file_limit.hpp"
#include "folder.hpp"
#include "journal_disk.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

#include "directory_redo.hpp"

namespace tidegate::store_sqlite {
namespace {

using groups = std::vector<std::pair<std::uint64_t, std::string>>;

using way = directory_journal::way;

auto open_journal(std::string const& file, std::uint64_t identity = 7,
                  way to_disk = way::past_caches) -> directory_journal {
  auto made = directory_journal::open(file, identity, to_disk);
  EXPECT_TRUE(made.has_value()) << (made ? "" : made.error().text);
  return *std::move(made);
}

auto all_of(directory_journal const& journal) -> groups {
  groups all;
  auto const read = journal.read([&](std::uint64_t number, std::string_view content) {
    all.emplace_back(number, content);
    return outcome<void>{};
  });
  EXPECT_TRUE(read.has_value());
  return all;
}

auto content_of(std::string const& file) -> std::string {
  std::ostringstream all;
  all << std::ifstream(file, std::ios::binary).rdbuf();
  return std::move(all).str();
}

void put_content(std::string const& file, std::string_view content) {
  std::ofstream(file, std::ios::binary | std::ios::trunc) << content;
}

TEST(store_sqlite_directory_journal, has_groups_in_order_when_it_is_opened_again) {
  folder const where;
  auto const file = where.file("directory.db");
  groups const written{{5, "first"}, {6, std::string(100'000, 'x')}, {7, std::string("a\0b", 3)}};
  {
    auto journal = open_journal(file);
    EXPECT_EQ(all_of(journal), groups{});
    journal.restart();
    for (auto const& [number, content] : written) {
      ASSERT_TRUE(journal.append(number, content));
    }
    EXPECT_EQ(all_of(journal), written);
  }
  auto journal = open_journal(file);
  EXPECT_EQ(all_of(journal), written);
  journal.remove();
  EXPECT_FALSE(std::filesystem::exists(file + ".journal"));
}

TEST(store_sqlite_directory_journal, ends_with_the_last_group_that_is_whole) {
  folder const where;
  auto const file = where.file("directory.db");
  groups const written{{1, "one"}, {2, "two and more"}, {3, "three"}};
  constexpr std::size_t head = 40;
  std::vector<std::size_t> begins;
  std::vector<std::size_t> ends;
  {
    auto journal = open_journal(file);
    journal.restart();
    for (auto const& [number, content] : written) {
      begins.push_back(journal.size());
      ends.push_back(begins.back() + head + content.size());
      ASSERT_TRUE(journal.append(number, content));
    }
  }
  auto const whole = content_of(file + ".journal").substr(0, ends.back());
  for (std::size_t group = 0; group < written.size(); ++group) {
    groups const before(written.begin(), written.begin() + static_cast<std::ptrdiff_t>(group));
    for (auto octet = begins[group]; octet < ends[group]; ++octet) {
      put_content(file + ".journal", std::string_view(whole).substr(0, octet));
      EXPECT_EQ(all_of(open_journal(file)), before) << "cut at " << octet;
      auto changed = whole;
      changed[octet] = static_cast<char>(changed[octet] ^ 0x10);
      put_content(file + ".journal", changed);
      EXPECT_EQ(all_of(open_journal(file)), before) << "changed at " << octet;
    }
    // What is behind a group is of no importance.
    put_content(file + ".journal", std::string_view(whole).substr(0, ends[group]));
    EXPECT_EQ(all_of(open_journal(file)).size(), group + 1) << "cut behind it";
  }
}

TEST(store_sqlite_directory_journal, has_any_content_past_the_caches_and_through_them) {
  folder const where;
  auto const file = where.file("directory.db");
  groups written;
  std::uint64_t number = 0;
  for (std::size_t const blocks : {1U, 2U, 255U, 256U, 600U}) {
    for (std::size_t const less : {42U, 41U, 40U, 39U, 1U, 0U}) {
      ++number;
      written.emplace_back(number, std::string(blocks * 4096 - less, static_cast<char>(number)));
    }
  }
  for (auto const first : {way::past_caches, way::through_caches}) {
    for (auto const second : {way::past_caches, way::through_caches}) {
      {
        auto journal = open_journal(file, 7, first);
        journal.restart();
        for (auto const& [of, content] : written) {
          ASSERT_TRUE(journal.append(of, content));
          EXPECT_EQ(journal.size() % 4096, 0U);
        }
        EXPECT_EQ(all_of(journal), written);
      }
      auto journal = open_journal(file, 7, second);
      EXPECT_EQ(all_of(journal), written);
      journal.restart();
      ASSERT_TRUE(journal.append(1, "anew"));
      EXPECT_EQ(all_of(journal), (groups{{1, "anew"}}));
    }
  }
}

// Octets as they were written before groups began at blocks: such a journal may be beside a directory that is opened after a crash.
TEST(store_sqlite_directory_journal, reads_groups_that_follow_each_other_at_once) {
  folder const where;
  auto const file = where.file("directory.db");
  auto const group = [](std::uint64_t checksum, std::uint64_t number, std::string_view content) {
    std::string octets;
    for (auto value : {std::uint64_t{content.size()}, checksum,
                       std::uint64_t{0x1122'3344'5566'7788}, std::uint64_t{7}, number}) {
      for (int i = 0; i < 8; ++i, value >>= 8) {
        octets += static_cast<char>(value);
      }
    }
    return octets + std::string(content);
  };
  put_content(file + ".journal", group(0x2043'5093, 5, "one") + group(0x4a31'ecf8, 6, "three"));
  EXPECT_EQ(all_of(open_journal(file)), (groups{{5, "one"}, {6, "three"}}));
}

TEST(store_sqlite_directory_journal, takes_nothing_that_was_there_before_it_began_anew) {
  folder const where;
  auto const file = where.file("directory.db");
  auto journal = open_journal(file);
  journal.restart();
  for (std::uint64_t number = 1; number <= 4; ++number) {
    ASSERT_TRUE(journal.append(number, "same length"));
  }
  journal.restart();
  EXPECT_EQ(all_of(journal).size(), 4U) << "as long as nothing is in its place";
  ASSERT_TRUE(journal.append(1, "SAME LENGTH"));
  EXPECT_EQ(all_of(open_journal(file)), (groups{{1, "SAME LENGTH"}}));
}

TEST(store_sqlite_directory_journal, refuses_that_of_another_directory) {
  folder const where;
  auto const file = where.file("directory.db");
  {
    auto journal = open_journal(file);
    journal.restart();
    ASSERT_TRUE(journal.append(1, "x"));
  }
  auto const other = open_journal(file, 8);
  auto const read = other.read([](auto, auto) { return outcome<void>{}; });
  ASSERT_FALSE(read.has_value());
  EXPECT_EQ(read.error(), (store::store_error{store::store_fault::damaged,
                                              file + ".journal: is of another directory"}));
}

class store_sqlite_directory_journal_failures : public testing::Test {
 protected:
  ~store_sqlite_directory_journal_failures() override { journal_disk::fail({}); }
};

TEST_F(store_sqlite_directory_journal_failures, leave_nothing_of_a_group_that_was_refused) {
  constexpr int all = 10'000;
  for (auto const to_disk : {way::past_caches, way::through_caches}) {
    for (auto const failing :
         {journal_disk::failures{.writes = all}, journal_disk::failures{.syncs = all},
          journal_disk::failures{.writes = 5000, .syncs = all}}) {
      folder const where;
      auto const file = where.file("directory.db");
      auto journal = open_journal(file, 7, to_disk);
      journal.restart();
      ASSERT_TRUE(journal.append(1, "one"));
      for (std::size_t const octets : {1U, 4056U, 4057U, 20'000U}) {
        journal_disk::fail(failing);
        auto const failed = journal.append(2, std::string(octets, 'x'));
        journal_disk::fail({});
        ASSERT_FALSE(failed.has_value());
        EXPECT_EQ(failed.error(), (store::store_error{store::store_fault::unavailable,
                                                      file + ".journal: Input/output error"}));
        EXPECT_TRUE(journal.is_doubtful());
        EXPECT_EQ(journal.size(), 4096U);
        EXPECT_EQ(all_of(open_journal(file)), (groups{{1, "one"}}));
      }
      ASSERT_TRUE(journal.append(2, "two"));
      EXPECT_FALSE(journal.is_doubtful());
      EXPECT_EQ(all_of(open_journal(file)), (groups{{1, "one"}, {2, "two"}}));
    }
  }
}

TEST_F(store_sqlite_directory_journal_failures,
       of_all_that_follows_leave_what_was_refused_in_doubt) {
  folder const where;
  auto const file = where.file("directory.db");
  auto journal = open_journal(file);
  journal.restart();
  ASSERT_TRUE(journal.append(1, "one"));
  journal_disk::fail({.syncs = 10'000, .zeros = true});
  ASSERT_FALSE(journal.append(2, "refused").has_value());
  journal_disk::fail({});
  EXPECT_EQ(all_of(journal), (groups{{1, "one"}, {2, "refused"}})) << "nothing could take it back";
  EXPECT_TRUE(journal.is_doubtful());
  EXPECT_EQ(journal.size(), 4096U);
  ASSERT_TRUE(journal.append(2, "two"));
  EXPECT_FALSE(journal.is_doubtful());
  EXPECT_EQ(all_of(journal), (groups{{1, "one"}, {2, "two"}}));
}

TEST_F(store_sqlite_directory_journal_failures, of_direct_writes_make_it_go_through_caches) {
  folder const where;
  auto const file = where.file("directory.db");
  auto journal = open_journal(file);
  journal.restart();
  static_cast<void>(journal_disk::counted());
  ASSERT_TRUE(journal.append(1, "one"));
  bool const is_direct = journal_disk::counted().direct_writes > 0;
  journal_disk::fail({.direct_writes = 10'000});
  ASSERT_TRUE(journal.append(2, std::string(3'000'000, 'x')));
  ASSERT_TRUE(journal.append(3, "three"));
  auto const counted = journal_disk::counted();
  EXPECT_EQ(counted.direct_writes, is_direct ? 1 : 0) << "it is not tried again";
  EXPECT_GT(counted.other_writes, 250) << "zeros in small pieces, but for the first";
  EXPECT_EQ(all_of(open_journal(file)),
            (groups{{1, "one"}, {2, std::string(3'000'000, 'x')}, {3, "three"}}));
}

TEST_F(store_sqlite_directory_journal_failures, of_a_part_of_a_write_are_made_good) {
  folder const where;
  auto const file = where.file("directory.db");
  for (auto const to_disk : {way::past_caches, way::through_caches}) {
    auto journal = open_journal(file, 7, to_disk);
    journal.restart();
    journal_disk::fail({.short_writes = 5000});
    groups written;
    for (std::uint64_t number = 1; number <= 100; ++number) {
      written.emplace_back(number, std::string(number * 1000, static_cast<char>(number)));
      ASSERT_TRUE(journal.append(number, written.back().second));
    }
    EXPECT_EQ(all_of(open_journal(file)), written);
  }
}

TEST(store_sqlite_directory_journal, writes_the_next_group_over_one_that_failed) {
  folder const where;
  auto const file = where.file("directory.db");
  auto journal = open_journal(file);
  journal.restart();
  ASSERT_TRUE(journal.append(1, "one"));
  std::optional<file_limit> limit(std::uint64_t{1} << 20);
  auto const failed = journal.append(2, std::string(std::size_t{1} << 20, 'x'));
  limit.reset();
  ASSERT_FALSE(failed.has_value());
  EXPECT_EQ(failed.error().fault, store::store_fault::unavailable);
  EXPECT_EQ(all_of(journal), (groups{{1, "one"}}));
  ASSERT_TRUE(journal.append(2, "two"));
  EXPECT_EQ(all_of(journal), (groups{{1, "one"}, {2, "two"}}));
}

TEST(store_sqlite_directory_redo, is_read_as_it_was_written) {
  redo const one{.done = redo::what::update,
                 .rid = UINT64_MAX,
                 .member = 3,
                 .tenant = "acme",
                 .type = "User",
                 .id = "",
                 .text = "{}"};
  std::string octets;
  write_redo(octets, one);
  write_redo(octets, {.done = redo::what::remove_members, .rid = 5});
  std::string_view left = octets;
  auto const first = read_redo(left);
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(first->done, redo::what::update);
  EXPECT_EQ(first->rid, UINT64_MAX);
  EXPECT_EQ(first->member, 3U);
  EXPECT_EQ(first->tenant, "acme");
  EXPECT_EQ(first->type, "User");
  EXPECT_EQ(first->text, "{}");
  auto const second = read_redo(left);
  ASSERT_TRUE(second.has_value());
  EXPECT_EQ(second->done, redo::what::remove_members);
  EXPECT_TRUE(left.empty());
  for (std::size_t cut = 0; cut < octets.size() / 2; ++cut) {
    auto part = std::string_view(octets).substr(0, cut);
    EXPECT_FALSE(read_redo(part).has_value()) << cut;
  }
  std::string_view none = "\x07xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx";
  EXPECT_FALSE(read_redo(none).has_value());
}

}  // namespace
}  // namespace tidegate::store_sqlite
