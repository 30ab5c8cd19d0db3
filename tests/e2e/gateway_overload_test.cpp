// SPDX-License-Identifier: Apache-2.0
#include "gateway.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace tidegate::e2e {
namespace {

auto config(origin const& api, std::string const& overload) -> std::string {
  return "upstreams: {api: {servers: [\"" + api.url() + "\"], overload: " + overload +
         "}}\n"
         "policies: {daily: {quota: 1000, window: 1d, algorithm: fixed, partition: [path]}}\n"
         "routes: [{match: {path: /**}, upstream: api, limits: [daily]}]\n";
}

auto answer(std::string const& status) -> std::string {
  return "HTTP/1.1 " + status + "\r\nContent-Length: 2\r\n\r\nok";
}

TEST(gateway_overload, answers_503_while_too_many_are_under_way_and_charges_nothing) {
  origin api;
  gateway const with(config(api, "{max-in-flight: 1}"));
  auto client = with.connect();
  client.send("GET /a HTTP/1.1\r\nHost: a.example\r\n\r\n");
  auto server = api.accept();
  (void)server.read_request();
  auto const refused = with.get("/b");
  EXPECT_EQ(refused.status(), 503);
  EXPECT_EQ(refused.field("Content-Type"), "application/problem+json");
  EXPECT_NE(refused.body.find("#temporary-reduced-capacity"), std::string::npos) << refused.body;
  EXPECT_EQ(refused.field("Retry-After"), "1");
  EXPECT_EQ(refused.field("RateLimit"), R"("daily";r=1000)")
      << "no reset is the moment of Retry-After";
  server.send(answer("200 OK"));
  EXPECT_EQ(client.read_response().status(), 200);
  client.send("GET /b HTTP/1.1\r\nHost: a.example\r\n\r\n");
  (void)server.read_request();
  server.send(answer("200 OK"));
  EXPECT_EQ(client.read_response().field("RateLimit"), R"("daily";r=999;t=86400)");
}

TEST(gateway_overload, keeps_the_reset_of_draft_07_which_cannot_be_left_out) {
  origin api;
  gateway const with(config(api, "{max-in-flight: 1}") + "fields: {ratelimit: draft-07}\n");
  auto client = with.connect();
  client.send("GET /a HTTP/1.1\r\nHost: a.example\r\n\r\n");
  auto server = api.accept();
  (void)server.read_request();
  auto const refused = with.get("/b");
  EXPECT_EQ(refused.status(), 503);
  EXPECT_EQ(refused.field("Retry-After"), "1");
  EXPECT_EQ(refused.field("RateLimit"), "limit=1000, remaining=1000, reset=86400");
}

TEST(gateway_overload, tells_clients_to_retry_when_an_exhausted_quota_has_more) {
  origin api;
  gateway const with(
      "upstreams: {api: {servers: [\"" + api.url() +
      "\"], overload: {max-in-flight: 1}}}\n"
      "policies: {one: {quota: 1, window: 1d, algorithm: fixed}, more: {quota: 9, window: 1h}}\n"
      "routes: [{match: {path: /**}, upstream: api, limits: [one, more]}]\n");
  auto client = with.connect();
  client.send("GET /a HTTP/1.1\r\nHost: a.example\r\n\r\n");
  auto server = api.accept();
  (void)server.read_request();
  auto const refused = with.get("/a");
  EXPECT_EQ(refused.status(), 503);
  EXPECT_EQ(refused.field("Retry-After"), "86400");
  EXPECT_THAT(refused.field("RateLimit"),
              testing::StartsWith(R"("one";r=0;t=86400, "more";r=8;t=)"));
}

TEST(gateway_overload, advertises_less_after_the_upstream_failed) {
  origin api;
  gateway const with(config(api, "{max-in-flight: 4}"));
  auto client = with.connect();
  client.send("GET /a HTTP/1.1\r\nHost: a.example\r\n\r\n");
  auto server = api.accept();
  (void)server.read_request();
  server.send(answer("503 Service Unavailable"));
  EXPECT_EQ(client.read_response().field("RateLimit"), R"("daily";r=999;t=86400)");
  client.send("GET /a HTTP/1.1\r\nHost: a.example\r\n\r\n");
  (void)server.read_request();
  server.send(answer("200 OK"));
  EXPECT_EQ(client.read_response().field("RateLimit"), R"("daily";r=249;t=86400)")
      << "one at a time instead of four";
}

TEST(gateway_overload, gives_its_place_back_when_a_quota_refuses_or_the_client_is_gone) {
  origin api;
  gateway const with(
      "upstreams: {api: {servers: [\"" + api.url() +
      "\"], overload: {max-in-flight: 1}}}\n"
      "policies: {one: {quota: 1, window: 1d, algorithm: fixed, partition: [path]}}\n"
      "routes: [{match: {path: /**}, upstream: api, limits: [one]}]\n");
  auto client = with.connect();
  client.send("GET /a HTTP/1.1\r\nHost: a.example\r\n\r\n");
  auto server = api.accept();
  (void)server.read_request();
  client.close();
  EXPECT_TRUE(server.is_closed());
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(with.get("/a").status(), 429);
  }
  auto next = with.connect();
  next.send("GET /b HTTP/1.1\r\nHost: a.example\r\n\r\n");
  auto second = api.accept();
  (void)second.read_request();
  second.send(answer("200 OK"));
  EXPECT_EQ(next.read_response().status(), 200);
}

TEST(gateway_overload, counts_what_is_in_flight_over_a_reload) {
  origin api;
  gateway with(config(api, "{max-in-flight: 2}"));
  auto first = with.connect();
  first.send("GET /a HTTP/1.1\r\nHost: a.example\r\n\r\n");
  auto server_of_first = api.accept();
  (void)server_of_first.read_request();
  EXPECT_EQ(with.reload(config(api, "{max-in-flight: 2}")), "the configuration was applied");
  auto second = with.connect();
  second.send("GET /a HTTP/1.1\r\nHost: a.example\r\n\r\n");
  auto server_of_second = api.accept();
  (void)server_of_second.read_request();
  EXPECT_EQ(with.get("/b").status(), 503) << "one is in flight from before the reload";
  EXPECT_EQ(with.reload(config(api, "{max-in-flight: 3}")), "the configuration was applied");
  auto third = with.connect();
  third.send("GET /a HTTP/1.1\r\nHost: a.example\r\n\r\n");
  auto server_of_third = api.accept();
  (void)server_of_third.read_request();
  EXPECT_EQ(with.get("/b").status(), 503) << "the new bound holds at once";
  server_of_first.send(answer("200 OK"));
  EXPECT_EQ(first.read_response().status(), 200);
  auto fourth = with.connect();
  fourth.send("GET /a HTTP/1.1\r\nHost: a.example\r\n\r\n");
  auto server_of_fourth = api.accept();
  (void)server_of_fourth.read_request();
  server_of_fourth.send(answer("200 OK"));
  EXPECT_EQ(fourth.read_response().status(), 200) << "what ended gave its place back";
}

TEST(gateway_overload, keeps_the_limit_that_it_has_learnt_over_a_reload) {
  origin api;
  gateway with(config(api, "{max-in-flight: 4}"));
  auto client = with.connect();
  client.send("GET /a HTTP/1.1\r\nHost: a.example\r\n\r\n");
  auto server = api.accept();
  (void)server.read_request();
  server.send(answer("503 Service Unavailable"));
  EXPECT_EQ(client.read_response().status(), 503);
  EXPECT_EQ(with.reload(config(api, "{max-in-flight: 4}")), "the configuration was applied");
  auto first = with.connect();
  first.send("GET /a HTTP/1.1\r\nHost: a.example\r\n\r\n");
  auto server_of_first = api.accept();
  (void)server_of_first.read_request();
  EXPECT_EQ(with.get("/b").status(), 503) << "one at a time instead of four";
}

TEST(gateway_overload, tells_of_all_that_is_left_some_time_after_the_last_failure) {
  bool fails = true;
  serving_origin const api([&fails](message const&) {
    return answer(std::exchange(fails, false) ? "503 Service Unavailable" : "200 OK");
  });
  gateway const with(
      "upstreams: {api: {servers: [\"" + api.url() +
      "\"], overload: {max-in-flight: 100}}}\n"
      "policies: {daily: {quota: 1000, window: 1d, algorithm: fixed}}\n"
      "routes: [{match: {path: /**}, upstream: api, limits: [daily], cost: {default: 1, \"GET "
      "/free\": 0}}]\n");
  EXPECT_EQ(with.get("/a").status(), 503);
  auto const less = with.get("/a").field("RateLimit");
  EXPECT_THAT(less, testing::MatchesRegex(R"("daily";r=[0-9]?[0-9];t=86400)"));
  // One at a time, which is not enough use of any limit for it to grow.
  expect_eventually(
      [&] { return with.get("/free").field("RateLimit").starts_with(R"("daily";r=998;)"); },
      "all that is left is told");
}

}  // namespace
}  // namespace tidegate::e2e
