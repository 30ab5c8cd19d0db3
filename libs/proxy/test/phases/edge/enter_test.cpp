// SPDX-License-Identifier: Apache-2.0
#include "phases/edge/enter.hpp"

#include "phases/phase_fixture.hpp"

#include <string>
#include <string_view>

namespace tidegate::gateway {
namespace {

[[nodiscard]] auto route_with(std::string const& options) -> std::string {
  return "routes: [{match: {path: /**}, service: echo, " + options + "}]\n";
}

TEST(proxy_enter, refuses_networks_before_anything_else) {
  struct row {
    std::string_view name;
    std::string options;
    std::string_view peer;
    bool is_admitted;
  };
  for (auto const& each : {
           row{"of a network that is allowed", "allow: [192.0.2.0/24]", "192.0.2.1", true},
           row{"of another", "allow: [192.0.2.0/24]", "198.51.100.1", false},
           row{"of one of two", "allow: [192.0.2.0/24, 198.51.100.1]", "198.51.100.1", true},
           row{"of a network that is denied", "deny: [192.0.2.0/24]", "192.0.2.1", false},
           row{"of another than that", "deny: [192.0.2.0/24]", "198.51.100.1", true},
           row{"allowed and denied", "allow: [192.0.2.0/24], deny: [192.0.2.1]", "192.0.2.1",
               false},
           row{"allowed beside it", "allow: [192.0.2.0/24], deny: [192.0.2.1]", "192.0.2.2", true},
           row{"by IPv6", "allow: [\"2001:db8::/32\"]", "2001:db8:1::7", true},
           row{"by another IPv6", "allow: [\"2001:db8::/32\"]", "2001:db9::7", false},
           row{"a whole address, whatever ipv6-prefix is", "deny: [\"2001:db8::7\"]", "2001:db8::8",
               true},
           row{"IPv4 inside of IPv6", "deny: [192.0.2.1]", "::ffff:192.0.2.1", false},
       }) {
    phase_fixture with(route_with(each.options));
    with.from = client_address(*http::parse_ip_address(each.peer), "http");
    auto context = with.get();
    EXPECT_EQ(enter_edge(context, with.lines, with.texts()),
              each.is_admitted ? step::next : step::answered)
        << each.name;
    ASSERT_EQ(context.reply.has_value(), !each.is_admitted) << each.name;
    if (context.reply) {
      EXPECT_EQ(context.reply->status, 403) << each.name;
      EXPECT_EQ(context.reply->reason, "address-denied") << each.name;
      EXPECT_EQ(context.reply->content_type, http::problem_json) << each.name;
    }
  }
}

TEST(proxy_enter, believes_only_trusted_proxies_about_the_address) {
  struct row {
    std::string_view trusted, lines;
    bool is_admitted;
  };
  for (auto const& each : {
           row{"", "X-Forwarded-For: 10.0.0.1\r\n", false},
           row{"trusted-proxies: [192.0.2.1]\n", "X-Forwarded-For: 10.0.0.1\r\n", true},
           row{"trusted-proxies: [192.0.2.1]\n", "X-Forwarded-For: 10.0.0.1, 9.9.9.9\r\n", false},
           row{"trusted-proxies: [192.0.2.1]\n", "", false},
       }) {
    phase_fixture with(std::string(each.trusted) + route_with("allow: [10.0.0.0/8]"));
    auto context = with.get(each.lines);
    EXPECT_EQ(enter_edge(context, with.lines, with.texts()) == step::next, each.is_admitted)
        << each.trusted << each.lines;
  }
}

TEST(proxy_enter, refuses_paths_that_would_lead_elsewhere) {
  phase_fixture with(
      "upstreams: {api: \"http://127.0.0.1:1\"}\nroutes: [{match: {path: /v1/**}, "
      "upstream: api, rewrite: {strip-prefix: /v1, add-prefix: /api}}]\n");
  struct row {
    std::string_view path;
    step said;
  };
  for (auto const& each : {
           row{"/v1/a", step::next},
           row{"/v1", step::next},
           row{"/v1/..%2Fadmin", step::answered},
           row{"/v1/..;/admin", step::answered},
       }) {
    auto context = with.get();
    context.path = each.path;
    EXPECT_EQ(enter_edge(context, with.lines, with.texts()), each.said) << each.path;
    if (context.reply) {
      EXPECT_EQ(context.reply->status, 400) << each.path;
      EXPECT_EQ(context.reply->reason, "path-not-rewritable") << each.path;
    }
  }
}

TEST(proxy_enter, refuses_paths_that_could_leave_the_path_of_a_server) {
  for (std::string_view const base : {"", "/base"}) {
    phase_fixture with("upstreams: {api: \"http://127.0.0.1:1" + std::string(base) +
                       "\"}\nroutes: [{match: {path: /**}, upstream: api, deny: [9.9.9.9]}]\n");
    for (auto const* const path :
         {"/..%2Fadmin", "/a/..%2F..%2Fadmin", "/..%5Cadmin", "/..;/admin", "/..;x=y"}) {
      auto context = with.get();
      context.path = path;
      EXPECT_EQ(enter_edge(context, with.lines, with.texts()),
                base.empty() ? step::next : step::answered)
          << base << path;
    }
    for (auto const* const path : {"/", "/a%2Fb", "//a", "/...", "/a..;b"}) {
      auto context = with.get();
      context.path = path;
      EXPECT_EQ(enter_edge(context, with.lines, with.texts()), step::next) << base << path;
    }
  }
}

TEST(proxy_enter, notes_https_where_responses_say_so) {
  struct row {
    std::string_view name, config, scheme, lines;
    bool expected;
  };
  constexpr std::string_view trusting = "trusted-proxies: [192.0.2.1]\n";
  for (auto const& each : {
           row{"https", "", "https", "", true},
           row{"http", "", "http", "", false},
           row{"what a stranger says", "", "http", "X-Forwarded-Proto: https\r\n", false},
           row{"what a trusted proxy says", trusting, "http", "X-Forwarded-Proto: https\r\n", true},
           row{"http before a trusted proxy", trusting, "https", "X-Forwarded-Proto: http\r\n",
               false},
       }) {
    phase_fixture with(std::string(each.config) + route_with("response: {hsts: 365d}"));
    with.from = client_address(*http::parse_ip_address("192.0.2.1"), each.scheme);
    auto context = with.get(each.lines);
    note_scheme(context, with.lines);
    EXPECT_EQ(context.terms.is_https, each.expected) << each.name;
  }
}

}  // namespace
}  // namespace tidegate::gateway
