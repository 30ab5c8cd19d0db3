// SPDX-License-Identifier: Apache-2.0
#include <tidegate/store_postgres/directory.hpp>

#include "support/cut_proxy.hpp"
#include "support/directory_contract.hpp"
#include "support/postgres_server.hpp"
#include "support/sanitized.hpp"

#include "connection.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <map>
#include <mutex>
#include <set>
#include <thread>

namespace tidegate::store_postgres {
namespace {

using namespace store::directory_contract_support;
using store::directory_writer;
using store::store_fault;
using test_support::cut_proxy;
using test_support::postgres_server;
using way = cut_proxy::direction;

/// What a client is told of a change.
enum class told : std::uint8_t { made, refused, not_there, in_doubt, unavailable };

/// The changes of a SCIM service, as it makes them.
class service {
 public:
  explicit service(std::string const& url,
                   std::chrono::milliseconds timeout = std::chrono::seconds(10))
      : where_(open_directory({.url = url, .connections = 2, .timeout = timeout}, model_).value()) {
  }

  [[nodiscard]] auto post(std::string const& id, std::string const& name) -> told {
    auto const index = *users_.find_index(*users_.definition.resolve("userName"));
    auto const key = index_key(*users_.indexes[index].path.leaf(), json::value(name));
    return change([&](directory_writer& in, told& answer) {
      auto const other = in.find_unique(users_, index, key, id);
      answer = other && *other ? told::refused : told::made;
      return other && !*other && insert(in, users_, user_of({.id = id, .user_name = name}));
    });
  }
  /// A version more.
  [[nodiscard]] auto put(std::string const& id, std::string const& title) -> told {
    return change([&](directory_writer& in, told& answer) {
      auto const found = in.find(users_, id);
      answer = found && *found ? told::made : told::not_there;
      auto const next = user_of({.id = id, .user_name = id, .title = title});
      return found && *found &&
             in.update(users_, (*found)->rid, to_string(next), index_entries(users_, next));
    });
  }
  [[nodiscard]] auto post_group(std::string const& id) -> told {
    return change([&](directory_writer& in, told& answer) {
      answer = told::made;
      return insert(in, groups_, group_of(id, id)).has_value();
    });
  }
  /// A version more, and a member.
  [[nodiscard]] auto patch_group(std::string const& id, std::string const& member) -> told {
    return change([&](directory_writer& in, told& answer) {
      auto const found = in.find(groups_, id);
      auto const who = in.find(users_, member);
      answer = found && *found && who && *who ? told::made : told::not_there;
      auto const next = group_of(id, id);
      return answer == told::made &&
             in.update(groups_, (*found)->rid, to_string(next), index_entries(groups_, next)) &&
             in.add_member((*found)->rid, (*who)->rid, "");
    });
  }
  [[nodiscard]] auto remove(std::string const& id) -> told {
    return change([&](directory_writer& in, told& answer) {
      auto const found = in.find(users_, id);
      answer = found && *found ? told::made : told::not_there;
      return found && *found && in.remove(users_, (*found)->rid);
    });
  }

  /// The last one, for people.
  [[nodiscard]] auto error() -> std::string {
    std::lock_guard const lock(mutex_);
    return error_;
  }

 private:
  template <class Work>
  [[nodiscard]] auto change(Work work) -> told {
    told answer = told::unavailable;
    auto const made =
        writing(*where_, "acme", [&](directory_writer& in) { return work(in, answer); });
    if (!made) {
      std::lock_guard const lock(mutex_);
      error_ = made.error().text;
      return made.error().fault == store_fault::in_doubt ? told::in_doubt : told::unavailable;
    }
    return answer;
  }

  std::shared_ptr<model const> model_ = make_model();
  model_type const& users_ = *model_->find("User");
  model_type const& groups_ = *model_->find("Group");
  std::mutex mutex_;
  std::string error_;
  std::unique_ptr<store::directory> where_;
};

class store_postgres_directory_cut : public testing::Test {
 protected:
  postgres_server& server_ = postgres_server::shared();
  std::string direct_url_ = server_.fresh_database();
  std::string database_ = direct_url_.substr(direct_url_.rfind('/') + 1);
  cut_proxy proxy_{server_.port()};
  std::string url_ =
      "postgres://tidegate@127.0.0.1:" + std::to_string(proxy_.port()) + "/" + database_;
  service direct_{direct_url_};
  connection look_ = connection::open(*read_url(direct_url_), std::chrono::seconds(10), {}).value();

  [[nodiscard]] auto number(std::string const& sql, std::string const& value = "") -> std::int64_t {
    auto const found = value.empty() ? look_.ask(sql) : look_.ask(sql, parameters(value));
    EXPECT_TRUE(found.has_value()) << (found ? "" : found.error().text);
    return found && found->size() == 1 ? found->number(0, 0) : -1;
  }
  [[nodiscard]] auto copies_of(std::string const& id) -> std::int64_t {
    return number("SELECT count(*) FROM resource WHERE id = $1", id);
  }
  [[nodiscard]] auto version_of(std::string const& id) -> std::int64_t {
    return number("SELECT version FROM resource WHERE id = $1", id);
  }
  /// What is counted is what is there, and indexes have nothing else.
  void expect_whole() {
    auto const resources = number("SELECT count(*) FROM resource");
    EXPECT_EQ(number("SELECT sum(count)::bigint FROM part"), resources);
    EXPECT_EQ(number("SELECT sum(count)::bigint FROM block"), resources);
    EXPECT_EQ(number("SELECT count(DISTINCT rid) FROM entry"), resources);
    EXPECT_EQ(number("SELECT count(*) FROM entry WHERE rid NOT IN (SELECT rid FROM resource)"), 0);
  }

  /// Where the cut is in the greeting of a connection, it is refused: then nothing was made, and it
  /// is asked again.
  template <class Change, class Look>
  [[nodiscard]] static auto in_the_end(Change change, Look is_as_before) -> told {
    for (;;) {
      auto const answer = change();
      if (answer != told::unavailable) {
        return answer;
      }
      EXPECT_TRUE(is_as_before());
    }
  }

  /// How many octets a change takes on a connection that is there.
  template <class Change>
  [[nodiscard]] auto octets_of(way which, Change change) -> std::size_t {
    std::size_t least = SIZE_MAX;
    for (int i = 0; i < 6; ++i) {
      auto const before = proxy_.octets(which);
      change();
      least = std::min(least, proxy_.octets(which) - before);
    }
    return least;
  }

  /// Does `change(name, through)` to see how many octets that is, and then once for each octet
  /// behind which the connection is cut: the commit and its answer octet by octet, and what is
  /// before in steps, unless TIDEGATE_EVERY_OCTET is set. How many cuts there were.
  template <class Change>
  auto cut_everywhere(service& through, std::string const& what, Change change) -> std::size_t {
    bool const all = std::getenv("TIDEGATE_EVERY_OCTET") != nullptr;
    std::size_t cuts = 0;
    int count = 10'000;
    auto const next_name = [&] { return what + "-" + std::to_string(++count); };
    for (auto const which : {way::to_client, way::to_server}) {
      auto const octets = octets_of(which, [&] { change(next_name(), through); });
      for (std::size_t k = 0; k < octets;) {
        proxy_.cut_behind(which, k);
        change(next_name(), through);
        cuts += proxy_.has_cut() ? 1U : 0U;
        bool const is_end = octets - k < 120;
        std::size_t const step = is_end ? 1U : 11U;
        k += all ? 1U : test_support::sanitized ? 41U : step;
        if (testing::Test::HasFailure()) {
          ADD_FAILURE() << what << (which == way::to_client ? " to the client" : " to the server")
                        << " cut behind " << k << ": " << through.error();
          return cuts;
        }
      }
    }
    return cuts;
  }
};

TEST_F(store_postgres_directory_cut, makes_each_change_once_behind_whichever_octet_it_is_cut) {
  service through(url_);
  std::size_t cuts = 0;
  cuts += cut_everywhere(through, "post", [&](std::string const& id, service& to) {
    EXPECT_EQ(in_the_end([&] { return to.post(id, id); }, [&] { return copies_of(id) == 0; }),
              told::made)
        << id;
    EXPECT_EQ(copies_of(id), 1) << id;
  });
  ASSERT_EQ(direct_.post("changed", "changed"), told::made);
  cuts += cut_everywhere(through, "put", [&](std::string const& title, service& to) {
    auto const before = version_of("changed");
    auto const is_as_before = [&] { return version_of("changed") == before; };
    EXPECT_EQ(in_the_end([&] { return to.put("changed", title); }, is_as_before), told::made);
    EXPECT_EQ(version_of("changed"), before + 1) << title;
  });
  ASSERT_EQ(direct_.post_group("group"), told::made);
  cuts += cut_everywhere(through, "member", [&](std::string const& id, service& to) {
    ASSERT_EQ(direct_.post(id, id), told::made);
    auto const before = version_of("group");
    auto const is_as_before = [&] { return version_of("group") == before; };
    EXPECT_EQ(in_the_end([&] { return to.patch_group("group", id); }, is_as_before), told::made);
    EXPECT_EQ(version_of("group"), before + 1) << id;
    EXPECT_EQ(number("SELECT count(*) FROM member WHERE member_id = $1", id), 1) << id;
  });
  cuts += cut_everywhere(through, "gone", [&](std::string const& id, service& to) {
    ASSERT_EQ(direct_.post(id, id), told::made);
    EXPECT_EQ(in_the_end([&] { return to.remove(id); }, [&] { return copies_of(id) == 1; }),
              told::made)
        << id;
    EXPECT_EQ(copies_of(id), 0) << id;
  });
  EXPECT_GT(cuts, test_support::sanitized ? 100U : 1200U);
  RecordProperty("cuts", std::to_string(cuts));
  expect_whole();
}

TEST_F(store_postgres_directory_cut, says_in_doubt_while_the_server_is_away_and_a_retry_finds_out) {
  service through(url_, std::chrono::seconds(1));
  int number = 0;
  auto const next_id = [&] { return "u" + std::to_string(1000 + ++number); };
  auto const octets = octets_of(way::to_client, [&] {
    auto const id = next_id();
    ASSERT_EQ(through.post(id, id), told::made);
  });
  std::map<told, int> answers;
  // Before and within the answer to COMMIT, and within the Sync behind it.
  for (std::size_t const from_end : {1U, 5U, 6U, 7U, 12U, 18U, 30U, 50U}) {
    for (bool is_cut = false; !is_cut;) {
      auto const k = octets - from_end;
      auto const id = next_id();
      proxy_.cut_behind_and_stay_away(way::to_client, k);
      auto const answer = through.post(id, id);
      ++answers[answer];
      is_cut = proxy_.has_cut();  // one that waits before it connects again says nothing
      EXPECT_TRUE(answer == told::made || answer == told::in_doubt || answer == told::unavailable);
      proxy_.let_through();
      // How long it takes until then is up to the backoff. As another client would: it has an id of
      // its own.
      told again{};
      do {
        again = through.post(id + "-again", id);
      } while (again == told::unavailable);
      auto const copies = copies_of(id);
      EXPECT_EQ(again, copies == 1 ? told::refused : told::made) << k;
      EXPECT_EQ(copies + copies_of(id + "-again"), 1) << k;
      EXPECT_TRUE(copies == 1 || answer != told::made) << k;
      EXPECT_TRUE(copies == 0 || answer != told::unavailable) << k;
    }
  }
  EXPECT_GT(answers[told::in_doubt], 2);
  expect_whole();
}

/// Several gateways write while connections are ended by the server.
TEST_F(store_postgres_directory_cut, doubles_nothing_and_keeps_nothing_deleted_while_backends_end) {
  auto const* const asked = std::getenv("TIDEGATE_ROUNDS");
  int const rounds = asked != nullptr ? std::atoi(asked) : test_support::sanitized ? 10 : 40;
  std::vector<std::unique_ptr<service>> gateways;
  for (int i = 0; i < 2; ++i) {
    gateways.push_back(std::make_unique<service>(direct_url_));
  }
  std::atomic<bool> over = false;
  std::atomic<std::int64_t> acknowledged = 0;
  constexpr int between = 30;  // writes from one end of connections to the next
  std::atomic<int> in_doubt = 0;
  std::mutex mutex;
  std::set<std::string> there;
  std::set<std::string> gone;
  std::atomic<int> wrong = 0;
  std::vector<std::thread> writers;
  for (int t = 0; t < 6; ++t) {
    writers.emplace_back([&, t] {
      auto& to = *gateways[static_cast<std::size_t>(t) % gateways.size()];
      for (int i = 0; !over; ++i) {
        auto const id = "w" + std::to_string(t) + "-" + std::to_string(i);
        auto const posted = to.post(id, id);
        in_doubt += posted == told::in_doubt ? 1 : 0;
        wrong += posted == told::refused || posted == told::not_there ? 1 : 0;
        if (posted != told::made) {
          continue;
        }
        ++acknowledged;
        acknowledged.notify_one();
        bool const removes = i % 2 == 0;
        auto const removed = removes ? to.remove(id) : told::unavailable;
        in_doubt += removed == told::in_doubt ? 1 : 0;
        wrong += removed == told::refused || removed == told::not_there ? 1 : 0;
        acknowledged += removed == told::made ? 1 : 0;
        acknowledged.notify_one();
        std::lock_guard const lock(mutex);
        if (!removes) {
          there.insert(id);
        } else if (removed == told::made) {
          gone.insert(id);
        }
      }
    });
  }
  std::int64_t ended = 0;
  for (int round = 0; round < rounds; ++round) {
    auto const before = acknowledged.load();
    ended += number(
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid()");
    for (auto seen = before; seen < before + between; seen = acknowledged) {
      acknowledged.wait(seen);
    }
  }
  over = true;
  for (auto& thread : writers) {
    thread.join();
  }
  EXPECT_EQ(number("SELECT count(*) FROM (SELECT FROM resource GROUP BY id HAVING count(*) > 1)"
                   " AS doubled"),
            0);
  std::set<std::string> found;
  auto const ids = look_.ask(std::string("SELECT id FROM resource"));
  ASSERT_TRUE(ids.has_value());
  for (int i = 0; i < ids->size(); ++i) {
    found.emplace(ids->octets(i, 0));
  }
  auto const is_found = [&](std::string const& id) { return found.contains(id); };
  EXPECT_EQ(std::count_if(gone.begin(), gone.end(), is_found), 0) << "deleted and still there";
  EXPECT_EQ(std::count_if(there.begin(), there.end(), is_found),
            static_cast<std::ptrdiff_t>(there.size()));
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(in_doubt, 0) << "the server is there, and can be asked";
  expect_whole();
  RecordProperty("acknowledged", std::to_string(acknowledged));
  RecordProperty("ended", std::to_string(ended));
  if (asked != nullptr) {
    std::printf("%lld writes acknowledged, %lld connections ended\n",
                static_cast<long long>(acknowledged), static_cast<long long>(ended));
  }
}

}  // namespace
}  // namespace tidegate::store_postgres
