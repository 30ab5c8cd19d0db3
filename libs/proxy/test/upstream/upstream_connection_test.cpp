// SPDX-License-Identifier: Apache-2.0
#include "upstream/upstream_connection.hpp"

#include "serving_worker.hpp"
#include "upstream/upstream_pool.hpp"

#include <tidegate/config/config.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace tidegate::gateway {
namespace {

using namespace std::chrono_literals;

/// A server on a free port, as a test has it speak.
class scripted_server {
 public:
  scripted_server() : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    if (::bind(listener_, any, size) != 0 || ::listen(listener_, 16) != 0 ||
        ::getsockname(listener_, any, &size) != 0) {
      throw std::runtime_error("no port is free");
    }
    port_ = ntohs(address.sin_port);
  }
  scripted_server(scripted_server const&) = delete;
  auto operator=(scripted_server const&) -> scripted_server& = delete;
  ~scripted_server() {
    hang_up();
    stop();
  }
  [[nodiscard]] auto url() const -> std::string {
    return "http://127.0.0.1:" + std::to_string(port_);
  }
  void accept() { peer_ = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC); }
  /// Reads until `end` has come.
  [[nodiscard]] auto read_until(std::string_view end) const -> std::string {
    std::string out;
    std::array<char, 4096> bytes{};
    while (!out.ends_with(end)) {
      auto const size = ::read(peer_, bytes.data(), bytes.size());
      if (size <= 0) {
        break;
      }
      out.append(bytes.data(), static_cast<std::size_t>(size));
    }
    return out;
  }
  void write(std::string_view bytes) const {
    EXPECT_EQ(::write(peer_, bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  }
  void hang_up() {
    if (peer_ >= 0) {
      ::close(std::exchange(peer_, -1));
    }
  }
  void stop() {
    if (listener_ >= 0) {
      ::close(std::exchange(listener_, -1));
    }
  }

 private:
  int listener_;
  int peer_ = -1;
  std::uint16_t port_ = 0;
};

/// Notes what it is told.
class noting_user final : public upstream_user {
 public:
  void upstream_connected() override { is_connected = true; }
  void upstream_moved(upstream_stream& /*to*/) override { notes += "moved; "; }
  void upstream_interim(wire::response_head const& head) override {
    notes += "interim " + std::to_string(head.status()) + "; ";
  }
  void upstream_head(wire::response_head const& head) override {
    notes += "head " + std::to_string(head.status()) + "; ";
  }
  void upstream_body(std::string_view bytes, std::uint64_t content_octets) override {
    body.append(bytes);
    octets += content_octets;
  }
  void upstream_done(std::string_view with_trailers) override {
    notes += "done";
    trailers = with_trailers;
    is_over = true;
  }
  void upstream_failed(upstream_failure why, std::string unsent) override {
    failure = why;
    unsent_octets = unsent.size();
    notes += "failed";
    is_over = true;
  }
  void upstream_resumed() override {}
  void flush_client() override {}
  [[nodiscard]] auto wants_framing() const -> bool override { return framed; }
  [[nodiscard]] auto request_done() const -> bool override { return sent_all; }
  [[nodiscard]] auto client_is_full() const -> bool override { return is_full; }

  std::string notes;
  std::string body;
  std::string trailers;
  std::uint64_t octets = 0;
  std::optional<upstream_failure> failure;
  std::size_t unsent_octets = 0;
  bool is_connected = false;
  bool is_over = false;
  bool framed = false;
  bool sent_all = true;
  bool is_full = false;
};

class proxy_upstream_connection : public testing::Test {
 protected:
  proxy_upstream_connection() {
    auto read = parse_config("listen: 127.0.0.1:0\nupstreams: {api: {servers: ['" + server_.url() +
                                 "']}}\nroutes: [{match: {path: /**}, upstream: api}]\n",
                             "t.yaml");
    EXPECT_TRUE(read) << (read ? "" : read.error().front().message);
    policy_ids ids;
    upstream_states loads;
    shared_.connections.clients_max = 100;
    shared_.connections.descriptors = 20'000;
    shared_.workers.push_back(&worker_);
    worker_.use(*active_config::make(*std::move(read), ids, loads));
  }
  [[nodiscard]] auto pool() -> upstream_pool& { return *worker_.current->routes.front().pool; }
  /// Sends a request for `user`, which the server gets.
  auto ask(noting_user& user, bool accepts = true) -> upstream_stream& {
    auto const taken = pool().take({});
    EXPECT_TRUE(taken);
    (*taken)->start(user, wire::method::get, request);
    if (accepts) {
      turn_until([&] { return user.is_connected; });
      server_.accept();
    }
    loop_->turn(0ms);
    EXPECT_EQ(server_.read_until("\r\n\r\n"), request);
    return **taken;
  }
  void turn_until(std::function<bool()> const& is_so) {
    for (int i = 0; i < 500 && !is_so(); ++i) {
      loop_->turn(20ms);
    }
    ASSERT_TRUE(is_so());
  }
  /// What becomes of a request that the server answers so.
  [[nodiscard]] auto answered(std::string_view bytes, bool hangs_up = false)
      -> std::unique_ptr<noting_user> {
    auto user = std::make_unique<noting_user>();
    ask(*user);
    server_.write(bytes);
    if (hangs_up) {
      server_.hang_up();
    }
    turn_until([&] { return user->is_over; });
    return user;
  }

  static constexpr std::string_view request = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
  scripted_server server_;
  store::quota_table table_{{.partitions_max = 10}};
  access_log log_;
  shared_state shared_{table_, log_, std::make_shared<event_log>()};
  std::unique_ptr<engine::loop> loop_ = *engine::loop::make();
  serving_worker worker_{*loop_, shared_, std::make_shared<worker_metrics>(), log_.add_source(), 1};
};

TEST_F(proxy_upstream_connection, hands_on_a_response) {
  struct row {
    std::string_view name;
    std::string_view bytes;
    bool hangs_up;
    std::string_view notes;
    std::string_view body;
  };
  for (auto const& each : {
           row{"with a length", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", false,
               "head 200; done", "abc"},
           row{"without content", "HTTP/1.1 204 No Content\r\n\r\n", false, "head 204; done", ""},
           row{"in chunks",
               "HTTP/1.1 200 OK\r\nTransfer-Encoding: "
               "chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n",
               false, "head 200; done", "abc"},
           row{"until the end of the connection", "HTTP/1.1 200 OK\r\n\r\nabc", true,
               "head 200; done", "abc"},
           row{"behind interim ones",
               "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
               false, "interim 103; head 200; done", ""},
       }) {
    auto const user = answered(each.bytes, each.hangs_up);
    EXPECT_EQ(user->notes, each.notes) << each.name;
    EXPECT_EQ(user->body, each.body) << each.name;
    EXPECT_EQ(user->octets, each.body.size()) << each.name;
    server_.hang_up();
    while (pool().close_idle()) {
    }
    loop_->turn(0ms);
  }
}

TEST_F(proxy_upstream_connection, keeps_the_framing_for_a_user_that_wants_it) {
  noting_user user;
  user.framed = true;
  ask(user);
  server_.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n");
  turn_until([&] { return user.is_over; });
  EXPECT_EQ(user.body, "2\r\nab\r\n0\r\n\r\n");
  EXPECT_EQ(user.octets, 2U);
}

TEST_F(proxy_upstream_connection, puts_a_head_together_that_comes_in_parts) {
  noting_user user;
  ask(user);
  for (std::string_view const part :
       {"HTTP/1.1 20", "0 OK\r\nContent-Le", "ngth: 2\r\n", "\r\na"}) {
    server_.write(part);
    loop_->turn(20ms);
    EXPECT_FALSE(user.is_over);
  }
  server_.write("b");
  turn_until([&] { return user.is_over; });
  EXPECT_EQ(user.notes, "head 200; done");
  EXPECT_EQ(user.body, "ab");
}

TEST_F(proxy_upstream_connection, is_used_again) {
  EXPECT_FALSE(pool().close_idle());
  (void)answered("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
  EXPECT_EQ(pool().in_flight(), 0);
  noting_user second;
  auto& connection = ask(second, false);
  EXPECT_TRUE(connection.is_connected());
  EXPECT_EQ(pool().in_flight(), 1);
  server_.write("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
  turn_until([&] { return second.is_over; });
  EXPECT_EQ(shared_.connections.upstreams.load(), 1);
  EXPECT_TRUE(pool().close_idle());
  EXPECT_FALSE(pool().close_idle());
  EXPECT_EQ(shared_.connections.upstreams.load(), 0);
}

TEST_F(proxy_upstream_connection, is_not_used_again_when_something_speaks_against_it) {
  struct row {
    std::string_view name;
    std::string_view bytes;
  };
  for (auto const& each : {
           row{"the server closes",
               "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n"
               "\r\n"},
           row{"it speaks HTTP/1.0", "HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n"},
           row{"it says more than it should", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\nx"},
       }) {
    EXPECT_EQ(answered(each.bytes)->notes, "head 200; done") << each.name;
    EXPECT_FALSE(pool().close_idle()) << each.name;
    server_.hang_up();
    loop_->turn(0ms);
  }
  noting_user early;
  early.sent_all = false;
  ask(early);
  server_.write("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
  turn_until([&] { return early.is_over; });
  EXPECT_FALSE(pool().close_idle()) << "the request was not sent as a whole";
}

TEST_F(proxy_upstream_connection, fails_where_there_is_no_whole_answer) {
  struct row {
    std::string_view name;
    std::string_view bytes;
    bool hangs_up;
    upstream_failure why;
  };
  for (auto const& each : {
           row{"no answer", "", true, upstream_failure::closed},
           row{"a part of a head", "HTTP/1.1 200", true, upstream_failure::closed},
           row{"a part of the content", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab", true,
               upstream_failure::closed},
           row{"not HTTP", "SSH-2.0-OpenSSH\r\n\r\n", false, upstream_failure::malformed},
           row{"a switch of protocols", "HTTP/1.1 101 Switching Protocols\r\n\r\n", false,
               upstream_failure::malformed},
           row{"chunks that are none",
               "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", false,
               upstream_failure::malformed},
       }) {
    auto const user = answered(each.bytes, each.hangs_up);
    EXPECT_EQ(user->failure, each.why) << each.name;
    EXPECT_EQ(pool().in_flight(), 0) << each.name;
    server_.hang_up();
    loop_->turn(0ms);
  }
  EXPECT_EQ(worker_.metrics->of_server("api", server_.url())->failures.value(), 6U);
}

TEST_F(proxy_upstream_connection, tells_a_used_connection_that_ended_from_a_new_one) {
  (void)answered("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
  noting_user second;
  ask(second, false);
  server_.hang_up();
  turn_until([&] { return second.is_over; });
  EXPECT_EQ(second.failure, upstream_failure::closed_unanswered) << "it may be sent again";
}

TEST_F(proxy_upstream_connection, gives_back_a_request_that_was_not_sent) {
  server_.stop();
  noting_user user;
  auto const taken = pool().take({});
  if (taken) {
    (*taken)->start(user, wire::method::get, request);
    turn_until([&] { return user.is_over; });
    EXPECT_EQ(user.failure, upstream_failure::connect_refused);
    EXPECT_EQ(user.unsent_octets, request.size());
  } else {
    EXPECT_EQ(taken.error(), upstream_failure::connect_refused);
  }
  EXPECT_EQ(pool().in_flight(), 0);
}

TEST_F(proxy_upstream_connection, stops_reading_while_the_client_is_full) {
  noting_user user;
  auto& connection = ask(user);
  user.is_full = true;
  server_.write("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nab");
  turn_until([&] { return user.body == "ab"; });
  server_.write("cd");
  for (int i = 0; i < 3; ++i) {
    loop_->turn(5ms);
  }
  EXPECT_EQ(user.body, "ab");
  user.is_full = false;
  connection.resume();
  turn_until([&] { return user.is_over; });
  EXPECT_EQ(user.body, "abcd");
}

TEST_F(proxy_upstream_connection, says_nothing_to_a_user_that_has_abandoned_it) {
  noting_user user;
  ask(user).abandon();
  EXPECT_EQ(pool().in_flight(), 0);
  loop_->turn(0ms);
  EXPECT_EQ(user.notes, "");
  EXPECT_EQ(shared_.connections.upstreams.load(), 0);
}

TEST_F(proxy_upstream_connection, needs_a_descriptor) {
  shared_.connections.descriptors = 0;
  noting_user user;
  ask(user);  // one is always allowed
  auto const second = pool().take({});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error(), upstream_failure::no_descriptor);
}

}  // namespace
}  // namespace tidegate::gateway
