// SPDX-License-Identifier: Apache-2.0
#include <tidegate/admin/server.hpp>

#include "control_fixture.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tidegate::gateway {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

/// A client of the admin address that never waits.
class admin_client {
 public:
  explicit admin_client(engine::socket_address const& to)
      : socket_(::socket(to.family(), SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    EXPECT_EQ(::connect(socket_.get(), static_cast<sockaddr const*>(to.data()),
                        static_cast<socklen_t>(to.size())),
              0);
  }
  void send(std::string_view bytes) {
    EXPECT_EQ(::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  /// True when the server has sent all that it will.
  [[nodiscard]] auto is_at_end() -> bool {
    std::array<char, 4096> bytes{};
    for (;;) {
      auto const size = ::recv(socket_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
      if (size <= 0) {
        return size == 0;
      }
      received.append(bytes.data(), static_cast<std::size_t>(size));
    }
  }

  std::string received;

 private:
  engine::descriptor socket_;
};

class admin_connections : public testing::Test {
 protected:
  void start(std::vector<bearer_token> tokens = {}) {
    auto const any_port = engine::socket_address::parse("127.0.0.1:0");
    ASSERT_TRUE(any_port);
    auto socket = engine::listen_on(*any_port, false);
    ASSERT_TRUE(socket);
    address_ = engine::local_address(*socket).value();
    auto seen = with_.make_control();
    ASSERT_TRUE(seen);
    service_.emplace(*std::move(seen), *std::move(socket),
                     admin_config{"127.0.0.1:0", std::move(tokens)}, reloader_, about_);
  }
  [[nodiscard]] auto connect() const -> admin_client { return admin_client(*address_); }
  /// The whole response to these bytes.
  auto ask(std::string_view bytes) -> std::string {
    auto client = connect();
    client.send(bytes);
    turn_until(*with_.loop, [&] { return client.is_at_end(); });
    return client.received;
  }
  auto loop() -> engine::loop& { return *with_.loop; }

 private:
  control_fixture with_{"routes: [{match: {path: /**}, service: echo}]\n"};
  config_reloader reloader_{[](reload_mode) { return reload_outcome{}; }};
  program_facts about_;
  std::optional<engine::socket_address> address_;
  std::optional<admin_server> service_;
};

TEST_F(admin_connections, answer_one_request_each) {
  start();
  EXPECT_EQ(ask("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"),
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: 3\r\n"
            "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\n"
            "\r\nok\n");
  EXPECT_THAT(ask("HEAD /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"),
              AllOf(HasSubstr("Content-Length: 3\r\n"), EndsWith("\r\n\r\n")));
}

TEST_F(admin_connections, refuse_requests_that_they_do_not_take) {
  start();
  struct row {
    std::string_view name;
    std::string bytes;
    std::string_view status;
    std::string_view part;
  };
  auto const post = [](std::string_view lines, std::string_view content) {
    return "POST /api/v1/explain HTTP/1.1\r\nHost: localhost\r\n" + std::string(lines) + "\r\n" +
           std::string(content);
  };
  for (auto const& [name, bytes, status, part] : std::vector<row>{
           {"not HTTP", "hello\r\n\r\n", "400", "\"detail\":"},
           {"a name of another site", "GET /healthz HTTP/1.1\r\nHost: evil.example\r\n\r\n", "421",
            "localhost or the IP address"},
           {"localhost in capitals", "GET /healthz HTTP/1.1\r\nHost: LOCALHOST:1\r\n\r\n", "200",
            "ok\n"},
           {"an address", "GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:1\r\n\r\n", "200", "ok\n"},
           {"an IPv6 address", "GET /healthz HTTP/1.1\r\nHost: [::1]:1\r\n\r\n", "200", "ok\n"},
           {"no path", "GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n", "404", "nothing at"},
           {"no method", "PUT /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n", "405",
            "Allow: GET, HEAD\r\n"},
           {"as much content as may be", post("Content-Length: 16384\r\n", std::string(16384, 'x')),
            "200", "["},
           {"more content", post("Content-Length: 16385\r\n", ""), "413", "too large"},
           {"more content in a chunk",
            post("Transfer-Encoding: chunked\r\n", "4001\r\n" + std::string(0x4001, 'x')), "413",
            "too large"},
           {"a broken chunk", post("Transfer-Encoding: chunked\r\n", "x\r\n"), "400",
            "\"detail\":"},
           {"chunks", post("Transfer-Encoding: chunked\r\n", "1\r\na\r\n0\r\n\r\n"), "200", "["},
           {"a page of another origin", post("Origin: http://evil.example\r\n", ""), "403",
            "other origins"},
       }) {
    SCOPED_TRACE(name);
    EXPECT_THAT(ask(bytes),
                AllOf(StartsWith("HTTP/1.1 " + std::string(status) + " "), HasSubstr(part)));
  }
}

TEST_F(admin_connections, want_a_token_where_there_are_some) {
  start({{"ops", sha256::of("secret"), "", false}, {"look", sha256::of("reader"), "", true}});
  struct row {
    std::string_view request_line;
    std::string_view token;
    int status;
  };
  for (auto const& [request_line, token, status] : {
           row{"GET /healthz", "", 200},
           row{"POST /healthz", "", 405},
           row{"GET /readyz", "", 200},
           row{"GET /metrics", "", 401},
           row{"GET /metrics", "wrong", 401},
           row{"GET /metrics", "reader", 200},
           row{"GET /nothing", "", 401},
           row{"GET /nothing", "reader", 404},
           row{"POST /nothing", "reader", 403},
           row{"POST /api/v1/explain", "reader", 200},
           row{"DELETE /api/v1/explain", "reader", 405},
           row{"POST /api/v1/partitions/lookup", "reader", 400},
           row{"POST /api/v1/partitions/reset", "reader", 403},
           row{"POST /api/v1/partitions/reset", "secret", 400},
           row{"POST /api/v1/config/reload", "reader", 403},
           row{"POST /api/v1/config/reload", "secret", 200},
           row{"POST /api/v1/try", "reader", 403},
       }) {
    SCOPED_TRACE(std::string(request_line) + " " + std::string(token));
    auto const authorization =
        token.empty() ? "" : "Authorization: Bearer " + std::string(token) + "\r\n";
    EXPECT_THAT(ask(std::string(request_line) + " HTTP/1.1\r\nHost: gw.example\r\n" +
                    authorization + "\r\n"),
                StartsWith("HTTP/1.1 " + std::to_string(status) + " "));
  }
}

TEST_F(admin_connections, show_a_page_for_the_token_and_nothing_of_the_gateway) {
  start({{"ops", sha256::of("secret"), "", false}});
  EXPECT_THAT(ask("GET / HTTP/1.1\r\nHost: gw.example\r\n\r\n"),
              AllOf(StartsWith("HTTP/1.1 200 "), HasSubstr("Content-Security-Policy: "),
                    Not(HasSubstr("tidegate_requests"))));
  EXPECT_THAT(ask("GET / HTTP/1.1\r\nHost: gw.example\r\nAuthorization: Bearer x\r\n\r\n"),
              StartsWith("HTTP/1.1 401 "));
}

TEST_F(admin_connections, stream_events_until_the_client_leaves) {
  start();
  EXPECT_THAT(ask("HEAD /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n"),
              AllOf(HasSubstr("Content-Type: text/event-stream\r\n"),
                    Not(HasSubstr("Content-Length")), EndsWith("\r\n\r\n")));
  auto client = connect();
  client.send("GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n");
  turn_until(loop(), [&] { return client.is_at_end() || client.received.ends_with("}}\n\n"); });
  EXPECT_THAT(client.received,
              AllOf(StartsWith("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
                               "Cache-Control: no-store\r\n"),
                    HasSubstr("\r\n\r\nevent: metrics\ndata: {\"at\":")));
}

TEST_F(admin_connections, read_a_request_in_pieces_and_ask_for_its_content) {
  start();
  auto client = connect();
  client.send("POST /api/v1/explain HTTP/1.1\r\nHost: local");
  loop().turn(std::chrono::milliseconds(20));
  client.send("host\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
  turn_until(loop(), [&] { return client.is_at_end() || !client.received.empty(); });
  EXPECT_EQ(client.received, "HTTP/1.1 100 Continue\r\n\r\n");
  client.send("x");
  loop().turn(std::chrono::milliseconds(20));
  client.send("y");
  turn_until(loop(), [&] { return client.is_at_end(); });
  EXPECT_THAT(client.received, HasSubstr("\r\n\r\nHTTP/1.1 200 OK\r\n"));
}

TEST_F(admin_connections, make_room_by_closing_the_oldest_that_sends_nothing) {
  start();
  std::vector<std::unique_ptr<admin_client>> silent;
  for (int i = 0; i < 256; ++i) {
    silent.push_back(std::make_unique<admin_client>(connect()));
    loop().turn(std::chrono::milliseconds(0));
  }
  EXPECT_THAT(ask("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"), EndsWith("ok\n"));
  EXPECT_TRUE(silent.front()->is_at_end());
  EXPECT_FALSE(silent.back()->is_at_end());
}

}  // namespace
}  // namespace tidegate::gateway
