// SPDX-License-Identifier: Apache-2.0
#include <tidegate/store_sqlite/directory_backup.hpp>

#include "directory_helpers.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

namespace tidegate::store_sqlite {
namespace {

auto always(std::uint64_t /*done*/, std::uint64_t /*all*/) -> bool {
  return true;
}

TEST(store_sqlite_directory_backup, is_one_state_while_others_write) {
  folder const where;
  auto const file = where.file("directory.db");
  auto const model = make_model();
  auto const& users = *model->find("User");
  auto const d = open({.file = file}, model);
  add_users(*d, users, 0, 5000, std::string(500, 'x'));
  std::atomic<bool> over = false;
  std::atomic<int> written = 5000;
  std::thread writer([&] {
    while (!over) {
      auto const i = written.load();
      add_users(*d, users, i, i + 1);
      ++written;
    }
  });
  for (int round = 0; round < 3; ++round) {
    auto const before = written.load();
    auto const to = where.file("copy" + std::to_string(round) + ".db");
    int steps = 0;
    auto const made = back_up_directory(file, to, [&](std::uint64_t done, std::uint64_t all) {
      EXPECT_LE(done, all);
      ++steps;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));  // others write meanwhile
      return true;
    });
    ASSERT_TRUE(made.has_value()) << made.error().text;
    EXPECT_GT(*made, 1'000'000U);
    EXPECT_GT(steps, 0);
    EXPECT_FALSE(std::filesystem::exists(to + ".partial"));
    auto const copy = open({.file = to}, model);
    ASSERT_NE(copy, nullptr);
    reading(*copy, "acme", [&](directory_reader& reader) {
      auto const rows = reader.scan({.type = &users, .scan = {{}, 1'000'000}})->rows.size();
      EXPECT_GE(rows, static_cast<std::size_t>(before));
      EXPECT_EQ(reader.count({.type = &users})->total, rows);
      EXPECT_EQ(
          reader.scan({.type = &users, .sort_index = 0, .scan = {{}, 1'000'000}})->rows.size(),
          rows);
    });
  }
  over = true;
  writer.join();
}

TEST(store_sqlite_directory_backup, leaves_nothing_where_it_fails) {
  folder const where;
  auto const file = where.file("directory.db");
  auto const d = open({.file = file});
  auto const to = where.file("copy.db");
  auto const error = [&](std::string const& from, std::string const& copy, auto const& progress) {
    auto const made = back_up_directory(from, copy, progress);
    return made ? store_error{} : made.error();
  };
  EXPECT_EQ(error(where.file("none.db"), to, always).text,
            where.file("none.db") + ": there is no such file");
  EXPECT_EQ(error(file, to, [](auto, auto) { return false; }).fault, store_fault::stopped);
  std::ofstream(where.file("other.db")) << "no database";
  EXPECT_EQ(error(where.file("other.db"), to, always).fault, store_fault::damaged);
  EXPECT_EQ(error(file, where.file("none/copy.db"), always).fault, store_fault::unavailable);
  EXPECT_FALSE(std::filesystem::exists(to));
  EXPECT_FALSE(std::filesystem::exists(to + ".partial"));
  EXPECT_TRUE(back_up_directory(file, to, always));
  EXPECT_EQ(error(file, to, always).text, to + ": is there already");
}

}  // namespace
}  // namespace tidegate::store_sqlite
