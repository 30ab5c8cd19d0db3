// SPDX-License-Identifier: Apache-2.0
#include "request/forwarded_head.hpp"

#include "phases/phase_fixture.hpp"

#include <gmock/gmock.h>

#include <string>
#include <string_view>

namespace tidegate::gateway {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr std::string_view trusted = "trusted-proxies: [192.0.2.0/24]\n";
constexpr std::string_view by_forwarded = "client-address: forwarded\n";
constexpr std::string_view routes = "routes: [{name: all, match: {path: /**}, service: echo}]\n";

/// The head that an upstream gets for a request.
[[nodiscard]] auto forwarded(phase_fixture& with, request_context const& context,
                             forwarding const& wanted = {}, std::string_view protocol = "HTTP/1.1")
    -> std::string {
  std::string lines;
  std::string value;
  std::string out;
  append_forwarded_head(out, context, protocol, wanted, {lines, value, with.lines});
  return out;
}

TEST(proxy_forwarded_head, tells_who_asked) {
  phase_fixture with{std::string(routes)};
  EXPECT_EQ(forwarded(with, with.get("A: b\r\n")),
            "GET /a HTTP/1.1\r\nHost: h\r\nA: b\r\n"
            "X-Forwarded-Host: h\r\nX-Forwarded-For: 192.0.2.1\r\nX-Forwarded-Proto: http\r\n"
            "Via: 1.1 tidegate\r\n\r\n");
}

/// A route for all paths with these options.
[[nodiscard]] auto route_with(std::string const& options, std::string const& path = "/**")
    -> std::string {
  return "upstreams: {api: \"http://127.0.0.1:1\"}\nroutes: [{match: {path: " + path +
         "}, upstream: api, " + options + "}]\n";
}

TEST(proxy_forwarded_head, rewrites_the_path_and_keeps_the_query) {
  struct row {
    std::string_view name, path, target;
    forwarding wanted{};
  };
  phase_fixture with(route_with("rewrite: {strip-prefix: /a, add-prefix: /b}", "/a/**"));
  for (auto const& each : {
           row{"a path", "/a/c", "/b/c?q"},
           row{"one that was normalised", "/a/d", "/b/d?q"},
           row{"that of a bridge, with its query", "/a/c", "/b/c?x=y", {.target = "/a/c?x=y"}},
           row{"one without a query", "/a/c", "/b/c", {.target = "/a/c"}},
       }) {
    auto context = with.ask("GET /a/c?q HTTP/1.1\r\nHost: h\r\n\r\n");
    context.path = each.path;
    EXPECT_TRUE(forwarded(with, context, each.wanted)
                    .starts_with("GET " + std::string(each.target) + " HTTP/1.1\r\nHost: h\r\n"))
        << each.name;
  }
}

TEST(proxy_forwarded_head, changes_fields_as_the_rules_say_after_its_own) {
  phase_fixture with(
      route_with("request: {set: {Host: internal, X-A: b, Accept-Encoding: br, "
                 "X-Forwarded-Proto: https}, add: {X-T: 2}, remove: [X-B, X-Forwarded-Host]}"));
  auto const context = with.get(
      "X-A: 1\r\nX_A: 2\r\nx-b: 3\r\nX.B: 4\r\nX-T: 1\r\nAccept-Encoding: gzip\r\nX-C: 5\r\n");
  EXPECT_EQ(forwarded(with, context),
            "GET /a HTTP/1.1\r\nHost: internal\r\nX-T: 1\r\nX-C: 5\r\n"
            "X-Forwarded-For: 192.0.2.1\r\nVia: 1.1 tidegate\r\nX-A: b\r\nAccept-Encoding: br\r\n"
            "X-Forwarded-Proto: https\r\nX-T: 2\r\n\r\n");
  // What has to be left out stays so.
  EXPECT_THAT(forwarded(with, context, {.drop = {wire::known_field::accept_encoding}}),
              Not(HasSubstr("Accept-Encoding")));
}

TEST(proxy_forwarded_head, believes_a_trusted_peer_and_no_other) {
  struct row {
    std::string_view name;
    std::string config;
    std::string_view lines;
    std::string_view expected;
  };
  auto const joined = [](auto... parts) {
    return (std::string(parts) + ...) + std::string(routes);
  };
  for (auto const& each : {
           row{"what a stranger says is left out", joined(""),
               "X-Forwarded-For: 1.2.3.4\r\nX-Forwarded-Proto: https\r\n"
               "X-Forwarded-Host: evil.example\r\nForwarded: for=1.2.3.4\r\n",
               "X-Forwarded-Host: h\r\nX-Forwarded-For: 192.0.2.1\r\nX-Forwarded-Proto: http\r\n"
               "Via: 1.1 tidegate\r\n\r\n"},
           row{"a trusted peer is added behind", joined(trusted),
               "X-Forwarded-For: 1.2.3.4, 192.0.2.9\r\nX-Forwarded-For: 192.0.2.8\r\n"
               "X-Forwarded-Proto: https\r\nX-Forwarded-Host: api.example\r\n",
               "X-Forwarded-Host: api.example\r\n"
               "X-Forwarded-For: 1.2.3.4, 192.0.2.9, 192.0.2.8, 192.0.2.1\r\n"
               "X-Forwarded-Proto: https\r\nVia: 1.1 tidegate\r\n\r\n"},
           row{"a trusted peer that says nothing", joined(trusted), "",
               "X-Forwarded-Host: h\r\nX-Forwarded-For: 192.0.2.1\r\nX-Forwarded-Proto: http\r\n"
               "Via: 1.1 tidegate\r\n\r\n"},
           row{"a scheme that is not one of HTTP", joined(trusted), "X-Forwarded-Proto: gopher\r\n",
               "X-Forwarded-Proto: http\r\n"},
           row{"Forwarded of a stranger is written by us alone", joined(by_forwarded),
               "Forwarded: for=1.2.3.4\r\n", "Forwarded: for=192.0.2.1;host=h;proto=http\r\n\r\n"},
           row{"Forwarded of a trusted peer goes on", joined(by_forwarded, trusted),
               "Forwarded: for=1.2.3.4;proto=https\r\n",
               "Forwarded: for=1.2.3.4;proto=https, for=192.0.2.1;host=h;proto=http\r\n\r\n"},
           row{"and X-Forwarded-For is made from it", joined(by_forwarded, trusted),
               "Forwarded: for=1.2.3.4;proto=https\r\nX-Forwarded-For: 9.9.9.9\r\n",
               "X-Forwarded-For: 1.2.3.4, 192.0.2.1\r\nX-Forwarded-Proto: https\r\n"},
       }) {
    phase_fixture with(each.config);
    EXPECT_THAT(forwarded(with, with.get(each.lines)), HasSubstr(each.expected)) << each.name;
  }
}

TEST(proxy_forwarded_head, adds_itself_to_via) {
  struct row {
    std::string_view name;
    std::string_view head;
    std::string_view protocol;
    std::string_view expected;
  };
  for (auto const& each : {
           row{"behind one proxy", "GET / HTTP/1.1\r\nHost: h\r\nVia: 1.1 a\r\n\r\n", "HTTP/1.1",
               "Via: 1.1 a, 1.1 tidegate\r\n"},
           row{"behind two", "GET / HTTP/1.1\r\nHost: h\r\nVia: 1.0 a\r\nVia: 2 b\r\n\r\n",
               "HTTP/1.1", "Via: 1.0 a, 2 b, 1.1 tidegate\r\n"},
           row{"for a client of HTTP/1.0", "GET / HTTP/1.0\r\nHost: h\r\n\r\n", "HTTP/1.0",
               "Via: 1.0 tidegate\r\n"},
           row{"for a client of HTTP/2", "GET / HTTP/1.1\r\nHost: h\r\nVia: 1.1 a\r\n\r\n",
               "HTTP/2", "Via: 1.1 a, 2 tidegate\r\n"},
       }) {
    phase_fixture with{std::string(routes)};
    EXPECT_THAT(forwarded(with, with.ask(each.head), {}, each.protocol), HasSubstr(each.expected))
        << each.name;
  }
}

TEST(proxy_forwarded_head, has_no_host_where_the_request_has_none) {
  phase_fixture with{std::string(routes)};
  EXPECT_THAT(forwarded(with, with.ask("GET / HTTP/1.0\r\n\r\n"), {}, "HTTP/1.0"),
              Not(HasSubstr("X-Forwarded-Host")));
}

TEST(proxy_forwarded_head, leaves_out_what_is_to_be_dropped_and_what_only_we_write) {
  phase_fixture with{std::string(routes)};
  auto const out = forwarded(
      with, with.get("Idempotency-Attempt: 9\r\nUser-Agent: u\r\nConnection: x-a\r\nX-A: b\r\n"),
      {.drop = {wire::known_field::user_agent}});
  EXPECT_THAT(out, Not(HasSubstr("Idempotency-Attempt")));
  EXPECT_THAT(out, Not(HasSubstr("User-Agent")));
  EXPECT_THAT(out, Not(HasSubstr("X-A"))) << "of the connection";
}

TEST(proxy_forwarded_head, leaves_out_other_spellings_of_fields_that_the_route_reads) {
  phase_fixture with(
      "policies: {p: {quota: 9, window: 1h, partition: header:x-customer}}\n"
      "routes: [{name: all, match: {path: /**}, service: echo, limits: [p]}]\n");
  auto const out = forwarded(with, with.get("X-Customer: k\r\nX_Customer: other\r\nX_B: c\r\n"));
  EXPECT_THAT(out, HasSubstr("X-Customer: k\r\n"));
  EXPECT_THAT(out, Not(HasSubstr("other")));
}

TEST(proxy_forwarded_head, sends_the_normal_path_or_the_target_that_is_wanted) {
  phase_fixture with{std::string(routes)};
  auto context = with.ask("GET /x/../a?q=1 HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_THAT(forwarded(with, context), testing::StartsWith("GET /x/../a?q=1 HTTP/1.1\r\n"));
  context.path = "/a";
  EXPECT_THAT(forwarded(with, context), testing::StartsWith("GET /a?q=1 HTTP/1.1\r\n"));
  EXPECT_THAT(forwarded(with, context, {.target = "/b?c"}),
              testing::StartsWith("GET /b?c HTTP/1.1\r\n"));
}

TEST(proxy_forwarded_head, frames_the_body_as_it_came_or_as_is_wanted) {
  phase_fixture with{std::string(routes)};
  std::string_view const head = "POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\n";
  EXPECT_THAT(forwarded(with, with.ask(head)), HasSubstr("Content-Length: 5\r\n"));
  auto const chunked =
      forwarded(with, with.ask(head), {.body = wire::body_framing{wire::body_kind::chunked, 0}});
  EXPECT_THAT(chunked, HasSubstr("Transfer-Encoding: chunked\r\n"));
  EXPECT_THAT(chunked, Not(HasSubstr("Content-Length")));
}

}  // namespace
}  // namespace tidegate::gateway
