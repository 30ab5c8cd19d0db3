// SPDX-License-Identifier: Apache-2.0
#include "directory_helpers.hpp"
#include "failing_syncs.hpp"
#include "file_limit.hpp"
#include "killed_child.hpp"
#include "power.hpp"

#include "connection.hpp"

#include <tidegate/json/parse.hpp>

#include <sys/wait.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <functional>
#include <latch>
#include <optional>
#include <random>
#include <semaphore>
#include <thread>

namespace tidegate::store_sqlite {
namespace {

/// Stores users, renames and removes them, and writes down the number of each step that was
/// answered.
[[noreturn]] void store_until_killed(std::string const& file, int answers) {
  auto const model = make_model();
  auto const& users = *model->find("User");
  auto const d = open_directory({.file = file}, model);
  if (!d) {
    _exit(1);
  }
  std::counting_semaphore<> free(32);
  for (std::int32_t i = 0;; ++i) {
    free.acquire();
    auto work = [&users, i](directory_writer& writer) {
      auto const number = i / 2;
      auto const id = name_of(number);
      if (i % 2 == 0) {
        return insert(writer, users, user_of({.id = id, .user_name = id})).has_value();
      }
      auto const user = writer.find(users, id);
      if (!user || !*user) {
        return false;
      }
      auto const renamed = user_of({.id = id, .user_name = "renamed" + id});
      return number % 4 == 0 ? writer.remove(users, (*user)->rid).has_value()
                             : writer
                                   .update(users, (*user)->rid, to_string(renamed),
                                           index_entries(users, renamed))
                                   .has_value();
    };
    (*d)->write("acme", work, [&free, answers, i](store::directory_outcome<void> made) {
      if (!made || write(answers, &i, sizeof i) != sizeof i) {
        _exit(1);
      }
      free.release();
    });
  }
}

TEST(store_sqlite_directory_crash, has_after_a_kill_whatever_was_answered_before) {
  // More kills: --gtest_random_seed=N for other moments.
  std::mt19937 random(1 + static_cast<unsigned>(GTEST_FLAG_GET(random_seed)));
  for (int round = 0; round < 8; ++round) {
    folder const where;
    auto const file = where.file("directory.db");
    auto const octets = until_killed(sizeof(std::int32_t) * (1 + random() % 2000),
                                     [&](int answers) { store_until_killed(file, answers); });

    auto const model = make_model();
    auto const& users = *model->find("User");
    auto const d = open({.file = file}, model);
    std::vector<bool> answered(octets.size() / sizeof(std::int32_t) + 64);
    for (std::size_t i = 0; i + sizeof(std::int32_t) <= octets.size(); i += sizeof(std::int32_t)) {
      std::int32_t step = 0;
      std::memcpy(&step, octets.data() + i, sizeof step);
      answered.at(static_cast<std::size_t>(step)) = true;
    }
    reading(*d, "acme", [&](directory_reader& reader) {
      for (std::size_t step = 0; step + 1 < answered.size(); step += 2) {
        auto const number = static_cast<int>(step / 2);
        auto const user = *reader.find(users, name_of(number));
        if (answered[step + 1] && number % 4 == 0) {
          EXPECT_FALSE(user.has_value()) << number;
        } else if (answered[step + 1]) {
          ASSERT_TRUE(user.has_value()) << number;
          EXPECT_EQ(user->version, 2U);
          EXPECT_NE(user->text.find("renamed"), std::string::npos);
        } else if (answered[step] && number % 4 != 0) {
          EXPECT_TRUE(user.has_value()) << number;
        }
      }
    });
    // What is counted and what is indexed is what is there.
    auto const all = reading(*d, "acme", [&](directory_reader& reader) {
      return reader.scan({.type = &users, .scan = {{}, 100'000}})->rows.size();
    });
    EXPECT_EQ(
        reading(*d, "acme",
                [&](directory_reader& reader) { return reader.count({.type = &users})->total; }),
        all);
    EXPECT_EQ(found(*d, users, "userName pr", "userName").size(), std::min<std::size_t>(all, 1000));
  }
}

// ---- losses of power ----

/// A step of a history: what it does depends on its number alone.
auto do_step(directory_writer& writer, scim::model const& model, int step) -> bool {
  auto const& users = *model.find("User");
  auto const& groups = *model.find("Group");
  auto const set = [&](scim::model_type const& type, std::string const& id, json::value const& to) {
    auto const there = writer.find(type, id);
    if (!there) {
      return false;
    }
    return *there ? writer.update(type, (*there)->rid, to_string(to), index_entries(type, to))
                        .has_value()
                  : insert(writer, type, to).has_value();
  };
  std::mt19937 random(static_cast<unsigned>(step));
  auto const user = [&] { return "u" + std::to_string(random() % 12); };
  auto const id = user();
  auto const name = id + "." + std::to_string(step);
  auto const group = writer.find(groups, "g");
  auto const found = writer.find(users, id);
  if (!group || !found) {
    return false;
  }
  bool done = true;
  if (!*group || random() % 5 < 2) {
    done = set(*group ? users : groups, *group ? id : "g",
               *group ? user_of({.id = id, .user_name = name}) : group_of("g", "All"));
  } else if (*found && random() % 4 == 0) {
    done = writer.remove(users, (*found)->rid).has_value();
  } else if (*found && random() % 3 == 0) {
    done = writer.remove_member((*group)->rid, (*found)->rid).has_value();
  } else if (*found) {
    done = writer.add_member((*group)->rid, (*found)->rid, name).has_value();
  } else if (random() % 8 == 0) {
    done = writer.remove_members((*group)->rid).has_value();
  }
  // Which step it was can be seen in what it leaves.
  return done && set(users, "step", user_of({.id = "step", .user_name = std::to_string(step)}));
}

/// All that can be seen of a directory.
auto picture_of(store::directory& where, scim::model const& model) -> std::string {
  return reading(where, "acme", [&](directory_reader& reader) {
    std::string all;
    for (auto const* const name : {"User", "Group"}) {
      auto const& type = *model.find(name);
      auto const rows = reader.scan({.type = &type, .scan = {{}, 1000}});
      EXPECT_EQ(reader.count({.type = &type})->total, rows->rows.size());
      for (std::size_t index = 0; index < type.indexes.size(); ++index) {
        auto const sorted = reader.scan({.type = &type, .sort_index = index, .scan = {{}, 1000}});
        EXPECT_EQ(sorted->rows.size(), rows->rows.size());
        for (auto const& row : sorted->rows) {
          all += std::string(row.id) + " ";
        }
      }
      for (auto const& row : rows->rows) {
        auto const resource = *reader.find(type, row.id);
        EXPECT_TRUE(resource.has_value());
        all += std::to_string(row.at.rid) + " " + std::to_string(resource->version) + " " +
               std::string(row.text) + ":";
        EXPECT_TRUE(reader.members(row.at.rid, [&](store::directory_member const& member) {
          all += " " + member.id + "=" + member.display;
          return true;
        }));
        all += "\n";
      }
      all += std::to_string(*reader.newest(type)) + "\n";
    }
    return all;
  });
}

auto step_of(store::directory& where, scim::model const& model) -> int {
  auto const text = text_in(where, "acme", *model.find("User"), "step");
  auto const parsed = json::parse(text, {});
  auto const* const name = parsed ? parsed->find("userName") : nullptr;
  return name == nullptr ? 0 : std::stoi(*name->if_string());
}

/// Does works in another process, one after the other, which is killed when all are answered, and
/// after a read if `reads`.
void do_and_die(std::string const& file, std::shared_ptr<scim::model const> const& model, int works,
                std::function<bool(directory_writer&, int)> const& work, bool reads) {
  auto const child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    auto const d = open_directory({.file = file}, model);
    for (int i = 1; d && i <= works; ++i) {
      if (!writing(**d, "acme", [&](directory_writer& writer) { return work(writer, i); })) {
        _exit(1);
      }
    }
    if (reads && text_in(**d, "acme", *model->find("User"), "step") == "none") {
      _exit(1);
    }
    kill(getpid(), SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
}

/// What is to be seen after each step of a history.
auto pictures_of(std::string const& file, std::shared_ptr<scim::model const> const& model,
                 int steps) -> std::vector<std::string> {
  std::vector<std::string> pictures;
  auto const d = open({.file = file}, model);
  for (int step = 0; step <= steps; ++step) {
    if (step > 0) {
      EXPECT_TRUE(writing(*d, "acme",
                          [&](directory_writer& writer) { return do_step(writer, *model, step); }));
    }
    pictures.push_back(picture_of(*d, *model));
  }
  return pictures;
}

TEST(store_sqlite_directory_crash, is_as_it_was_after_some_step_wherever_its_log_ends) {
  constexpr int steps = 60;
  auto const model = make_model();
  folder const where;
  auto const pictures = pictures_of(where.file("model.db"), model, steps);
  std::mt19937 random(5);
  auto const file = where.file("directory.db");
  { EXPECT_NE(open({.file = file}, model), nullptr); }
  do_and_die(
      file, model, steps,
      [&](directory_writer& writer, int step) { return do_step(writer, *model, step); }, false);
  auto const log_octets = std::filesystem::file_size(file + "-wal");
  ASSERT_GT(log_octets, 0U);
  for (int round = 0; round < 80; ++round) {
    auto const copy = where.file("copy" + std::to_string(round));
    for (auto const* const end : {"", "-wal"}) {
      std::filesystem::copy_file(file + end, copy + end);
    }
    if (round > 0) {
      std::filesystem::resize_file(copy + "-wal", random() % log_octets);
    }
    auto const d = open({.file = copy}, model);
    ASSERT_NE(d, nullptr);
    auto const step = step_of(*d, *model);
    if (round == 0) {
      EXPECT_EQ(step, steps) << "all were answered";
    }
    EXPECT_EQ(picture_of(*d, *model), pictures[static_cast<std::size_t>(step)]) << step;
    ASSERT_TRUE(writing(*d, "acme",
                        [&](directory_writer& writer) { return do_step(writer, *model, 1000); }));
    EXPECT_EQ(step_of(*d, *model), 1000) << "it goes on";
  }
}

TEST(store_sqlite_directory_crash, has_what_was_answered_when_only_what_was_synced_is_left) {
  constexpr int steps = 30;
  auto const model = make_model();
  folder const where;
  auto const pictures = pictures_of(where.file("model.db"), model, steps);
  // With an idle moment before a step, the log goes into the file.
  for (int const idle_before : {0, 1, 15, steps}) {
    auto const file = where.file("directory" + std::to_string(idle_before) + ".db");
    { EXPECT_NE(open({.file = file}, model), nullptr); }
    auto const child = fork();
    if (child == 0) {
      power::watch_syncs();
      auto const d = open_directory({.file = file}, model);
      for (int step = 1; d && step <= steps; ++step) {
        if (step == idle_before) {
          std::this_thread::sleep_for(std::chrono::milliseconds(150));
        }
        if (!writing(**d, "acme",
                     [&](directory_writer& writer) { return do_step(writer, *model, step); })) {
          _exit(1);
        }
      }
      kill(getpid(), SIGKILL);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status));
    power::cut_power(file);
    auto const d = open({.file = file}, model);
    ASSERT_NE(d, nullptr);
    EXPECT_EQ(picture_of(*d, *model), pictures[steps]) << idle_before;
  }
}

// With little memory a transaction goes to the log before it is committed, and a part of it is
// undone afterwards.
TEST(store_sqlite_directory_crash,
     has_after_a_kill_what_was_answered_beside_works_that_were_undone) {
  constexpr int count = 400;
  constexpr int rounds = 3;
  folder const where;
  auto const file = where.file("directory.db");
  auto const model = make_model();
  auto const& users = *model->find("User");
  auto const user = [](int number, int round) {
    return user_of({.id = name_of(number),
                    .user_name = name_of(number) + "of" + std::to_string(round),
                    .title = std::string(static_cast<std::size_t>(200 + number % 900), 'x')});
  };
  auto const put = [&](directory_writer& writer, int number, int round) {
    auto const now = user(number, round);
    auto const there = writer.find(users, name_of(number));
    if (!there) {
      return false;
    }
    return *there ? writer.update(users, (*there)->rid, to_string(now), index_entries(users, now))
                        .has_value()
                  : insert(writer, users, now).has_value();
  };
  auto const child = fork();
  if (child == 0) {
    auto const d = open_directory({.file = file, .cache_octets = 64 << 10}, model);
    if (!d) {
      _exit(1);
    }
    std::counting_semaphore<> answered(0);
    auto const write = [&](std::function<bool(directory_writer&)> work) {
      (*d)->write("acme", std::move(work), [&](store::directory_outcome<void> made) {
        if (!made) {
          _exit(2);
        }
        answered.release();
      });
    };
    for (int round = 0; round < rounds; ++round) {
      std::latch go(1);  // a work may be made more than once
      write([&](directory_writer&) {
        go.wait();
        return true;
      });
      write([&](directory_writer& writer) {
        for (int i = 0; i < 3 * count; ++i) {
          // The second time, a part of what is in the log by now.
          if (i < count || i % count > count / 2) {
            static_cast<void>(put(writer, i % count, 1000 + i));
          }
        }
        return false;
      });
      for (int i = 0; i < count; i += 20) {
        write([&, i](directory_writer& writer) { return put(writer, i, round); });
      }
      go.count_down();
      for (int i = -2; i < count / 20; ++i) {
        answered.acquire();
      }
    }
    kill(getpid(), SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status)) << WEXITSTATUS(status);
  auto const d = open({.file = file}, model);
  ASSERT_NE(d, nullptr);
  for (int i = 0; i < count; ++i) {
    EXPECT_EQ(text_in(*d, "acme", users, name_of(i)),
              i % 20 == 0 ? to_string(user(i, rounds - 1)) : "none")
        << i;
  }
}

/// A directory with a write that was refused because the disk failed, and that may be in its log.
class store_sqlite_directory_doubt : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = open({.file = file_}, model_);
    ASSERT_NE(directory_, nullptr);
    ASSERT_TRUE(put("first"));
    failing_syncs const disk;
    auto const refused = put("refused");
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().fault, store_fault::in_doubt);
  }
  auto put(std::string const& id) -> store::directory_outcome<void> {
    return writing(*directory_, "acme", [&](directory_writer& writer) {
      return insert(writer, users_, user_of({.id = id, .user_name = id})).has_value();
    });
  }
  [[nodiscard]] auto has(store::directory& where, std::string const& id) const -> bool {
    return text_in(where, "acme", users_, id) != "none";
  }
  /// What a kill would leave now.
  [[nodiscard]] auto copy() -> std::unique_ptr<store::directory> {
    auto const to = where_.file("copy" + std::to_string(copies_++) + ".db");
    for (auto const* const end : {"", "-wal"}) {
      std::filesystem::copy_file(file_ + end, to + end);
    }
    return open({.file = to}, model_);
  }

  folder where_;
  std::string file_ = where_.file("directory.db");
  std::shared_ptr<scim::model const> model_ = make_model();
  scim::model_type const& users_ = *model_->find("User");
  std::unique_ptr<store::directory> directory_;
  int copies_ = 0;
};

TEST_F(store_sqlite_directory_doubt, keeps_neither_readers_nor_writers_from_going_on) {
  EXPECT_TRUE(has(*directory_, "first"));
  EXPECT_FALSE(has(*directory_, "refused"));
  EXPECT_TRUE(put("second"));
  auto const killed = copy();
  ASSERT_NE(killed, nullptr);
  EXPECT_TRUE(has(*killed, "first"));
  EXPECT_TRUE(has(*killed, "second"));
  EXPECT_FALSE(has(*killed, "refused"));
  directory_.reset();
  directory_ = open({.file = file_}, model_);
  ASSERT_NE(directory_, nullptr);
  EXPECT_TRUE(has(*directory_, "second"));
  EXPECT_FALSE(has(*directory_, "refused"));
}

TEST_F(store_sqlite_directory_doubt, ends_in_an_idle_moment) {
  auto const until = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  for (;;) {
    auto const killed = copy();
    ASSERT_NE(killed, nullptr);
    EXPECT_TRUE(has(*killed, "first"));
    if (!has(*killed, "refused")) {
      break;
    }
    ASSERT_LT(std::chrono::steady_clock::now(), until) << "it is still there";
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

TEST(store_sqlite_directory_crash, keeps_what_was_answered_when_the_disk_fails_afterwards) {
  folder const where;
  auto const model = make_model();
  auto const& users = *model->find("User");
  auto const d = open({.file = where.file("directory.db")}, model);
  auto const put = [&](int number) {
    return writing(*d, "acme", [&, number](directory_writer& writer) {
      return insert(writer, users, user_of({.id = name_of(number), .user_name = "x"})).has_value();
    });
  };
  for (int i = 0; i < 50; ++i) {
    ASSERT_TRUE(put(i));
  }
  std::optional<file_limit> limit(0);  // every write fails
  auto const failed = put(50);
  limit.reset();
  EXPECT_FALSE(failed.has_value());
  // A reader that cannot be shown it hears an error, for a moment.
  std::optional<std::size_t> seen;
  auto const begin = std::chrono::steady_clock::now();
  while (!seen && std::chrono::steady_clock::now() - begin < std::chrono::seconds(20)) {
    std::binary_semaphore over(0);
    d->read("acme", [&](store::directory_outcome<directory_reader*> reader) {
      if (reader) {
        seen = (*reader)->scan({.type = &users, .scan = {{}, 1000}})->rows.size();
      }
      over.release();
    });
    over.acquire();
  }
  EXPECT_EQ(seen, 50U);
  EXPECT_TRUE(put(50));
  EXPECT_NE(text_in(*d, "acme", users, name_of(50)), "none");
}

}  // namespace
}  // namespace tidegate::store_sqlite
