// SPDX-License-Identifier: Apache-2.0
//
// Who is admitted, who is refused, and what a refusal says.
#include "gateway.hpp"
#include "process.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

namespace tidegate::e2e {
namespace {

using testing::AllOf;
using testing::Ge;
using testing::HasSubstr;
using testing::Le;
using testing::MatchesRegex;

/// The echo service under policies; `limits` are their names.
auto echo_config(std::string const& policies, std::string const& limits,
                 std::string const& more = "") -> std::string {
  return "policies: {" + policies +
         "}\nroutes: [{name: all, match: {path: /**}, service: echo, limits: [" + limits + "]" +
         more + "}]\n";
}

auto upstream_config(std::string const& url, std::string const& policies, std::string const& limits)
    -> std::string {
  return "upstreams: {api: \"" + url + "\"}\npolicies: {" + policies +
         "}\nroutes: [{name: all, match: {path: /**}, upstream: api, limits: [" + limits + "]}]\n";
}

/// The number behind `;KEY=` in a field.
auto parameter(std::string const& field, std::string const& key) -> int {
  auto const at = field.find(";" + key + "=");
  return at == std::string::npos ? -1 : std::stoi(field.substr(at + key.size() + 2));
}

void expect_refused_by(message const& answer, std::string const& names) {
  EXPECT_EQ(answer.status(), 429);
  EXPECT_EQ(answer.field("Content-Type"), "application/problem+json");
  EXPECT_THAT(
      answer.body,
      AllOf(HasSubstr(R"("type":"https://iana.org/assignments/http-problem-types#quota-exceeded")"),
            HasSubstr("\"status\":429"), HasSubstr("\"violated-policies\":[" + names + "]")));
  EXPECT_THAT(answer.field("Retry-After"), MatchesRegex("[0-9]+"));
}

class gateway_algorithm : public testing::TestWithParam<char const*> {};

TEST_P(gateway_algorithm, admits_the_quota_and_says_what_is_left) {
  gateway const with(
      echo_config("p: {quota: 3, window: 1h, algorithm: " + std::string(GetParam()) + "}", "p"));
  for (int left = 2; left >= 0; --left) {
    auto const answer = with.get("/a");
    EXPECT_EQ(answer.status(), 200);
    EXPECT_EQ(answer.field("RateLimit-Policy"), R"("p";q=3;w=3600)");
    EXPECT_EQ(parameter(answer.field("RateLimit"), "r"), left);
    EXPECT_THAT(parameter(answer.field("RateLimit"), "t"), AllOf(Ge(1), Le(3600)));
  }
  auto const refused = with.get("/a");
  expect_refused_by(refused, "\"p\"");
  EXPECT_EQ(refused.field("RateLimit-Policy"), R"("p";q=3;w=3600)");
  EXPECT_EQ(parameter(refused.field("RateLimit"), "r"), 0);
  EXPECT_EQ(refused.field("Retry-After"),
            std::to_string(parameter(refused.field("RateLimit"), "t")));
  EXPECT_EQ(with.metric(R"(tidegate_decisions_total{policy="p",decision="admitted"})"), 3);
  EXPECT_EQ(with.metric(R"(tidegate_decisions_total{policy="p",decision="refused"})"), 1);
  EXPECT_EQ(with.metric(R"(tidegate_requests_total{route="all",status="429"})"), 1);
}

TEST_P(gateway_algorithm, admits_again_when_it_said_so) {
  gateway const with(
      echo_config("p: {quota: 2, window: 1s, algorithm: " + std::string(GetParam()) + "}", "p"));
  EXPECT_EQ(with.get("/a").status(), 200);
  EXPECT_EQ(with.get("/a").status(), 200);
  EXPECT_EQ(with.get("/a").status(), 429);
  auto const until = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  auto admitted_in_window = 0;
  while (std::chrono::steady_clock::now() < until) {
    admitted_in_window += with.get("/a").status() == 200 ? 1 : 0;
  }
  EXPECT_LE(admitted_in_window, 2);
  expect_eventually([&] { return with.get("/a").status() == 200; }, "a unit is there again");
}

INSTANTIATE_TEST_SUITE_P(, gateway_algorithm, testing::Values("fixed", "sliding", "gcra", "log"),
                         [](auto const& row) { return row.param; });

TEST(gateway_quota, resets_by_the_calendar) {
  using std::chrono::floor;
  using std::chrono::seconds;
  using clock = std::chrono::system_clock;
  gateway const with(
      echo_config("p: {quota: 2, window: {calendar: month}, algorithm: fixed}", "p"));
  auto const today = std::chrono::year_month_day(floor<std::chrono::days>(clock::now()));
  auto const month = today.year() / today.month();
  auto const begin = std::chrono::sys_days(month / 1);
  auto const end = std::chrono::sys_days((month + std::chrono::months(1)) / 1);
  auto const left = std::chrono::ceil<seconds>(end - clock::now()).count();
  auto const first = with.get("/a");
  EXPECT_EQ(first.field("RateLimit-Policy"),
            "\"p\";q=2;w=" + std::to_string(seconds(end - begin).count()));
  EXPECT_THAT(parameter(first.field("RateLimit"), "t"), AllOf(Ge(left - 20), Le(left + 1)));
  EXPECT_EQ(parameter(first.field("RateLimit"), "r"), 1);
  EXPECT_EQ(with.get("/a").status(), 200);
  expect_refused_by(with.get("/a"), "\"p\"");
}

TEST(gateway_quota, lets_gcra_take_its_burst_at_once_and_no_more) {
  gateway const with(echo_config("p: {quota: 3600, window: 1h, algorithm: gcra, burst: 2}", "p"));
  EXPECT_EQ(with.get("/a").status(), 200);
  EXPECT_EQ(with.get("/a").status(), 200);
  auto const refused = with.get("/a");
  EXPECT_EQ(refused.status(), 429);
  EXPECT_EQ(refused.field("Retry-After"), "1");
}

TEST(gateway_quota, charges_nothing_anywhere_when_one_policy_refuses) {
  gateway const with(
      echo_config("large: {quota: 10, window: 1h, algorithm: fixed}, "
                  "small: {quota: 1, window: 2h, algorithm: fixed}",
                  "large, small"));
  EXPECT_EQ(with.get("/a").field("RateLimit-Policy"), R"("large";q=10;w=3600, "small";q=1;w=7200)");
  for (int i = 0; i < 3; ++i) {
    auto const refused = with.get("/a");
    expect_refused_by(refused, "\"small\"");
    EXPECT_THAT(refused.field("RateLimit"), MatchesRegex(R"("large";r=9;t=[0-9]+, "small";r=0.*)"));
    EXPECT_EQ(refused.count("RateLimit") + refused.count("RateLimit-Policy"), 2U);
  }
}

TEST(gateway_quota, names_every_policy_that_refuses_and_waits_for_the_last) {
  gateway const with(echo_config(
      "b: {quota: 1, window: 1h, algorithm: fixed}, a: {quota: 1, window: 2h, algorithm: fixed}",
      "b, a"));
  EXPECT_EQ(with.get("/a").status(), 200);
  auto const refused = with.get("/a");
  expect_refused_by(refused, R"("b","a")");
  EXPECT_THAT(std::stoi(refused.field("Retry-After")), AllOf(Ge(7190), Le(7200)));
}

TEST(gateway_quota, holds_a_slot_until_the_exchange_ends) {
  origin api;
  gateway const with(
      upstream_config(api.url(), "slots: {quota: 1, unit: concurrent-requests}", "slots"));
  auto client = with.connect();
  client.send("GET /a HTTP/1.1\r\nHost: a.example\r\n\r\n");
  auto server = api.accept();
  (void)server.read_request();
  auto const refused = with.get("/b");
  expect_refused_by(refused, "\"slots\"");
  EXPECT_EQ(refused.field("Retry-After"), "1");
  EXPECT_EQ(refused.field("RateLimit-Policy"), R"("slots";q=1;qu="concurrent-requests")");
  EXPECT_EQ(refused.field("RateLimit"), R"("slots";r=0)") << "no t";
  server.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel");
  (void)client.read_head();
  EXPECT_EQ(with.get("/b").status(), 429) << "the response is not at its end";
  server.send("lo");
  EXPECT_EQ(client.read(5), "hello");
  client.send("GET /a HTTP/1.1\r\nHost: a.example\r\n\r\n");
  (void)server.read_request();
  server.send(response("200 OK", "again"));
  EXPECT_EQ(client.read_response().body, "again");
}

TEST(gateway_quota, gives_the_slot_of_a_client_back_that_is_gone) {
  origin api;
  gateway const with(
      upstream_config(api.url(), "slots: {quota: 1, unit: concurrent-requests}", "slots"));
  auto client = with.connect();
  client.send("GET /a HTTP/1.1\r\nHost: a.example\r\n\r\n");
  auto server = api.accept();
  (void)server.read_request();
  EXPECT_EQ(with.get("/b").status(), 429);
  client.close();
  EXPECT_TRUE(server.is_closed());
  auto next = with.connect();
  next.send("GET /a HTTP/1.1\r\nHost: a.example\r\n\r\n");
  auto second = api.accept();
  (void)second.read_request();
  second.send(response("200 OK", "mine"));
  EXPECT_EQ(next.read_response().body, "mine");
}

TEST(gateway_quota, gives_the_slot_back_when_the_upstream_fails) {
  auto const api = origin::refusing();
  gateway const with(
      upstream_config(api.url(), "slots: {quota: 1, unit: concurrent-requests}", "slots"));
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(with.get("/a").status(), 502);
  }
}

TEST(gateway_quota, counts_the_bytes_of_request_and_response) {
  origin api;
  gateway const with(upstream_config(
      api.url(), "bytes: {quota: 1000, window: 1h, algorithm: fixed, unit: content-bytes}",
      "bytes"));
  auto client = with.connect();
  client.send("POST /a HTTP/1.1\r\nHost: a.example\r\nContent-Length: 100\r\n\r\n" +
              std::string(100, 'x'));
  auto server = api.accept();
  (void)server.read_request();
  server.send(response("200 OK", std::string(250, 'y')));
  auto const first = client.read_response();
  EXPECT_EQ(first.field("RateLimit-Policy"), R"("bytes";q=1000;qu="content-bytes";w=3600)");
  EXPECT_EQ(parameter(first.field("RateLimit"), "r"), 900) << "what was declared";
  // The response counts as well, without its framing.
  client.send("GET /a HTTP/1.1\r\nHost: a.example\r\n\r\n");
  (void)server.read_request();
  server.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n64\r\n" +
              std::string(100, 'z') + "\r\n0\r\n\r\n");
  EXPECT_EQ(parameter(client.read_response().field("RateLimit"), "r"), 650);
  // More than is left is refused, and not charged.
  client.send("POST /a HTTP/1.1\r\nHost: a.example\r\nContent-Length: 551\r\n\r\n" +
              std::string(551, 'x'));
  expect_refused_by(client.read_response(), "\"bytes\"");
  // An overshoot counts against what follows.
  auto other = with.connect();
  other.send("GET /a HTTP/1.1\r\nHost: a.example\r\n\r\n");
  (void)server.read_request();
  server.send(response("200 OK", std::string(2000, 'y')));
  EXPECT_EQ(parameter(other.read_response().field("RateLimit"), "r"), 550);
  other.send("GET /a HTTP/1.1\r\nHost: a.example\r\n\r\n");
  auto const refused = other.read_response();
  EXPECT_EQ(refused.status(), 429);
  EXPECT_EQ(parameter(refused.field("RateLimit"), "r"), 0);
}

TEST(gateway_quota, gives_unsuccessful_requests_back) {
  origin api;
  gateway const with(upstream_config(
      api.url(), "p: {quota: 2, window: 1h, algorithm: fixed, count: successful}", "p"));
  auto client = with.connect();
  auto server = connection(descriptor());
  for (auto const* const status : {"404 Not Found", "500 Oh", "400 Bad Request"}) {
    client.send("GET /a HTTP/1.1\r\nHost: a.example\r\n\r\n");
    if (server.socket() < 0) {
      server = api.accept();
    }
    (void)server.read_request();
    server.send(response(status, ""));
    EXPECT_EQ(parameter(client.read_response().field("RateLimit"), "r"), 2) << status;
  }
  for (int i = 0; i < 2; ++i) {
    client.send("GET /a HTTP/1.1\r\nHost: a.example\r\n\r\n");
    (void)server.read_request();
    server.send(response("302 Found", ""));
    EXPECT_EQ(client.read_response().status(), 302);
  }
  client.send("GET /a HTTP/1.1\r\nHost: a.example\r\n\r\n");
  EXPECT_EQ(client.read_response().status(), 429);
}

TEST(gateway_quota, only_counts_in_the_shadow) {
  gateway const with(echo_config(
      "p: {quota: 10, window: 1h}, s: {quota: 1, window: 1h, enforce: shadow}", "s, p"));
  for (int i = 0; i < 3; ++i) {
    auto const answer = with.get("/a");
    EXPECT_EQ(answer.status(), 200);
    EXPECT_EQ(answer.field("RateLimit-Policy"), R"("p";q=10;w=3600)");
    EXPECT_THAT(answer.field("RateLimit"), testing::StartsWith("\"p\";r="));
  }
  EXPECT_EQ(with.metric(R"(tidegate_decisions_total{policy="s",decision="admitted"})"), 1);
  EXPECT_EQ(with.metric(R"(tidegate_decisions_total{policy="s",decision="shadow-refused"})"), 2);
}

TEST(gateway_quota, takes_the_cost_of_the_pattern) {
  gateway const with(
      echo_config("p: {quota: 100, window: 1h, algorithm: fixed}", "p",
                  R"(, cost: {default: 2, "POST /v1/search": 5, "GET /free/**": 0})"));
  EXPECT_EQ(parameter(with.get("/a").field("RateLimit"), "r"), 98);
  EXPECT_EQ(
      parameter(
          with.ask("POST /v1/%73earch?q=1 HTTP/1.1\r\nHost: a.example\r\n\r\n").field("RateLimit"),
          "r"),
      93);
  EXPECT_EQ(parameter(with.get("/v1/search").field("RateLimit"), "r"), 91);
  EXPECT_EQ(parameter(with.get("/free/x").field("RateLimit"), "r"), 91);
}

TEST(gateway_quota, says_the_same_moment_twice_when_a_costly_request_has_to_wait_for_two_windows) {
  gateway const with(
      echo_config("p: {quota: 2, window: 20s, algorithm: sliding}", "p", ", cost: {default: 2}"));
  auto const first = with.get("/a");
  EXPECT_EQ(first.status(), 200);
  EXPECT_LE(parameter(first.field("RateLimit"), "t"), 20) << "one unit is there again";
  // Two are there when the window in which two were spent counts for less than one.
  auto const refused = with.get("/a");
  expect_refused_by(refused, "\"p\"");
  auto const wait = std::stoi(refused.field("Retry-After"));
  EXPECT_THAT(wait, AllOf(Ge(21), Le(30)));
  EXPECT_EQ(parameter(refused.field("RateLimit"), "t"), wait);
}

TEST(gateway_quota, adds_jitter_within_its_range) {
  gateway const with(
      echo_config("p: {quota: 1, window: 100s, algorithm: fixed, jitter: 50s}", "p"));
  EXPECT_EQ(with.get("/a").status(), 200);
  std::vector<int> waits;
  for (int i = 0; i < 50; ++i) {
    auto const refused = with.get("/a");
    waits.push_back(std::stoi(refused.field("Retry-After")));
    EXPECT_EQ(parameter(refused.field("RateLimit"), "t"), waits.back());
  }
  EXPECT_THAT(waits, testing::Each(AllOf(Ge(95), Le(150))));
  EXPECT_GT(*std::ranges::max_element(waits), *std::ranges::min_element(waits));
}

TEST(gateway_quota, advertises_no_more_than_the_rate_allows) {
  gateway const with(echo_config(
      "p: {quota: 100000, window: 10s, algorithm: fixed, max-advertised-rate: 10/s}", "p"));
  auto const answer = with.get("/a");
  EXPECT_EQ(answer.field("RateLimit-Policy"), R"("p";q=100000;w=10)");
  EXPECT_LE(parameter(answer.field("RateLimit"), "r"),
            10 * parameter(answer.field("RateLimit"), "t"));
}

TEST(gateway_quota, blocks_abuse_and_says_so) {
  gateway const with(
      echo_config("p: {quota: 1, window: 1h, partition: [header:x-key], "
                  "abuse: {refusals: 2, within: 1m, block: 10m}}",
                  "p"));
  EXPECT_EQ(with.get("/a", "X-Key: 1\r\n").status(), 200);
  expect_refused_by(with.get("/a", "X-Key: 1\r\n"), "\"p\"");
  expect_refused_by(with.get("/a", "X-Key: 1\r\n"), "\"p\"");
  auto const blocked = with.get("/a", "X-Key: 1\r\n");
  EXPECT_EQ(blocked.status(), 429);
  EXPECT_THAT(
      blocked.body,
      HasSubstr(
          R"("type":"https://iana.org/assignments/http-problem-types#abnormal-usage-detected")"));
  EXPECT_THAT(std::stoi(blocked.field("Retry-After")), AllOf(Ge(590), Le(600)));
  EXPECT_EQ(blocked.field("RateLimit-Policy"), R"("p";q=1;w=3600)");
  EXPECT_EQ(blocked.field("RateLimit"), "\"p\";r=0;t=" + blocked.field("Retry-After"));
  EXPECT_EQ(with.metric(R"(tidegate_decisions_total{policy="p",decision="blocked"})"), 1);
  EXPECT_EQ(with.get("/a", "X-Key: 2\r\n").status(), 200) << "another partition";
}

TEST(gateway_quota, says_until_when_a_partition_is_blocked_from_the_refusal_on_that_blocks_it) {
  gateway const with(
      echo_config("p: {quota: 1, window: 20s, algorithm: fixed, "
                  "abuse: {refusals: 1, within: 1m, block: 10m}}, "
                  "q: {quota: 9, window: 1h, algorithm: fixed}",
                  "p, q"));
  EXPECT_EQ(with.get("/a").status(), 200);
  auto const last = with.get("/a");
  expect_refused_by(last, "\"p\"");
  EXPECT_EQ(last.field("Retry-After"), "600");
  EXPECT_EQ(last.field("RateLimit"), R"("p";r=0;t=600, "q";r=8;t=3600)");
  auto const blocked = with.get("/a");
  EXPECT_THAT(blocked.body, HasSubstr("#abnormal-usage-detected"));
  EXPECT_THAT(blocked.body, HasSubstr(R"("violated-policies":["p"])"));
  EXPECT_EQ(blocked.field("RateLimit"),
            "\"p\";r=0;t=" + blocked.field("Retry-After") + R"(, "q";r=8;t=3600)");
}

TEST(gateway_quota, names_every_policy_that_blocks_and_waits_for_the_last) {
  gateway const with(
      echo_config("p: {quota: 1, window: 20s, algorithm: fixed, "
                  "abuse: {refusals: 1, within: 1m, block: 10m}}, "
                  "q: {quota: 1, window: 30s, algorithm: fixed, "
                  "abuse: {refusals: 1, within: 1m, block: 20m}}",
                  "p, q"));
  EXPECT_EQ(with.get("/a").status(), 200);
  EXPECT_EQ(with.get("/a").field("Retry-After"), "1200");
  auto const blocked = with.get("/a");
  EXPECT_THAT(blocked.body, HasSubstr(R"("violated-policies":["p","q"])"));
  EXPECT_THAT(std::stoi(blocked.field("Retry-After")), AllOf(Ge(1190), Le(1200)));
}

TEST(gateway_quota, has_no_reset_beside_a_retry_after_that_no_quota_is_the_reason_of) {
  origin api;
  gateway const with(upstream_config(api.url(),
                                     "slots: {quota: 1, unit: concurrent-requests}, "
                                     "long: {quota: 9, window: 1h, algorithm: fixed}",
                                     "slots, long"));
  auto client = with.connect();
  client.send("GET /a HTTP/1.1\r\nHost: a.example\r\n\r\n");
  auto server = api.accept();
  (void)server.read_request();
  auto const refused = with.get("/b");
  expect_refused_by(refused, "\"slots\"");
  EXPECT_EQ(refused.field("Retry-After"), "1");
  EXPECT_EQ(refused.field("RateLimit"), R"("slots";r=0, "long";r=8)");
}

// ---- partitions ----

struct partition_row {
  char const* name;
  char const* source;
  char const* one;  ///< two requests of one partition
  char const* same;
  char const* another;  ///< and one of another
};

class gateway_partition : public testing::TestWithParam<partition_row> {};

TEST_P(gateway_partition, has_a_quota_of_its_own) {
  gateway const with(echo_config(
      std::string("p: {quota: 1, window: 1h, partition: [\"") + GetParam().source + "\"]}", "p"));
  EXPECT_EQ(with.ask(std::string(GetParam().one) + "\r\n").status(), 200);
  EXPECT_EQ(with.ask(std::string(GetParam().same) + "\r\n").status(), 429);
  EXPECT_EQ(with.ask(std::string(GetParam().another) + "\r\n").status(), 200);
  EXPECT_EQ(with.ask(std::string(GetParam().another) + "\r\n").status(), 429);
}

constexpr partition_row partition_rows[] = {
    {"header", "header:X-Key", "GET /a HTTP/1.1\r\nHost: a\r\nX-Key: 1\r\n",
     "GET /b HTTP/1.1\r\nHost: b\r\nx-key: 1\r\n", "GET /a HTTP/1.1\r\nHost: a\r\nX-Key: 2\r\n"},
    {"missing_header", "header:x-key", "GET /a HTTP/1.1\r\nHost: a\r\n",
     "GET /b HTTP/1.1\r\nHost: b\r\nX-Key:\r\n", "GET /a HTTP/1.1\r\nHost: a\r\nX-Key: 2\r\n"},
    {"query", "query:key", "GET /a?x=1&key=a%20b HTTP/1.1\r\nHost: a\r\n",
     "GET /b?key=a+b HTTP/1.1\r\nHost: a\r\n", "GET /a?key=c HTTP/1.1\r\nHost: a\r\n"},
    {"cookie", "cookie:sid", "GET /a HTTP/1.1\r\nHost: a\r\nCookie: x=1; sid=2\r\n",
     "GET /b HTTP/1.1\r\nHost: a\r\nCookie: sid=2\r\n",
     "GET /a HTTP/1.1\r\nHost: a\r\nCookie: sid=3\r\n"},
    {"method", "method", "GET /a HTTP/1.1\r\nHost: a\r\n", "GET /b HTTP/1.1\r\nHost: b\r\n",
     "DELETE /a HTTP/1.1\r\nHost: a\r\n"},
    {"host", "host", "GET /a HTTP/1.1\r\nHost: a.example\r\n",
     "GET /b HTTP/1.1\r\nHost: A.EXAMPLE\r\n", "GET /a HTTP/1.1\r\nHost: b.example\r\n"},
    {"path", "path", "GET /a HTTP/1.1\r\nHost: a\r\n", "GET /x/../%61?q HTTP/1.1\r\nHost: b\r\n",
     "GET /b HTTP/1.1\r\nHost: a\r\n"},
};

INSTANTIATE_TEST_SUITE_P(, gateway_partition, testing::ValuesIn(partition_rows),
                         [](auto const& row) { return row.param.name; });

TEST(gateway_partitions, tell_clients_by_their_address) {
  gateway const with(echo_config("p: {quota: 1, window: 1h}", "p"));
  for (auto const* const address : {"127.0.0.1", "127.0.0.2"}) {
    auto client = with.connect(address);
    for (auto const expected : {200, 429}) {
      client.send("GET / HTTP/1.1\r\nHost: a.example\r\nX-Forwarded-For: 1.2.3.4\r\n\r\n");
      EXPECT_EQ(client.read_response().status(), expected) << address;
    }
  }
}

TEST(gateway_partitions, tell_clients_by_what_a_trusted_proxy_says) {
  gateway const with(echo_config("p: {quota: 1, window: 1h}", "p") +
                     "trusted-proxies: [127.0.0.1, 10.0.0.0/8]\n");
  EXPECT_EQ(with.get("/a", "X-Forwarded-For: 1.2.3.4\r\n").status(), 200);
  EXPECT_EQ(with.get("/a", "X-Forwarded-For: 9.9.9.9, 1.2.3.4, 10.1.1.1\r\n").status(), 429);
  EXPECT_EQ(with.get("/a", "X-Forwarded-For: 1.2.3.5\r\n").status(), 200);
}

TEST(gateway_partitions, tell_routes) {
  gateway const with(
      "policies: {p: {quota: 1, window: 1h, partition: [route]}}\nroutes:\n"
      "  - {match: {path: /a/**}, service: echo, limits: [p]}\n"
      "  - {match: {path: /b/**}, service: echo, limits: [p]}\n");
  EXPECT_EQ(with.get("/a/1").status(), 200);
  EXPECT_EQ(with.get("/a/2").status(), 429);
  EXPECT_EQ(with.get("/b/1").status(), 200);
}

TEST(gateway_partitions, combine_sources) {
  gateway const with(
      echo_config("p: {quota: 1, window: 1h, partition: [header:x-a, header:x-b]}", "p"));
  EXPECT_EQ(with.get("/", "X-A: 1\r\nX-B: 2\r\n").status(), 200);
  EXPECT_EQ(with.get("/", "X-B: 2\r\nX-A: 1\r\n").status(), 429);
  EXPECT_EQ(with.get("/", "X-A: 2\r\nX-B: 1\r\n").status(), 200);
  EXPECT_EQ(with.get("/", "X-A: 12\r\n").status(), 200);
}

TEST(gateway_partitions, have_the_documented_hashed_key) {
  gateway const with(echo_config(
      "p: {quota: 9, window: 1h, partition: [header:x-api-key, client-ip], partition-key: hashed}",
      "p"));
  auto const answer = with.get("/", "X-Api-Key: secret\r\n");
  // As the description says it, with the tools of the shell.
  auto const digest =
      run({"/bin/sh", "-c",
           "printf 'header:x-api-key=secret\\nclient-ip=127.0.0.1\\n' | sha256sum | "
           "head -c 32 | sed 's/../\\\\x&/g' | xargs -0 printf | base64"});
  ASSERT_EQ(digest.status, 0) << digest.err;
  auto const key = digest.out.substr(0, digest.out.find('\n'));
  EXPECT_THAT(answer.field("RateLimit"), HasSubstr(";pk=:" + key + ":"));
}

TEST(gateway_partitions, have_a_plain_key_when_asked_for) {
  gateway const with(echo_config(
      "p: {quota: 9, window: 1h, partition: [header:x-tenant], partition-key: plain}", "p"));
  EXPECT_THAT(with.get("/", "X-Tenant: abc\r\n").field("RateLimit"), HasSubstr(";pk=:YWJj:"));
  EXPECT_THAT(with.get("/").field("RateLimit"), HasSubstr(";pk=::"));
}

// ---- exactness ----

TEST(gateway_exactness, admits_10000_of_64_connections_on_2_workers) {
  constexpr int connections = 64;
  constexpr int quota = 10'000;
  constexpr int requests_each = 200;  // 12,800 in all
  gateway const with(
      echo_config("p: {quota: 10000, window: 1h, algorithm: fixed, partition: []}", "p"), 2);
  std::atomic<int> admitted = 0;
  std::atomic<int> refused = 0;
  std::vector<std::jthread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&] {
      std::vector<connection> clients;
      for (int i = 0; i < connections / 4; ++i) {
        clients.push_back(with.connect());
      }
      for (int i = 0; i < requests_each; ++i) {
        for (auto& client : clients) {
          client.send("GET / HTTP/1.1\r\nHost: a.example\r\n\r\n");
        }
        for (auto& client : clients) {
          auto const status = client.read_response().status();
          admitted += status == 200 ? 1 : 0;
          refused += status == 429 ? 1 : 0;
        }
      }
    });
  }
  threads.clear();
  EXPECT_EQ(admitted, quota);
  EXPECT_EQ(admitted + refused, connections * requests_each);
  EXPECT_EQ(with.metric(R"(tidegate_decisions_total{policy="p",decision="admitted"})"), quota);
}

}  // namespace
}  // namespace tidegate::e2e
