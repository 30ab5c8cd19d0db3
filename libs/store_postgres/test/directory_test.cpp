// SPDX-License-Identifier: Apache-2.0
#include <tidegate/store_postgres/directory.hpp>

#include "support/directory_contract.hpp"
#include "support/postgres_server.hpp"

#include "directory/executor.hpp"
#include "directory/session.hpp"

#include <tidegate/json/parse.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <future>
#include <set>
#include <thread>

namespace tidegate::store_postgres {
namespace {

using namespace store::directory_contract_support;
using test_support::postgres_server;

auto open(directory_options const& o, std::shared_ptr<scim::model const> model = make_model())
    -> std::unique_ptr<store::directory> {
  auto made = open_directory(o, std::move(model));
  EXPECT_TRUE(made.has_value()) << (made ? "" : made.error().text);
  return made ? *std::move(made) : nullptr;
}

struct postgres_maker {
  [[nodiscard]] auto make(std::shared_ptr<scim::model const> model)
      -> std::unique_ptr<store::directory> {
    return open({.url = postgres_server::shared().fresh_database()}, std::move(model));
  }
};

INSTANTIATE_TYPED_TEST_SUITE_P(postgres, directory_contract, postgres_maker);

using store::directory_reader;
using store::directory_writer;
using store::store_error;
using store::store_fault;

auto error_of(directory_options const& o, std::shared_ptr<scim::model const> model = make_model())
    -> store_error {
  auto const made = open_directory(o, std::move(model));
  return made ? store_error{} : made.error();
}

auto name_of(int number) -> std::string {
  return "user" + std::to_string(number);
}

void add_users(store::directory& where, scim::model_type const& users, int from, int to) {
  ASSERT_TRUE(writing(where, "acme", [&](directory_writer& writer) {
    for (int i = from; i < to; ++i) {
      EXPECT_TRUE(insert(writer, users,
                         user_of({.id = name_of(i),
                                  .user_name = name_of(i * 7919 % 100'003),
                                  .title = "title" + std::to_string(i % 10)})));
    }
    return true;
  }));
}

/// The ids that a filter gives, in the order of creation.
auto found_by(store::directory& where, scim::model_type const& users, std::string const& text)
    -> std::vector<std::string> {
  auto const filter = *parse_filter(text, users.definition);
  return reading(where, "acme", [&](directory_reader& reader) {
    auto const found = reader.scan({.type = &users, .filter = &filter, .scan = {{}, 9}});
    return found ? ids_of(found->rows) : std::vector<std::string>{found.error().text};
  });
}

class store_postgres_directory : public testing::Test {
 protected:
  postgres_server& server_ = postgres_server::shared();
  std::string url_ = server_.fresh_database();
  std::string database_ = url_.substr(url_.rfind('/') + 1);
  std::shared_ptr<model const> model_ = make_model();
  model_type const& users_ = *model_->find("User");
  model_type const& groups_ = *model_->find("Group");

  [[nodiscard]] auto open_one() -> std::unique_ptr<store::directory> {
    return open({.url = url_}, model_);
  }
};

// ---- opening ----

TEST_F(store_postgres_directory, says_what_is_wrong_with_a_url_but_never_the_password) {
  for (auto const* const url :
       {"sqlite:x", "postgres://ann:sesame@[host/db", "postgres://ann:sesame@host/db?nothing=1",
        "postgres://ann:sesame@127.0.0.1:1/db", "postgres://ann:ses%zzame@host/db"}) {
    auto const error = error_of({.url = url});
    EXPECT_EQ(error.fault, store_fault::unavailable) << url;
    EXPECT_GT(error.text.size(), 10U) << url;
    EXPECT_EQ(error.text.find("ses"), std::string::npos) << error.text;
  }
}

TEST_F(store_postgres_directory, makes_its_tables_once_when_many_gateways_start_at_the_same_time) {
  std::vector<std::thread> threads;
  std::atomic<int> opened = 0;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] { opened += open_one() != nullptr ? 1 : 0; });
  }
  for (auto& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(opened, 4);
}

TEST_F(store_postgres_directory, refuses_tables_of_a_newer_version) {
  ASSERT_NE(open_one(), nullptr);
  server_.run_sql("INSERT INTO tidegate.schema_version VALUES (1000)", database_);
  auto const error = error_of({.url = url_});
  EXPECT_EQ(error.fault, store_fault::damaged);
  EXPECT_NE(error.text.find("version 1000"), std::string::npos) << error.text;
}

TEST_F(store_postgres_directory, needs_no_right_to_make_tables_that_are_there) {
  ASSERT_NE(open_one(), nullptr);
  server_.run_sql(
      "CREATE ROLE little LOGIN; GRANT USAGE ON SCHEMA tidegate TO little;"
      "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA tidegate TO little",
      database_);
  auto url = url_;
  url.replace(url.find("tidegate@"), 8, "little");
  auto const where = open({.url = url}, model_);
  add_users(*where, users_, 0, 3);
  server_.run_sql("DROP OWNED BY little; DROP ROLE little", database_);
}

TEST_F(store_postgres_directory, has_everything_after_it_is_opened_again) {
  {
    auto const where = open_one();
    add_users(*where, users_, 0, 100);
  }
  auto const where = open_one();
  EXPECT_EQ(found_by(*where, users_, "id eq \"user7\""), std::vector<std::string>{"user7"});
  auto const newest =
      reading(*where, "acme", [&](directory_reader& reader) { return *reader.newest(users_); });
  EXPECT_GT(added(*where, "acme", users_, user_of({.id = "new", .user_name = "new"})), newest);
}

TEST_F(store_postgres_directory, builds_indexes_that_are_new_and_drops_those_that_are_gone) {
  auto const old = open_one();
  add_users(*old, users_, 0, 5000);
  {
    auto const model = make_model({"title"});
    auto const& users = *model->find("User");
    auto const with_title = open({.url = url_}, model);
    auto const filter = *parse_filter("title eq \"title3\"", users.definition);
    reading(*with_title, "acme", [&](directory_reader& reader) {
      store::directory_query const query{.type = &users, .filter = &filter};
      EXPECT_EQ(reader.count(query)->total, 500U);
    });
    // The other one does not know the new index: what it wrote would be missing there.
    auto const refused = writing(*old, "acme", [&](directory_writer&) { return true; });
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().fault, store_fault::unavailable);
    EXPECT_NE(refused.error().text.find("configuration"), std::string::npos);
    EXPECT_EQ(found_by(*old, users_, "id eq \"user7\""), std::vector<std::string>{"user7"})
        << "it reads by those that it knows";
  }
  auto const again = open_one();
  EXPECT_EQ(server_.run_sql("SELECT count(DISTINCT index_id) FROM tidegate.entry", database_),
            server_.run_sql("SELECT count(*) FROM tidegate.directory_index"
                            " WHERE type = 'User' AND complete",
                            database_));
  EXPECT_EQ(found_by(*again, users_, "title eq \"title3\"").size(), 9U);
  EXPECT_TRUE(writing(*old, "acme", [&](directory_writer&) { return true; }))
      << "it agrees with the tables again";
}

// ---- unique ----

/// The tables as version 3 had them.
constexpr char const* back_to_version_3 =
    "SET search_path TO tidegate; DROP INDEX resource_id; DROP INDEX entry_unique;"
    "DROP TABLE directory_writer; DROP TABLE idempotency_secret;"
    "DROP FUNCTION idempotency_check_secret; DELETE FROM schema_version WHERE version > 3;"
    "UPDATE entry SET index_id = index_id - 100 WHERE index_id & 255 >= 128;"
    "UPDATE directory_index SET slot = slot - 100 WHERE slot >= 128;";

TEST_F(store_postgres_directory, refuses_a_second_resource_with_the_same_id_or_unique_value) {
  auto const where = open_one();
  auto const add = [&](std::string const& tenant, json::value const& resource,
                       model_type const& type) {
    return writing(
               *where, tenant,
               [&](directory_writer& writer) { return insert(writer, type, resource).has_value(); })
        .has_value();
  };
  EXPECT_TRUE(add("acme", user_of({.id = "a", .user_name = "ann"}), users_));
  EXPECT_FALSE(add("acme", user_of({.id = "a", .user_name = "bob"}), users_));
  EXPECT_FALSE(add("acme", user_of({.id = "b", .user_name = "ANN"}), users_));
  EXPECT_TRUE(add("other", user_of({.id = "a", .user_name = "ann"}), users_)) << "another tenant";
  EXPECT_TRUE(add("acme", group_of("a", "ann"), groups_)) << "another type";
  EXPECT_TRUE(add("acme", group_of("b", "ann"), groups_)) << "names of groups are not unique";
  // Nor can another one get the value.
  auto const bob = added(*where, "acme", users_, user_of({.id = "b", .user_name = "bob"}));
  auto const renamed = user_of({.id = "b", .user_name = "ann"});
  EXPECT_FALSE(writing(*where, "acme", [&](directory_writer& writer) {
    return writer.update(users_, bob, to_string(renamed), index_entries(users_, renamed))
        .has_value();
  }));
  EXPECT_EQ(found_by(*where, users_, "userName eq \"ann\""), std::vector<std::string>{"a"});
  EXPECT_EQ(found_by(*where, users_, "userName eq \"bob\""), std::vector<std::string>{"b"});
}

TEST_F(store_postgres_directory, keeps_one_of_the_doubles_that_a_version_before_has_made) {
  {
    auto const where = open_one();
    add_users(*where, users_, 0, 5);
    auto const first = added(*where, "acme", groups_, group_of("g1", "first"));
    auto const second = added(*where, "acme", groups_, group_of("g2", "second"));
    auto const rid = [&](int number) {
      return reading(*where, "acme", [&](directory_reader& reader) {
        return (*reader.find(users_, name_of(number)))->rid;
      });
    };
    auto const one = rid(1);
    auto const three = rid(3);
    ASSERT_TRUE(writing(*where, "acme", [&](directory_writer& writer) {
      return writer.add_member(first, one, "") && writer.add_member(second, three, "");
    }));
  }
  // user1 three times and user3 twice; the group "second" has the double of user3.
  server_.run_sql(
      std::string(back_to_version_3) +
          "CREATE TABLE made AS SELECT r.rid AS old, r.rid + 100 * n AS rid, r.id"
          " FROM resource AS r, generate_series(1, 2) AS n"
          " WHERE r.id = 'user1' OR (r.id = 'user3' AND n = 1);"
          "INSERT INTO resource SELECT m.rid, r.id, r.version, r.in_groups, r.text"
          " FROM made AS m JOIN resource AS r ON r.rid = m.old;"
          "INSERT INTO entry SELECT e.index_id, e.key, m.rid FROM made AS m"
          " JOIN entry AS e ON e.rid = m.old;"
          "INSERT INTO block SELECT rid >> 10, count(*) FROM made GROUP BY 1"
          " ON CONFLICT (id) DO UPDATE SET count = block.count + excluded.count;"
          "UPDATE part SET count = count + 3, last_rid = last_rid + 1000 WHERE type = 'User';"
          "UPDATE member SET member_rid = member_rid + 100 WHERE member_id = 'user3';"
          "DROP TABLE made",
      database_);
  ASSERT_EQ(server_.run_sql("SELECT count(*) FROM tidegate.resource", database_), "10");

  auto const where = open_one();
  reading(*where, "acme", [&](directory_reader& reader) {
    EXPECT_EQ(reader.count({.type = &users_})->total, 5U);
    EXPECT_EQ(reader.scan({.type = &users_, .scan = {{}, 100}})->rows.size(), 5U);
    for (int const number : {1, 3}) {
      auto const user = *reader.find(users_, name_of(number));
      ASSERT_TRUE(user.has_value());
      auto const groups = reader.groups_of(user->rid);
      ASSERT_EQ(groups->size(), 1U) << number;
      EXPECT_EQ(groups->front().id, number == 1 ? "g1" : "g2");
    }
  });
  EXPECT_EQ(found_by(*where, users_, "id eq \"user1\""), std::vector<std::string>{"user1"});
  EXPECT_EQ(server_.run_sql("SELECT sum(count) FROM tidegate.block", database_), "7");
  EXPECT_EQ(server_.run_sql("SELECT count(DISTINCT rid) FROM tidegate.entry", database_), "7");
}

TEST_F(store_postgres_directory, names_two_that_share_a_value_which_has_to_be_unique) {
  {
    auto const where = open_one();
    add_users(*where, users_, 0, 3);
    added(*where, "acme", users_, user_of({.id = "x", .user_name = "twin"}));
    added(*where, "acme", users_, user_of({.id = "y", .user_name = "TWI2"}));
  }
  server_.run_sql(std::string(back_to_version_3) +
                      "UPDATE resource SET text = convert_to(replace(convert_from(text, 'UTF8'),"
                      " 'TWI2', 'TWIN'), 'UTF8')",
                  database_);
  auto const error = error_of({.url = url_});
  EXPECT_EQ(error.fault, store_fault::damaged);
  for (auto const* const said : {"\"User\"", "\"userName\"", "\"x\"", "\"y\""}) {
    EXPECT_NE(error.text.find(said), std::string::npos) << error.text;
  }
  server_.run_sql(
      "UPDATE tidegate.resource SET text ="
      " convert_to(replace(convert_from(text, 'UTF8'), 'TWIN', 'TWI2'), 'UTF8')",
      database_);
  auto const where = open_one();
  EXPECT_EQ(found_by(*where, users_, "userName eq \"twi2\""), std::vector<std::string>{"y"});
}

// ---- several gateways ----

TEST_F(store_postgres_directory, walks_through_two_gateways_while_a_third_writes) {
  constexpr int rows = 3000;
  auto const first = open_one();
  auto const second = open_one();
  auto const third = open_one();
  add_users(*first, users_, 0, rows);
  std::atomic<bool> over = false;
  std::vector<std::thread> others;
  std::atomic<std::uint64_t> highest = 0;
  for (int t = 0; t < 3; ++t) {
    // Two of them on the same gateway and one on another, so that rids are given by two.
    others.emplace_back([&, t] {
      auto& where = t < 2 ? *third : *second;
      for (int i = 0; !over; ++i) {
        auto const id = "new" + std::to_string(t) + "-" + std::to_string(i);
        highest = added(where, "acme", users_, user_of({.id = id, .user_name = id}));
      }
    });
  }
  auto const by_name = users_.find_index(*users_.definition.resolve("userName"));
  for (auto const& sort : {std::optional<std::size_t>(), by_name}) {
    std::vector<int> seen(rows);
    std::vector<std::string> new_ones;
    std::optional<scim::page_place> place = scim::page_place{};
    int pages = 0;
    // Without a highest rid: what is created behind the walk is met as well, all of it in the order
    // of creation.
    while (place && pages < 200) {
      auto& where = pages++ % 2 == 0 ? *first : *second;
      auto const page = reading(where, "acme", [&](directory_reader& reader) {
        return scim::read_page<store::directory_row>(
            *place, 100,
            [&](scim::scan const& scan) {
              return *reader.scan({.type = &users_, .sort_index = sort, .scan = scan});
            },
            [](store::directory_row const& row) { return row.at; });
      });
      place = page.next;
      for (auto const& row : page.rows) {
        if (row.id.starts_with("user")) {
          ++seen[static_cast<std::size_t>(std::stoi(std::string(row.id.substr(4))))];
        } else {
          new_ones.emplace_back(row.id);
        }
      }
    }
    EXPECT_EQ(std::count(seen.begin(), seen.end(), 1), rows);
    if (!sort) {
      // Of each writer, what was met is the beginning of what it wrote: nothing turned up behind
      // the walk.
      std::map<char, int> next;
      for (auto const& id : new_ones) {
        EXPECT_EQ(std::stoi(id.substr(5)), next[id[3]]++) << id;
      }
      EXPECT_GT(new_ones.size(), 0U);
    }
  }
  over = true;
  for (auto& thread : others) {
    thread.join();
  }
}

TEST_F(store_postgres_directory, makes_one_of_many_users_of_the_same_name) {
  auto const first = open_one();
  auto const second = open_one();
  auto const index = *users_.find_index(*users_.definition.resolve("userName"));
  std::atomic<int> made = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      auto& where = t % 2 == 0 ? *first : *second;
      for (int i = 0; i < 30; ++i) {
        auto const name = name_of(i);
        auto const key = index_key(*users_.indexes[index].path.leaf(), json::value(name));
        bool taken = false;
        EXPECT_TRUE(writing(where, "acme", [&](directory_writer& writer) {
          auto const other = writer.find_unique(users_, index, key, "");
          EXPECT_TRUE(other.has_value());
          taken = other->has_value();
          auto const id = std::to_string(t) + "-" + name;
          return !taken && insert(writer, users_, user_of({.id = id, .user_name = name}));
        }));
        made += taken ? 0 : 1;
      }
    });
  }
  for (auto& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(made, 30);
  EXPECT_EQ(
      reading(*first, "acme",
              [&](directory_reader& reader) { return reader.count({.type = &users_})->total; }),
      30U);
}

TEST_F(store_postgres_directory, loses_no_change_that_gateways_make_of_one_resource) {
  auto const first = open_one();
  auto const second = open_one();
  auto const group = added(*first, "acme", groups_, group_of("g", "0"));
  add_users(*first, users_, 0, 100);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      auto& where = t % 2 == 0 ? *first : *second;
      for (int i = 0; i < 25; ++i) {
        EXPECT_TRUE(writing(where, "acme", [&](directory_writer& writer) {
          auto const old = writer.find(groups_, "g");
          auto const value =
              std::stoi(*json::parse((*old)->text)->find("displayName")->if_string());
          auto const next = group_of("g", std::to_string(value + 1));
          auto const user = writer.find(users_, name_of(t * 25 + i));
          return writer.update(groups_, group, to_string(next), index_entries(groups_, next)) &&
                 writer.add_member(group, (*user)->rid, "");
        }));
      }
    });
  }
  for (auto& thread : threads) {
    thread.join();
  }
  reading(*second, "acme", [&](directory_reader& reader) {
    EXPECT_EQ((*reader.find(groups_, "g"))->version, 101U);
    std::set<std::string> members;
    EXPECT_TRUE(reader.members(group, [&](store::directory_member const& member) {
      return members.insert(member.id).second;
    }));
    EXPECT_EQ(members.size(), 100U);
  });
}

// ---- work ----

TEST_F(store_postgres_directory, makes_many_writes_in_one_transaction) {
  auto const where = open_one();
  added(*where, "acme", users_, user_of({.id = "first", .user_name = "first"}));
  std::atomic<int> answered = 0;
  std::promise<void> done;
  constexpr int writes = 200;
  for (int i = 0; i < writes; ++i) {
    // Some are undone, which the others do not notice.
    where->write(
        "acme",
        [&, i](directory_writer& writer) {
          return insert(writer, users_, user_of({.id = name_of(i), .user_name = name_of(i)})) &&
                 i % 5 != 0;
        },
        [&](store::directory_outcome<void> made) {
          EXPECT_TRUE(made.has_value()) << (made ? "" : made.error().text);
          if (++answered == writes) {
            done.set_value();
          }
        });
  }
  done.get_future().wait();
  EXPECT_LT(dynamic_cast<directory_executor const&>(*where).counted().transactions, 100U);
  reading(*where, "acme", [&](directory_reader& reader) {
    EXPECT_EQ(reader.count({.type = &users_})->total, 161U);
    EXPECT_EQ(reader.scan({.type = &users_, .scan = {{}, 1000}})->rows.size(), 161U);
  });
}

TEST_F(store_postgres_directory, makes_the_others_when_one_of_a_transaction_fails) {
  auto const where = open_one();
  added(*where, "acme", users_, user_of({.id = "first", .user_name = "first"}));
  std::promise<void> begun;
  std::promise<void> may_end;
  std::promise<store::directory_outcome<void>> first;
  where->write(
      "acme",
      [&](directory_writer&) {
        begun.set_value();
        may_end.get_future().wait();
        return true;
      },
      [&](auto made) { first.set_value(std::move(made)); });
  begun.get_future().wait();
  std::vector<std::promise<store::directory_outcome<void>>> answers(3);
  for (int i = 0; i < 3; ++i) {
    where->write(
        "acme",
        [&, i](directory_writer& writer) {
          // There is no such rid.
          person const one{.id = name_of(i), .user_name = name_of(i), .title = "x"};
          return i == 1 ? writer.remove(users_, 1).has_value()
                        : insert(writer, users_, user_of(one)).has_value();
        },
        [&, i](auto made) { answers[static_cast<std::size_t>(i)].set_value(std::move(made)); });
  }
  may_end.set_value();
  EXPECT_TRUE(first.get_future().get());
  EXPECT_TRUE(answers[0].get_future().get());
  EXPECT_EQ(answers[1].get_future().get().error().fault, store_fault::damaged);
  EXPECT_TRUE(answers[2].get_future().get());
  EXPECT_EQ(found_by(*where, users_, "title eq \"x\"").size(), 2U);
}

TEST_F(store_postgres_directory, changes_thousands_of_members_as_it_changes_three) {
  auto const where = open_one();
  auto const group = added(*where, "acme", groups_, group_of("g", "All"));
  constexpr int many = 3000;
  ASSERT_TRUE(writing(*where, "acme", [&](directory_writer& writer) {
    std::vector<std::uint64_t> rids;
    for (int i = 0; i < many; ++i) {
      rids.push_back(*insert(writer, users_, user_of({.id = name_of(i), .user_name = name_of(i)})));
    }
    for (auto const rid : rids) {
      EXPECT_EQ(writer.add_member(group, rid, "").value(), true);
    }
    for (int i = 0; i < many; ++i) {
      auto const rid = rids[static_cast<std::size_t>(i)];
      EXPECT_EQ(writer.add_member(group, rid, "named").value(), false);
      if (i % 3 == 0) {
        EXPECT_EQ(writer.remove_member(group, rid).value(), true);
        EXPECT_EQ(writer.remove_member(group, rid).value(), false);
        EXPECT_EQ(writer.add_member(group, rid, "again").value(), true);
      }
    }
    return true;
  }));
  reading(*where, "acme", [&](directory_reader& reader) {
    std::vector<std::string> ids;
    EXPECT_TRUE(reader.members(group, [&](store::directory_member const& member) {
      EXPECT_EQ(member.display, ids.size() < many / 3 * 2 ? "named" : "again");
      ids.push_back(member.id);
      return true;
    }));
    ASSERT_EQ(ids.size(), many);
    EXPECT_EQ(ids.front(), "user1");
    EXPECT_EQ(ids.back(), "user2997") << "who was removed and added comes last";
    EXPECT_TRUE((*reader.find(users_, "user5"))->maybe_in_groups);
    EXPECT_EQ(reader.groups_of((*reader.find(users_, "user5"))->rid)->size(), 1U);
  });
}

TEST_F(store_postgres_directory, bounds_what_waits) {
  auto const where = open({.url = url_, .connections = 2, .reads_max = 2, .writes_max = 2}, model_);
  std::promise<void> begun;
  std::promise<void> may_end;
  std::atomic<int> answered = 0;
  where->write(
      "acme",
      [&](directory_writer&) {
        begun.set_value();
        may_end.get_future().wait();
        return false;
      },
      [&](auto) { ++answered; });
  begun.get_future().wait();
  int refused = 0;
  for (int i = 0; i < 3; ++i) {
    where->write(
        "acme", [](directory_writer&) { return false; },
        [&](store::directory_outcome<void> made) {
          refused += made ? 0 : 1;
          ++answered;
        });
  }
  EXPECT_EQ(refused, 1);
  EXPECT_EQ(
      reading(*where, "acme", [&](directory_reader& reader) { return *reader.newest(users_); }), 0U)
      << "who reads does not wait for who writes";
  may_end.set_value();
  while (answered < 4) {
    std::this_thread::yield();
  }
}

// ---- trouble ----

TEST(store_postgres_directory_restart, has_after_a_kill_whatever_was_answered_before) {
  postgres_server server;
  auto const model = make_model();
  auto const& users = *model->find("User");
  auto const where = open({.url = server.fresh_database()}, model);
  std::atomic<bool> over = false;
  std::atomic<int> answered = 0;
  std::vector<std::thread> threads;
  std::vector<std::vector<std::string>> made(3);
  for (std::size_t t = 0; t < made.size(); ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; !over; ++i) {
        auto const id = std::to_string(t) + "-" + std::to_string(i);
        if (writing(*where, "acme", [&](directory_writer& writer) {
              auto const there = writer.find(users, id);  // after a commit that was in doubt
              return there &&
                     (*there || insert(writer, users, user_of({.id = id, .user_name = id})));
            })) {
          made[t].push_back(id);
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
  reading(*where, "acme", [&](directory_reader& reader) {
    for (auto const& ids : made) {
      for (auto const& id : ids) {
        EXPECT_TRUE(reader.find(users, id)->has_value()) << id;
      }
    }
    auto const rows = reader.scan({.type = &users, .scan = {{}, 100'000}})->rows.size();
    EXPECT_EQ(reader.count({.type = &users})->total, rows);
  });
}

TEST_F(store_postgres_directory, connects_again_before_a_work_that_lost_its_connection) {
  auto const where = open_one();
  add_users(*where, users_, 0, 10);
  for (int round = 0; round < 3; ++round) {
    server_.run_sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '" +
                    database_ + "'");
    EXPECT_NE(text_in(*where, "acme", users_, name_of(1)), "none");
    server_.run_sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '" +
                    database_ + "'");
    int called = 0;
    EXPECT_TRUE(writing(*where, "acme", [&](directory_writer& writer) {
      if (++called == 1) {
        // And in the middle of it.
        server_.run_sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '" +
                        database_ + "'");
      }
      auto const id = "late" + std::to_string(round);
      return insert(writer, users_, user_of({.id = id, .user_name = id})) &&
             writer.find(users_, id).has_value();
    }));
    EXPECT_EQ(called, 2);
  }
  reading(*where, "acme", [&](directory_reader& reader) {
    EXPECT_EQ(reader.count({.type = &users_})->total, 13U);
  });
}

TEST(store_postgres_directory_restart, says_unavailable_while_there_is_no_server) {
  postgres_server server;
  auto const model = make_model();
  auto const& users = *model->find("User");
  auto const where = open({.url = server.fresh_database()}, model);
  add_users(*where, users, 0, 1);
  server.stop(SIGINT);
  auto const refused = writing(*where, "acme", [](directory_writer&) { return true; });
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().fault, store_fault::unavailable);
  std::promise<bool> read;
  where->read("acme", [&](auto reader) { read.set_value(reader.has_value()); });
  EXPECT_FALSE(read.get_future().get());
  server.start();
  // How long it is until then is up to the backoff.
  while (!writing(*where, "acme", [](directory_writer&) { return true; })) {
    std::this_thread::yield();
  }
}

TEST_F(store_postgres_directory, sorts_nothing_and_reads_no_table_from_end_to_end) {
  auto const where = open_one();
  add_users(*where, users_, 0, 100);
  auto explained = connection::open(*read_url(url_), std::chrono::seconds(10), {}).value();
  for (auto const* const way : {"seqscan", "bitmapscan", "sort", "hashjoin", "mergejoin"}) {
    ASSERT_TRUE(explained.send("SET enable_" + std::string(way) + " TO off"));
  }
  int statements = 0;
  for (auto const each : statement_texts()) {
    auto const text = std::string(each);
    if (!text.starts_with("SELECT") && !text.starts_with("WITH") && !text.starts_with("DELETE") &&
        !text.starts_with("UPDATE")) {
      continue;
    }
    std::string nulls;
    for (int number = 1; text.find("$" + std::to_string(number)) != std::string::npos; ++number) {
      nulls += (nulls.empty() ? "(" : ", ") + std::string("NULL");
    }
    nulls += nulls.empty() ? "" : ")";
    auto const name = "e" + std::to_string(++statements);
    ASSERT_TRUE(explained.ask("PREPARE " + name + " AS " + text)) << text;
    auto const plan = explained.ask("EXPLAIN EXECUTE " + name + nulls);
    ASSERT_TRUE(plan.has_value()) << text << plan.error().text;
    for (int row = 0; row < plan->size(); ++row) {
      auto const line = plan->octets(row, 0);
      EXPECT_EQ(line.find("Sort"), std::string::npos) << text << "\n" << line;
      if (text.find("directory_state") == std::string::npos) {
        EXPECT_EQ(line.find("Seq Scan"), std::string::npos) << text << "\n" << line;
      }
    }
  }
}

}  // namespace
}  // namespace tidegate::store_postgres
