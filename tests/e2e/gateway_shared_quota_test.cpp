// SPDX-License-Identifier: Apache-2.0
//
// Requests whose quotas are in a store that other gateways share, which does what a test says:
// answers when it is let, or fails. The gateway runs inside the test.
#include "keyed.hpp"
#include "raw_http2.hpp"
#include "scripted_quotas.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace tidegate::e2e {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr std::string_view fine = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

class gateway_shared_quota : public with_scripted_quotas {};

TEST_F(gateway_shared_quota, looks_up_and_resets_a_partition_in_the_store) {
  serving_origin const api{std::string(fine)};
  inner_gateway const with(limited(api.url(), "partition: []"), script_);
  for (int i = 0; i < 4; ++i) {
    (void)with.get();
  }
  EXPECT_EQ(with.get().status(), 429);
  constexpr std::string_view all = R"({"policy":"p","values":[]})";
  EXPECT_THAT(with.ask_admin("lookup", all).body, HasSubstr(R"("quota":3,"remaining":0,)"));
  auto const reset = with.ask_admin("reset", all);
  EXPECT_EQ(reset.status(), 200);
  EXPECT_THAT(reset.body, HasSubstr(R"("quota":3,"remaining":3,)"));
  expect_eventually([&] { return script_->forgotten == 2; }, "every thread forgets what it knew");
  EXPECT_EQ(with.get().status(), 200);
  script_->fails = true;
  EXPECT_EQ(with.ask_admin("lookup", all).status(), 503);
  EXPECT_EQ(with.ask_admin("reset", all).status(), 503);
}

TEST_F(gateway_shared_quota, is_not_waited_for_by_the_admin_address_when_it_blocks_a_data_loop) {
  serving_origin const api{std::string(fine)};
  inner_gateway const with(limited(api.url(), "partition: []"), script_);
  script_->blocks = true;
  auto first = with.connect();
  first.send("GET /a HTTP/1.1\r\nHost: a\r\n\r\n");
  script_->blocked.wait(false);
  auto second = with.connect();
  second.send("GET /a HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_EQ(with.admin("/healthz").body, "ok\n");
  EXPECT_EQ(with.admin("/readyz").status(), 200);
  EXPECT_THAT(with.admin("/metrics").body, HasSubstr("\ntidegate_connections_open 1\n"));
  EXPECT_EQ(with.admin("/").status(), 200);
  for (auto const* const path : {"config", "policies", "partitions", "directory"}) {
    EXPECT_EQ(with.admin(std::string("/api/v1/") + path).status(), 200) << path;
  }
  EXPECT_THAT(with.ask_admin("lookup", R"({"policy":"p","values":[]})").body,
              HasSubstr(R"("quota":3,"remaining":3,)"));
  (void)with.server().begin_drain();
  EXPECT_EQ(with.admin("/healthz").status(), 200);
  EXPECT_EQ(with.admin("/readyz").status(), 503);
  EXPECT_TRUE(first.is_silent());
  EXPECT_TRUE(second.is_silent());
  script_->blocks = false;
  script_->blocks.notify_all();
  EXPECT_EQ(first.read_response().status(), 200);
  EXPECT_EQ(second.read_response().status(), 200);
}

TEST_F(gateway_shared_quota, gives_no_temporary_quota_that_other_gateways_would_not_know_of) {
  serving_origin const api{std::string(fine)};
  inner_gateway const with(limited(api.url(), "partition: []"), script_);
  auto const answer =
      with.ask_admin("quota", R"({"policy":"p","values":[],"quota":9,"seconds":60})");
  EXPECT_EQ(answer.status(), 501);
  EXPECT_THAT(answer.body, HasSubstr("Several gateways share these quotas"));
  EXPECT_THAT(with.get().field("RateLimit-Policy"), HasSubstr("q=3"));
}

TEST_F(gateway_shared_quota, says_since_when_the_store_fails_and_that_it_works_again) {
  serving_origin const api{std::string(fine)};
  inner_gateway const with(limited(api.url(), ""), script_);
  constexpr std::string_view up = "tidegate_store_up{store=\"quota\",kind=\"redis\"} ";
  auto const says = [&](std::string const& value) {
    return with.admin("/metrics").body.contains(std::string(up) + value + "\n");
  };
  EXPECT_TRUE(says("1"));
  script_->fails = true;
  expect_eventually([&] { return says("0"); }, "it is down");
  EXPECT_THAT(
      with.admin("/metrics").body,
      testing::ContainsRegex("tidegate_store_failing_since_timestamp_seconds\\{store=\"quota\","
                             "kind=\"redis\"\\} [0-9]{10}"));
  script_->fails = false;
  expect_eventually([&] { return says("1"); }, "it is up");
}

TEST_F(gateway_shared_quota, refuses_what_the_store_refuses_and_says_what_it_said) {
  serving_origin const api{std::string(fine)};
  inner_gateway const with(limited(api.url(), ""), script_);
  for (int left = 2; left >= 0; --left) {
    auto const answer = with.get();
    EXPECT_EQ(answer.status(), 200);
    EXPECT_THAT(answer.field("RateLimit"), StartsWith("\"p\";r=" + std::to_string(left)));
  }
  auto const refused = with.get();
  EXPECT_EQ(refused.status(), 429);
  EXPECT_THAT(refused.body, HasSubstr("quota-exceeded"));
  EXPECT_EQ(api.requests(), 3U);
}

TEST_F(gateway_shared_quota, holds_a_request_and_what_follows_until_the_store_answers) {
  origin api;
  inner_gateway const with(limited(api.url(), ""), script_);
  script_->holds = true;
  auto client = with.connect();
  client.send(
      "POST /a%2e/b?q=1 HTTP/1.1\r\nHost: a\r\nX-Odd:  two  \r\nContent-Length: 6\r\n\r\nabc");
  expect_asked(1);
  client.send("def");
  client.send("GET /second HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_TRUE(api.is_untouched());
  EXPECT_TRUE(client.is_silent());
  script_->let_go();
  auto server = api.accept();
  auto const first = server.read_request();
  EXPECT_EQ(first.start_line, "POST /a./b?q=1 HTTP/1.1");
  EXPECT_EQ(first.field("X-Odd"), "two");
  EXPECT_EQ(first.body, "abcdef");
  server.send(fine);
  EXPECT_EQ(client.read_response().status(), 200);
  EXPECT_EQ(server.read_request().start_line, "GET /second HTTP/1.1");
  server.send(fine);
  EXPECT_EQ(client.read_response().body, "ok");
}

TEST_F(gateway_shared_quota, holds_a_large_upload_without_taking_it_all_in) {
  serving_origin const api{std::string(fine)};
  inner_gateway const with(limited(api.url(), ""), script_);
  script_->holds = true;
  auto client = with.connect();
  std::string const content(32 << 20, 'x');
  client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: " + std::to_string(content.size()) +
              "\r\n\r\n");
  expect_asked(1);
  auto const sent = client.send_until_blocked(content);
  EXPECT_LT(sent, content.size());
  script_->let_go();
  client.send(std::string_view(content).substr(sent));
  EXPECT_EQ(client.read_response().status(), 200);
}

TEST_F(gateway_shared_quota, keeps_the_order_of_pipelined_requests) {
  serving_origin const api([](message const& request) {
    return "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n" + request.start_line.substr(5, 2);
  });
  inner_gateway const with(limited(api.url(), ""), script_);
  auto client = with.connect();
  std::string all;
  for (auto const* const path : {"/a1", "/a2", "/a3", "/a4"}) {
    all += "GET " + std::string(path) + " HTTP/1.1\r\nHost: a\r\n\r\n";
  }
  client.send(all);
  for (auto const* const body : {"a1", "a2", "a3"}) {
    EXPECT_EQ(client.read_response().body, body);
  }
  EXPECT_EQ(client.read_response().status(), 429);
}

TEST_F(gateway_shared_quota, releases_what_was_spent_for_a_client_that_has_left) {
  serving_origin const api{std::string(fine)};
  inner_gateway const with(limited(api.url(), ""), script_);
  script_->holds = true;
  auto client = with.connect();
  client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  expect_asked(1);
  client.abort();
  (void)with.ask("GET /%zz HTTP/1.1\r\nHost: a\r\n\r\n");  // the loop went round meanwhile
  script_->let_go();
  expect_eventually([&] { return script_->given_back == 1; }, "one unit is given back");
  EXPECT_EQ(api.requests(), 0U);
}

TEST_F(gateway_shared_quota, holds_streams_of_http2_apart) {
  serving_origin const api{std::string(fine)};
  inner_gateway const with(limited(api.url(), ""), script_);
  script_->holds = true;
  raw_client client(with.connect());
  client.post(1);
  client.get(3);
  client.send(data, 0, 1, "abc");
  expect_asked(2);
  client.reset(3);
  client.send(data, 1, 1, "def");
  script_->let_go();
  auto const head = client.read(headers);
  EXPECT_EQ(head.stream, 1U);
  EXPECT_EQ(client.read(data).payload, "ok");
  expect_eventually([&] { return script_->given_back == 1; }, "the other one is given back");
  EXPECT_EQ(api.requests(), 1U);
}

TEST_F(gateway_shared_quota, asks_once_for_a_request_with_a_key) {
  serving_origin const api{std::string(fine)};
  inner_gateway const with(limited(api.url(), "", ", idempotency: {mode: required}"), script_);
  script_->holds = true;
  auto client = with.connect();
  client.send(post("\"k\""));
  expect_asked(1);
  EXPECT_EQ(api.requests(), 0U);
  script_->let_go();
  EXPECT_EQ(client.read_response().status(), 200);
  EXPECT_EQ(with.ask(post("\"k\"")).field("Idempotent-Replayed"), "true");
  EXPECT_EQ(script_->asked, 1);
  EXPECT_EQ(api.requests(), 1U);
}

TEST_F(gateway_shared_quota, does_not_run_a_key_whose_client_has_gone_before_the_answer) {
  serving_origin const api{std::string(fine)};
  inner_gateway const with(limited(api.url(), "", ", idempotency: {mode: required}"), script_);
  script_->holds = true;
  auto client = with.connect();
  client.send(post("\"k\""));
  expect_asked(1);
  client.abort();
  (void)with.ask("GET /%zz HTTP/1.1\r\nHost: a\r\n\r\n");
  script_->let_go();
  expect_eventually([&] { return script_->given_back == 1; }, "one unit is given back");
  EXPECT_EQ(with.ask(post("\"k\"")).field("Idempotent-Replayed"), "(none)");
  EXPECT_EQ(api.requests(), 1U);
}

TEST_F(gateway_shared_quota, asks_about_the_cost_of_a_replay) {
  serving_origin const api{std::string(fine)};
  inner_gateway const with(
      limited(api.url(), "", ", idempotency: {mode: required, replay-cost: 1}"), script_);
  EXPECT_EQ(with.ask(post("\"k\"")).status(), 200);
  EXPECT_EQ(with.ask(post("\"k\"")).status(), 200);
  EXPECT_EQ(with.ask(post("\"k\"")).status(), 200);
  EXPECT_EQ(with.ask(post("\"k\"")).status(), 429);
  EXPECT_EQ(script_->asked, 4);
}

TEST_F(gateway_shared_quota, limits_who_guesses_tokens) {
  serving_origin const api{std::string(fine)};
  inner_gateway const with(
      limited(api.url(), "",
              ", auth: {bearer-tokens: [{name: a, sha256: " + std::string(64, 'a') + "}]}"),
      script_);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(with.get("Authorization: Bearer no\r\n").status(), 401);
  }
  EXPECT_EQ(with.get("Authorization: Bearer no\r\n").status(), 429);
}

// ---- without the store ----

TEST_F(gateway_shared_quota, admits_without_the_store_where_the_policy_says_so) {
  serving_origin const api{std::string(fine)};
  inner_gateway const with(limited(api.url(), "on-store-failure: allow"), script_);
  script_->fails = true;
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(with.get().status(), 200);
  }
}

TEST_F(gateway_shared_quota, refuses_without_the_store_where_the_policy_says_so) {
  serving_origin const api{std::string(fine)};
  inner_gateway const with(limited(api.url(), "on-store-failure: deny"), script_);
  script_->is_down = true;
  auto const answer = with.get();
  EXPECT_EQ(answer.status(), 503);
  EXPECT_EQ(answer.field("Retry-After"), "1");
  EXPECT_EQ(answer.field("RateLimit"), "(none)");
  EXPECT_EQ(script_->asked, 0);
  EXPECT_EQ(api.requests(), 0U);
  script_->is_down = false;
  EXPECT_EQ(with.get().status(), 200);
}

TEST_F(gateway_shared_quota, counts_its_share_without_the_store) {
  serving_origin const api{std::string(fine)};
  // One of two gateways: half of the quota of 3, rounded down.
  inner_gateway const with(limited(api.url(), ""), script_);
  for (auto* const what : {&script_->fails, &script_->is_down}) {
    *what = true;
    EXPECT_EQ(with.get().status(), what == &script_->fails ? 200 : 429);
    EXPECT_EQ(with.get().status(), 429);
  }
}

TEST_F(gateway_shared_quota, holds_concurrent_requests_until_they_end) {
  origin api;
  inner_gateway const with("upstreams: {api: " + api.url() +
                               "}\npolicies: {p: {quota: 1, unit: concurrent-requests}}\n"
                               "routes:\n  - {match: {path: /**}, upstream: api, limits: [p]}\n",
                           script_);
  auto first = with.connect();
  first.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  auto server = api.accept();
  (void)server.read_request();
  EXPECT_EQ(with.get().status(), 429);
  server.send(fine);
  EXPECT_EQ(first.read_response().status(), 200);
  EXPECT_EQ(script_->given_back, 1);
  first.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  (void)server.read_request();
  server.send(fine);
  EXPECT_EQ(first.read_response().status(), 200);
}

}  // namespace
}  // namespace tidegate::e2e
