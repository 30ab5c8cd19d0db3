// SPDX-License-Identifier: Apache-2.0
//
// What a request and its response look like on the other side of the gateway.
#include "gateway.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <thread>

namespace tidegate::e2e {
namespace {

using testing::HasSubstr;

constexpr std::string_view get_line = "GET /a?b=c HTTP/1.1\r\nHost: a.example\r\n";

/// A gateway with one route to one server.
class gateway_proxy : public testing::Test {
 protected:
  origin api_;
  gateway gateway_{proxy_config(api_.url())};
  connection client_ = gateway_.connect();

  /// Sends a request; returns the server's end of the connection and what came there.
  auto forward(std::string_view request) -> std::pair<connection, message> {
    client_.send(request);
    auto server = api_.accept();
    auto seen = server.read_request();
    return {std::move(server), std::move(seen)};
  }
};

TEST_F(gateway_proxy, forwards_a_get_and_its_answer) {
  auto [server, seen] = forward("GET /a?b=c HTTP/1.1\r\nHost: a.example\r\nX-Mine: 1\r\n\r\n");
  EXPECT_EQ(seen.start_line, "GET /a?b=c HTTP/1.1");
  EXPECT_EQ(seen.field("Host"), "a.example");
  EXPECT_EQ(seen.field("X-Mine"), "1");
  EXPECT_EQ(seen.body, "");
  server.send(response("200 Fine", "hello", "X-Theirs: 2\r\n"));
  auto const answer = client_.read_response();
  EXPECT_EQ(answer.start_line.substr(0, 13), "HTTP/1.1 200 ");
  EXPECT_EQ(answer.field("X-Theirs"), "2");
  EXPECT_EQ(answer.count("Date"), 1U);
  EXPECT_EQ(answer.count("RateLimit"), 0U);
  EXPECT_EQ(answer.body, "hello");
}

TEST_F(gateway_proxy, forwards_a_post_with_a_content_length) {
  auto [server, seen] =
      forward("POST /a HTTP/1.1\r\nHost: a.example\r\nContent-Length: 5\r\n\r\nhello");
  EXPECT_EQ(seen.start_line, "POST /a HTTP/1.1");
  EXPECT_EQ(seen.field("Content-Length"), "5");
  EXPECT_EQ(seen.body, "hello");
  server.send(response("201 Created", ""));
  EXPECT_EQ(client_.read_response().status(), 201);
}

TEST_F(gateway_proxy, forwards_a_body_that_comes_byte_by_byte) {
  client_.send("POST /a HTTP/1.1\r\nHost: a.example\r\nContent-Length: 100005\r\n\r\n");
  auto server = api_.accept();
  (void)server.read_head();
  for (auto const byte : std::string_view("hello")) {
    client_.send({&byte, 1});
    EXPECT_EQ(server.read(1), std::string(1, byte));
  }
  client_.send(std::string(100'000, 'x'));
  EXPECT_EQ(server.read(100'000), std::string(100'000, 'x'));
  server.send(response("200 OK", ""));
  EXPECT_EQ(client_.read_response().status(), 200);
}

TEST_F(gateway_proxy, reads_a_head_that_comes_byte_by_byte) {
  for (auto const byte : std::string(get_line) + "\r\n") {
    client_.send({&byte, 1});
  }
  auto server = api_.accept();
  EXPECT_EQ(server.read_request().start_line, "GET /a?b=c HTTP/1.1");
  for (auto const byte : response("200 OK", "hello")) {
    server.send({&byte, 1});
  }
  EXPECT_EQ(client_.read_response().body, "hello");
}

TEST_F(gateway_proxy, forwards_chunks_and_trailers_to_the_server) {
  auto [server, seen] = forward(
      "POST /a HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\n\r\n"
      "5\r\nhello\r\n6\r\n world\r\n0\r\nX-Sum: 1\r\n\r\n");
  EXPECT_EQ(seen.field("Transfer-Encoding"), "chunked");
  EXPECT_EQ(seen.count("Content-Length"), 0U);
  EXPECT_EQ(seen.body, "hello world");
  EXPECT_EQ(seen.trailers, "X-Sum: 1\r\n");
  server.send(response("200 OK", ""));
  EXPECT_EQ(client_.read_response().status(), 200);
}

TEST_F(gateway_proxy, forwards_chunks_and_trailers_to_the_client) {
  auto [server, seen] = forward(std::string(get_line) + "\r\n");
  server.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n");
  EXPECT_EQ(client_.read_head().field("Transfer-Encoding"), "chunked");
  EXPECT_EQ(client_.read(10), "5\r\nhello\r\n") << "a chunk is not held back";
  server.send("6;x=y\r\n wor");
  server.send("ld\r\n0\r\nX-Sum: 1\r\n\r\n");
  auto const rest = std::string_view("0\r\nX-Sum: 1\r\n\r\n");
  std::string seen_rest;
  while (!seen_rest.ends_with(rest)) {
    seen_rest += client_.read(1);
  }
  EXPECT_THAT(seen_rest, HasSubstr(" world\r\n"));
  // The connection is good for more.
  client_.send(std::string(get_line) + "\r\n");
  EXPECT_EQ(server.read_request().start_line, "GET /a?b=c HTTP/1.1");
  server.send("HTTP/1.1 204 No Content\r\n\r\n");
  EXPECT_EQ(client_.read_response().status(), 204);
}

TEST_F(gateway_proxy, sends_no_body_in_answer_to_head) {
  auto [server, seen] = forward("HEAD /a HTTP/1.1\r\nHost: a.example\r\n\r\n");
  EXPECT_EQ(seen.start_line, "HEAD /a HTTP/1.1");
  server.send("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n");
  EXPECT_EQ(client_.read_response(true).field("Content-Length"), "1000");
  client_.send("HEAD /b HTTP/1.1\r\nHost: a.example\r\n\r\n");
  EXPECT_EQ(server.read_request().start_line, "HEAD /b HTTP/1.1");
  server.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
  EXPECT_EQ(client_.read_response(true).status(), 200);
}

TEST_F(gateway_proxy, keeps_the_connections_after_204_and_304) {
  auto [server, seen] = forward(std::string(get_line) + "\r\n");
  server.send("HTTP/1.1 204 No Content\r\n\r\n");
  auto const empty = client_.read_response();
  EXPECT_EQ(empty.status(), 204);
  EXPECT_EQ(empty.count("Content-Length") + empty.count("Transfer-Encoding"), 0U);
  client_.send(std::string(get_line) + "If-None-Match: \"x\"\r\n\r\n");
  EXPECT_EQ(server.read_request().field("If-None-Match"), "\"x\"");
  server.send("HTTP/1.1 304 Not Modified\r\nETag: \"x\"\r\nContent-Length: 1000\r\n\r\n");
  auto const unchanged = client_.read_response();
  EXPECT_EQ(unchanged.status(), 304);
  EXPECT_EQ(unchanged.field("ETag"), "\"x\"");
  client_.send(std::string(get_line) + "\r\n");
  (void)server.read_request();
  server.send(response("200 OK", "hello"));
  EXPECT_EQ(client_.read_response().body, "hello");
}

TEST_F(gateway_proxy, serves_a_client_of_http_1_0_and_closes) {
  auto [server, seen] = forward("GET /a HTTP/1.0\r\n\r\n");
  EXPECT_EQ(seen.start_line, "GET /a HTTP/1.1");
  EXPECT_EQ(seen.count("Host"), 1U) << "HTTP/1.1 asks for one";
  server.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n");
  auto const answer = client_.read_head();
  EXPECT_EQ(answer.count("Transfer-Encoding"), 0U);
  EXPECT_EQ(answer.field("Connection"), "close");
  EXPECT_EQ(client_.read_to_end(), "hello");
}

TEST_F(gateway_proxy, keeps_a_connection_of_http_1_0_that_asks_for_it) {
  auto [server, seen] = forward("GET /a HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  EXPECT_EQ(seen.field("Connection"), "(none)");
  server.send(response("200 OK", "hello"));
  auto const answer = client_.read_response();
  EXPECT_EQ(answer.field("Connection"), "keep-alive");
  EXPECT_EQ(answer.body, "hello");
  client_.send("GET /b HTTP/1.0\r\n\r\n");
  EXPECT_EQ(server.read_request().start_line, "GET /b HTTP/1.1");
  server.send(response("200 OK", "more"));
  EXPECT_EQ(client_.read_response().body, "more");
  EXPECT_TRUE(client_.is_closed());
}

TEST_F(gateway_proxy, turns_a_body_that_ends_with_the_connection_into_chunks) {
  auto [server, seen] = forward(std::string(get_line) + "\r\n");
  server.send("HTTP/1.0 200 OK\r\n\r\nhello");
  server.close();
  auto const answer = client_.read_response();
  EXPECT_EQ(answer.field("Transfer-Encoding"), "chunked");
  EXPECT_EQ(answer.body, "hello");
  client_.send(std::string(get_line) + "\r\n");
  auto second = api_.accept();
  (void)second.read_request();
  second.send(response("200 OK", "again"));
  EXPECT_EQ(client_.read_response().body, "again");
}

TEST_F(gateway_proxy, answers_pipelined_requests_in_their_order) {
  client_.send(
      "GET /1 HTTP/1.1\r\nHost: a.example\r\n\r\n"
      "POST /2 HTTP/1.1\r\nHost: a.example\r\nContent-Length: 3\r\n\r\nabc"
      "GET /3 HTTP/1.1\r\nHost: a.example\r\n\r\n");
  auto server = api_.accept();
  for (auto const* const body : {"one", "two", "three"}) {
    (void)server.read_request();
    EXPECT_TRUE(server.is_silent()) << "one request at a time";
    server.send(response("200 OK", body));
    EXPECT_EQ(client_.read_response().body, body);
  }
}

TEST_F(gateway_proxy, passes_expect_and_100_continue_on) {
  client_.send(
      "POST /a HTTP/1.1\r\nHost: a.example\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n");
  auto server = api_.accept();
  EXPECT_EQ(server.read_head().field("Expect"), "100-continue");
  EXPECT_TRUE(client_.is_silent()) << "it is the server that says whether to go on";
  server.send("HTTP/1.1 100 Continue\r\n\r\n");
  EXPECT_EQ(client_.read_response().status(), 100);
  client_.send("hello");
  EXPECT_EQ(server.read(5), "hello");
  server.send(response("200 OK", "done"));
  EXPECT_EQ(client_.read_response().body, "done");
}

TEST_F(gateway_proxy, passes_103_early_hints_on) {
  auto [server, seen] = forward(std::string(get_line) + "\r\n");
  server.send("HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n");
  auto const hints = client_.read_response();
  EXPECT_EQ(hints.status(), 103);
  EXPECT_EQ(hints.field("Link"), "</style.css>; rel=preload");
  server.send("HTTP/1.1 103 Early Hints\r\nX: 2\r\n\r\n" + response("200 OK", "hello"));
  EXPECT_EQ(client_.read_response().field("X"), "2");
  EXPECT_EQ(client_.read_response().body, "hello");
}

TEST_F(gateway_proxy, keeps_1xx_from_a_client_of_http_1_0) {
  auto [server, seen] = forward("GET /a HTTP/1.0\r\n\r\n");
  server.send("HTTP/1.1 103 Early Hints\r\nX: 2\r\n\r\n" + response("200 OK", "hello"));
  EXPECT_EQ(client_.read_response().status(), 200);
}

TEST_F(gateway_proxy, takes_hop_by_hop_fields_off_both_ways) {
  auto [server, seen] = forward(
      "GET /a HTTP/1.1\r\nHost: a.example\r\nConnection: keep-alive, X-Hop\r\nX-Hop: 1\r\n"
      "Keep-Alive: timeout=5\r\nProxy-Connection: keep-alive\r\nTE: trailers\r\n"
      "Proxy-Authorization: Basic eA==\r\nX-End: 1\r\n\r\n");
  for (auto const* const name : {"X-Hop", "Keep-Alive", "Proxy-Connection"}) {
    EXPECT_EQ(seen.count(name), 0U) << name;
  }
  EXPECT_EQ(seen.field("X-End"), "1");
  server.send(response("200 OK", "",
                       "Connection: X-Hop\r\nX-Hop: 1\r\nKeep-Alive: timeout=5\r\n"
                       "Proxy-Connection: keep-alive\r\nX-End: 2\r\n"));
  auto const answer = client_.read_response();
  for (auto const* const name : {"X-Hop", "Keep-Alive", "Proxy-Connection", "Connection"}) {
    EXPECT_EQ(answer.count(name), 0U) << name;
  }
  EXPECT_EQ(answer.field("X-End"), "2");
}

TEST_F(gateway_proxy, does_not_pass_an_upgrade_on) {
  auto [server, seen] = forward(
      "GET /a HTTP/1.1\r\nHost: a.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
  EXPECT_EQ(seen.count("Upgrade"), 0U);
  EXPECT_EQ(seen.count("Connection"), 0U);
  server.send(response("200 OK", "plain"));
  EXPECT_EQ(client_.read_response().body, "plain");
}

TEST_F(gateway_proxy, adds_itself_to_via) {
  auto [server, seen] =
      forward("GET /a HTTP/1.1\r\nHost: a.example\r\nVia: 1.0 fred\r\nVia: 1.1 joe\r\n\r\n");
  EXPECT_EQ(seen.field("Via"), "1.0 fred, 1.1 joe, 1.1 tidegate");
  EXPECT_EQ(seen.count("Via"), 1U);
}

TEST_F(gateway_proxy, names_the_client_and_drops_what_an_untrusted_peer_says) {
  auto [server, seen] = forward(
      "GET /a HTTP/1.1\r\nHost: a.example\r\nX-Forwarded-For: 1.2.3.4\r\n"
      "X-Forwarded-Proto: https\r\nX-Forwarded-Host: evil.example\r\nForwarded: "
      "for=1.2.3.4\r\n\r\n");
  EXPECT_EQ(seen.field("X-Forwarded-For"), "127.0.0.1");
  EXPECT_EQ(seen.field("X-Forwarded-Proto"), "http");
  EXPECT_EQ(seen.field("X-Forwarded-Host"), "a.example");
  EXPECT_EQ(seen.field("Forwarded"), "(none)");
}

TEST(gateway_trusted_proxies, are_believed_and_added_to) {
  origin api;
  gateway const with(proxy_config(api.url(), "trusted-proxies: [127.0.0.0/30]\n"));
  auto const request = std::string_view(
      "GET /a HTTP/1.1\r\nHost: a.example\r\nX-Forwarded-For: 1.2.3.4\r\n"
      "X-Forwarded-Proto: https\r\nX-Forwarded-Host: b.example\r\n\r\n");
  auto trusted = with.connect("127.0.0.2");
  trusted.send(request);
  auto first = api.accept();
  auto const believed = first.read_request();
  EXPECT_EQ(believed.field("X-Forwarded-For"), "1.2.3.4, 127.0.0.2");
  EXPECT_EQ(believed.field("X-Forwarded-Proto"), "https");
  EXPECT_EQ(believed.field("X-Forwarded-Host"), "b.example");
  auto stranger = with.connect("127.0.0.9");
  stranger.send(request);
  auto second = api.accept();
  auto const doubted = second.read_request();
  EXPECT_EQ(doubted.field("X-Forwarded-For"), "127.0.0.9");
  EXPECT_EQ(doubted.field("X-Forwarded-Proto"), "http");
}

TEST_F(gateway_proxy, sends_the_normal_path) {
  struct row {
    char const* sent;
    char const* seen;
  };
  for (auto const& [sent, expected] : {
           row{"/a/./b/../c", "/a/c"},
           row{"/%61%2d%7E?x=%61", "/a-~?x=%61"},
           row{"/a%2fb", "/a%2Fb"},
           row{"/../../a", "/a"},
           row{"/a//b", "/a//b"},
           row{"/a/%2e%2e/b", "/b"},
       }) {
    auto client = gateway_.connect();
    client.send("GET " + std::string(sent) + " HTTP/1.1\r\nHost: a.example\r\n\r\n");
    auto server = api_.accept();
    auto const line = server.read_request().start_line;
    EXPECT_EQ(line, "GET " + std::string(expected) + " HTTP/1.1") << sent;
    server.send(response("200 OK", "", "Connection: close\r\n"));
    EXPECT_EQ(client.read_response().status(), 200);
  }
}

TEST_F(gateway_proxy, takes_the_absolute_form) {
  auto [server, seen] = forward("GET http://a.example/x?y=1 HTTP/1.1\r\nHost: a.example\r\n\r\n");
  EXPECT_EQ(seen.start_line, "GET /x?y=1 HTTP/1.1");
  EXPECT_EQ(seen.field("Host"), "a.example");
}

TEST_F(gateway_proxy, uses_one_connection_to_the_server_for_many_requests_of_many_clients) {
  auto [server, seen] = forward(std::string(get_line) + "\r\n");
  server.send(response("200 OK", "1"));
  EXPECT_EQ(client_.read_response().body, "1");
  for (int i = 0; i < 10; ++i) {
    auto other = gateway_.connect();
    other.send(std::string(get_line) + "\r\n");
    (void)server.read_request();
    server.send(response("200 OK", "2"));
    EXPECT_EQ(other.read_response().body, "2");
  }
  EXPECT_TRUE(api_.is_untouched());
}

TEST_F(gateway_proxy, closes_when_the_client_asks_for_it) {
  auto [server, seen] = forward(std::string(get_line) + "Connection: close\r\n\r\n");
  EXPECT_EQ(seen.count("Connection"), 0U) << "the server's connection is kept";
  server.send(response("200 OK", "bye"));
  auto const answer = client_.read_response();
  EXPECT_EQ(answer.field("Connection"), "close");
  EXPECT_EQ(answer.body, "bye");
  EXPECT_TRUE(client_.is_closed());
}

TEST_F(gateway_proxy, closes_both_directions_at_once_when_the_client_asks_for_it) {
  auto server = forward(std::string(get_line) + "Connection: close\r\n\r\n").first;
  server.send(response("200 OK", "bye"));
  EXPECT_EQ(client_.read_response().body, "bye");
  EXPECT_TRUE(client_.is_closed());
  client_.send("x");  // nothing reads it, and the system says so
  EXPECT_EQ(::send(client_.socket(), "x", 1, MSG_NOSIGNAL), -1);
  EXPECT_EQ(errno, EPIPE);
}

TEST(gateway_routes, answer_404_where_none_matches) {
  origin api;
  gateway const with("upstreams: {api: \"" + api.url() +
                     "\"}\npolicies: {p: {quota: 5, window: 1m}}\n"
                     "routes: [{match: {path: /v1/**, methods: [GET], host: a.example}, "
                     "upstream: api, limits: [p]}]\n");
  auto const other_path = with.get("/v2");
  EXPECT_EQ(other_path.status(), 404);
  EXPECT_EQ(other_path.field("Content-Type"), "application/problem+json");
  EXPECT_EQ(other_path.count("RateLimit") + other_path.count("RateLimit-Policy"), 0U);
  EXPECT_EQ(with.ask("POST /v1 HTTP/1.1\r\nHost: a.example\r\n\r\n").status(), 404);
  EXPECT_EQ(with.ask("GET /v1 HTTP/1.1\r\nHost: b.example\r\n\r\n").status(), 404);
  EXPECT_EQ(with.get("/v1/../v2").status(), 404) << "dot segments are taken out before";
  EXPECT_TRUE(api.is_untouched());
}

TEST(gateway_routes, take_the_first_that_matches) {
  origin first;
  origin second;
  gateway const with("upstreams: {first: \"" + first.url() + "\", second: \"" + second.url() +
                     "\"}\nroutes:\n"
                     "  - {match: {path: /v1/special}, upstream: second}\n"
                     "  - {match: {path: /v1/**}, upstream: first}\n");
  struct row {
    char const* path;
    origin* to;
  };
  for (auto const& [path, to] : {row{"/v1", &first}, row{"/v1/x", &first},
                                 row{"/v1/special", &second}, row{"/v1/%73pecial", &second}}) {
    auto client = with.connect();
    client.send("GET " + std::string(path) + " HTTP/1.1\r\nHost: a.example\r\n\r\n");
    auto server = to->accept();
    (void)server.read_request();
    server.send(response("200 OK", "", "Connection: close\r\n"));
    EXPECT_EQ(client.read_response().status(), 200) << path;
  }
}

// ---- large bodies ----

/// Buffers of the system that a body in flight may fill, and those of the gateway.
constexpr std::size_t kernel_octets_max = 24UL * 1024 * 1024;
constexpr std::size_t large_octets = 48UL * 1024 * 1024;

auto large_body() -> std::string {
  std::string out(large_octets, '\0');
  std::uint32_t state = 1;
  for (auto& each : out) {
    state = state * 1664525 + 1013904223;
    each = static_cast<char>(state >> 24);
  }
  return out;
}

TEST_F(gateway_proxy, stops_a_client_while_the_server_does_not_read) {
  auto const body = large_body();
  client_.send("POST /a HTTP/1.1\r\nHost: a.example\r\nContent-Length: " +
               std::to_string(body.size()) + "\r\n\r\n");
  auto server = api_.accept();
  (void)server.read_head();
  auto const before = gateway_.memory();
  auto const taken = client_.send_until_blocked(body);
  EXPECT_LT(taken, kernel_octets_max);
  EXPECT_LT(gateway_.memory(), before + 4 * 1024 * 1024);
  std::jthread const sending([&] { client_.send(std::string_view(body).substr(taken)); });
  EXPECT_TRUE(server.read(body.size()) == body);
  server.send(response("200 OK", "thanks"));
  EXPECT_EQ(client_.read_response().body, "thanks");
}

TEST_F(gateway_proxy, stops_a_server_while_the_client_does_not_read) {
  auto const body = large_body();
  auto [server, seen] = forward(std::string(get_line) + "\r\n");
  server.send("HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n");
  (void)client_.read_head();
  auto const before = gateway_.memory();
  auto const taken = server.send_until_blocked(body);
  EXPECT_LT(taken, kernel_octets_max);
  EXPECT_LT(gateway_.memory(), before + 4 * 1024 * 1024);
  std::jthread const sending([&, to = &server] { to->send(std::string_view(body).substr(taken)); });
  EXPECT_TRUE(client_.read(body.size()) == body);
}

TEST_F(gateway_proxy, forwards_large_chunked_bodies_both_ways_at_once) {
  auto const body = large_body().substr(0, 8UL * 1024 * 1024);
  client_.send("POST /a HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\n\r\n");
  auto server = api_.accept();
  (void)server.read_head();
  std::jthread const sending([&] {
    constexpr std::size_t size = 0x12345;
    for (std::size_t at = 0; at < body.size(); at += size) {
      auto const part = std::string_view(body).substr(at, size);
      std::array<char, 16> line{};
      std::snprintf(line.data(), line.size(), "%zx\r\n", part.size());
      client_.send(line.data());
      client_.send(part);
      client_.send("\r\n");
    }
    client_.send("0\r\n\r\n");
  });
  // The server gives every byte back as it comes, framing and all.
  std::jthread const echoing([&, to = &server] {
    to->send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    constexpr std::string_view end = "\r\n0\r\n\r\n";
    std::string last;
    while (!last.ends_with(end)) {
      auto const bytes = to->read_some();
      to->send(bytes);
      last.append(bytes);
      last.erase(0, last.size() - std::min(last.size(), end.size()));
    }
  });
  EXPECT_TRUE(client_.read_response().body == body);
}

TEST_F(gateway_proxy, gives_a_slow_reader_the_end_of_the_last_response) {
  auto const body = large_body().substr(0, 16UL * 1024 * 1024);
  auto [server, seen] = forward(std::string(get_line) + "Connection: close\r\n\r\n");
  std::jthread const sending([&, to = &server] { to->send(response("200 OK", body)); });
  (void)client_.read_head();
  std::string read;
  while (read.size() < body.size()) {
    read += client_.read(std::min<std::size_t>(body.size() - read.size(), 1024 * 1024));
  }
  EXPECT_TRUE(read == body);
  EXPECT_TRUE(client_.is_closed());
}

// ---- ends before the end ----

TEST_F(gateway_proxy, passes_an_answer_on_that_comes_before_the_end_of_the_request) {
  client_.send("POST /a HTTP/1.1\r\nHost: a.example\r\nContent-Length: 1000000\r\n\r\nhello");
  auto server = api_.accept();
  (void)server.read_head();
  server.send(response("403 Forbidden", "no"));
  auto const answer = client_.read_response();
  EXPECT_EQ(answer.status(), 403);
  EXPECT_EQ(answer.body, "no");
  EXPECT_EQ(answer.field("Connection"), "close");
  EXPECT_EQ(server.read_to_end(), "hello") << "a request that was cut is not followed by another";
}

TEST_F(gateway_proxy, closes_the_servers_connection_when_the_client_is_gone) {
  auto [server, seen] = forward(std::string(get_line) + "\r\n");
  client_.close();
  EXPECT_TRUE(server.is_closed());
  expect_eventually([&] { return gateway_.metric("tidegate_connections_open") == 0; },
                    "the connection is forgotten");
  EXPECT_EQ(gateway_.metric(R"(tidegate_requests_total{route="all",status="499"})"), 1);
}

TEST_F(gateway_proxy, closes_the_servers_connection_when_the_client_aborts) {
  auto [server, seen] = forward(std::string(get_line) + "\r\n");
  client_.abort();
  EXPECT_TRUE(server.is_closed());
}

TEST_F(gateway_proxy, closes_the_servers_connection_when_the_client_leaves_within_the_request) {
  client_.send("POST /a HTTP/1.1\r\nHost: a.example\r\nContent-Length: 100000\r\n\r\nhello");
  auto server = api_.accept();
  (void)server.read_head();
  EXPECT_EQ(server.read(5), "hello");
  client_.close();
  EXPECT_TRUE(server.is_closed());
}

TEST_F(gateway_proxy, closes_the_servers_connection_when_the_client_leaves_within_the_response) {
  auto [server, seen] = forward(std::string(get_line) + "\r\n");
  server.send("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nhello");
  (void)client_.read_head();
  client_.close();
  EXPECT_TRUE(server.is_closed());
}

}  // namespace
}  // namespace tidegate::e2e
