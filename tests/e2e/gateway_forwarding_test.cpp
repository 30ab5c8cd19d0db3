// SPDX-License-Identifier: Apache-2.0
//
// What a proxy owes both sides when it sends a message on: framing of its own, no fields of the
// other connection, and none that only look like ours.
#include "keyed.hpp"
#include "raw_http2.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tidegate::e2e {
namespace {

using testing::HasSubstr;

constexpr std::string_view chunked_post =
    "POST /a HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\n\r\n";

/// A gateway with one route to one server.
class gateway_forwarding : public testing::Test {
 protected:
  origin api_;
  gateway gateway_{proxy_config(api_.url())};
  connection client_ = gateway_.connect();

  auto forward(std::string_view request) -> std::pair<connection, message> {
    client_.send(request);
    auto server = api_.accept();
    auto seen = server.read_request();
    return {std::move(server), std::move(seen)};
  }
};

// ---- framing ----

TEST_F(gateway_forwarding, writes_chunk_sizes_of_requests_without_extensions_and_zeros) {
  client_.send(std::string(chunked_post) +
               "0005;a=\"b\"\r\nhello\r\n6;\xff\r\n world\r\n00;x\r\nX-Sum: 1\r\n\r\n");
  auto server = api_.accept();
  EXPECT_EQ(server.read_head().field("Transfer-Encoding"), "chunked");
  std::string_view const expected = "5\r\nhello\r\n6\r\n world\r\n0\r\nX-Sum: 1\r\n\r\n";
  EXPECT_EQ(server.read(expected.size()), expected);
  server.send(response("200 OK", "done"));
  EXPECT_EQ(client_.read_response().body, "done");
}

TEST_F(gateway_forwarding, writes_chunk_sizes_that_come_byte_by_byte_the_same_way) {
  client_.send(chunked_post);
  auto server = api_.accept();
  (void)server.read_head();
  for (char const byte : std::string_view("0005;a=b\r\nhello\r\n00;x\r\n\r\n")) {
    client_.send({&byte, 1});
  }
  std::string_view const expected = "5\r\nhello\r\n0\r\n\r\n";
  EXPECT_EQ(server.read(expected.size()), expected);
  server.send(response("200 OK", "done"));
  EXPECT_EQ(client_.read_response().body, "done");
}

TEST_F(gateway_forwarding, writes_chunk_sizes_of_answers_without_extensions_and_zeros) {
  auto [server, seen] = forward("GET /a HTTP/1.1\r\nHost: a.example\r\n\r\n");
  server.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n005;x\r\nhel");
  EXPECT_EQ(client_.read_head().status(), 200);
  EXPECT_EQ(client_.read(6), "5\r\nhel");
  server.send("lo\r\n000;last\r\n\r\n");
  EXPECT_EQ(client_.read(9), "lo\r\n0\r\n\r\n");
}

TEST_F(gateway_forwarding, writes_the_length_and_expect_in_the_one_way_that_all_servers_read) {
  for (auto const* const length :
       {"Content-Length:\t3\t", "Content-Length:3", "Content-Length: 003"}) {
    auto client = gateway_.connect();
    client.send("POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nExpect: 100-continue\r\n" +
                std::string(length) + "\r\n\r\nabc");
    auto server = api_.accept();
    auto const seen = server.read_request();
    EXPECT_EQ(seen.field("Content-Length"), "3") << length;
    EXPECT_EQ(seen.count("Expect"), 1U);
    EXPECT_EQ(seen.body, "abc");
    server.send(response("200 OK", "", "Connection: close\r\n"));
    EXPECT_EQ(client.read_response().status(), 200);
  }
}

// ---- trailers ----

TEST_F(gateway_forwarding, leaves_forbidden_trailers_of_an_upstream_out_and_keeps_the_answer) {
  auto [server, seen] = forward("GET /a HTTP/1.1\r\nHost: a.example\r\n\r\n");
  server.send(
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX-Sum: 1\r\n"
      "Set-Cookie: a=b\r\nContent-Length: 9\r\nRateLimit: \"a\";r=0\r\n\r\n");
  auto const answer = client_.read_response();
  EXPECT_EQ(answer.body, "hello");
  EXPECT_EQ(answer.trailers, "X-Sum: 1\r\n");
  client_.send("GET /b HTTP/1.1\r\nHost: a.example\r\n\r\n");
  EXPECT_EQ(server.read_request().start_line, "GET /b HTTP/1.1") << "the connection is still good";
}

TEST_F(gateway_forwarding, leaves_forbidden_trailers_of_a_client_out) {
  for (auto const* const line : {"Content-Length: 5", "Authorization: x", "X_Forwarded_For: ::1",
                                 "Transfer-Encoding: chunked", "RateLimit: \"a\";r=1"}) {
    auto client = gateway_.connect();
    client.send(std::string(chunked_post) + "0\r\n" + std::string(line) + "\r\nX-A: 1\r\n\r\n");
    auto server = api_.accept();
    EXPECT_EQ(server.read_request().trailers, "X-A: 1\r\n") << line;
    server.send(response("200 OK", "", "Connection: close\r\n"));
    EXPECT_EQ(client.read_response().status(), 200) << line;
  }
}

// ---- bodies that come slowly ----

constexpr std::size_t slow_clients = 50;

auto head_with_length(std::size_t length, std::string_view lines = "") -> std::string {
  return "POST /a HTTP/1.1\r\nHost: a.example\r\nContent-Length: " + std::to_string(length) +
         "\r\n" + std::string(lines) + "\r\n";
}

/// `POST /` of http://a, as HPACK writes it.
auto block_with_length(std::size_t length) -> std::string {
  auto const digits = std::to_string(length);
  std::string block =
      "\x83\x86\x84\x41\x01"
      "a";
  block += std::string("\x0f\x0d", 2);  // content-length, the 28th of the static table
  return block + static_cast<char>(digits.size()) + digits;
}

/// No two clients send the same.
auto body_of(std::size_t client, std::size_t size = 1000) -> std::string {
  std::string out;
  while (out.size() < size) {
    out += std::to_string(client) + "-" + std::to_string(out.size()) + ",";
  }
  return out.substr(0, size);
}

auto held_octets(gateway const& in) -> double {
  return in.metric("tidegate_buffered_bytes");
}

/// Answers one request on a connection, which may serve others before.
void expect_request(connection& server, std::string const& body) {
  auto const seen = server.read_request();
  EXPECT_EQ(seen.body, body);
  EXPECT_EQ(seen.field("Content-Length"), std::to_string(body.size()));
  server.send(response("200 OK", "done"));
}

TEST_F(gateway_forwarding, asks_an_upstream_once_a_slow_body_is_whole) {
  std::vector<connection> clients;
  for (std::size_t i = 0; i < slow_clients; ++i) {
    clients.push_back(gateway_.connect());
    clients.back().send(head_with_length(1000) + body_of(i).substr(0, 2));
  }
  expect_eventually([&] { return held_octets(gateway_) > 100.0 * slow_clients; }, "all are held");
  EXPECT_TRUE(api_.is_untouched());
  for (auto& each : clients) {
    EXPECT_TRUE(each.is_silent());
  }

  clients[0].send(body_of(0).substr(2));
  auto server = api_.accept();
  expect_request(server, body_of(0));
  EXPECT_EQ(clients[0].read_response().body, "done");
  for (std::size_t i = 1; i < slow_clients; ++i) {
    clients[i].send(body_of(i).substr(2, 500));
    clients[i].send(body_of(i).substr(502));
    expect_request(server, body_of(i));
    EXPECT_EQ(clients[i].read_response().body, "done");
  }
  EXPECT_TRUE(api_.is_untouched()) << "one connection was enough";
  EXPECT_EQ(held_octets(gateway_), 0);
}

TEST_F(gateway_forwarding, asks_an_upstream_once_a_slow_body_is_whole_over_http2) {
  raw_client client(gateway_.connect());
  auto const stream_of = [](std::size_t i) { return static_cast<std::uint32_t>(2 * i + 1); };
  for (std::size_t i = 0; i < slow_clients; ++i) {
    client.send(headers, 4, stream_of(i), block_with_length(1000));
    client.send(data, 0, stream_of(i), body_of(i).substr(0, 2));
  }
  client.send(ping, 0, 0, "12345678");
  (void)client.read(ping);
  EXPECT_TRUE(api_.is_untouched());
  EXPECT_GT(held_octets(gateway_), 100.0 * slow_clients);

  client.send(data, 1, stream_of(0), body_of(0).substr(2));
  auto server = api_.accept();
  expect_request(server, body_of(0));
  EXPECT_EQ(client.read(data).payload, "done");
  for (std::size_t i = 1; i < slow_clients; ++i) {
    client.send(data, 0, stream_of(i), body_of(i).substr(2));
    client.send(data, 1, stream_of(i), "");
    expect_request(server, body_of(i));
    auto const answer = client.read(data);
    EXPECT_EQ(answer.stream, stream_of(i));
    EXPECT_EQ(answer.payload, "done");
  }
  EXPECT_TRUE(api_.is_untouched()) << "one connection was enough";
  EXPECT_EQ(held_octets(gateway_), 0);
}

TEST_F(gateway_forwarding, holds_no_body_that_is_long_or_chunked_or_asks_to_be_invited) {
  constexpr std::size_t length = 70 * 1024;
  client_.send(head_with_length(length) + "ab");
  auto server = api_.accept();
  EXPECT_EQ(server.read_head().field("Content-Length"), std::to_string(length));
  EXPECT_EQ(server.read(2), "ab");
  client_.send(std::string(length - 2, 'c'));
  EXPECT_EQ(server.read(length - 2), std::string(length - 2, 'c'));
  server.send(response("200 OK", "done"));
  EXPECT_EQ(client_.read_response().body, "done");

  client_.send(std::string(chunked_post) + "5\r\nhello\r\n");
  EXPECT_EQ(server.read_head().field("Transfer-Encoding"), "chunked");
  EXPECT_EQ(server.read(10), "5\r\nhello\r\n");
  client_.send("0\r\n\r\n");
  EXPECT_EQ(server.read(5), "0\r\n\r\n");
  server.send(response("200 OK", "done"));
  EXPECT_EQ(client_.read_response().body, "done");

  client_.send(head_with_length(5, "Expect: 100-continue\r\n"));
  EXPECT_EQ(server.read_head().field("Expect"), "100-continue");
  server.send("HTTP/1.1 100 Continue\r\n\r\n");
  EXPECT_EQ(client_.read_head().status(), 100);
  client_.send("hello");
  EXPECT_EQ(server.read(5), "hello");
  server.send(response("200 OK", "done"));
  EXPECT_EQ(client_.read_response().body, "done");
}

TEST_F(gateway_forwarding, asks_no_upstream_for_a_client_that_leaves_before_its_body_is_whole) {
  client_.send(head_with_length(1000) + "ab");
  raw_client by_http2(gateway_.connect());
  by_http2.send(headers, 4, 1, block_with_length(1000));
  by_http2.send(data, 0, 1, "ab");
  by_http2.send(headers, 4, 3, block_with_length(1000));
  by_http2.send(data, 0, 3, "ab");
  expect_eventually([&] { return held_octets(gateway_) > 300; }, "all are held");
  client_.close();
  by_http2.reset(1);
  by_http2.send(ping, 0, 0, "12345678");
  (void)by_http2.read(ping);
  by_http2.socket().close();
  expect_eventually([&] { return held_octets(gateway_) == 0; }, "nothing is held");
  EXPECT_TRUE(api_.is_untouched());
  client_ = gateway_.connect();  // what is left of them harms no other
  auto [server, seen] = forward(head_with_length(5) + "hello");
  EXPECT_EQ(seen.body, "hello");
}

TEST(gateway_forwarding_bodies, says_408_and_asks_no_upstream_when_a_body_is_never_whole) {
  origin const api;
  gateway const with(proxy_config(api.url(), "http: {body-timeout: 100ms}\n"));
  auto by_http1 = with.connect();
  by_http1.send(head_with_length(1000) + "ab");
  EXPECT_EQ(by_http1.read_response().status(), 408);
  raw_client by_http2(with.connect());
  by_http2.send(headers, 4, 1, block_with_length(1000));
  by_http2.send(data, 0, 1, "ab");
  EXPECT_THAT(by_http2.read(data).payload, HasSubstr("\"status\":408"));
  EXPECT_TRUE(api.is_untouched());
  EXPECT_EQ(held_octets(with), 0);
}

TEST(gateway_forwarding_bodies, lets_a_body_pass_when_half_of_max_buffered_is_in_use) {
  constexpr std::size_t length = 65'000;
  constexpr std::size_t sent = 60'000;
  origin api;
  gateway const with(proxy_config(api.url(), "http: {max-buffered: 1MiB}\n"));
  std::vector<connection> held;
  for (std::size_t i = 0; i < 8; ++i) {
    held.push_back(with.connect());
    held.back().send(head_with_length(length) + body_of(i, sent));
  }
  expect_eventually([&] { return held_octets(with) > 8.0 * sent; }, "they are held");
  EXPECT_TRUE(api.is_untouched());
  auto client = with.connect();
  auto const body = body_of(8, length);
  client.send(head_with_length(length) + body.substr(0, sent));
  auto server = api.accept();
  (void)server.read_head();
  EXPECT_EQ(server.read(sent), body.substr(0, sent));
  client.send(body.substr(sent));
  EXPECT_EQ(server.read(length - sent), body.substr(sent));
  server.send(response("200 OK", "done"));
  EXPECT_EQ(client.read_response().body, "done");
  EXPECT_TRUE(api.is_untouched());
}

TEST(gateway_forwarding_bodies, refuses_by_quota_without_waiting_for_the_body) {
  origin const api;
  gateway const with("policies: {p: {quota: 1, window: 1h}}\nupstreams: {api: \"" + api.url() +
                     "\"}\nroutes: [{match: {path: /**}, upstream: api, limits: [p]}]\n");
  auto first = with.connect();
  first.send(head_with_length(1000) + "ab");
  expect_eventually([&] { return held_octets(with) > 0; }, "it is held, and charged");
  auto second = with.connect();
  second.send(head_with_length(1000) + "ab");
  EXPECT_EQ(second.read_response().status(), 429);
  EXPECT_TRUE(api.is_untouched());
}

// ---- fields of the connection ----

TEST(gateway_forwarding_keyed, takes_what_connection_names_off_the_first_answer_to_a_key) {
  data_folder const data;
  serving_origin const api(response(
      "200 OK", "made", "Connection: X-Hop\r\nX-Hop: 1\r\nKeep-Alive: timeout=5\r\nX-End: 2\r\n"));
  gateway const with(keyed_config(api.url(), data));
  for (auto const* const replayed : {"(none)", "true"}) {
    auto const answer = with.ask(post("\"k\""));
    EXPECT_EQ(answer.status(), 200);
    EXPECT_EQ(answer.field("Idempotent-Replayed"), replayed);
    EXPECT_EQ(answer.field("X-End"), "2");
    EXPECT_EQ(answer.count("X-Hop") + answer.count("Keep-Alive"), 0U) << replayed;
  }
}

// ---- names with "_" ----

TEST_F(gateway_forwarding, drops_names_that_cgi_reads_as_fields_of_ours) {
  auto [server, seen] = forward(
      "GET /a HTTP/1.1\r\nHost: a.example\r\nX_Forwarded_For: 1.2.3.4\r\nX-Forwarded_Proto: "
      "https\r\n"
      "x_real_ip: 1.2.3.4\r\nIdempotency_Key: \"k\"\r\nContent_Length: 5\r\nX_Mine: 1\r\n"
      "X.Forwarded.For: 1.2.3.4\r\n_X-Forwarded-For: 1.2.3.4\r\nX__Forwarded__For: 1.2.3.4\r\n"
      "Idempotency-Attempt: 7\r\nIdempotency_Attempt: 8\r\n\r\n");
  for (auto const* const name :
       {"X_Forwarded_For", "X-Forwarded_Proto", "x_real_ip", "Idempotency_Key", "Content_Length",
        "X.Forwarded.For", "_X-Forwarded-For", "X__Forwarded__For", "Idempotency-Attempt",
        "Idempotency_Attempt"}) {
    EXPECT_EQ(seen.count(name), 0U) << name;
  }
  EXPECT_EQ(seen.field("X_Mine"), "1") << "what is nothing of ours passes";
  EXPECT_EQ(seen.field("X-Forwarded-For"), "127.0.0.1");
}

TEST(gateway_forwarding_names, drops_names_that_cgi_reads_as_what_a_partition_or_scope_is_made_of) {
  data_folder const data;
  std::string seen;
  serving_origin const api([&](message const& request) {
    for (auto const* const name :
         {"X_Tenant", "X.Tenant", "x_owner", "Idempotency_Attempt", "X_Other"}) {
      seen += std::string(name) + "=" + request.field(name) + " ";
    }
    return response("200 OK", "");
  });
  gateway const with(
      "data: " + data.path() + "\nupstreams: {api: \"" + api.url() +
      "\"}\npolicies: {p: {quota: 9, window: 1m, partition: [\"header:x-tenant\"]}}\n"
      "routes: [{match: {path: /**}, upstream: api, limits: [p], idempotency: {mode: "
      "optional, scope: [\"header:x-owner\"]}}]\n");
  EXPECT_EQ(with.get("/",
                     "X-Tenant: 1\r\nX_Tenant: 2\r\nX.Tenant: 2\r\nx_owner: "
                     "3\r\nIdempotency_Attempt: 4\r\n"
                     "X_Other: 5\r\n")
                .status(),
            200);
  EXPECT_EQ(seen,
            "X_Tenant=(none) X.Tenant=(none) x_owner=(none) Idempotency_Attempt=(none) X_Other=5 ");
}

}  // namespace
}  // namespace tidegate::e2e
