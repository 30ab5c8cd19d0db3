// SPDX-License-Identifier: Apache-2.0
//
// What becomes of a request when the server behind the gateway is not well.
#include "gateway.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/socket.h>

#include <chrono>
#include <stdexcept>

namespace tidegate::e2e {
namespace {

using testing::HasSubstr;
using namespace std::chrono_literals;

constexpr std::string_view get_request = "GET /a HTTP/1.1\r\nHost: a.example\r\n\r\n";
constexpr std::string_view post_request =
    "POST /a HTTP/1.1\r\nHost: a.example\r\nContent-Length: 5\r\n\r\nhello";

/// One server with short times, and a policy, whose fields every response has.
auto short_times(std::string const& servers, std::string const& more = "") -> std::string {
  return "upstreams: {api: {servers: [" + servers +
         "], connect-timeout: 100ms, timeout: 150ms, idle-timeout: 200ms" + more +
         "}}\n"
         "policies: {p: {quota: 100, window: 1m}}\n"
         "routes: [{name: all, match: {path: /**}, upstream: api, limits: [p]}]\n";
}

void expect_problem(message const& answer, int status) {
  EXPECT_EQ(answer.status(), status);
  EXPECT_EQ(answer.field("Content-Type"), "application/problem+json");
  EXPECT_THAT(answer.body, HasSubstr("\"status\":" + std::to_string(status)));
  EXPECT_EQ(answer.field("RateLimit-Policy"), R"("p";q=100;w=60)") << "on every response";
}

TEST(gateway_upstream, answers_502_when_the_connection_is_refused) {
  auto const api = origin::refusing();
  gateway const with(short_times(api.url()));
  expect_problem(with.get("/a"), 502);
  auto client = with.connect();
  client.send(post_request);
  expect_problem(client.read_response(), 502);
  client.send(get_request);
  expect_problem(client.read_response(), 502);
}

TEST(gateway_upstream, answers_504_when_the_head_of_the_response_does_not_come) {
  origin api;
  gateway const with(short_times(api.url()));
  auto client = with.connect();
  client.send(get_request);
  auto server = api.accept();
  (void)server.read_request();
  server.send("HTTP/1.1 200 OK\r\nContent-Le");
  expect_problem(client.read_response(), 504);
  EXPECT_TRUE(server.is_closed());
  EXPECT_TRUE(api.is_untouched()) << "it is not sent again";
}

TEST(gateway_upstream, answers_504_when_no_connection_comes_about) {
  // A server whose queue is full does not answer the first packet of a connection.
  origin api;
  ::listen(api.socket(), 0);
  std::vector<descriptor> filling;
  for (int i = 0; i < 4; ++i) {
    filling.push_back(api.begin_to_connect());
  }
  gateway const with(short_times(api.url(), ", retries: 0"));
  expect_problem(with.get("/a"), 504);
}

TEST(gateway_upstream, cuts_the_response_when_its_body_stops) {
  origin api;
  gateway const with(short_times(api.url()));
  auto client = with.connect();
  client.send(get_request);
  auto server = api.accept();
  (void)server.read_request();
  server.send("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nhello");
  EXPECT_EQ(client.read_head().status(), 200);
  EXPECT_EQ(client.read_to_end(), "hello");
  EXPECT_TRUE(server.is_closed());
}

TEST(gateway_upstream, cuts_the_response_when_the_server_goes_in_its_midst) {
  struct row {
    char const* sent;
    char const* seen;
  };
  for (auto const& [sent, seen] :
       {row{"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nhello", "hello"},
        row{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
            "5\r\nhello\r\n"}}) {
    origin api;
    gateway const with(short_times(api.url()));
    auto client = with.connect();
    client.send(get_request);
    auto server = api.accept();
    (void)server.read_request();
    server.send(sent);
    (void)client.read_head();
    EXPECT_EQ(client.read(std::string_view(seen).size()), seen);
    server.close();
    EXPECT_EQ(client.read_to_end(), "");
    EXPECT_EQ(with.metric("tidegate_connections_open"), 0);
  }
}

TEST(gateway_upstream, answers_502_when_the_server_closes_without_an_answer) {
  origin api;
  gateway const with(short_times(api.url(), ", retries: 0"));
  for (auto const* const sent : {"", "HTTP/1.1 200 OK\r\nContent-"}) {
    auto client = with.connect();
    client.send(get_request);
    auto server = api.accept();
    (void)server.read_request();
    server.send(sent);
    server.close();
    expect_problem(client.read_response(), 502);
  }
  auto client = with.connect();
  client.send(get_request);
  auto server = api.accept();
  (void)server.read_request();
  server.abort();
  expect_problem(client.read_response(), 502);
}

TEST(gateway_upstream, answers_502_to_malformed_answers) {
  for (auto const* const answer : {
           "HTTP/2 200 OK\r\n\r\n",
           "hello\r\n\r\n",
           "HTTP/1.1 20 OK\r\n\r\n",
           "HTTP/1.1 999999 OK\r\n\r\n",
           "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
           "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\nhello",
           "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
           "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked, chunked\r\n\r\n0\r\n\r\n",
           "HTTP/1.1 200 OK\r\nX Y: 1\r\n\r\n",
           "HTTP/1.1 200 OK\r\nX: 1\n\n",
           "HTTP/1.1 200 OK\r\nX: a\rb\r\n\r\n",
           "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n",
           // In one packet with the head, nothing of which was sent on by then.
           "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nhello",
           "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n8000000000000000\r\nhello",
           "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhelloxx",
       }) {
    SCOPED_TRACE(answer);
    origin api;
    gateway const with(short_times(api.url()));
    auto client = with.connect();
    client.send(get_request);
    auto server = api.accept();
    (void)server.read_request();
    server.send(answer);
    expect_problem(client.read_response(), 502);
    EXPECT_TRUE(server.is_closed());
    EXPECT_TRUE(api.is_untouched()) << "it is not sent again";
  }
}

TEST(gateway_upstream, answers_502_to_a_head_without_end) {
  origin api;
  gateway const with(proxy_config(api.url()));
  auto client = with.connect();
  client.send(get_request);
  auto server = api.accept();
  (void)server.read_request();
  server.send("HTTP/1.1 200 OK\r\n");
  try {
    for (int i = 0; i < 100'000; ++i) {
      server.send("X-Field: 0123456789\r\n");
    }
    ADD_FAILURE() << "the gateway took two megabytes of fields";
  } catch (std::runtime_error const&) {
    // It has had enough.
  }
  EXPECT_EQ(client.read_response().status(), 502);
}

TEST(gateway_upstream, cuts_a_response_with_malformed_chunks) {
  origin api;
  gateway const with(proxy_config(api.url()));
  auto client = with.connect();
  client.send(get_request);
  auto server = api.accept();
  (void)server.read_request();
  server.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
  (void)client.read_head();
  server.send("hello");
  EXPECT_EQ(client.read_to_end(), "");
  EXPECT_TRUE(server.is_closed());
}

// ---- again ----

/// A client and a server with a connection that was used and is kept.
struct kept_connection {
  origin api;
  gateway with;
  connection client = with.connect();
  connection server;

  explicit kept_connection(std::string const& more = "")
      : with(short_times(api.url(), more)), server(first()) {}

  auto first() -> connection {
    client.send(get_request);
    auto out = api.accept();
    (void)out.read_request();
    out.send(response("200 OK", "first"));
    (void)client.read_response();
    return out;
  }
};

TEST(gateway_retry, sends_a_get_again_when_the_kept_connection_closes_under_it) {
  kept_connection kept(", retries: 0");
  kept.client.send(get_request);
  (void)kept.server.read_request();
  kept.server.close();
  auto second = kept.api.accept();
  EXPECT_EQ(second.read_request().start_line, "GET /a HTTP/1.1");
  second.send(response("200 OK", "second"));
  EXPECT_EQ(kept.client.read_response().body, "second");
}

TEST(gateway_retry, does_not_send_a_post_again_when_the_kept_connection_closes_under_it) {
  kept_connection kept;
  kept.client.send(post_request);
  (void)kept.server.read_request();
  kept.server.close();
  expect_problem(kept.client.read_response(), 502);
  EXPECT_TRUE(kept.api.is_untouched());
}

TEST(gateway_retry, does_not_send_a_get_again_after_the_first_byte_of_an_answer) {
  kept_connection kept(", retries: 0");
  kept.client.send(get_request);
  (void)kept.server.read_request();
  kept.server.send("H");
  kept.server.close();
  expect_problem(kept.client.read_response(), 502);
  EXPECT_TRUE(kept.api.is_untouched());
}

TEST(gateway_retry, takes_a_new_connection_when_the_kept_one_has_closed) {
  kept_connection kept;
  kept.server.close();
  // The gateway may or may not have seen it when the next request comes.
  kept.client.send(get_request);
  auto second = kept.api.accept();
  EXPECT_EQ(second.read_request().start_line, "GET /a HTTP/1.1");
  second.send(response("200 OK", "second"));
  EXPECT_EQ(kept.client.read_response().body, "second");
}

TEST(gateway_retry, gives_up_a_kept_connection_on_which_something_comes_unasked) {
  kept_connection kept;
  kept.server.send("HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n");
  EXPECT_TRUE(kept.server.is_closed());
  kept.client.send(get_request);
  auto second = kept.api.accept();
  (void)second.read_request();
  second.send(response("200 OK", "second"));
  EXPECT_EQ(kept.client.read_response().body, "second");
}

TEST(gateway_retry, closes_a_kept_connection_after_the_idle_timeout) {
  kept_connection kept;
  EXPECT_TRUE(kept.server.is_closed());
}

TEST(gateway_retry, does_not_keep_a_connection_when_the_server_says_so) {
  origin api;
  gateway const with(proxy_config(api.url()));
  auto client = with.connect();
  client.send(get_request);
  auto server = api.accept();
  (void)server.read_request();
  server.send(response("200 OK", "bye", "Connection: close\r\n"));
  EXPECT_EQ(client.read_response().body, "bye");
  EXPECT_TRUE(server.is_closed());
}

TEST(gateway_servers, leave_out_the_one_that_is_down) {
  serving_origin const well(response("200 OK", "well"));
  auto const down = origin::refusing();
  gateway const with(short_times(down.url() + ", " + well.url()));
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(with.get("/a").body, "well");
  }
  EXPECT_EQ(well.requests(), 20U);
}

TEST(gateway_servers, get_a_post_that_the_one_that_is_down_refused) {
  serving_origin const well(response("200 OK", "well"));
  auto const down = origin::refusing();
  gateway const with(short_times(down.url() + ", " + well.url()));
  for (int i = 0; i < 10; ++i) {
    auto client = with.connect();
    client.send(post_request);
    EXPECT_EQ(client.read_response().body, "well");
  }
  EXPECT_EQ(well.requests(), 10U);
}

TEST(gateway_servers, take_turns) {
  serving_origin const one(response("200 OK", "one"));
  serving_origin const two(response("200 OK", "two"));
  gateway const with(short_times(one.url() + ", " + two.url()));
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(with.get("/a").status(), 200);
  }
  EXPECT_EQ(one.requests(), 10U);
  EXPECT_EQ(two.requests(), 10U);
}

TEST(gateway_servers, get_less_while_they_are_busy) {
  origin slow;
  serving_origin const quick(response("200 OK", "quick"));
  gateway const with("upstreams: {api: {servers: [" + slow.url() + ", " + quick.url() +
                     "]}}\nroutes: [{match: {path: /**}, upstream: api}]\n");
  auto client = with.connect();
  client.send(get_request);
  auto server = slow.accept();
  (void)server.read_request();
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(with.get("/a").body, "quick");
  }
  server.send(response("200 OK", "slow"));
  EXPECT_EQ(client.read_response().body, "slow");
}

TEST(gateway_servers, are_not_given_up_when_the_last_one_fails) {
  origin api;
  gateway const with(short_times(api.url(), ", retries: 0"));
  for (int i = 0; i < 5; ++i) {
    auto client = with.connect();
    client.send(get_request);
    auto server = api.accept();
    (void)server.read_request();
    server.close();
    expect_problem(client.read_response(), 502);
  }
  auto client = with.connect();
  client.send(get_request);
  auto server = api.accept();
  (void)server.read_request();
  server.send(response("200 OK", "well again"));
  EXPECT_EQ(client.read_response().body, "well again");
}

}  // namespace
}  // namespace tidegate::e2e
