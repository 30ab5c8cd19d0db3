// SPDX-License-Identifier: Apache-2.0
#include <tidegate/store_sqlite/directory.hpp>

#include "directory_helpers.hpp"
#include "file_limit.hpp"
#include "killed_child.hpp"

#include "directory/executor.hpp"
#include "directory/rows.hpp"

#include <tidegate/json/parse.hpp>

#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <semaphore>
#include <thread>

namespace tidegate::store_sqlite {
namespace {

struct sqlite_maker {
  folder where;
  [[nodiscard]] auto make(std::shared_ptr<scim::model const> model)
      -> std::unique_ptr<store::directory> {
    return open({.file = where.file("directory.db")}, std::move(model));
  }
};

INSTANTIATE_TYPED_TEST_SUITE_P(sqlite, directory_contract, sqlite_maker);

/// Whether a count reads an index: one that reads 25,000 resources asks every 64 of them whether to
/// stop.
auto counts_by_index(store::directory& where, scim::model_type const& type, std::string_view filter)
    -> bool {
  auto const parsed = parse_filter(filter, type.definition);
  int asked = 0;
  reading(where, "acme", [&](directory_reader& reader) {
    store::directory_query query{.type = &type, .filter = &*parsed};
    query.spent = [&] {
      ++asked;
      return false;
    };
    EXPECT_EQ(reader.count(query)->total, 2500U);
  });
  return asked < 200;
}

/// The number that a query gives on a file that is closed.
auto number_in(std::string const& file, char const* query) -> std::int64_t {
  auto opened = connection::open(file, sharing::in_process);
  return opened->number(query).value();
}

TEST(store_sqlite_directory, has_everything_after_it_is_opened_again) {
  folder const where;
  auto const file = where.file("directory.db");
  auto const model = make_model();
  auto const& users = *model->find("User");
  auto const& groups = *model->find("Group");
  std::uint64_t newest = 0;
  {
    auto const d = open({.file = file}, model);
    add_users(*d, users, 0, 100);
    auto const group = added(*d, "acme", groups, group_of("g", "All"));
    EXPECT_TRUE(writing(*d, "acme", [&](directory_writer& writer) {
      newest = *writer.newest(users);
      EXPECT_TRUE(writer.add_member(group, newest, "the last"));
      EXPECT_TRUE(writer.add_member(group, newest - 1, ""));
      EXPECT_TRUE(writer.remove(users, newest));
      return true;
    }));
  }
  auto const again = make_model();
  auto const d = open({.file = file}, again);
  auto const& type = *again->find("User");
  reading(*d, "acme", [&](directory_reader& reader) {
    EXPECT_EQ(reader.count({.type = &type})->total, 99U);
    EXPECT_EQ(*reader.newest(type), newest);
    EXPECT_TRUE((*reader.find(type, "user98"))->maybe_in_groups);
    EXPECT_EQ(reader.groups_of(newest - 1)->size(), 1U);
    EXPECT_EQ(reader.groups_of(newest)->size(), 0U);
  });
  EXPECT_EQ(added(*d, "acme", type, user_of({.id = "x", .user_name = "x"})), newest + 1);
}

TEST(store_sqlite_directory, builds_indexes_that_are_new_and_drops_those_that_are_gone) {
  folder const where;
  auto const file = where.file("directory.db");
  auto const plain = make_model();
  auto const indexed = make_model({"title", "phoneNumbers.value"});
  auto const entries = "SELECT count(*) FROM entry";
  {
    auto const d = open({.file = file}, plain);
    add_users(*d, *plain->find("User"), 0, 25'000, "Guide");
    EXPECT_FALSE(counts_by_index(*d, *plain->find("User"), "title eq \"guide3\""));
  }
  auto const before = number_in(file, entries);
  {
    auto const d = open({.file = file}, indexed);
    auto const& users = *indexed->find("User");
    EXPECT_TRUE(counts_by_index(*d, users, "title eq \"guide3\""));
    EXPECT_EQ(found(*d, users, "title eq \"guide3\"").size(), 1000U);
    EXPECT_EQ(found(*d, users, "title eq \"guide3\" and userName sw \"user99\"", "title"),
              found(*d, users, "title eq \"guide3\" and userName sw \"user99\""));
    add_users(*d, users, 25'000, 25'001, "new");
    EXPECT_EQ(found(*d, users, "title eq \"new0\""), std::vector<std::string>{name_of(25'000)});
  }
  {
    // What was not finished begins from the start.
    auto opened = connection::open(file, sharing::in_process);
    ASSERT_TRUE(
        opened->execute("UPDATE index_name SET complete = 0 WHERE name = x'7469746c65';"
                        "DELETE FROM entry WHERE rid % 3 = 0 AND index_id IN"
                        " (SELECT id FROM index_name WHERE complete = 0)"));
    opened = connection::open(file, sharing::in_process);
  }
  {
    auto const d = open({.file = file}, indexed);
    EXPECT_EQ(
        reading(*d, "acme",
                [&](directory_reader& reader) {
                  auto const filter =
                      *parse_filter("title eq \"guide3\"", indexed->find("User")->definition);
                  return reader.count({.type = indexed->find("User"), .filter = &filter})->total;
                }),
        2500U);
  }
  { EXPECT_NE(open({.file = file}, plain), nullptr); }
  EXPECT_EQ(number_in(file, entries), before / 25'000 * 25'001);
  EXPECT_EQ(number_in(file, "SELECT count(*) FROM index_name WHERE name = x'7469746c65'"), 0);
}

TEST(store_sqlite_directory, builds_an_index_again_when_its_attribute_means_something_else) {
  folder const where;
  auto const file = where.file("directory.db");
  auto const device = [&](bool exact) {
    auto const schema = *scim::read_schema(*json::parse(
        std::string(R"({"id":"urn:x:Device","name":"Device","attributes":[{"name":"serial",)") +
        R"("uniqueness":"server","caseExact":)" + (exact ? "true" : "false") + "}]}"));
    auto const type = *scim::read_resource_type(
        *json::parse(R"({"name":"Device","endpoint":"/Devices","schema":"urn:x:Device"})"));
    return std::make_shared<scim::model const>(
        *scim::model::make(std::vector{schema}, std::vector{type}, {}));
  };
  auto const exact = device(true);
  {
    auto const d = open({.file = file}, exact);
    auto const& type = *exact->find("Device");
    added(*d, "acme", type, json::object{{"id", "1"}, {"serial", "ABC"}});
    EXPECT_EQ(found(*d, type, "serial eq \"abc\"").size(), 0U);
  }
  auto const folded = device(false);
  auto const d = open({.file = file}, folded);
  EXPECT_EQ(found(*d, *folded->find("Device"), "serial eq \"aBc\"").size(), 1U);
}

TEST(store_sqlite_directory, refuses_a_file_that_is_in_use) {
  folder const where;
  auto const file = where.file("directory.db");
  std::array<int, 2> from_child{};
  std::array<int, 2> to_child{};
  ASSERT_EQ(pipe(from_child.data()), 0);
  ASSERT_EQ(pipe(to_child.data()), 0);
  auto const child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    close(to_child[1]);
    close(from_child[0]);
    auto const d = open_directory({.file = file}, make_model());
    char const done = d ? 'y' : 'n';
    bool const told = write(from_child[1], &done, 1) == 1;
    all_from(to_child[0]);
    _exit(told ? 0 : 1);
  }
  close(to_child[0]);
  close(from_child[1]);
  char opened_there = 0;
  EXPECT_EQ(read(from_child[0], &opened_there, 1), 1);
  EXPECT_EQ(opened_there, 'y');
  EXPECT_EQ(error_of({.file = file}),
            (store_error{store_fault::unavailable, file + ": in use by another process"}));
  close(to_child[1]);
  close(from_child[0]);
  EXPECT_EQ(waitpid(child, nullptr, 0), child);
  auto const d = open({.file = file});
  EXPECT_NE(d, nullptr) << "it is free again";
  EXPECT_EQ(error_of({.file = file}).fault, store_fault::unavailable) << "also in this process";
}

TEST(store_sqlite_directory, refuses_files_that_are_none_of_its_own) {
  folder const where;
  auto const file = where.file("directory.db");
  EXPECT_EQ(error_of({.file = file + "/nowhere"}).fault, store_fault::unavailable);
  std::ofstream(file) << std::string(5000, 'x');
  EXPECT_EQ(error_of({.file = file}).fault, store_fault::damaged);
  std::filesystem::remove(file);
  ASSERT_TRUE(connection::open(file, sharing::in_process)->execute("CREATE TABLE t (x)"));
  EXPECT_EQ(error_of({.file = file}),
            (store_error{store_fault::damaged, file + ": no directory of this version"}));
}

TEST(store_sqlite_directory, refuses_what_does_not_fit_and_goes_on_when_there_is_room) {
  folder const where;
  auto const file = where.file("directory.db");
  auto const model = make_model();
  auto const& users = *model->find("User");
  auto const big = [&](int number) {
    auto user = user_of({.id = name_of(number), .user_name = name_of(number)});
    user.if_object()->set("nickName", std::string(50'000, 'x'));
    return user;
  };
  auto const d = open({.file = file, .file_octets_max = std::size_t{1} << 20}, model);
  auto const put = [&](int number) {
    return writing(*d, "acme", [&, number](directory_writer& writer) {
      return insert(writer, users, big(number)).has_value();
    });
  };
  int stored = 0;
  while (put(stored)) {
    ++stored;
    ASSERT_LT(stored, 30);
  }
  EXPECT_GT(stored, 5);
  auto const refused = put(stored);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().fault, store_fault::unavailable);

  // Those that share a transaction with one that does not fit are stored all the same.
  std::counting_semaphore<> answered(0);
  std::atomic<int> made = 0;
  for (int i = 0; i < 20; ++i) {
    auto work = [&, i](directory_writer& writer) {
      return insert(writer, users,
                    i == 10 ? big(1000) : user_of({.id = name_of(2000 + i), .user_name = "x"}))
          .has_value();
    };
    d->write("acme", work, [&](store::directory_outcome<void> done) {
      made += done.has_value() ? 1 : 0;
      answered.release();
    });
  }
  for (int i = 0; i < 20; ++i) {
    answered.acquire();
  }
  EXPECT_EQ(made, 19);
  reading(*d, "acme", [&](directory_reader& reader) {
    EXPECT_EQ(reader.count({.type = &users})->total, static_cast<unsigned>(stored) + 19);
    EXPECT_FALSE(reader.find(users, name_of(1000))->has_value());
  });
  EXPECT_TRUE(writing(*d, "acme", [&](directory_writer& writer) {
    return writer.remove(users, (*writer.find(users, name_of(0)))->rid).has_value();
  }));
  EXPECT_TRUE(put(stored)) << "there is room again";
}

TEST(store_sqlite_directory, reports_an_io_error_and_goes_on_when_it_is_over) {
  folder const where;
  auto const model = make_model();
  auto const& users = *model->find("User");
  auto const d = open({.file = where.file("directory.db")}, model);
  add_users(*d, users, 0, 10);
  EXPECT_NE(text_in(*d, "acme", users, name_of(3)), "none");
  auto const put = [&](int number) {
    return writing(*d, "acme", [&, number](directory_writer& writer) {
      return insert(writer, users, user_of({.id = name_of(number), .user_name = "x"})).has_value();
    });
  };
  std::optional<file_limit> limit(0);  // every write fails
  auto const failed = put(10);
  auto const read_all_the_same = text_in(*d, "acme", users, name_of(3));
  limit.reset();
  ASSERT_FALSE(failed.has_value());
  EXPECT_EQ(failed.error().fault, store_fault::unavailable);
  EXPECT_NE(read_all_the_same, "none");
  EXPECT_EQ(text_in(*d, "acme", users, name_of(10)), "none");
  EXPECT_TRUE(put(10));
  EXPECT_NE(text_in(*d, "acme", users, name_of(10)), "none");
}

TEST(store_sqlite_directory, shows_a_reader_what_was_answered_before) {
  folder const where;
  auto const model = make_model();
  auto const& users = *model->find("User");
  auto const d = open({.file = where.file("directory.db")}, model);
  for (int i = 0; i < 200; ++i) {
    add_users(*d, users, i, i + 1);
    if (i % 50 == 49) {
      EXPECT_EQ(reading(*d, "acme",
                        [&](directory_reader& reader) {
                          return reader.scan({.type = &users, .scan = {{}, 1000}})->rows.size();
                        }),
                static_cast<std::size_t>(i + 1));
    }
  }
}

TEST(store_sqlite_directory, lets_a_writer_look_at_all_that_was_written) {
  folder const where;
  auto const model = make_model();
  auto const& users = *model->find("User");
  auto const d = open({.file = where.file("directory.db")}, model);
  add_users(*d, users, 0, 100);
  auto const sorted = [&](directory_writer& writer) {
    return writer
        .scan({.type = &users,
               .sort_index = users.find_index(*users.definition.resolve("userName")),
               .scan = {{}, 1000}})
        ->rows.size();
  };
  EXPECT_FALSE(
      writing(
          *d, "acme",
          [&](directory_writer& writer) {
            EXPECT_EQ(sorted(writer), 100U);
            EXPECT_TRUE(insert(writer, users, user_of({.id = "x", .user_name = "x"})));
            EXPECT_EQ(sorted(writer), 101U);
            EXPECT_EQ(writer.scan({.type = &users, .scan = {{}, 9}, .skip = 99})->rows.size(), 2U);
            return false;
          }) &&
      false);
  EXPECT_TRUE(writing(*d, "acme", [&](directory_writer& writer) {
    EXPECT_EQ(sorted(writer), 100U) << "what the one before wrote was undone, and nothing else";
    return true;
  }));
}

TEST(store_sqlite_directory, lets_a_writer_look_with_little_memory) {
  folder const where;
  auto const file = where.file("directory.db");
  auto const model = make_model();
  auto const& users = *model->find("User");
  {
    auto const d = open({.file = file}, model);
    add_users(*d, users, 0, 6000);
  }
  for (std::uint64_t const pages : {16U, 32U, 48U, 64U}) {
    auto const d = open({.file = file, .cache_octets = pages * 4096}, model);
    auto const first = 10'000 + static_cast<int>(pages) * 100;
    EXPECT_TRUE(writing(*d, "acme", [&](directory_writer& writer) {
      bool good = true;
      for (int i = first; i < first + 50; ++i) {
        good =
            good && insert(writer, users,
                           user_of({.id = name_of(i), .user_name = name_of(i * 7919 % 100'003)}));
        if (i % 20 == 0) {
          good = good && writer.scan({.type = &users, .sort_index = 0, .scan = {{}, 1000}});
        }
      }
      return good;
    })) << pages;
    EXPECT_NE(text_in(*d, "acme", users, name_of(first + 49)), "none");
  }
}

TEST(store_sqlite_directory, changes_one_of_many_members_as_cheaply_as_one_of_three) {
  folder const where;
  auto const model = make_model();
  auto const& users = *model->find("User");
  auto const& groups = *model->find("Group");
  auto const d = open({.file = where.file("directory.db")}, model);
  add_users(*d, users, 0, 30'000);
  auto const big = added(*d, "acme", groups, group_of("big", "Big"));
  auto const small = added(*d, "acme", groups, group_of("small", "Small"));
  auto const newest =
      reading(*d, "acme", [&](directory_reader& reader) { return *reader.newest(users); });
  auto const change = [&](auto work) {
    ASSERT_TRUE(writing(*d, "acme", [&](directory_writer& writer) {
      work(writer);
      return true;
    }));
  };
  change([&](directory_writer& writer) {
    for (std::uint64_t i = 3; i < 30'000; ++i) {
      ASSERT_TRUE(writer.add_member(big, newest - i, ""));
    }
  });
  // Rounds take turns, and the quickest counts: others may be busy on the same machine.
  auto quickest = std::array{std::chrono::nanoseconds::max(), std::chrono::nanoseconds::max()};
  for (int round = 0; round < 20; ++round) {
    for (auto const group : {big, small}) {
      change([&](directory_writer& writer) {
        auto const begin = std::chrono::steady_clock::now();
        for (std::uint64_t i = 0; i < 3; ++i) {
          EXPECT_TRUE(writer.add_member(group, newest - i, "x").value());
        }
        for (std::uint64_t i = 0; i < 3; ++i) {
          EXPECT_TRUE(writer.remove_member(group, newest - i).value());
        }
        auto& best = quickest[group == big ? 0 : 1];
        best = std::min<std::chrono::nanoseconds>(best, std::chrono::steady_clock::now() - begin);
      });
    }
  }
  EXPECT_LT(quickest[0], 20 * quickest[1]);
  change([&](directory_writer& writer) { ASSERT_TRUE(writer.remove(groups, big)); });
  reading(*d, "acme",
          [&](directory_reader& reader) { EXPECT_EQ(reader.groups_of(newest - 500)->size(), 0U); });
  std::vector<std::uint64_t> many;
  change([&](directory_writer& writer) {
    for (int i = 0; i < 1000; ++i) {
      many.push_back(*insert(writer, groups, group_of("g" + std::to_string(i), "G")));
      ASSERT_TRUE(writer.add_member(many.back(), newest, ""));
      ASSERT_TRUE(writer.add_member(many.back(), newest - 1, ""));
    }
  });
  reading(*d, "acme",
          [&](directory_reader& reader) { EXPECT_EQ(reader.groups_of(newest)->size(), 1000U); });
  change([&](directory_writer& writer) { ASSERT_TRUE(writer.remove(users, newest)); });
  reading(*d, "acme", [&](directory_reader& reader) {
    int left = 0;
    EXPECT_TRUE(reader.members(many[77], [&](store::directory_member const& member) {
      EXPECT_EQ(member.rid, newest - 1);
      ++left;
      return true;
    }));
    EXPECT_EQ(left, 1);
  });
}

/// How SQLite goes about a statement.
auto plan_of(connection& file, std::string const& text) -> std::string {
  auto const asked = file.prepare("EXPLAIN QUERY PLAN " + text);
  if (!asked) {
    return asked.error().text;
  }
  std::string plan;
  while (*file.step(asked->get())) {
    plan += std::string(blob(asked->get(), 3)) + "; ";
  }
  return plan;
}

TEST(store_sqlite_directory, sorts_nothing_and_reads_no_table_from_end_to_end) {
  folder const where;
  auto const model = make_model();
  { EXPECT_NE(open({.file = where.file("directory.db")}, model), nullptr); }
  auto opened = connection::open(where.file("directory.db"), sharing::in_process);
  ASSERT_TRUE(opened.has_value());
  directory_session session(*std::move(opened),
                            model);  // which has the functions that statements use
  auto* const file = &session.file();
  using statement_list = std::array<fixed_statement, sizeof sql / sizeof(fixed_statement)>;
  for (auto const& each : std::bit_cast<statement_list>(sql)) {
    auto const text = std::string(each.text);
    auto const plan = plan_of(*file, text);
    bool const is_of_memory = plan.starts_with("SCAN pending VIRTUAL TABLE INDEX 0:; ");
    EXPECT_TRUE(is_of_memory || plan.find("SCAN") == std::string::npos) << text << ": " << plan;
    EXPECT_EQ(plan.find("TEMP B-TREE"), std::string::npos) << text << ": " << plan;
  }
  EXPECT_EQ(plan_of(*file, std::string(sql.sorted_down.text)),
            "SEARCH e USING PRIMARY KEY (index_id=? AND key<?); "
            "SEARCH r USING INTEGER PRIMARY KEY (rowid=?); ");
  EXPECT_EQ(plan_of(*file, std::string(sql.rids_up.text)),
            "SEARCH resource USING INTEGER PRIMARY KEY (rowid>? AND rowid<?); ");

  std::vector<std::int64_t> const ids(64, 1);
  for (auto const& [name, filter] : std::vector<std::pair<std::string_view, std::string_view>>{
           {"User", "userName eq \"a\""},
           {"User", "userName sw \"a\" and meta.lastModified gt \"2026-01-01T00:00:00Z\""},
           {"User", "userName sw \"a\" or (emails.value eq \"a\" and title pr)"},
           {"User", "emails.value sw \"a\" or not (displayName eq \"a\")"},
           {"User", "groups.value eq \"a\" and userName sw \"b\""},
           {"User", "groups.value eq \"a\" and title co \"b\""},
           {"Group", "members.value eq \"a\""},
           {"Group", "members.value eq \"a\" or displayName sw \"a\""},
       }) {
    auto const& type = *model->find(name);
    auto const parsed = parse_filter(filter, type.definition);
    ASSERT_TRUE(parsed.has_value()) << filter;
    auto const text =
        rids_query(compile_filter(*parsed, type, ids, scim::sql_dialect::sqlite, 3, {1, 2}));
    auto const plan = plan_of(*file, text);
    EXPECT_EQ(plan.find("SCAN entry"), std::string::npos) << text << ": " << plan;
    EXPECT_EQ(plan.find("SCAN member"), std::string::npos) << text << ": " << plan;
    EXPECT_EQ(plan.find("SCAN resource"), std::string::npos) << text << ": " << plan;
  }
}

TEST(store_sqlite_directory, lets_what_is_thrown_at_a_row_through) {
  folder const where;
  auto const model = make_model();
  auto const& users = *model->find("User");
  auto const d = open({.file = where.file("directory.db")}, model);
  added(*d, "acme", users, user_of({.id = "1", .user_name = "a"}));
  added(*d, "acme", users, user_of({.id = "2", .user_name = "b"}));
  reading(*d, "acme", [&](directory_reader& reader) {
    store::directory_query query;
    query.type = &users;
    query.scan.rows_max = 10;
    int met = 0;
    query.each = [&](store::directory_row_view const& /*row*/) -> bool {
      ++met;
      throw std::bad_alloc();
    };
    EXPECT_THROW(static_cast<void>(reader.scan(query)), std::bad_alloc);
    EXPECT_EQ(met, 1);
    query.each = nullptr;
    auto const again = reader.scan(query);
    ASSERT_TRUE(again.has_value());
    EXPECT_EQ(again->rows.size(), 2);
  });
}

/// The descriptors that the process has open.
auto open_descriptors() -> std::size_t {
  auto const all = std::filesystem::directory_iterator("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

TEST(store_sqlite_directory, leaves_nothing_open) {
  folder const where;
  auto const before = open_descriptors();
  for (int i = 0; i < 3; ++i) {
    auto const model = make_model();
    auto const d = open({.file = where.file("directory.db")}, model);
    add_users(*d, *model->find("User"), i * 10, i * 10 + 10);
    EXPECT_GT(open_descriptors(), before);
  }
  EXPECT_EQ(open_descriptors(), before);
  std::ofstream(where.file("other.db")) << "no database";
  EXPECT_EQ(error_of({.file = where.file("other.db")}).fault, store_fault::damaged);
  EXPECT_EQ(open_descriptors(), before);
}

TEST(store_sqlite_directory, bounds_what_waits) {
  folder const where;
  auto const model = make_model();
  auto d = open({.file = where.file("directory.db"), .readers = 1, .reads_max = 2, .writes_max = 2},
                model);
  std::binary_semaphore reader_is_busy(0);
  std::binary_semaphore writer_is_busy(0);
  std::counting_semaphore<> may_end(0);
  d->read("acme", [&](auto) {
    reader_is_busy.release();
    may_end.acquire();
  });
  d->write(
      "acme",
      [&](directory_writer&) {
        writer_is_busy.release();
        may_end.acquire();
        return true;
      },
      [](auto) {});
  reader_is_busy.acquire();
  writer_is_busy.acquire();
  std::atomic<int> done = 0;
  std::atomic<int> refused = 0;
  auto const count = [&](bool made) { ++(made ? done : refused); };
  for (int i = 0; i < 5; ++i) {
    d->read("acme", [&](auto reader) { count(reader.has_value()); });
    d->write(
        "acme", [](directory_writer&) { return true; },
        [&](auto made) { count(made.has_value()); });
  }
  EXPECT_EQ(refused, 6);
  EXPECT_EQ(done, 0);
  may_end.release(2);
  d.reset();
  EXPECT_EQ(done, 4) << "what waited is done before it is closed";
}

TEST(store_sqlite_directory, reads_on_the_thread_of_the_caller) {
  folder const where;
  auto const model = make_model();
  auto const& users = *model->find("User");
  auto const d = open({.file = where.file("directory.db"), .readers_here = 1}, model);
  add_users(*d, users, 0, 3);
  std::thread::id on;
  std::vector<std::string> ids;
  EXPECT_TRUE(d->read_here("acme", [&](directory_reader& reader) {
    on = std::this_thread::get_id();
    ids = ids_of(reader.scan({.type = &users, .scan = {{}, 9}})->rows);
    EXPECT_FALSE(d->read_here("acme", [](directory_reader&) { FAIL(); })) << "one at a time";
  }));
  EXPECT_EQ(on, std::this_thread::get_id());
  EXPECT_EQ(ids, (std::vector<std::string>{"user0", "user1", "user2"}));
}

TEST(store_sqlite_directory, misses_nothing_that_was_answered_on_the_thread_of_the_caller) {
  folder const where;
  auto const model = make_model();
  auto const& users = *model->find("User");
  auto const d = open({.file = where.file("directory.db"), .readers_here = 1}, model);
  for (int i = 0; i < 20; ++i) {
    add_users(*d, users, i, i + 1);
    static_cast<void>(d->read_here("acme", [&](directory_reader& reader) {
      EXPECT_EQ(reader.scan({.type = &users, .scan = {{}, 99}})->rows.size(),
                static_cast<std::size_t>(i + 1));
    }));
  }
}

TEST(store_sqlite_directory, leaves_reads_to_its_threads_after_one_that_waited_long) {
  folder const where;
  auto const d = open({.file = where.file("directory.db"), .readers_here = 1});
  EXPECT_TRUE(d->read_here("acme", [](directory_reader&) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));  // as if for the disk
  }));
  EXPECT_FALSE(d->read_here("acme", [](directory_reader&) { FAIL(); }));
}

TEST(store_sqlite_directory, makes_many_writes_in_one_transaction) {
  folder const where;
  auto const model = make_model();
  auto const d = open({.file = where.file("directory.db")}, model);
  auto const& users = *model->find("User");
  std::binary_semaphore busy(0);
  std::counting_semaphore<> answered(0);
  d->write(
      "acme",
      [&](directory_writer&) {
        busy.acquire();
        return true;
      },
      [&](auto) { answered.release(); });
  for (int i = 0; i < 500; ++i) {
    d->write(
        "acme",
        [&users, i](directory_writer& writer) {
          return insert(writer, users, user_of({.id = name_of(i), .user_name = "x"})).has_value();
        },
        [&](auto made) {
          EXPECT_TRUE(made.has_value());
          answered.release();
        });
  }
  busy.release();
  for (int i = 0; i < 501; ++i) {
    answered.acquire();
  }
  auto const counts = dynamic_cast<directory_executor const&>(*d).counted();
  EXPECT_EQ(counts.writes, 501U);
  EXPECT_LE(counts.transactions, 3U);
}

TEST(store_sqlite_directory, keeps_its_log_short_while_readers_are_busy) {
  folder const where;
  auto const file = where.file("directory.db");
  auto const model = make_model();
  auto const& users = *model->find("User");
  auto const d =
      open({.file = file, .readers = 2, .log_octets_max = std::uint64_t{64} << 20}, model);
  add_users(*d, users, 0, 100);
  std::atomic<bool> over = false;
  std::vector<std::thread> readers;
  for (int i = 0; i < 4; ++i) {  // there is always one in a transaction
    readers.emplace_back([&] {
      while (!over) {
        reading(*d, "acme", [&](directory_reader& reader) {
          EXPECT_TRUE(reader.scan({.type = &users, .scan = {{}, 100}}));
        });
      }
    });
  }
  std::string const spaces(200'000, ' ');
  std::uintmax_t longest = 0;
  for (int i = 0; i < 1000; ++i) {  // 200 MB
    auto const made = writing(*d, "acme", [&](directory_writer& writer) {
      auto const user = user_of({.id = name_of(100 + i), .user_name = "x"});
      return writer
          .insert(users, name_of(100 + i), to_string(user) + spaces, index_entries(users, user))
          .has_value();
    });
    EXPECT_TRUE(made.has_value()) << i << " " << longest << ": " << made.error().text;
    if (!made) {
      break;
    }
    longest = std::max(longest, std::filesystem::file_size(file + "-wal"));
  }
  over = true;
  for (auto& reader : readers) {
    reader.join();
  }
  EXPECT_LT(longest, std::uintmax_t{66} << 20);
}

}  // namespace
}  // namespace tidegate::store_sqlite
