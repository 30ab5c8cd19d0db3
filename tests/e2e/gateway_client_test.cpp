// SPDX-License-Identifier: Apache-2.0
//
// What the gateway takes of clients, and what not.
#include "../../libs/wire/test/corpus.hpp"
#include "gateway.hpp"
#include "process.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace tidegate::e2e {
namespace {

using testing::HasSubstr;

auto limited(std::string const& url, std::string const& limits) -> std::string {
  return proxy_config(url, "http: {" + limits + "}\n");
}

TEST(gateway_limits, answer_413_to_a_declared_length_over_max_body) {
  origin api;
  gateway const with(limited(api.url(), "max-body: 1KiB"));
  auto client = with.connect();
  client.send("POST /a HTTP/1.1\r\nHost: a.example\r\nContent-Length: 1025\r\n\r\n");
  auto const answer = client.read_response();
  EXPECT_EQ(answer.status(), 413);
  EXPECT_EQ(answer.field("Content-Type"), "application/problem+json");
  EXPECT_EQ(answer.field("Connection"), "close");
  EXPECT_TRUE(client.is_closed());
  EXPECT_TRUE(api.is_untouched());
}

TEST(gateway_limits, take_a_body_of_just_max_body) {
  serving_origin const api(response("200 OK", "taken"));
  gateway const with(limited(api.url(), "max-body: 1KiB"));
  EXPECT_EQ(with.ask("POST /a HTTP/1.1\r\nHost: a.example\r\nContent-Length: 1024\r\n\r\n" +
                     std::string(1024, 'x'))
                .body,
            "taken");
}

TEST(gateway_limits, answer_413_once_chunks_are_over_max_body) {
  origin api;
  gateway const with(limited(api.url(), "max-body: 1KiB"));
  auto client = with.connect();
  client.send(
      "POST /a HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\n\r\n"
      "400\r\n" +
      std::string(1024, 'x') + "\r\n");
  auto server = api.accept();
  (void)server.read_head();
  client.send("1\r\nx\r\n");
  EXPECT_EQ(client.read_response().status(), 413);
  EXPECT_THAT(server.read_to_end(), testing::Not(HasSubstr("\r\n0\r\n")));
}

TEST(gateway_limits, answer_414_and_431_to_what_is_too_large) {
  origin api;
  gateway const with(limited(api.url(), "max-uri: 1KiB, max-header-size: 4KiB, max-headers: 10"));
  EXPECT_EQ(with.get("/" + std::string(2000, 'a')).status(), 414);
  EXPECT_EQ(with.get("/", "X: " + std::string(5000, 'a') + "\r\n").status(), 431);
  std::string many;
  for (int i = 0; i < 11; ++i) {
    many += "X: 1\r\n";
  }
  EXPECT_EQ(with.get("/", many).status(), 431);
  EXPECT_TRUE(api.is_untouched());
}

TEST(gateway_limits, let_a_head_be_as_large_as_they_say) {
  constexpr std::size_t much = 1'000'000;
  origin api;
  gateway const with(limited(api.url(), "max-header-size: 1MiB"));
  auto client = with.connect();
  client.send("GET /a HTTP/1.1\r\nHost: a.example\r\nX: " + std::string(much, 'a') + "\r\n\r\n");
  EXPECT_EQ(api.accept().read_head().field("X").size(), much);
  EXPECT_EQ(with.get("/", "X: " + std::string(2 * much, 'a') + "\r\n").status(), 431);
}

TEST(gateway_limits, answer_408_when_the_head_does_not_come_to_its_end) {
  gateway const with(
      "http: {header-timeout: 100ms}\nroutes: [{match: {path: /**}, service: echo}]\n");
  auto client = with.connect();
  client.send("GET / HTTP/1.1\r\nHo");
  auto const answer = client.read_response();
  EXPECT_EQ(answer.status(), 408);
  EXPECT_EQ(answer.field("Connection"), "close");
  EXPECT_TRUE(client.is_closed());
}

TEST(gateway_limits, close_a_connection_on_which_nothing_comes) {
  gateway const with(
      "http: {header-timeout: 100ms, idle-timeout: 150ms}\n"
      "routes: [{match: {path: /**}, service: echo}]\n");
  auto silent = with.connect();
  EXPECT_TRUE(silent.is_closed());
  auto idle = with.connect();
  idle.send("GET / HTTP/1.1\r\nHost: a.example\r\n\r\n");
  EXPECT_EQ(idle.read_response().status(), 200);
  EXPECT_TRUE(idle.is_closed());
}

TEST(gateway_limits, answer_408_when_the_body_stops) {
  origin api;
  gateway const with(limited(api.url(), "body-timeout: 100ms"));
  auto client = with.connect();
  client.send("POST /a HTTP/1.1\r\nHost: a.example\r\nContent-Length: 100000\r\n\r\nhello");
  auto server = api.accept();
  (void)server.read_head();
  EXPECT_EQ(client.read_response().status(), 408);
  EXPECT_EQ(server.read_to_end(), "hello");
}

TEST(gateway_limits, cut_a_client_that_does_not_read) {
  origin api;
  gateway const with(limited(api.url(), "idle-timeout: 200ms"));
  auto client = with.connect();
  client.send("GET /a HTTP/1.1\r\nHost: a.example\r\n\r\n");
  auto server = api.accept();
  (void)server.read_request();
  std::string const body(32UL * 1024 * 1024, 'x');
  server.send("HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n");
  (void)server.send_until_blocked(body);
  EXPECT_TRUE(server.is_closed());
}

TEST(gateway_limits, close_a_connection_too_many_at_once) {
  gateway const with("http: {max-connections: 3}\nroutes: [{match: {path: /**}, service: echo}]\n");
  std::vector<connection> open;
  for (int i = 0; i < 3; ++i) {
    open.push_back(with.connect());
    open.back().send("GET / HTTP/1.1\r\nHost: a.example\r\n\r\n");
    EXPECT_EQ(open.back().read_response().status(), 200);
  }
  auto one_too_many = with.connect();
  EXPECT_TRUE(one_too_many.is_closed());
  EXPECT_EQ(with.metric("tidegate_connections_refused_total{reason=\"max-connections\"}"), 1);
  open.pop_back();
  expect_eventually([&] { return with.metric("tidegate_connections_open") == 2; },
                    "the connection is forgotten");
  auto another = with.connect();
  another.send("GET / HTTP/1.1\r\nHost: a.example\r\n\r\n");
  EXPECT_EQ(another.read_response().status(), 200);
}

TEST(gateway_limits, lose_no_answer_to_a_client_that_keeps_sending) {
  gateway const with("routes: [{match: {path: /none}, service: echo}]\n");
  auto client = with.connect();
  client.send("POST /a HTTP/1.1\r\nHost: a.example\r\nContent-Length: 100000\r\n\r\n");
  client.send(std::string(50'000, 'x'));
  EXPECT_EQ(client.read_response().status(), 404);
}

// ---- the corpus ----

/// Where the offset of a refusal is behind the first head, it is the body that is refused: by then
/// the head may be on its way.
auto is_refused_in_body(wire::test::corpus_row const& row) -> bool {
  auto const offset = std::stoul(row.expected.substr(row.expected.rfind(' ') + 1));
  auto const head = row.bytes.find("\r\n\r\n", row.bytes.find_first_not_of("\r\n"));
  return head != std::string::npos && offset >= head + 4;
}

// ---- a body that is not wanted ----

/// No route matches, so the gateway answers by itself.
constexpr auto nowhere_head = "POST /nowhere HTTP/1.1\r\nHost: a.example\r\n";

auto nowhere_config() -> std::string {
  return "routes: [{match: {path: /echo}, service: echo}]\n";
}

void expect_next_request_is_served(connection& client) {
  client.send("GET /echo HTTP/1.1\r\nHost: a.example\r\n\r\n");
  EXPECT_EQ(client.read_response().status(), 200);
}

TEST(gateway_skipped_body, leaves_the_connection_usable_when_it_came_with_the_head) {
  gateway const with(nowhere_config());
  auto client = with.connect();
  client.send(std::string(nowhere_head) + "Content-Length: 5\r\n\r\nhello");
  auto const answer = client.read_response();
  EXPECT_EQ(answer.status(), 404);
  EXPECT_EQ(answer.count("Connection"), 0U);
  expect_next_request_is_served(client);
}

TEST(gateway_skipped_body, leaves_the_connection_usable_when_it_comes_later) {
  gateway const with(nowhere_config());
  auto client = with.connect();
  client.send(std::string(nowhere_head) + "Transfer-Encoding: chunked\r\n\r\n5\r\nhel");
  EXPECT_EQ(client.read_response().status(), 404);
  client.send("lo\r\n0\r\nX-Sum:");
  client.send(" 1\r\n\r\n");
  expect_next_request_is_served(client);
}

TEST(gateway_skipped_body, is_followed_by_a_request_in_the_same_bytes) {
  gateway const with(nowhere_config());
  auto client = with.connect();
  client.send(std::string(nowhere_head) +
              "Content-Length: 5\r\n\r\nhelloGET /echo HTTP/1.1\r\nHost: a.example\r\n\r\n");
  EXPECT_EQ(client.read_response().status(), 404);
  EXPECT_EQ(client.read_response().status(), 200);
}

TEST(gateway_skipped_body, closes_the_connection_when_it_is_large) {
  gateway const with(nowhere_config());
  auto declared = with.connect();
  declared.send(std::string(nowhere_head) + "Content-Length: 65537\r\n\r\nhello");
  EXPECT_EQ(declared.read_response().field("Connection"), "close");
  EXPECT_TRUE(declared.is_closed());
  auto chunked = with.connect();
  chunked.send(std::string(nowhere_head) + "Transfer-Encoding: chunked\r\n\r\n20000\r\n");
  EXPECT_EQ(chunked.read_response().status(), 404);
  chunked.send(std::string(70'000, 'x'));
  EXPECT_TRUE(chunked.is_closed());
}

TEST(gateway_skipped_body, closes_the_connection_when_its_framing_is_broken) {
  gateway const with(nowhere_config());
  auto client = with.connect();
  client.send(std::string(nowhere_head) + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello");
  EXPECT_EQ(client.read_response().status(), 404);
  client.send("xx\r\nGET /echo HTTP/1.1\r\nHost: a.example\r\n\r\n");
  EXPECT_TRUE(client.is_closed());
}

TEST(gateway_skipped_body, is_answered_when_its_framing_is_broken_in_the_same_bytes) {
  gateway const with(nowhere_config());
  for (auto const* const content : {"xx\r\nhello", "5\r\nhelloxx", "0\r\nHost\r\n\r\n"}) {
    SCOPED_TRACE(content);
    auto client = with.connect();
    client.send(std::string(nowhere_head) + "Transfer-Encoding: chunked\r\n\r\n" + content);
    EXPECT_EQ(client.read_response().status(), 404);
    EXPECT_TRUE(client.is_closed());
  }
}

TEST(gateway_skipped_body, closes_the_connection_when_the_client_asked_for_100) {
  gateway const with(nowhere_config());
  auto client = with.connect();
  client.send(std::string(nowhere_head) + "Expect: 100-continue\r\nContent-Length: 5\r\n\r\n");
  EXPECT_EQ(client.read_response().field("Connection"), "close");
  EXPECT_TRUE(client.is_closed());
}

TEST(gateway_corpus, is_refused_with_the_expected_status_and_not_forwarded) {
  origin api;
  // The corpus counts the whole request line, the option only the target.
  gateway const with(limited(api.url(), "max-uri: 8160"));
  int refused = 0;
  for (auto const& row : wire::test::read_corpus()) {
    if (row.expected == "forwarded" || row.expected == "preface") {
      continue;
    }
    SCOPED_TRACE(row.name);
    ++refused;
    auto client = with.connect();
    client.send(row.bytes);
    auto const answer = client.read_response();
    EXPECT_EQ(std::to_string(answer.status()), row.expected.substr(0, 3));
    EXPECT_EQ(answer.field("Content-Type"), "application/problem+json");
    EXPECT_TRUE(client.is_closed()) << "nothing comes after it";
    if (!is_refused_in_body(row)) {
      EXPECT_TRUE(api.is_untouched());
    }
    while (!api.is_untouched()) {
      // Whatever went out was no whole request.
      (void)api.accept().read_to_end();
    }
  }
  EXPECT_GE(refused, 150);
  EXPECT_EQ(with.metric("tidegate_requests_malformed_total"), refused);
}

TEST(gateway_corpus, is_forwarded_where_it_is_served) {
  serving_origin const api(response("200 OK", ""));
  gateway const with(proxy_config(api.url()));
  for (auto const& row : wire::test::read_corpus()) {
    if (row.expected != "forwarded") {
      continue;
    }
    SCOPED_TRACE(row.name);
    auto const before = api.requests();
    auto client = with.connect();
    client.send(row.bytes);
    auto const answer = client.read_response(row.bytes.starts_with("HEAD"));
    EXPECT_EQ(answer.status(), 200);
    if (row.bytes.starts_with("OPTIONS * ")) {
      EXPECT_EQ(api.requests(), before) << "it asks for no path, so the gateway answers";
    } else {
      EXPECT_GT(api.requests(), before);
    }
  }
}

// ---- curl ----

TEST(gateway_curl, gets_and_posts) {
  serving_origin const api(response("200 OK", "hello"));
  gateway const with(proxy_config(api.url()));
  auto const url = "http://" + with.authority() + "/a";
  auto const got = run({"/usr/bin/curl", "-sS", "-m", "10", url});
  EXPECT_EQ(got.status, 0) << got.err;
  EXPECT_EQ(got.out, "hello");
  auto const posted = run({"/usr/bin/curl", "-sS", "-m", "10", "-H", "Expect: 100-continue",
                           "--expect100-timeout", "0.1", "--data-binary", "@-", url},
                          std::string(2'000'000, 'x'));
  EXPECT_EQ(posted.status, 0) << posted.err;
  EXPECT_EQ(posted.out, "hello");
  auto const looked = run({"/usr/bin/curl", "-sSI", "-m", "10", url, url});
  EXPECT_EQ(looked.status, 0) << looked.err;
  EXPECT_THAT(looked.out, HasSubstr("Content-Length: 5\r\n"));
}

TEST(gateway_curl, sends_chunks_and_speaks_http_1_0) {
  serving_origin const api(
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n");
  gateway const with(proxy_config(api.url()));
  auto const url = "http://" + with.authority() + "/a";
  auto const chunked = run({"/usr/bin/curl", "-sS", "-m", "10", "-H", "Transfer-Encoding: chunked",
                            "--data-binary", "@-", url},
                           std::string(300'000, 'x'));
  EXPECT_EQ(chunked.status, 0) << chunked.err;
  EXPECT_EQ(chunked.out, "hello");
  auto const old = run({"/usr/bin/curl", "-sS", "-m", "10", "--http1.0", url});
  EXPECT_EQ(old.status, 0) << old.err;
  EXPECT_EQ(old.out, "hello");
}

}  // namespace
}  // namespace tidegate::e2e
