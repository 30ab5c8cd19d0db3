// SPDX-License-Identifier: Apache-2.0
//
// Ways around `auth` and `limits` that a request can be written in: paths, hosts, addresses and
// values that another reader takes for others.
#include "keyed.hpp"
#include "process.hpp"
#include "raw_http2.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace tidegate::e2e {
namespace {

using namespace std::string_literals;
using testing::HasSubstr;

// SHA-256 of "alpha".
constexpr auto auth =
    "auth: {bearer-tokens: [{name: a, sha256: "
    "8ed3f6ad685b959ead7022518e1af76cd816f8e8ec7ccdda1ed4018e8f2223f8}]}";

void expect_problem(message const& answer, int status, std::string_view detail) {
  EXPECT_EQ(answer.status(), status) << answer.body;
  EXPECT_EQ(answer.field("Content-Type"), "application/problem+json");
  EXPECT_THAT(answer.body, HasSubstr(std::string(detail)));
}

// ---- paths ----

std::string const guarded_admin = "routes: [{match: {path: /admin/**}, service: echo, "s + auth +
                                  "}, {match: {path: /**}, service: echo}]\n";

TEST(gateway_ambiguous_paths, are_refused_where_they_lead_to_another_route) {
  gateway const with(guarded_admin);
  for (auto const* const path : {"//admin/x",
                                 "///admin",
                                 "/.//admin",
                                 "/x/..//admin",
                                 "/admin%2fx",
                                 "/admin%2F",
                                 "/%2fadmin",
                                 "/x%2f..%2fadmin",
                                 "/x/..%2Fadmin/x",
                                 "/x%2f../admin",
                                 "http://a.example//admin/x",
                                 "/admin;a=b/x",
                                 "/admin;",
                                 "/x/..;/admin",
                                 "/;/admin",
                                 "/./;/admin",
                                 "/admin%3bx",
                                 "/x%5c..%5cadmin",
                                 "/admin\\x",
                                 "/%5cadmin",
                                 "/admin%2f..%2fx",
                                 "/x;a%2f..%2fadmin"}) {
    auto const answer = with.ask("GET "s + path + " HTTP/1.1\r\nHost: a.example\r\n\r\n");
    EXPECT_EQ(answer.status(), 400) << path;
    expect_problem(answer, 400, "is ambiguous");
    EXPECT_EQ(answer.count("RateLimit"), 0U);
  }
  for (auto const* const path : {"/admin", "/admin/", "/x/../admin/y", "/%61dmin", "/admin//x",
                                 "/admin/a;b", "/admin/%2Fx"}) {
    EXPECT_EQ(with.get(path).status(), 401) << path;
  }
}

TEST(gateway_ambiguous_paths, pass_as_they_came_where_every_reading_leads_to_the_same_route) {
  gateway const with(guarded_admin);
  for (auto const* const path :
       {"/x//y", "/x/a%2Fb", "/x;v=1/y", "/x%5Cy", "/x/https:%2F%2Fa.example%2Fb", "/x/a%3Bb", "/;",
        "//", "/x%252f..%252fadmin", "/administrator;x"}) {
    auto const answer = with.get(path);
    EXPECT_EQ(answer.status(), 200) << path;
    EXPECT_THAT(answer.body, HasSubstr("\"path\":\""s + path + "\""));
  }
}

TEST(gateway_ambiguous_paths, are_those_with_escapes_that_some_servers_decode) {
  gateway const with(
      "policies: {p: {quota: 100, window: 1h}}\n"
      "routes: [{match: {path: \"/v1/users:purge\"}, service: echo, "s +
      auth + "}, {match: {path: \"/u/@me\"}, service: echo, " + auth +
      "}, {match: {path: \"/v1/a,b\"}, service: echo, " + auth +
      "}, {match: {path: \"/v1/(x)\"}, service: echo, " + auth +
      "}, {match: {path: /**}, service: echo, limits: [p], cost: {default: 1, \"GET /v2/a:b\": "
      "50}}]\n");
  for (auto const* const path :
       {"/v1/users%3Apurge", "/v1/users%3apurge", "/u/%40me", "/v1/a%2Cb", "/v1/%28x%29",
        "/v1/(x%29", "/u%2F%40me", "//u/%40me", "/u/%40me;a", "/x/..%2Fu/%40me", "/v2/a%3Ab"}) {
    expect_problem(with.get(path), 400, "is ambiguous");
  }
  for (auto const* const path : {"/v1/users:purge", "/u/@me", "/v1/a,b", "/v1/(x)", "/%75/@me"}) {
    EXPECT_EQ(with.get(path).status(), 401) << path;
  }
  for (auto const* const path : {"/users/bob%40a.example", "/v1/users%3Alist", "/v1/%2A"}) {
    auto const answer = with.get(path);
    EXPECT_EQ(answer.status(), 200) << path;
    EXPECT_THAT(answer.body, HasSubstr("\"path\":\""s + path + "\"")) << "it goes on as it came";
  }
}

TEST(gateway_ambiguous_paths, are_one_partition_where_they_differ_in_escapes_without_need) {
  gateway const with(
      "policies: {p: {quota: 1, window: 1h, partition: [path]}}\nroutes: [{match: {path: /**}, "
      "service: echo, limits: [p]}]\n");
  EXPECT_EQ(with.get("/users/bob%40a.example").status(), 200);
  EXPECT_EQ(with.get("/users/bob@a.example").status(), 429);
  EXPECT_EQ(with.get("/users/%62ob%40a.example").status(), 429);
  EXPECT_EQ(with.get("/users/bob%20a.example").status(), 200);
  EXPECT_EQ(with.get("/users%2Fbob%40a.example").status(), 400);
}

TEST(gateway_ambiguous_paths, are_refused_where_a_reading_leaves_the_only_route) {
  gateway const with("routes: [{match: {path: /files/**}, service: echo}]\n");
  EXPECT_EQ(with.get("/files/a%2Fb").status(), 200);
  EXPECT_EQ(with.get("/files/..%2F..%2Fetc/passwd").status(), 400);
  EXPECT_EQ(with.get("/files/..;/secret").status(), 400);
  EXPECT_EQ(with.get("//files/a").status(), 400);
  EXPECT_EQ(with.get("/other//x").status(), 404);
}

TEST(gateway_ambiguous_paths, are_refused_where_they_cost_something_else) {
  gateway const with(
      "policies: {p: {quota: 100, window: 1h}}\nroutes: [{match: {path: /**}, service: echo, "
      "limits: "
      "[p], cost: {default: 1, \"GET /v1/search\": 50}}]\n");
  EXPECT_THAT(with.get("/v1/search").field("RateLimit"), HasSubstr("r=50"));
  for (auto const* const path :
       {"/v1//search", "/v1%2Fsearch", "/v1/search;x", "/v1/x%2f../search", "//v1/search"}) {
    EXPECT_EQ(with.get(path).status(), 400) << path;
  }
  EXPECT_THAT(with.get("/v1//other").field("RateLimit"), HasSubstr("r=49"));
}

TEST(gateway_ambiguous_paths, are_refused_where_a_partition_or_scope_is_made_of_the_path) {
  gateway const with(
      "policies: {p: {quota: 1, window: 1h, partition: [path]}, s: {quota: 1, window: 1h, "
      "partition: "
      "[path], enforce: shadow}}\nroutes: [{match: {path: /shadow/**}, service: echo, limits: "
      "[s]}, "
      "{match: {path: /**}, service: echo, limits: [p]}]\n");
  EXPECT_EQ(with.get("/a/b").status(), 200);
  EXPECT_EQ(with.get("/a/b").status(), 429);
  for (auto const* const path : {"/a//b", "/a%2Fb", "/a/b;x", "/a%5Cb"}) {
    EXPECT_EQ(with.get(path).status(), 400) << path;
  }
  EXPECT_EQ(with.get("/shadow/a//b").status(), 200) << "what only watches refuses nothing";
}

TEST(gateway_ambiguous_paths, pass_everywhere_when_they_are_allowed) {
  gateway const with("http: {ambiguous-paths: allow}\n" + guarded_admin);
  for (auto const* const path : {"//admin/x", "/admin%2Fx", "/admin;x"}) {
    EXPECT_EQ(with.get(path).status(), 200) << path;
  }
}

// ---- hosts ----

TEST(gateway_hosts, are_one_in_any_case_and_with_port_or_final_dot) {
  gateway const with("routes: [{match: {host: secret.example}, service: echo, "s + auth +
                     "}, {match: {host: \"[2001:db8::1]\"}, service: echo, " + auth +
                     "}, {match: {path: /**}, service: echo}]\n");
  auto const ask = [&](std::string const& host) {
    return with.ask("GET / HTTP/1.1\r\nHost: " + host + "\r\n\r\n").status();
  };
  for (auto const* const host :
       {"secret.example", "secret.example.", "SECRET.example.:80", "secret.Example:8080",
        "[2001:db8::1]", "[2001:DB8:0::1]:80", "[2001:db8:0:0:0:0:0:1]"}) {
    EXPECT_EQ(ask(host), 401) << host;
  }
  for (auto const* const host : {"secret.example..", "xsecret.example", "secret.example.org"}) {
    EXPECT_EQ(ask(host), 200) << host;
  }
  for (auto const* const host :
       {"secret.example:0", "secret.example:00", "secret%2eexample", "secret.example%00",
        "secret.example,a", "[2001:db8::1]:0", "[2001:db8::1:]", "[2001:db8::1%25a]"}) {
    EXPECT_EQ(ask(host), 400) << host;
    EXPECT_EQ(with.ask("GET http://"s + host + "/ HTTP/1.1\r\nHost: " + host + "\r\n\r\n").status(),
              400)
        << host;
    raw_client by_http2(with.connect());
    by_http2.send(headers, 5, 1,
                  "\x82\x86\x84\x41"s + static_cast<char>(std::string_view(host).size()) + host);
    // Index 12 of HPACK is ":status: 400"; the size of the table may come first.
    EXPECT_THAT(by_http2.read(headers).payload.substr(0, 5), HasSubstr("\x8c")) << host;
  }
}

TEST(gateway_hosts, are_one_partition_where_they_are_one_route) {
  gateway const with(
      "policies: {p: {quota: 1, window: 1h, partition: [host]}}\nroutes: [{match: {host: "
      "a.example}, "
      "service: echo, limits: [p]}]\n");
  auto const ask = [&](std::string const& host) {
    return with.ask("GET / HTTP/1.1\r\nHost: " + host + "\r\n\r\n").status();
  };
  EXPECT_EQ(ask("a.example"), 200);
  for (auto const* const host : {"a.example.", "A.EXAMPLE", "a.example.:80"}) {
    EXPECT_EQ(ask(host), 429) << host;
  }
}

// ---- the client's address ----

constexpr auto quota_of_one = "policies: {p: {quota: 1, window: 1h}}\n";
constexpr auto limited_echo = "routes: [{match: {path: /**}, service: echo, limits: [p]}]\n";

TEST(gateway_client_address, is_not_what_a_client_writes_into_the_field_that_no_proxy_writes) {
  gateway const by_default(quota_of_one + "trusted-proxies: [127.0.0.1]\n"s + limited_echo);
  EXPECT_EQ(by_default.get("/", "X-Forwarded-For: 1.2.3.4\r\n").status(), 200);
  EXPECT_EQ(by_default.get("/", "Forwarded: for=9.9.9.1\r\nX-Forwarded-For: 1.2.3.4\r\n").status(),
            429);
  gateway const by_forwarded(
      quota_of_one + "trusted-proxies: [127.0.0.1]\nclient-address: forwarded\n"s + limited_echo);
  EXPECT_EQ(by_forwarded.get("/", "Forwarded: for=1.2.3.4\r\n").status(), 200);
  EXPECT_EQ(
      by_forwarded.get("/", "X-Forwarded-For: 9.9.9.1\r\nForwarded: for=1.2.3.4\r\n").status(),
      429);
  EXPECT_EQ(by_forwarded.get("/", "X-Forwarded-For: 9.9.9.1\r\n").status(), 200);
  EXPECT_EQ(by_forwarded.get("/", "X-Forwarded-For: 9.9.9.2\r\n").status(), 429)
      << "that is the proxy's own";
}

TEST(gateway_client_address, goes_to_the_upstream_by_the_field_that_the_proxies_write) {
  origin api;
  auto const request = std::string_view(
      "GET /a HTTP/1.1\r\nHost: a.example\r\nX-Forwarded-For: 1.2.3.4\r\nX-Forwarded-Proto: "
      "https\r\n"
      "Forwarded: for=5.6.7.8;proto=https;host=b.example\r\n\r\n");
  gateway const by_default(proxy_config(api.url(), "trusted-proxies: [127.0.0.1]\n"));
  auto client = by_default.connect();
  client.send(request);
  auto first = api.accept();
  auto seen = first.read_request();
  EXPECT_EQ(seen.field("X-Forwarded-For"), "1.2.3.4, 127.0.0.1");
  EXPECT_EQ(seen.field("Forwarded"), "(none)");

  gateway const by_forwarded(
      proxy_config(api.url(), "trusted-proxies: [127.0.0.1]\nclient-address: forwarded\n"));
  auto other = by_forwarded.connect();
  other.send(request);
  auto second = api.accept();
  seen = second.read_request();
  EXPECT_EQ(seen.field("X-Forwarded-For"), "5.6.7.8, 127.0.0.1");
  EXPECT_EQ(seen.field("X-Forwarded-Proto"), "https");
  EXPECT_EQ(seen.field("X-Forwarded-Host"), "b.example");
  EXPECT_EQ(seen.field("Forwarded"),
            "for=5.6.7.8;proto=https;host=b.example, for=127.0.0.1;host=a.example;proto=http");

  auto stranger = by_forwarded.connect("127.0.0.9");
  stranger.send(request);
  auto third = api.accept();
  seen = third.read_request();
  EXPECT_EQ(seen.field("X-Forwarded-For"), "127.0.0.9");
  EXPECT_EQ(seen.field("X-Forwarded-Proto"), "http");
  EXPECT_EQ(seen.field("Forwarded"), "for=127.0.0.9;host=a.example;proto=http");
}

TEST(gateway_client_address, is_the_proxys_when_the_proxy_protocol_names_none) {
  auto const signature = "\r\n\r\n\0\r\nQUIT\n"s;
  origin api;
  gateway const with(proxy_config(api.url(), "trusted-proxies: [127.0.0.1]\n"),
                     {.listen = "{address: \"127.0.0.1:0\", proxy-protocol: true}"});
  for (auto const& header : {"PROXY UNKNOWN\r\n"s, signature + "\x20\x00\x00\x00"s,
                             signature + "\x21\x31\x00\xd8"s + std::string(216, 'x')}) {
    auto client = with.connect();
    client.send(header + "GET /a HTTP/1.1\r\nHost: a.example\r\nX-Forwarded-For: 1.2.3.4\r\n\r\n");
    auto server = api.accept();
    EXPECT_EQ(server.read_request().field("X-Forwarded-For"), "127.0.0.1");
    server.send(response("200 OK", "", "Connection: close\r\n"));
    EXPECT_EQ(client.read_response().status(), 200);
  }
}

// ---- values that come twice ----

TEST(gateway_repeated_values, that_a_partition_is_made_of_get_400) {
  gateway const with(
      "policies: {h: {quota: 9, window: 1h, partition: [\"header:x-api-key\", \"header:x-own\"]}, "
      "q: "
      "{quota: 9, window: 1h, partition: [\"query:api_key\"]}, c: {quota: 9, window: 1h, "
      "partition: "
      "[\"cookie:id\"]}, s: {quota: 9, window: 1h, partition: [\"header:x-seen\"], enforce: "
      "shadow}}\nroutes: [{match: {path: /**}, service: echo, limits: [s, h, q, c]}]\n");
  for (auto const* const lines :
       {"X-Api-Key: a\r\n", "X-Api-Key: a, b\r\n", "X-Other: a\r\nX-Other: b\r\n",
        "Cookie: id=1; idx=2; other=3; other=4\r\n", "X-Seen: a\r\nX-Seen: b\r\n"}) {
    EXPECT_EQ(with.get("/?api_key=1&b=2&b=3", lines).status(), 200) << lines;
  }
  for (auto const* const lines :
       {"X-Api-Key: a\r\nx-api-key: b\r\n", "X-Api-Key: a\r\nX-Api-Key: a\r\n",
        "X-Own: a\r\nX-Own: b\r\n", "Cookie: id=1; id=2\r\n", "Cookie: id=1\r\nCookie: id=1\r\n"}) {
    auto const answer = with.get("/", lines);
    expect_problem(answer, 400, "more than once");
    EXPECT_EQ(answer.count("RateLimit"), 0U) << "it is not known whose quota it is";
  }
  for (auto const* const target :
       {"/?api_key=1&api_key=2", "/?api_key=1&a=b&api%5Fkey=1", "/?api_key&api_key=1"}) {
    expect_problem(with.get(target), 400, "query:api_key");
  }
  EXPECT_THAT(with.get("/?api_key=1").field("RateLimit"), HasSubstr("\"q\";r=3"))
      << "refused ones cost nothing";
}

TEST(gateway_repeated_values, that_a_scope_of_keys_is_made_of_get_400) {
  data_folder const data;
  serving_origin const api(response("200 OK", "made"));
  gateway const with(keyed_config(api.url(), data));
  EXPECT_EQ(with.ask(post("\"k\"")).status(), 200);
  expect_problem(with.ask(post("\"k\"", "{}", "/a", "Authorization: Bearer y\r\n")), 400,
                 "header:authorization");
  EXPECT_EQ(api.requests(), 1U);
}

// ---- TRACE, OPTIONS * and Max-Forwards ----

class gateway_methods : public testing::Test {
 protected:
  origin api_;
  gateway gateway_{proxy_config(api_.url())};
};

TEST_F(gateway_methods, refuses_trace_which_would_show_credentials) {
  auto const answer = gateway_.ask(
      "TRACE /a HTTP/1.1\r\nHost: a.example\r\nAuthorization: Bearer x\r\nCookie: a=b\r\n\r\n");
  expect_problem(answer, 405, "TRACE");
  EXPECT_EQ(answer.field("Allow"), "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS");
  EXPECT_TRUE(api_.is_untouched());
}

TEST_F(gateway_methods, answers_options_for_the_server_itself) {
  auto const answer = gateway_.ask("OPTIONS * HTTP/1.1\r\nHost: a.example\r\n\r\n");
  EXPECT_EQ(answer.status(), 200);
  EXPECT_EQ(answer.field("Content-Length"), "0");
  EXPECT_EQ(answer.field("Allow"), "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS");
  EXPECT_TRUE(api_.is_untouched());
}

TEST_F(gateway_methods, lowers_max_forwards_of_options) {
  auto client = gateway_.connect();
  client.send("OPTIONS /a HTTP/1.1\r\nHost: a.example\r\nMax-Forwards: 10\r\nX: 1\r\n\r\n");
  auto server = api_.accept();
  auto const seen = server.read_request();
  EXPECT_EQ(seen.field("Max-Forwards"), "9");
  EXPECT_EQ(seen.count("Max-Forwards"), 1U);
  EXPECT_EQ(seen.field("X"), "1");
  server.send(response("200 OK", ""));
  EXPECT_EQ(client.read_response().status(), 200);
  client.send("GET /a HTTP/1.1\r\nHost: a.example\r\nMax-Forwards: 10\r\n\r\n");
  EXPECT_EQ(server.read_request().field("Max-Forwards"), "10") << "other methods do not count";
}

TEST_F(gateway_methods, answers_options_that_may_go_no_further_itself) {
  auto const answer =
      gateway_.ask("OPTIONS /a HTTP/1.1\r\nHost: a.example\r\nMax-Forwards: 0\r\n\r\n");
  EXPECT_EQ(answer.status(), 200);
  EXPECT_THAT(answer.field("Allow"), HasSubstr("OPTIONS"));
  for (auto const* const lines :
       {"Max-Forwards: x\r\n", "Max-Forwards: \r\n", "Max-Forwards: 1\r\nMax-Forwards: 1\r\n"}) {
    EXPECT_EQ(gateway_.ask("OPTIONS /a HTTP/1.1\r\nHost: a.example\r\n"s + lines + "\r\n").status(),
              400)
        << lines;
  }
  EXPECT_TRUE(api_.is_untouched());
}

// ---- Via ----

TEST_F(gateway_methods, says_in_via_by_which_version_a_request_came) {
  auto const via_of = [&](std::string_view request) {
    auto client = gateway_.connect();
    client.send(request);
    auto server = api_.accept();
    auto const via = server.read_request().field("Via");
    server.send(response("200 OK", "", "Connection: close\r\n"));
    (void)client.read_response();
    return via;
  };
  EXPECT_EQ(via_of("GET / HTTP/1.1\r\nHost: a\r\n\r\n"), "1.1 tidegate");
  EXPECT_EQ(via_of("GET / HTTP/1.0\r\n\r\n"), "1.0 tidegate");
  EXPECT_EQ(via_of("GET / HTTP/1.0\r\nVia: 1.1 a\r\n\r\n"), "1.1 a, 1.0 tidegate");
  std::string seen;
  serving_origin const recorder([&](message const& request) {
    seen += request.field("Via") + ";";
    return response("200 OK", "");
  });
  gateway const with(proxy_config(recorder.url()));
  auto const url = "http://" + with.authority() + "/";
  for (auto const* const line : {"X: 1", "Via: 1.1 a"}) {
    auto const asked = run({"/usr/bin/env", "curl", "-sS", "--max-time", "10",
                            "--http2-prior-knowledge", "-H", line, url});
    EXPECT_EQ(asked.status, 0) << asked.err;
  }
  EXPECT_EQ(seen, "2 tidegate;1.1 a, 2 tidegate;");
}

}  // namespace
}  // namespace tidegate::e2e
