// SPDX-License-Identifier: Apache-2.0
//
// What a proxy owes both sides when it sends a message on: framing of its own, no fields of the other
// connection, and none that only look like ours.
#include "keyed.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

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

TEST_F(gateway_forwarding, refuses_forbidden_trailers_of_a_client) {
  for (auto const* const line : {"Content-Length: 5", "Authorization: x", "X_Forwarded_For: ::1"}) {
    auto client = gateway_.connect();
    client.send(chunked_post);
    auto server = api_.accept();
    (void)server.read_head();
    client.send("0\r\n" + std::string(line) + "\r\n\r\n");
    EXPECT_EQ(client.read_response().status(), 400) << line;
  }
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
      "x_real_ip: 1.2.3.4\r\nIdempotency_Key: \"k\"\r\nContent_Length: 5\r\nX_Mine: 1\r\n\r\n");
  for (auto const* const name :
       {"X_Forwarded_For", "X-Forwarded_Proto", "x_real_ip", "Idempotency_Key", "Content_Length"}) {
    EXPECT_EQ(seen.count(name), 0U) << name;
  }
  EXPECT_EQ(seen.field("X_Mine"), "1") << "what is nothing of ours passes";
  EXPECT_EQ(seen.field("X-Forwarded-For"), "127.0.0.1");
}

TEST(gateway_forwarding_names, drops_names_that_cgi_reads_as_what_a_partition_or_scope_is_made_of) {
  data_folder const data;
  std::string seen;
  serving_origin const api([&](message const& request) {
    for (auto const* const name : {"X_Tenant", "x_owner", "Idempotency_Attempt", "X_Other"}) {
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
                     "X-Tenant: 1\r\nX_Tenant: 2\r\nx_owner: 3\r\nIdempotency_Attempt: 4\r\n"
                     "X_Other: 5\r\n")
                .status(),
            200);
  EXPECT_EQ(seen, "X_Tenant=(none) x_owner=(none) Idempotency_Attempt=(none) X_Other=5 ");
}

}  // namespace
}  // namespace tidegate::e2e
