// SPDX-License-Identifier: Apache-2.0
#include "protocol/connection.hpp"
#include "support/redis_server.hpp"
#include "turned_loop.hpp"

#include <tidegate/engine/loop.hpp>

#include <gtest/gtest.h>

#include <sys/select.h>
#include <sys/socket.h>

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace tidegate::store_redis {
namespace {

using namespace std::chrono_literals;
using store::store_error;
using store::store_fault;
using test::redis_server;

class store_redis_connection : public turned_loop {
 protected:
  [[nodiscard]] static auto to(std::uint16_t port) -> connection_options {
    return {.server = {"127.0.0.1", port}};
  }
};

TEST_F(store_redis_connection, answers_commands_in_their_order_and_sends_those_of_a_turn_at_once) {
  redis_server const redis;
  connection to_it(on(), to(redis.port()));
  EXPECT_TRUE(to_it.is_up()) << "nothing else is known yet";
  std::vector<std::string> got;
  for (int i = 0; i < 1'000; ++i) {
    to_it.send({"ECHO", std::to_string(i)}, [&](answer a) { got.push_back(a ? a->text : "-"); });
  }
  ASSERT_TRUE(until([&] { return got.size() == 1'000; }));
  for (int i = 0; i < 1'000; ++i) {
    EXPECT_EQ(got[static_cast<std::size_t>(i)], std::to_string(i));
  }
  EXPECT_EQ(to_it.counted().commands, 1'000U);
  EXPECT_EQ(to_it.counted().writes, 1U);
  EXPECT_EQ(to_it.counted().connects, 1U);
}

TEST_F(store_redis_connection, speaks_version_three) {
  redis_server const redis;
  connection to_it(on(), to(redis.port()));
  auto const map = ask(to_it, {"CONFIG", "GET", "maxmemory-policy"});
  ASSERT_TRUE(map.has_value());
  EXPECT_EQ(map->kind, resp_kind::map);
  auto const error = ask(to_it, {"NONSENSE"});
  ASSERT_TRUE(error.has_value());
  EXPECT_TRUE(error->is_error("ERR"));
}

TEST_F(store_redis_connection, passes_a_megabyte_in_both_directions) {
  redis_server const redis;
  connection to_it(on(), to(redis.port()));
  std::string const much(10 << 20, 'x');
  EXPECT_EQ(text(to_it, command{"SET", "a", much}), "OK");
  EXPECT_EQ(text(to_it, command{"GET", "a"}), much);
}

TEST_F(store_redis_connection, answers_several_commands_in_one_by_an_array) {
  redis_server const redis;
  connection to_it(on(), to(redis.port()));
  command all{"SET", "a", "1"};
  all.then({"INCR", "a"}).then({"NONSENSE"});
  auto const got = ask(to_it, all);
  ASSERT_TRUE(got.has_value());
  ASSERT_EQ(got->items.size(), 3U);
  EXPECT_EQ(got->items[0].text, "OK");
  EXPECT_EQ(got->items[1].integer, 2);
  EXPECT_TRUE(got->items[2].is_error());
}

TEST_F(store_redis_connection, says_who_it_is_and_which_database_it_wants) {
  redis_server const redis({"--requirepass", "secret"});
  auto options = to(redis.port());
  options.login = {"", "secret"};
  options.database = 3;
  {
    connection to_it(on(), options);
    EXPECT_EQ(text(to_it, command{"SET", "a", "1"}), "OK");
  }
  EXPECT_EQ(redis.cli("-n 3 GET a", "-a secret --no-auth-warning"), "1");
  redis.cli("ACL SETUSER operator on '>password' '+@all' '~*'", "-a secret --no-auth-warning");
  options.login = {"operator", "password"};
  connection to_it(on(), options);
  EXPECT_EQ(text(to_it, command{"ACL", "WHOAMI"}), "operator");
}

TEST_F(store_redis_connection, fails_at_once_after_the_server_has_refused_it) {
  redis_server const redis({"--requirepass", "secret"});
  struct row {
    credentials login;
    std::uint32_t database;
    char const* error;
  };
  row const rows[] = {{{"", "wrong"}, 0, "WRONGPASS"},
                      {{}, 0, "NOAUTH"},
                      {{"", "secret"}, 99, "DB index is out of range"}};
  for (auto const& [login, database, error] : rows) {
    auto options = to(redis.port());
    options.login = login;
    options.database = database;
    options.backoff_first = options.backoff_max = 1h;
    connection to_it(on(), options);
    auto const first = ask(to_it, {"PING"});
    ASSERT_FALSE(first.has_value());
    EXPECT_EQ(first.error().fault, store_fault::unavailable);
    EXPECT_NE(first.error().text.find(error), std::string::npos) << first.error().text;
    EXPECT_EQ(first.error().text.find("secret"), std::string::npos);
    EXPECT_FALSE(to_it.is_up());
    bool answered = false;
    to_it.send({"PING"}, [&](answer const& a) { answered = !a.has_value(); });
    EXPECT_TRUE(answered) << "without waiting";
  }
}

TEST_F(store_redis_connection, refuses_a_replica_where_it_needs_a_master) {
  redis_server const master;
  redis_server const replica({"--replicaof", "127.0.0.1 " + std::to_string(master.port())});
  auto options = to(replica.port());
  options.must_be_master = true;
  options.backoff_first = options.backoff_max = 1h;
  connection to_replica(on(), options);
  auto const refused = ask(to_replica, {"PING"});
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().text, replica.address() + ": it is not the master");
  options.server.port = master.port();
  connection to_master(on(), options);
  EXPECT_EQ(text(to_master, command{"PING"}), "PONG");
}

TEST_F(store_redis_connection, leaves_a_server_that_has_become_a_replica) {
  redis_server const master;
  redis_server const server;
  auto options = to(server.port());
  options.backoff_max = 20ms;
  connection to_it(on(), options);
  EXPECT_EQ(text(to_it, command{"SET", "a", "1"}), "OK");
  server.cli("REPLICAOF 127.0.0.1 " + std::to_string(master.port()));
  EXPECT_TRUE(text(to_it, command{"SET", "a", "2"}).starts_with("READONLY "));
  EXPECT_FALSE(to_it.is_connected());
  EXPECT_EQ(to_it.error_text(), server.address() + ": it is a replica");
  server.cli("REPLICAOF NO ONE");
  ASSERT_TRUE(until([&] { return to_it.is_connected(); }));
  EXPECT_EQ(text(to_it, command{"SET", "a", "2"}), "OK");
}

TEST_F(store_redis_connection, comes_back_after_the_server_was_restarted) {
  redis_server redis({"--appendonly", "yes", "--appendfsync", "always"});
  auto options = to(redis.port());
  options.backoff_max = 20ms;
  connection to_it(on(), options);
  int changes = 0;
  to_it.on_change([&] { ++changes; });
  EXPECT_EQ(text(to_it, command{"SET", "a", "1"}), "OK");
  EXPECT_EQ(changes, 1);
  redis.kill();
  ASSERT_TRUE(until([&] { return !to_it.is_up(); }));
  EXPECT_FALSE(to_it.is_connected());
  EXPECT_NE(to_it.error_text().find(redis.address()), std::string::npos);
  EXPECT_FALSE(ask(to_it, {"GET", "a"}).has_value());
  redis.restart();
  ASSERT_TRUE(until([&] { return to_it.is_connected(); }));
  EXPECT_EQ(text(to_it, command{"GET", "a"}), "1");
  EXPECT_GE(changes, 3);
}

TEST_F(store_redis_connection, gives_a_server_up_that_does_not_answer_in_time) {
  redis_server const redis;
  auto options = to(redis.port());
  options.command_timeout = 50ms;
  options.connect_timeout = 100ms;
  options.backoff_max = 20ms;
  connection to_it(on(), options);
  ASSERT_TRUE(until([&] { return to_it.is_connected(); }));
  redis.freeze();
  auto const late = ask(to_it, {"PING"});
  ASSERT_FALSE(late.has_value());
  EXPECT_EQ(late.error().text, redis.address() + ": no answer in time");
  // The system still takes connections for it, but there is no greeting.
  auto const unanswered = redis.address() + ": no connection in time";
  ASSERT_TRUE(until([&] { return to_it.error_text() == unanswered; }));
  EXPECT_FALSE(to_it.is_up());
  redis.thaw();
  EXPECT_TRUE(until([&] { return text(to_it, command{"PING"}) == "PONG"; }));
}

TEST_F(store_redis_connection, finds_out_about_a_silent_server_before_it_is_needed) {
  redis_server const redis;
  auto options = to(redis.port());
  options.command_timeout = 50ms;
  options.connect_timeout = 100ms;
  options.idle_check = 20ms;
  connection to_it(on(), options);
  ASSERT_TRUE(until([&] { return to_it.is_connected(); }));
  redis.freeze();
  EXPECT_TRUE(until([&] { return !to_it.is_up(); }));
  redis.thaw();
}

TEST_F(store_redis_connection, bounds_what_waits) {
  redis_server const redis;
  auto options = to(redis.port());
  options.commands_max = 10;
  options.octets_max = 10'000;
  connection to_it(on(), options);
  int good = 0;
  int refused = 0;
  auto const count = [&](answer const& a) { (a ? good : refused) += 1; };
  to_it.send({"SET", "a", std::string(10'000, 'x')}, count);
  EXPECT_EQ(refused, 1);
  for (int i = 0; i < 12; ++i) {
    to_it.send({"PING"}, count);
  }
  EXPECT_EQ(refused, 3);
  EXPECT_TRUE(until([&] { return good == 10; }));
  EXPECT_EQ(text(to_it, command{"PING"}), "PONG") << "there is room again";
}

TEST_F(store_redis_connection, answers_everything_when_it_is_destroyed) {
  redis_server const redis;
  std::vector<store_fault> faults;
  auto const note = [&](answer const& a) {
    faults.push_back(a ? store_fault::full : a.error().fault);
  };
  {
    connection to_it(on(), to(redis.port()));
    to_it.send({"PING"}, note);
  }
  EXPECT_EQ(faults, std::vector{store_fault::stopped});
  // Also in the middle of an answer.
  faults.clear();
  auto to_it = std::make_unique<connection>(on(), to(redis.port()));
  to_it->send({"PING"}, [&](answer const&) { to_it.reset(); });
  to_it->send({"PING"}, note);
  ASSERT_TRUE(until([&] { return to_it == nullptr; }));
  EXPECT_EQ(faults, std::vector{store_fault::stopped});
  on().turn(0ms);
}

TEST_F(store_redis_connection, resolves_names) {
  redis_server const redis;
  auto options = to(redis.port());
  options.server.host = "localhost";  // perhaps ::1 first, where no server listens
  options.backoff_max = 10ms;
  connection to_it(on(), options);
  EXPECT_TRUE(until([&] { return to_it.is_connected(); }));

  options.server.host = "tidegate.invalid";  // RFC 6761, section 6.4
  options.connect_timeout = 20s;
  connection to_nothing(on(), options);
  ASSERT_TRUE(until([&] { return !to_nothing.is_up(); }));
  EXPECT_TRUE(to_nothing.error_text().starts_with(
      "tidegate.invalid:" + std::to_string(redis.port()) + ": the name cannot be resolved: "))
      << to_nothing.error_text();
}

TEST_F(store_redis_connection, speaks_tls_with_a_server_that_it_can_check) {
  char const* const make_certificate =
      " && openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2"
      " -subj /CN=localhost -addext subjectAltName=IP:127.0.0.1 -keyout key.pem -out cert.pem";
  redis_server const files;  // only for its folder
  auto const folder = files.folder().string();
  (void)test::output_of("cd " + folder + make_certificate);
  auto const port = test::free_port();
  redis_server const redis({"--tls-port", std::to_string(port), "--tls-cert-file",
                            folder + "/cert.pem", "--tls-key-file", folder + "/key.pem",
                            "--tls-ca-cert-file", folder + "/cert.pem", "--tls-auth-clients",
                            "no"});
  auto options = to(port);
  options.backoff_first = options.backoff_max = 1h;
  options.tls = *engine::tls_context::for_client({true, folder + "/cert.pem"});
  {
    connection to_it(on(), options);
    EXPECT_EQ(text(to_it, command{"SET", "a", std::string(1 << 20, 'x')}), "OK");
    EXPECT_EQ(text(to_it, command{"STRLEN", "a"}), "");
    EXPECT_EQ(text(to_it, command{"GET", "a"}).size(), 1U << 20);
  }
  options.tls = *engine::tls_context::for_client({true, std::nullopt});
  connection to_stranger(on(), options);
  auto const refused = ask(to_stranger, {"PING"});
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().text,
            "127.0.0.1:" + std::to_string(port) + ": the TLS handshake failed");
}

// ---- servers that are not Redis ----

/// Answers whatever comes with the octets of a script, one piece for each read.
class scripted_server {
 public:
  explicit scripted_server(std::vector<std::string> pieces)
      : socket_(*engine::listen_on(*engine::socket_address::parse("127.0.0.1:0"), false)),
        thread_([this, pieces = std::move(pieces)] { serve(pieces); }) {}
  ~scripted_server() { thread_.join(); }
  scripted_server(scripted_server const&) = delete;
  auto operator=(scripted_server const&) -> scripted_server& = delete;
  [[nodiscard]] auto port() const -> std::uint16_t {
    return engine::local_address(socket_)->port();
  }

 private:
  void serve(std::vector<std::string> const& pieces) const {
    wait_for(socket_.get());
    engine::descriptor const peer(::accept(socket_.get(), nullptr, nullptr));
    std::array<char, 65536> into{};
    for (auto const& piece : pieces) {
      if (::recv(peer.get(), into.data(), into.size(), 0) <= 0) {
        return;
      }
      // One octet at a time, each in a segment of its own.
      for (auto const octet : piece) {
        if (::send(peer.get(), &octet, 1, MSG_NOSIGNAL) != 1) {
          return;
        }
      }
    }
    (void)!::recv(peer.get(), into.data(), into.size(), 0);
  }
  static void wait_for(int fd) {
    fd_set set;
    FD_ZERO(&set);
    FD_SET(fd, &set);
    timeval time{30, 0};
    ::select(fd + 1, &set, nullptr, nullptr, &time);
  }

  engine::descriptor socket_;
  std::thread thread_;
};

constexpr auto greeted = "%1\r\n+proto\r\n:3\r\n+PONG\r\n";

TEST_F(store_redis_connection, takes_answers_octet_by_octet_and_leaves_pushes_out) {
  scripted_server const server(
      {greeted,
       ">2\r\n+invalidate\r\n_\r\n|1\r\n+a\r\n:1\r\n*2\r\n$3\r\na\r\n\r\n:7\r\n+second\r\n"});
  connection to_it(on(), to(server.port()));
  std::optional<answer> first;
  to_it.send({"A"}, [&](answer a) { first = std::move(a); });
  EXPECT_EQ(text(to_it, command{"B"}), "second");
  ASSERT_TRUE(first.has_value() && first->has_value());
  EXPECT_EQ((*first)->items.at(0).text, "a\r\n");
  EXPECT_EQ((*first)->items.at(1).integer, 7);
}

TEST_F(store_redis_connection, leaves_a_server_that_speaks_nonsense) {
  struct row {
    std::vector<std::string> pieces;
    char const* error_text;
  };
  row const rows[] = {
      {{"HTTP/1.1 400 Bad Request\r\n\r\n"},
       "the server does not speak as it should: a type that the protocol does not have"},
      {{greeted, "$-5\r\n"},
       "the server does not speak as it should: no number, or one that does not fit"},
      {{greeted, ":1\r\n:2\r\n"}, "the server answers what was not asked"},
      {{"-ERR max number of clients reached\r\n"}, "ERR max number of clients reached"},
  };
  for (auto const& [pieces, error_text] : rows) {
    scripted_server const server(pieces);
    auto options = to(server.port());
    options.backoff_first = options.backoff_max = 1h;
    connection to_it(on(), options);
    to_it.send({"A"}, [](answer const&) {});
    ASSERT_TRUE(until([&] { return !to_it.is_up(); })) << error_text;
    EXPECT_EQ(to_it.error_text(), "127.0.0.1:" + std::to_string(server.port()) + ": " + error_text);
  }
}

TEST(store_redis_backoff, doubles_up_to_its_bound) {
  connection_options const options{.server = {}, .backoff_first = 50ms, .backoff_max = 300ms};
  EXPECT_EQ(backoff_limit(options, 1), 50ms);
  EXPECT_EQ(backoff_limit(options, 2), 100ms);
  EXPECT_EQ(backoff_limit(options, 3), 200ms);
  EXPECT_EQ(backoff_limit(options, 4), 300ms);
  EXPECT_EQ(backoff_limit(options, 4'000'000'000U), 300ms);
}

}  // namespace
}  // namespace tidegate::store_redis
