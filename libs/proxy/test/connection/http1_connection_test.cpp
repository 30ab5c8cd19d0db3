// SPDX-License-Identifier: Apache-2.0
#include "connection/http1_connection.hpp"

#include "connection/proxy_header_reader.hpp"
#include "serving_worker.hpp"

#include <tidegate/config/config.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace tidegate::gateway {
namespace {

using namespace std::chrono_literals;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

/// A client's end of a connection.
class client_end {
 public:
  client_end() {
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends_.data()) != 0) {
      throw std::runtime_error("socketpair failed");
    }
  }
  client_end(client_end const&) = delete;
  auto operator=(client_end const&) -> client_end& = delete;
  ~client_end() { hang_up(); }
  /// The other end, once.
  [[nodiscard]] auto other() const -> engine::descriptor { return engine::descriptor(ends_[1]); }
  void write(std::string_view bytes) const {
    EXPECT_EQ(::write(ends_[0], bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  }
  /// What has come so far.
  [[nodiscard]] auto read() -> std::string {
    std::string out;
    std::array<char, 4096> bytes{};
    ssize_t size = 0;
    while ((size = ::read(ends_[0], bytes.data(), bytes.size())) > 0) {
      out.append(bytes.data(), static_cast<std::size_t>(size));
    }
    is_closed_ = size == 0 || errno == ECONNRESET;
    return out;
  }
  /// Whether the last `read` came to the end.
  [[nodiscard]] auto is_closed() const -> bool { return is_closed_; }
  void hang_up() {
    if (ends_[0] >= 0) {
      ::close(std::exchange(ends_[0], -1));
    }
  }

 private:
  std::array<int, 2> ends_{-1, -1};
  bool is_closed_ = false;
};

[[nodiscard]] auto count(std::string_view text, std::string_view piece) -> std::size_t {
  std::size_t found = 0;
  for (auto at = text.find(piece); at != std::string_view::npos; at = text.find(piece, at + 1)) {
    ++found;
  }
  return found;
}

constexpr std::string_view get = "GET /a HTTP/1.1\r\nHost: h\r\n\r\n";

class proxy_http1_connection : public testing::Test {
 protected:
  proxy_http1_connection() {
    auto read = parse_config(
        "listen: 127.0.0.1:0\nhttp: {max-body: 100, max-header-size: 1KiB}\n"
        "routes: [{name: all, match: {path: /**}, service: echo}]\n",
        "t.yaml");
    EXPECT_TRUE(read) << (read ? "" : read.error().front().message);
    policy_ids ids;
    upstream_states loads;
    worker_.use(*active_config::make(*std::move(read), ids, loads));
    shared_.connections.clients_max = 100;
    shared_.workers.push_back(&worker_);
  }
  /// A connection of `client`, which has sent nothing yet.
  auto connect(client_end const& client, bool http2 = true) -> http1_connection& {
    auto* const made = new http1_connection(  // NOLINT: it ends itself
        worker_, *worker_.add_client(), engine::transport(client.other()),
        *http::parse_ip_address("192.0.2.1"), http2);
    EXPECT_TRUE(made->start(false));
    return *made;
  }
  void turn() {
    for (int i = 0; i < 3; ++i) {
      loop_->turn(0ms);
    }
  }
  /// What a new client gets for these bytes.
  [[nodiscard]] auto answer(client_end& client, std::string_view bytes) -> std::string {
    client.write(bytes);
    turn();
    return client.read();
  }

  store::quota_table table_{{.partitions_max = 10}};
  access_log log_;
  shared_state shared_{table_, log_, std::make_shared<event_log>()};
  std::unique_ptr<engine::loop> loop_ = *engine::loop::make();
  serving_worker worker_{*loop_, shared_, std::make_shared<worker_metrics>(), log_.add_source(), 1};
};

TEST_F(proxy_http1_connection, answers_one_request_after_the_other) {
  client_end client;
  connect(client);
  for (int i = 0; i < 3; ++i) {
    auto const got = answer(client, get);
    EXPECT_THAT(got, StartsWith("HTTP/1.1 200 OK\r\n")) << i;
    EXPECT_THAT(got, Not(HasSubstr("Connection:"))) << i;
    EXPECT_FALSE(client.is_closed()) << i;
  }
  EXPECT_EQ(worker_.clients.size(), 1U);
}

TEST_F(proxy_http1_connection, answers_requests_that_came_together) {
  client_end client;
  connect(client);
  auto const got = answer(client, std::string(get) + std::string(get) + std::string(get));
  EXPECT_EQ(count(got, "HTTP/1.1 200 OK\r\n"), 3U);
}

TEST_F(proxy_http1_connection, waits_for_the_rest_of_a_head) {
  client_end client;
  auto const& connection = connect(client);
  EXPECT_THAT(answer(client, "GET /a HT"), IsEmpty());
  EXPECT_EQ(connection.waiting_octets(), 9U);
  EXPECT_THAT(answer(client, "TP/1.1\r\nHost: h\r\n"), IsEmpty());
  EXPECT_THAT(answer(client, "\r\n"), StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_EQ(connection.waiting_octets(), 0U);
}

TEST_F(proxy_http1_connection, keeps_a_connection_open_as_its_client_says) {
  struct row {
    std::string_view name;
    std::string_view head;
    std::string_view expected;  ///< in the response
    bool closes;
  };
  for (auto const& each : {
           row{"HTTP/1.1", get, "HTTP/1.1 200 OK\r\n", false},
           row{"HTTP/1.1 that closes", "GET /a HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n",
               "Connection: close\r\n", true},
           row{"HTTP/1.0", "GET /a HTTP/1.0\r\nHost: h\r\n\r\n", "Connection: close\r\n", true},
           row{"HTTP/1.0 that stays",
               "GET /a HTTP/1.0\r\nHost: h\r\nConnection: keep-alive\r\n\r\n",
               "Connection: keep-alive\r\n", false},
       }) {
    client_end client;
    connect(client);
    EXPECT_THAT(answer(client, each.head), HasSubstr(each.expected)) << each.name;
    EXPECT_EQ(client.is_closed(), each.closes) << each.name;
  }
}

TEST_F(proxy_http1_connection, sends_no_content_to_a_head) {
  client_end client;
  connect(client);
  auto const got = answer(client, "HEAD /a HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_THAT(got, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(got, EndsWith("\r\n\r\n"));
  EXPECT_THAT(answer(client, get), StartsWith("HTTP/1.1 200 OK\r\n")) << "and the next has its own";
}

TEST_F(proxy_http1_connection, refuses_what_it_cannot_read) {
  struct row {
    std::string_view name;
    std::string bytes;
    std::string_view status;
  };
  for (auto const& each : {
           row{"not a request", "hello\r\n\r\n", "HTTP/1.1 400 "},
           row{"no host", "GET / HTTP/1.1\r\n\r\n", "HTTP/1.1 400 "},
           row{"a head that is too large",
               "GET / HTTP/1.1\r\nHost: h\r\nA: " + std::string(2000, 'a') + "\r\n\r\n",
               "HTTP/1.1 431 "},
           row{"two lengths",
               "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
               "HTTP/1.1 400 "},
       }) {
    client_end client;
    connect(client);
    auto const got = answer(client, each.bytes);
    EXPECT_THAT(got, StartsWith(each.status)) << each.name;
    EXPECT_THAT(got, HasSubstr("Connection: close\r\n")) << each.name;
    EXPECT_TRUE(client.is_closed()) << each.name;
  }
  EXPECT_EQ(worker_.metrics->requests_malformed.value(), 4U);
}

TEST_F(proxy_http1_connection, takes_http_2_where_it_is_allowed) {
  constexpr std::string_view preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
  client_end allowed;
  connect(allowed);
  auto const got = answer(allowed, preface);
  ASSERT_GE(got.size(), 9U);
  EXPECT_EQ(got[3], 4) << "a frame of SETTINGS";
  EXPECT_EQ(worker_.clients.size(), 1U) << "it has the place of the first";
  client_end refused;
  connect(refused, false);
  EXPECT_THAT(answer(refused, preface), StartsWith("HTTP/1.1 505 "));
}

TEST_F(proxy_http1_connection, ends_with_its_client) {
  client_end client;
  connect(client);
  EXPECT_EQ(worker_.clients.size(), 1U);
  client.hang_up();
  turn();
  EXPECT_EQ(worker_.clients.size(), 0U);
  EXPECT_EQ(worker_.metrics->connections_open.value(), 0U);
}

TEST_F(proxy_http1_connection, closes_when_it_is_idle_and_the_gateway_stops) {
  client_end idle;
  auto& connection = connect(idle);
  EXPECT_THAT(answer(idle, get), StartsWith("HTTP/1.1 200 OK\r\n"));
  connection.drain();
  turn();
  EXPECT_THAT(idle.read(), IsEmpty());
  EXPECT_TRUE(idle.is_closed());
}

TEST_F(proxy_http1_connection, answers_a_last_request_while_the_gateway_stops) {
  client_end client;
  auto& connection = connect(client);
  EXPECT_THAT(answer(client, "GET /a HT"), IsEmpty());
  shared_.drain.draining = true;
  connection.drain();
  EXPECT_THAT(answer(client, "TP/1.1\r\nHost: h\r\n\r\n"), HasSubstr("Connection: close\r\n"));
  EXPECT_TRUE(client.is_closed());
}

TEST_F(proxy_http1_connection, keeps_what_a_client_does_not_read) {
  client_end client;
  auto const& connection = connect(client);
  std::string many;
  for (int i = 0; i < 2000; ++i) {
    many += get;
  }
  for (int i = 0; i < 20 && connection.waiting_octets() == 0; ++i) {
    std::string_view rest = many;
    while (!rest.empty()) {
      auto const part = rest.substr(0, 250 * get.size());
      client.write(part);
      rest.remove_prefix(part.size());
      turn();
      if (connection.waiting_octets() > 0) {
        break;
      }
    }
  }
  EXPECT_GT(connection.waiting_octets(), 0U);
  EXPECT_GT(shared_.memory.buffered.load(), 0);
  for (int i = 0; i < 500 && connection.waiting_octets() > 0; ++i) {
    (void)client.read();
    turn();
  }
  EXPECT_EQ(connection.waiting_octets(), 0U);
  EXPECT_EQ(shared_.memory.buffered.load(), 0);
}

TEST_F(proxy_http1_connection, is_counted_no_more_when_it_is_dropped) {
  client_end client;
  auto& connection = connect(client);
  EXPECT_THAT(answer(client, "GET /a HT"), IsEmpty());
  EXPECT_EQ(shared_.memory.buffered.load(), 9);
  connection.drop();
  turn();
  EXPECT_EQ(shared_.memory.buffered.load(), 0);
  EXPECT_EQ(worker_.clients.size(), 0U);
}

TEST_F(proxy_http1_connection, begins_behind_a_header_of_the_proxy_protocol) {
  struct row {
    std::string_view name;
    std::string bytes;
    bool is_taken;
  };
  for (auto const& each : {
           row{"of a client", "PROXY TCP4 198.51.100.7 192.0.2.9 1234 80\r\n", true},
           row{"of the proxy itself", "PROXY UNKNOWN\r\n", true},
           row{"of none", "", false},
           row{"that is malformed", "PROXY TCP4 nowhere\r\n", false},
       }) {
    client_end client;
    auto* const reader = new proxy_header_reader(  // NOLINT: it ends itself
        worker_, *worker_.add_client(), client.other(), *http::parse_ip_address("192.0.2.1"),
        proxy_header_reader::next_options{std::nullopt, true, false});
    ASSERT_TRUE(reader->start());
    auto const got = answer(client, each.bytes + std::string(get));
    EXPECT_EQ(got.starts_with("HTTP/1.1 200 OK\r\n"), each.is_taken) << each.name << ": " << got;
    EXPECT_EQ(client.is_closed(), !each.is_taken) << each.name;
  }
  EXPECT_EQ(worker_.metrics->connections_without_header.value(), 2U);
}

}  // namespace
}  // namespace tidegate::gateway
