// SPDX-License-Identifier: Apache-2.0
//
// Routes that ask for headers, a query or a wildcard host. Each has a policy of its own, whose
// name in RateLimit-Policy says which route took a request.
#include "gateway.hpp"
#include "process.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace tidegate::e2e {
namespace {

using testing::HasSubstr;

constexpr std::string_view routes = R"(
policies:
  version: {quota: 1000, window: 1m}
  beta: {quota: 1000, window: 1m}
  tenant: {quota: 1000, window: 1m}
  other: {quota: 1000, window: 1m}
  closed: {quota: 1000, window: 1m}
routes:
  - {match: {path: /v/**, headers: {X-Version: 2}}, service: echo, limits: [version]}
  - {match: {path: /v/**, query: {beta: "*", "na me": "a b"}}, service: echo, limits: [beta]}
  - {match: {host: "*.example.com", path: /v/**}, service: echo, limits: [tenant]}
  - {match: {path: /v/closed, headers: {x-open: "*"}}, service: echo, limits: [closed]}
  - {match: {path: /v/**}, service: echo, limits: [other]}
)";

struct request {
  char const* name;
  std::string target;
  std::string host;
  std::vector<std::string> lines;
  std::string policy;
};

auto requests() -> std::vector<request> {
  return {
      {"nothing_of_it", "/v/a", "a", {}, "other"},
      {"a_header", "/v/a", "a", {"X-Version: 2"}, "version"},
      {"a_header_in_lower_case", "/v/a", "a", {"x-version: 2"}, "version"},
      {"another_value", "/v/a", "a", {"X-Version: 3"}, "other"},
      {"more_than_the_value", "/v/a", "a", {"X-Version: 2, 3"}, "other"},
      {"one_of_two_lines", "/v/a", "a", {"X-Version: 3", "X-Version: 2"}, "version"},
      {"a_name_that_only_resembles_it", "/v/a", "a", {"X_Version: 2"}, "other"},
      {"a_query", "/v/a?beta&na+me=a%20b", "a", {}, "beta"},
      {"a_query_in_another_spelling", "/v/a?%62eta=1&na%20me=a+b", "a", {}, "beta"},
      {"a_repeated_parameter", "/v/a?na+me=c&beta=&na+me=a+b", "a", {}, "beta"},
      {"half_of_the_query", "/v/a?beta=1", "a", {}, "other"},
      {"a_value_that_is_part_of_another", "/v/a?beta=1&na+me=a+bc", "a", {}, "other"},
      {"a_header_before_a_query", "/v/a?beta&na+me=a+b", "a", {"X-Version: 2"}, "version"},
      {"a_host", "/v/a", "a.example.com", {}, "tenant"},
      {"a_host_of_two_labels", "/v/a", "b.a.example.com", {}, "tenant"},
      {"a_host_in_capitals_with_port_and_dot", "/v/a", "A.Example.COM.:8080", {}, "tenant"},
      {"the_domain_itself", "/v/a", "example.com", {}, "other"},
      {"a_host_that_only_ends_alike", "/v/a", "aexample.com", {}, "other"},
      {"a_host_that_only_begins_alike", "/v/a", "a.example.com.evil.example", {}, "other"},
      {"any_value", "/v/closed", "a", {"X-Open: whatever"}, "closed"},
      {"no_value_at_all", "/v/closed", "a", {}, "other"},
  };
}

TEST(gateway_edge_match, takes_routes_by_headers_query_and_host) {
  gateway const under_test{std::string(routes)};
  auto client = under_test.connect();
  for (auto const& [name, target, host, lines, policy] : requests()) {
    std::string text = "GET " + target + " HTTP/1.1\r\nHost: " + host + "\r\n";
    for (auto const& line : lines) {
      text += line + "\r\n";
    }
    client.send(text + "\r\n");
    auto const answer = client.read_response();
    EXPECT_EQ(answer.status(), 200) << name;
    EXPECT_THAT(answer.field("RateLimit-Policy"), HasSubstr("\"" + policy + "\"")) << name;
  }
}

TEST(gateway_edge_match, takes_the_same_routes_over_http_2) {
  gateway const under_test{std::string(routes)};
  for (auto const& [name, target, host, lines, policy] : requests()) {
    std::vector<std::string> arguments{"/usr/bin/env",
                                       "curl",
                                       "-sSi",
                                       "--max-time",
                                       "10",
                                       "--http2-prior-knowledge",
                                       "-H",
                                       "Host: " + host,
                                       "http://" + under_test.authority() + target};
    for (auto const& line : lines) {
      arguments.insert(arguments.end(), {"-H", line});
    }
    auto const answer = run(arguments).out;
    EXPECT_THAT(answer, testing::StartsWith("HTTP/2 200")) << name;
    EXPECT_THAT(answer, HasSubstr("ratelimit-policy: \"" + policy + "\"")) << name;
  }
}

// `/v//closed` is `/v/closed` to servers that merge slashes, and with the header that is another
// route: only then is the path ambiguous.
TEST(gateway_edge_match, refuses_a_path_that_headers_lead_to_another_route) {
  gateway const under_test{std::string(routes)};
  auto client = under_test.connect();
  client.send("GET /v//closed HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_EQ(client.read_response().status(), 200);
  client.send("GET /v//closed HTTP/1.1\r\nHost: a\r\nX-Open: 1\r\n\r\n");
  EXPECT_EQ(client.read_response().status(), 400);
}

// A preflight has the names of the headers that the page will send, and not their values.
TEST(gateway_edge_match, takes_the_route_of_the_request_that_a_preflight_is_for) {
  gateway const under_test(
      "routes:\n"
      "  - {match: {headers: {X-Version: 2}}, service: echo, cors: {origins: \"*\", max-age: 2s}}\n"
      "  - {match: {headers: {X-Secret: s}}, respond: {status: 418}}\n"
      "  - {match: {path: /**}, service: echo, cors: {origins: \"*\", max-age: 1s}}\n");
  auto client = under_test.connect();
  for (auto const& [names, status, age] : std::vector<std::tuple<std::string, int, std::string>>{
           {"content-type, X-Version", 204, "2"},
           {"content-type", 204, "1"},
           // The gateway does not answer for that route, so its header has to be there.
           {"x-secret", 200, "(none)"},
       }) {
    client.send(
        "OPTIONS /v/a HTTP/1.1\r\nHost: a\r\nOrigin: https://a.example\r\n"
        "Access-Control-Request-Method: GET\r\nAccess-Control-Request-Headers: " +
        names + "\r\n\r\n");
    auto const answer = client.read_response();
    EXPECT_EQ(answer.status(), status) << names;
    EXPECT_EQ(answer.field("Access-Control-Max-Age"), age) << names;
  }
}

TEST(gateway_edge_match, answers_404_where_no_route_asks_for_less) {
  gateway const under_test(
      "routes: [{match: {headers: {x-a: '1'}, query: {q: '*'}}, service: echo}]\n");
  auto client = under_test.connect();
  for (auto const& [text, status] : std::vector<std::pair<std::string, int>>{
           {"GET /?q HTTP/1.1\r\nHost: a\r\nX-A: 1\r\n\r\n", 200},
           {"GET / HTTP/1.1\r\nHost: a\r\nX-A: 1\r\n\r\n", 404},
           {"GET /?q HTTP/1.1\r\nHost: a\r\n\r\n", 404},
           {"GET /?q HTTP/1.1\r\nHost: a\r\nX-A:\r\n\r\n", 404},
       }) {
    client.send(text);
    EXPECT_EQ(client.read_response().status(), status) << text;
  }
}

}  // namespace
}  // namespace tidegate::e2e
