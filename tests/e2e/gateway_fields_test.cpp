// SPDX-License-Identifier: Apache-2.0
//
// RateLimit fields as clients get them, in both drafts and with what the server behind says of its
// own.
#include "gateway.hpp"
#include "process.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <string>

namespace tidegate::e2e {
namespace {

using testing::MatchesRegex;

/// One upstream under policies, of which all are limits of the one route.
struct limited_api {
  origin api;
  gateway with;

  limited_api(std::string const& policies, std::string const& limits,
              std::string const& fields = "")
      : with("upstreams: {api: \"" + api.url() + "\"}\npolicies: {" + policies +
             "}\nroutes: [{match: {path: /**}, upstream: api, limits: [" + limits +
             "]}]\nfields: {" + fields + "}\n") {}

  /// What a client gets when the server answers that.
  auto answered(std::string_view answer) -> message {
    auto client = with.connect();
    client.send("GET /a HTTP/1.1\r\nHost: a.example\r\n\r\n");
    auto server = api.accept();
    (void)server.read_request();
    server.send(answer);
    server.shut_down_sending();
    return client.read_response();
  }
};

auto closing(std::string_view status, std::string_view field_lines = "") -> std::string {
  return response(status, "", "Connection: close\r\n" + std::string(field_lines));
}

constexpr auto fixed_10 = "p: {quota: 10, window: 1m, algorithm: fixed}";

auto dropped(gateway const& of) -> double {
  return of.metric("tidegate_upstream_fields_dropped_total");
}

// ---- draft-09 ----

TEST(gateway_draft_09, is_on_every_response_of_a_limited_route) {
  limited_api limited(fixed_10, "p");
  int left = 10;
  for (auto const* const status : {"200 OK", "204 No Content", "301 Moved", "401 Who",
                                   "404 Not Found", "500 Oh", "503 Later"}) {
    auto const answer = limited.answered(closing(status));
    --left;
    EXPECT_EQ(answer.field("RateLimit-Policy"), R"("p";q=10;w=60)") << status;
    EXPECT_THAT(answer.field("RateLimit"),
                MatchesRegex("\"p\";r=" + std::to_string(left) + ";t=[0-9]+"))
        << status;
    EXPECT_EQ(answer.count("X-RateLimit-Limit"), 0U);
  }
  auto const failed = limited.answered("nonsense\r\n\r\n");
  EXPECT_EQ(failed.status(), 502);
  EXPECT_EQ(failed.field("RateLimit-Policy"), R"("p";q=10;w=60)");
  EXPECT_THAT(failed.field("RateLimit"), MatchesRegex("\"p\";r=2;t=[0-9]+"));
}

TEST(gateway_draft_09, has_one_line_each_in_the_order_of_limits) {
  limited_api limited(
      "a: {quota: 5, window: 1m}, b: {quota: 7, window: 1h}, c: {quota: 3, unit: "
      "concurrent-requests}, d: {quota: 1KiB, window: 1d, unit: content-bytes}",
      "c, b, d, a");
  auto const answer = limited.answered(closing("200 OK"));
  EXPECT_EQ(answer.field("RateLimit-Policy"),
            R"("c";q=3;qu="concurrent-requests", "b";q=7;w=3600, )"
            R"("d";q=1024;qu="content-bytes";w=86400, "a";q=5;w=60)");
  EXPECT_THAT(
      answer.field("RateLimit"),
      MatchesRegex(R"("c";r=2, "b";r=6;t=[0-9]+, "d";r=1024(;t=[0-9]+)?, "a";r=4;t=[0-9]+)"));
  EXPECT_EQ(answer.count("RateLimit-Policy"), 1U);
  EXPECT_EQ(answer.count("RateLimit"), 1U);
}

TEST(gateway_draft_09, has_what_the_draft_defines_in_each_item_and_nothing_else) {
  gateway const with(
      "policies: {a: {quota: 5, window: 1m, algorithm: fixed, partition: [header:x-tenant], "
      "partition-key: plain}, b: {quota: 1KiB, window: 1h, algorithm: fixed, unit: content-bytes}, "
      "c: {quota: 3, unit: concurrent-requests}, "
      "'a \"b\" \\': {quota: 7, window: 2m, algorithm: fixed}}\n"
      "routes: [{match: {path: /**}, service: echo, limits: [a, b, c, 'a \"b\" \\']}]\n");
  auto const answer = with.get("/", "X-Tenant: abc\r\n");
  EXPECT_EQ(answer.field("RateLimit-Policy"),
            R"("a";q=5;w=60;pk=:YWJj:, "b";q=1024;qu="content-bytes";w=3600, )"
            R"("c";q=3;qu="concurrent-requests", "a \"b\" \\";q=7;w=120)");
  EXPECT_THAT(
      answer.field("RateLimit"),
      MatchesRegex(
          R"("a";r=4;t=60;pk=:YWJj:, "b";r=1024(;t=3600)?, "c";r=2, "a \\"b\\" \\\\";r=6;t=120)"));
  EXPECT_THAT(with.get("/").field("RateLimit"), testing::StartsWith(R"("a";r=4;t=60;pk=::, )"))
      << "another partition, which has an empty key";
}

TEST(gateway_draft_09, is_left_out_where_there_is_nothing_to_show) {
  for (auto const* const limits : {"", "shadow-only"}) {
    limited_api limited("shadow-only: {quota: 10, window: 1m, enforce: shadow}", limits);
    auto const answer = limited.answered(closing("200 OK"));
    EXPECT_EQ(answer.status(), 200);
    EXPECT_EQ(answer.count("RateLimit-Policy") + answer.count("RateLimit"), 0U) << limits;
  }
}

TEST(gateway_draft_09, has_a_reset_that_is_rounded_up_and_may_grow) {
  gateway const with(
      "policies: {p: {quota: 4, window: 10s, algorithm: gcra, burst: 1}, "
      "g: {quota: 60, window: 1h, algorithm: gcra, burst: 10}}\nroutes: [{match: {path: /p}, "
      "service: echo, limits: [p]}, {match: {path: /g}, service: echo, limits: [g]}]\n");
  EXPECT_EQ(with.get("/p").field("RateLimit"), R"("p";r=0;t=3)") << "a unit each 2.5 s";
  EXPECT_EQ(with.get("/g").field("RateLimit"), R"("g";r=9;t=60)");
  EXPECT_THAT(with.get("/g").field("RateLimit"), MatchesRegex(R"("g";r=8;t=1([01][0-9]|20))"));
  EXPECT_THAT(with.get("/g").field("RateLimit"), MatchesRegex(R"("g";r=7;t=1([67][0-9]|80))"));
}

TEST(gateway_draft_09, leaves_ratelimit_out_of_a_redirect_while_nothing_remains) {
  limited_api limited("p: {quota: 2, window: 1m}", "p");
  auto const first = limited.answered(closing("302 Found", "Location: /b\r\n"));
  EXPECT_THAT(first.field("RateLimit"), MatchesRegex("\"p\";r=1;t=[0-9]+"));
  auto const second = limited.answered(closing("302 Found", "Location: /b\r\n"));
  EXPECT_EQ(second.count("RateLimit"), 0U);
  EXPECT_EQ(second.field("RateLimit-Policy"), R"("p";q=2;w=60)");
}

TEST(gateway_draft_09, leaves_only_its_own_exhausted_items_out_of_a_redirect) {
  limited_api limited(
      "p: {quota: 1, window: 1m, algorithm: fixed}, q: {quota: 9, window: 1h, algorithm: fixed, "
      "count: successful}",
      "p, q");
  auto const answer =
      limited.answered(closing("302 Found",
                               "Location: /b\r\n"
                               "RateLimit-Policy: \"theirs\";q=5;w=30, \"p\";q=9;w=60\r\n"
                               "RateLimit: \"theirs\";r=0;t=3, \"p\";r=4;t=5, \"q\";r=0;t=7\r\n"));
  EXPECT_EQ(answer.field("RateLimit"), R"("q";r=0;t=3600, "theirs";r=0;t=3, "p";r=4;t=5)");
  EXPECT_EQ(answer.field("RateLimit-Policy"), R"("p";q=1;w=60, "q";q=9;w=3600, "theirs";q=5;w=30)");
}

TEST(gateway_draft_09, takes_care_of_redirects_that_are_followed_only) {
  for (auto const* const status : {"301 Moved", "302 Found", "303 See Other",
                                   "307 Temporary Redirect", "308 Permanent Redirect"}) {
    limited_api limited("p: {quota: 1, window: 1m, algorithm: fixed}", "p");
    auto const answer = limited.answered(closing(status, "Location: /b\r\n"));
    EXPECT_EQ(answer.count("RateLimit"), 0U) << status;
    EXPECT_EQ(answer.field("RateLimit-Policy"), R"("p";q=1;w=60)") << status;
  }
  for (auto const* const status : {"300 Multiple Choices", "304 Not Modified"}) {
    limited_api limited("p: {quota: 1, window: 1m, algorithm: fixed}", "p");
    EXPECT_EQ(limited.answered(closing(status)).field("RateLimit"), R"("p";r=0;t=60)") << status;
  }
}

TEST(gateway_draft_09, leaves_nothing_out_of_other_responses_while_nothing_remains) {
  limited_api limited("p: {quota: 1, window: 1m}", "p");
  EXPECT_THAT(limited.answered(closing("200 OK")).field("RateLimit"),
              MatchesRegex("\"p\";r=0;t=[0-9]+"));
}

constexpr std::string_view with_trailers =
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n"
    "Trailer: RateLimit , X-Sum,ratelimit-policy\r\n\r\n"
    "5\r\nhello\r\n0\r\nRateLimit: \"a\";r=1;t=2\r\nX-Sum: 1\r\n"
    "RateLimit-Policy: \"a\";q=1;w=2\r\n\r\n";

TEST(gateway_draft_09, is_not_in_trailers_of_http_1) {
  for (auto const* const limits : {"", "p"}) {
    limited_api limited(fixed_10, limits);
    auto const answer = limited.answered(with_trailers);
    EXPECT_EQ(answer.body, "hello");
    EXPECT_EQ(answer.trailers, "X-Sum: 1\r\n") << limits;
    EXPECT_EQ(answer.field("Trailer"), "X-Sum") << limits;
    EXPECT_EQ(answer.count("RateLimit"), *limits == 0 ? 0U : 1U);
  }
  // Nor with `ratelimit: none`.
  limited_api none(fixed_10, "p", "ratelimit: none");
  EXPECT_EQ(none.answered(with_trailers).trailers, "X-Sum: 1\r\n");
}

TEST(gateway_draft_09, is_not_in_trailers_of_http_2) {
  limited_api limited(fixed_10, "p");
  auto asked = std::async(std::launch::async, [&] {
    return run({"/usr/bin/env", "curl", "-sSi", "--max-time", "30", "--http2-prior-knowledge", "-H",
                "TE: trailers", "http://" + limited.with.authority() + "/a"});
  });
  auto server = limited.api.accept();
  (void)server.read_request();
  server.send(with_trailers);
  server.shut_down_sending();
  auto const answer = asked.get();
  EXPECT_THAT(answer.out, testing::HasSubstr("ratelimit: \"p\";r=9;t=60\r\n"));
  EXPECT_THAT(answer.out, testing::HasSubstr("hello"));
  EXPECT_THAT(answer.out, testing::Not(testing::HasSubstr("\"a\";")));
  EXPECT_THAT(answer.out, testing::HasSubstr("trailer: X-Sum\r\n"));
  EXPECT_THAT(answer.out, testing::HasSubstr("x-sum: 1\r\n"));
}

// ---- what the server says of its own ----

TEST(gateway_merge, keeps_the_servers_items_with_all_their_parameters_after_ours) {
  limited_api limited(fixed_10, "p");
  auto const answer = limited.answered(closing("200 OK",
                                               "RateLimit-Policy: \"theirs\";q=5;w=30;x=\"y\"\r\n"
                                               "RateLimit: \"theirs\";r=2;t=3;z;pk=:YWJj:\r\n"));
  EXPECT_EQ(answer.field("RateLimit-Policy"), R"("p";q=10;w=60, "theirs";q=5;w=30;x="y")");
  EXPECT_THAT(answer.field("RateLimit"),
              MatchesRegex(R"("p";r=9;t=[0-9]+, "theirs";r=2;t=3;z;pk=:YWJj:)"));
  EXPECT_EQ(answer.count("RateLimit-Policy"), 1U);
  EXPECT_EQ(answer.count("RateLimit"), 1U);
  EXPECT_EQ(dropped(limited.with), 0);
}

TEST(gateway_merge, joins_several_lines_of_the_server) {
  limited_api limited(fixed_10, "p");
  auto const answer =
      limited.answered(closing("200 OK", "RateLimit: \"a\";r=1\r\nRateLimit: \"b\";r=2\r\n"));
  EXPECT_THAT(answer.field("RateLimit"), MatchesRegex(R"("p";r=9;t=[0-9]+, "a";r=1, "b";r=2)"));
  EXPECT_EQ(answer.count("RateLimit"), 1U);
}

TEST(gateway_merge, makes_one_item_of_one_name_with_the_lower_r_and_the_later_t) {
  limited_api limited(fixed_10, "p");
  auto const lower = limited.answered(closing("200 OK", "RateLimit: \"p\";r=3;t=1000\r\n"));
  EXPECT_EQ(lower.field("RateLimit"), R"("p";r=3;t=1000)");
  auto const higher = limited.answered(closing("200 OK", "RateLimit: \"p\";r=30;t=1\r\n"));
  EXPECT_THAT(higher.field("RateLimit"), MatchesRegex(R"("p";r=8;t=[0-9][0-9])"));
}

TEST(gateway_merge, shows_a_server_of_draft_07_as_upstream) {
  limited_api limited(fixed_10, "p");
  auto const answer = limited.answered(closing(
      "200 OK", "RateLimit-Policy: 100;w=60\r\nRateLimit: limit=100, remaining=50, reset=5\r\n"));
  EXPECT_EQ(answer.field("RateLimit-Policy"), R"("p";q=10;w=60, "upstream";q=100;w=60)");
  EXPECT_THAT(answer.field("RateLimit"), MatchesRegex(R"("p";r=9;t=[0-9]+, "upstream";r=50;t=5)"));
}

TEST(gateway_merge, drops_malformed_fields_and_counts_that) {
  limited_api limited(fixed_10, "p");
  auto const answer = limited.answered(
      closing("200 OK", "RateLimit: \"theirs;r=2\r\nRateLimit-Policy: \"theirs\";q=5\r\n"));
  EXPECT_THAT(answer.field("RateLimit"), MatchesRegex(R"("p";r=9;t=[0-9]+)"));
  EXPECT_EQ(answer.field("RateLimit-Policy"), R"("p";q=10;w=60, "theirs";q=5)");
  EXPECT_EQ(dropped(limited.with), 1);
}

TEST(gateway_merge, leaves_the_fields_alone_on_a_route_without_limits) {
  limited_api limited(fixed_10, "", "legacy: true");
  // The items of RFC 9651 make a field malformed by RFC 8941, on which the draft stands.
  auto const answer =
      limited.answered(closing("301 Moved",
                               "Location: /b\r\n"
                               "RateLimit-Policy: \"a\" ; q=5\r\n"
                               "RateLimit: \"a\";r=0;t=10;acme-until=@1659578233\r\n"
                               "RateLimit: \"b\";r=0;acme-note=%\"f%c3%bc\"\r\n"
                               "X-RateLimit-Limit: 7\r\n"));
  EXPECT_EQ(answer.field("RateLimit-Policy"), R"("a" ; q=5)");
  EXPECT_EQ(answer.field("RateLimit"),
            R"("a";r=0;t=10;acme-until=@1659578233, "b";r=0;acme-note=%"f%c3%bc")");
  EXPECT_EQ(answer.count("RateLimit"), 2U) << "two lines as they came";
  EXPECT_EQ(answer.field("X-RateLimit-Limit"), "7");
  EXPECT_EQ(dropped(limited.with), 0);
}

TEST(gateway_merge, leaves_the_fields_alone_where_limits_are_in_the_shadow_only) {
  limited_api limited("p: {quota: 10, window: 1m, enforce: shadow}", "p");
  auto const answer = limited.answered(closing("200 OK", "RateLimit: \"a\" ; r=2\r\n"));
  EXPECT_EQ(answer.field("RateLimit"), R"("a" ; r=2)");
  EXPECT_EQ(answer.count("RateLimit-Policy"), 0U);
}

TEST(gateway_merge, keeps_both_items_where_the_unit_differs) {
  limited_api limited(fixed_10, "p");
  auto const answer =
      limited.answered(closing("200 OK",
                               "RateLimit-Policy: \"p\";q=1000;qu=\"content-bytes\";w=10\r\n"
                               "RateLimit: \"p\";r=7;t=3\r\n"));
  EXPECT_EQ(answer.field("RateLimit-Policy"),
            R"("p";q=10;w=60, "p";q=1000;qu="content-bytes";w=10)");
  EXPECT_EQ(answer.field("RateLimit"), R"("p";r=9;t=60, "p";r=7;t=3)");
}

TEST(gateway_merge, keeps_both_items_where_the_partition_key_differs) {
  limited_api limited("p: {quota: 10, window: 1m, algorithm: fixed, partition-key: hashed}", "p");
  auto const theirs =
      limited.answered(closing("200 OK",
                               "RateLimit-Policy: \"p\";q=5;w=60;pk=:QkJCQg==:\r\n"
                               "RateLimit: \"p\";r=0;t=55;pk=:QkJCQg==:, \"p\";r=1;t=2\r\n"));
  EXPECT_THAT(theirs.field("RateLimit-Policy"),
              MatchesRegex(R"("p";q=10;w=60;pk=:[^:]+:, "p";q=5;w=60;pk=:QkJCQg==:)"));
  auto const limit = theirs.field("RateLimit");
  EXPECT_THAT(limit,
              MatchesRegex(R"("p";r=9;t=60;pk=:[^:]+:, "p";r=0;t=55;pk=:QkJCQg==:, "p";r=1;t=2)"));
  // The key that is ours is one with ours.
  auto const key = limit.substr(limit.find(";pk="), limit.find(',') - limit.find(";pk="));
  auto const same = limited.answered(closing("200 OK", "RateLimit: \"p\";r=3;t=99" + key + "\r\n"));
  EXPECT_EQ(same.field("RateLimit"), "\"p\";r=3;t=99" + key);
}

TEST(gateway_merge, forwards_whatever_the_server_is_presumed_to_do) {
  limited_api limited(fixed_10, "p");
  for (auto const* const status : {"200 OK", "429 Too Many Requests", "200 OK"}) {
    // It is sent on each time, though the server has said that it will refuse.
    auto const answer = limited.answered(
        closing(status, "Retry-After: 3600\r\nRateLimit: \"theirs\";r=0;t=3600\r\n"));
    EXPECT_EQ(answer.status(), std::string_view(status).starts_with("429") ? 429 : 200);
    EXPECT_THAT(answer.field("RateLimit"), testing::EndsWith(R"("theirs";r=0;t=3600)"));
  }
}

TEST(gateway_merge, spends_units_of_the_server_but_not_of_the_client_when_a_request_is_sent_again) {
  limited_api limited(fixed_10, "p");
  auto client = limited.with.connect();
  client.send("GET /a HTTP/1.1\r\nHost: a.example\r\n\r\n");
  auto server = limited.api.accept();
  (void)server.read_request();
  server.send(response("200 OK", ""));
  EXPECT_THAT(client.read_response().field("RateLimit"), MatchesRegex(R"("p";r=9;t=[0-9]+)"));
  client.send("GET /a HTTP/1.1\r\nHost: a.example\r\n\r\n");
  (void)server.read_request();
  server.close();
  auto again = limited.api.accept();
  (void)again.read_request();
  again.send(response("200 OK", ""));
  EXPECT_THAT(client.read_response().field("RateLimit"), MatchesRegex(R"("p";r=8;t=[0-9]+)"));
}

TEST(gateway_merge, takes_the_closest_to_exhaustion_in_draft_07) {
  limited_api limited(fixed_10, "p", "ratelimit: draft-07");
  auto const theirs = limited.answered(closing(
      "200 OK", "RateLimit-Policy: 100;w=60\r\nRateLimit: limit=100, remaining=1, reset=5\r\n"));
  EXPECT_EQ(theirs.field("RateLimit"), "limit=100, remaining=1, reset=5");
  EXPECT_EQ(theirs.field("RateLimit-Policy"), "10;w=60, 100;w=60");
  auto const ours =
      limited.answered(closing("200 OK", "RateLimit: limit=100, remaining=90, reset=5\r\n"));
  EXPECT_THAT(ours.field("RateLimit"), MatchesRegex("limit=10, remaining=8, reset=[0-9]+"));
}

TEST(gateway_merge, takes_a_server_of_draft_09_in_draft_07) {
  limited_api limited(fixed_10, "p", "ratelimit: draft-07");
  auto const answer = limited.answered(closing(
      "200 OK", "RateLimit-Policy: \"theirs\";q=5;w=30\r\nRateLimit: \"theirs\";r=0;t=3\r\n"));
  EXPECT_EQ(answer.field("RateLimit"), "limit=5, remaining=0, reset=3");
  EXPECT_EQ(answer.field("RateLimit-Policy"), "10;w=60, 5;w=30");
}

TEST(gateway_merge, leaves_the_fields_alone_with_ratelimit_none) {
  limited_api limited(fixed_10, "p", "ratelimit: none");
  auto const answer = limited.answered(
      closing("200 OK",
              "RateLimit: \"theirs;r=2\r\nRateLimit-Policy: anything\r\nX-RateLimit-Limit: 7\r\n"));
  EXPECT_EQ(answer.field("RateLimit"), "\"theirs;r=2");
  EXPECT_EQ(answer.field("RateLimit-Policy"), "anything");
  EXPECT_EQ(answer.field("X-RateLimit-Limit"), "7");
  EXPECT_EQ(dropped(limited.with), 0);
}

// ---- draft-07, legacy, none ----

TEST(gateway_draft_07, is_on_every_response_of_a_limited_route) {
  limited_api limited(fixed_10, "p", "ratelimit: draft-07");
  int left = 10;
  for (auto const* const status : {"200 OK", "204 No Content", "206 Partial Content",
                                   "304 Not Modified", "404 Not Found", "500 Oh", "503 Later"}) {
    auto const answer = limited.answered(closing(status));
    --left;
    EXPECT_EQ(answer.field("RateLimit-Policy"), "10;w=60") << status;
    EXPECT_THAT(answer.field("RateLimit"),
                MatchesRegex("limit=10, remaining=" + std::to_string(left) + ", reset=[0-9]+"))
        << status;
  }
}

TEST(gateway_draft_07, has_the_three_members_and_policies_with_their_window) {
  limited_api limited(
      "p: {quota: 10, window: 1m, algorithm: fixed}, slots: {quota: 3, unit: concurrent-requests}",
      "slots, p", "ratelimit: draft-07");
  auto const answer = limited.answered(closing("200 OK"));
  EXPECT_EQ(answer.field("RateLimit"), "limit=10, remaining=9, reset=60");
  EXPECT_EQ(answer.field("RateLimit-Policy"), "10;w=60");
  EXPECT_EQ(answer.count("RateLimit") + answer.count("RateLimit-Policy"), 2U);
}

TEST(gateway_draft_07, has_a_reset_that_is_rounded_up_and_may_grow) {
  gateway const with(
      "fields: {ratelimit: draft-07}\n"
      "policies: {p: {quota: 4, window: 10s, algorithm: gcra, burst: 1}, "
      "g: {quota: 60, window: 1h, algorithm: gcra, burst: 10}}\nroutes: [{match: {path: /p}, "
      "service: echo, limits: [p]}, {match: {path: /g}, service: echo, limits: [g]}]\n");
  EXPECT_EQ(with.get("/p").field("RateLimit"), "limit=4, remaining=0, reset=3");
  EXPECT_EQ(with.get("/g").field("RateLimit"), "limit=60, remaining=9, reset=60");
  EXPECT_THAT(with.get("/g").field("RateLimit"),
              MatchesRegex("limit=60, remaining=8, reset=1([01][0-9]|20)"));
}

TEST(gateway_draft_07, passes_on_what_it_does_not_know_of_a_server) {
  limited_api limited(fixed_10, "p", "ratelimit: draft-07");
  auto const answer =
      limited.answered(closing("200 OK",
                               "RateLimit-Policy: 10;w=30;acme-burst=4, 7;w=5;acme-burst=2\r\n"
                               "RateLimit: limit=7;a=1, remaining=1;b, reset=5, acme-cost=3\r\n"));
  EXPECT_EQ(answer.field("RateLimit"), "limit=7;a=1, remaining=1;b, reset=5, acme-cost=3")
      << "the closest to exhaustion, whatever else it says";
  EXPECT_EQ(answer.field("RateLimit-Policy"), "10;w=60;acme-burst=4, 7;w=5;acme-burst=2")
      << "one policy of each quota, and comments stay";
  EXPECT_EQ(dropped(limited.with), 0);
}

TEST(gateway_draft_07, tells_less_than_there_is_and_later_than_it_must) {
  limited_api capped("p: {quota: 100000, window: 10s, algorithm: fixed, max-advertised-rate: 10/s}",
                     "p", "ratelimit: draft-07");
  EXPECT_THAT(capped.answered(closing("200 OK")).field("RateLimit"),
              MatchesRegex("limit=[0-9]+, remaining=(100|[0-9][0-9]?), reset=10"));
  limited_api spread("p: {quota: 1, window: 100s, algorithm: fixed, jitter: 50s}", "p",
                     "ratelimit: draft-07");
  EXPECT_EQ(spread.answered(closing("200 OK")).status(), 200);
  for (int i = 0; i < 10; ++i) {
    auto const refused = spread.with.get("/a");
    auto const wait = std::stoi(refused.field("Retry-After"));
    EXPECT_THAT(wait, testing::AllOf(testing::Ge(95), testing::Le(150)));
    EXPECT_EQ(refused.field("RateLimit"), "limit=1, remaining=0, reset=" + std::to_string(wait));
  }
}

TEST(gateway_draft_07, leaves_ratelimit_out_of_a_redirect_while_nothing_remains_of_ours) {
  limited_api limited("p: {quota: 1, window: 1m}, q: {quota: 9, window: 1h}", "p, q",
                      "ratelimit: draft-07");
  auto const ours = limited.answered(closing("302 Found", "Location: /b\r\n"));
  EXPECT_EQ(ours.count("RateLimit"), 0U) << "no other limit in the place of the lowest";
  EXPECT_EQ(ours.field("RateLimit-Policy"), "1;w=60, 9;w=3600");

  limited_api other("p: {quota: 1, window: 1m}", "p", "ratelimit: draft-07");
  auto const theirs = other.answered(
      closing("302 Found", "Location: /b\r\nRateLimit: limit=100, remaining=0, reset=5\r\n"));
  EXPECT_EQ(theirs.field("RateLimit"), "limit=100, remaining=0, reset=5");
}

TEST(gateway_draft_07, passes_on_a_window_of_0_and_units_of_the_server_as_they_are) {
  limited_api limited(fixed_10, "p", "ratelimit: draft-07");
  auto const older = limited.answered(closing("200 OK", "RateLimit-Policy: 3;w=0\r\n"));
  EXPECT_EQ(older.field("RateLimit-Policy"), "10;w=60, 3;w=0");
  auto const newer = limited.answered(
      closing("200 OK", "RateLimit-Policy: \"b\";q=7;qu=\"content-bytes\";w=5\r\n"));
  EXPECT_EQ(newer.field("RateLimit-Policy"), R"(10;w=60, 7;w=5;qu="content-bytes")");
}

TEST(gateway_draft_07, has_the_policy_closest_to_exhaustion) {
  limited_api limited(
      "large: {quota: 100, window: 1h}, small: {quota: 3, window: 1m, algorithm: fixed}, "
      "slots: {quota: 1, unit: concurrent-requests}",
      "large, small, slots", "ratelimit: draft-07");
  auto const answer = limited.answered(closing("200 OK"));
  EXPECT_EQ(answer.field("RateLimit-Policy"), "100;w=3600, 3;w=60") << "slots have no window";
  EXPECT_THAT(answer.field("RateLimit"), MatchesRegex("limit=3, remaining=2, reset=(60|59)"));
}

TEST(gateway_draft_07, has_no_fields_when_no_policy_has_a_window) {
  limited_api limited("slots: {quota: 1, unit: concurrent-requests}", "slots",
                      "ratelimit: draft-07");
  auto const answer = limited.answered(closing("200 OK"));
  EXPECT_EQ(answer.count("RateLimit") + answer.count("RateLimit-Policy"), 0U);
}

TEST(gateway_draft_07, refuses_with_retry_after_and_fields) {
  limited_api limited("p: {quota: 1, window: 1m, algorithm: fixed}", "p", "ratelimit: draft-07");
  EXPECT_EQ(limited.answered(closing("200 OK")).status(), 200);
  auto const refused = limited.with.get("/a");
  EXPECT_EQ(refused.status(), 429);
  EXPECT_EQ(refused.field("RateLimit-Policy"), "1;w=60");
  EXPECT_EQ(refused.field("RateLimit"),
            "limit=1, remaining=0, reset=" + refused.field("Retry-After"));
}

TEST(gateway_legacy, adds_x_ratelimit_fields_and_takes_the_servers_off) {
  limited_api limited(
      "large: {quota: 100, window: 1h}, p: {quota: 3, window: 1m, algorithm: fixed}", "large, p",
      "legacy: true");
  auto const answer = limited.answered(closing(
      "200 OK", "X-RateLimit-Limit: 7\r\nX-RateLimit-Remaining: 7\r\nX-RateLimit-Reset: 7\r\n"));
  EXPECT_EQ(answer.field("X-RateLimit-Limit"), "3");
  EXPECT_EQ(answer.field("X-RateLimit-Remaining"), "2");
  EXPECT_THAT(answer.field("X-RateLimit-Reset"), MatchesRegex("60|59")) << "seconds from now";
  EXPECT_THAT(answer.field("RateLimit"), MatchesRegex(R"("large";r=99;t=[0-9]+, "p";r=2;t=.*)"));
}

TEST(gateway_legacy, adds_the_triple_of_draft_06) {
  limited_api limited("p: {quota: 3, window: 1m, algorithm: fixed}", "p", "legacy: triple");
  auto const answer = limited.answered(closing("200 OK", "RateLimit-Limit: 7\r\n"));
  EXPECT_EQ(answer.field("RateLimit-Limit"), "3");
  EXPECT_EQ(answer.count("RateLimit-Limit"), 1U);
  EXPECT_EQ(answer.field("RateLimit-Remaining"), "2");
  EXPECT_THAT(answer.field("RateLimit-Reset"), MatchesRegex("60|59"));
  EXPECT_EQ(answer.count("X-RateLimit-Limit"), 0U);
}

TEST(gateway_draft_10, says_when_more_is_there_and_in_retry_after_when_a_request_fits) {
  gateway const with(
      "policies: {p: {quota: 60, window: 1h, algorithm: gcra, burst: 10}}\n"
      "routes: [{match: {path: /**}, service: echo, limits: [p], "
      "cost: {default: 10, \"GET /none\": 0}}]\nfields: {ratelimit: draft-10}\n");
  EXPECT_EQ(with.get("/none").field("RateLimit"), R"("p";r=10)") << "there cannot be more";
  auto const first = with.get("/a");
  EXPECT_EQ(first.field("RateLimit-Policy"), R"("p";q=60;w=3600)");
  EXPECT_EQ(first.field("RateLimit"), R"("p";r=0;t=60)") << "then one unit is there";
  auto const refused = with.get("/a");
  EXPECT_EQ(refused.status(), 429);
  EXPECT_THAT(refused.field("RateLimit"), MatchesRegex(R"("p";r=0;t=(60|5.))"));
  EXPECT_THAT(refused.field("Retry-After"), MatchesRegex("600|59.")) << "then all ten are";
}

TEST(gateway_none, writes_no_fields_but_enforces) {
  limited_api limited("p: {quota: 1, window: 1m}", "p", "ratelimit: none");
  auto const answer = limited.answered(closing("200 OK"));
  EXPECT_EQ(answer.count("RateLimit") + answer.count("RateLimit-Policy"), 0U);
  auto const refused = limited.with.get("/a");
  EXPECT_EQ(refused.status(), 429);
  EXPECT_EQ(refused.count("RateLimit") + refused.count("RateLimit-Policy"), 0U);
  EXPECT_THAT(refused.field("Retry-After"), MatchesRegex("[0-9]+"));
}

TEST(gateway_none, adds_legacy_fields_alone_when_asked_for) {
  limited_api limited("p: {quota: 3, window: 1m}", "p", "ratelimit: none, legacy: true");
  auto const answer = limited.answered(closing("200 OK"));
  EXPECT_EQ(answer.count("RateLimit") + answer.count("RateLimit-Policy"), 0U);
  EXPECT_EQ(answer.field("X-RateLimit-Limit"), "3");
}

}  // namespace
}  // namespace tidegate::e2e
