// SPDX-License-Identifier: Apache-2.0
#include "request/scim_request_of.hpp"

#include "phases/phase_fixture.hpp"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tidegate::gateway {
namespace {

[[nodiscard]] auto scim_config_text(std::string const& more = "") -> std::string {
  return "trusted-proxies: [192.0.2.0/24]\n"
         "routes: [{name: users, match: {path: /scim/v2/**}, service: scim" +
         more + "}]\n";
}

/// What the service is asked by a request to this gateway.
[[nodiscard]] auto asked(phase_fixture& with, std::string_view head,
                         bearer_token const* token = nullptr) -> scim_request {
  auto context = with.ask(head);
  context.token = token;
  std::shared_ptr<active_config const> const active(std::shared_ptr<void>(), &with.settings());
  return scim_request_of(context, active, with.lines);
}

TEST(proxy_scim_request_of, finds_the_path_below_the_base_of_a_route) {
  struct row {
    std::string_view pattern;
    std::string_view path;
    std::string_view below;
  };
  for (auto const& [pattern, path, below] : std::vector<row>{
           {"/**", "/Users", "/Users"},
           {"/**", "/", "/"},
           {"/scim/**", "/scim/Users/1", "/Users/1"},
           {"/scim/**", "/scim", ""},
           {"/scim/**", "/scim/", "/"},
           {"/scim/v2/**", "/scim/v2/Users", "/Users"},
           {"/*/scim/**", "/acme/scim/Users", "/Users"},
       }) {
    phase_fixture with("routes: [{match: {path: " + std::string(pattern) + "}, service: echo}]\n");
    auto const context = with.ask("GET " + std::string(path) + " HTTP/1.1\r\nHost: h\r\n\r\n");
    EXPECT_EQ(path_below_base(context), below) << pattern << " " << path;
  }
}

TEST(proxy_scim_request_of, has_what_the_service_needs_of_a_request) {
  phase_fixture with(scim_config_text());
  auto const made =
      asked(with,
            "PATCH /scim/v2/Users/1?attributes=a HTTP/1.1\r\nHost: api.example\r\n"
            "Content-Type: application/scim+json\r\nAccept: a/b\r\nAccept: c/d\r\n"
            "If-Match: W/\"1\"\r\nIf-None-Match: W/\"2\"\r\nContent-Length: 2\r\n\r\n");
  EXPECT_EQ(made.method, "PATCH");
  EXPECT_EQ(made.path, "/Users/1");
  EXPECT_EQ(made.query, "attributes=a");
  EXPECT_EQ(made.base, "http://api.example/scim/v2");
  EXPECT_EQ(made.content_type, "application/scim+json");
  EXPECT_EQ(made.accept, "a/b,c/d");
  EXPECT_EQ(made.if_match, "W/\"1\"");
  EXPECT_EQ(made.if_none_match, "W/\"2\"");
  EXPECT_EQ(made.route, "users");
  EXPECT_EQ(made.options, &*with.settings().routes[0].settings->scim);
  EXPECT_FALSE(made.has_auth);
  EXPECT_TRUE(made.content.empty());
}

TEST(proxy_scim_request_of, knows_the_tenant_by_the_token) {
  phase_fixture with(scim_config_text());
  std::string_view const head = "GET /scim/v2/Users HTTP/1.1\r\nHost: h\r\n\r\n";
  auto const without = asked(with, head);
  EXPECT_EQ(without.tenant, "default");
  EXPECT_EQ(without.principal, "");
  EXPECT_FALSE(without.read_only);
  bearer_token const token{.name = "reader", .tenant = "acme", .read_only = true};
  auto const made = asked(with, head, &token);
  EXPECT_EQ(made.tenant, "acme");
  EXPECT_EQ(made.principal, "reader");
  EXPECT_TRUE(made.read_only);
}

TEST(proxy_scim_request_of, finds_the_base_of_locations) {
  struct row {
    std::string_view name;
    std::string more;
    std::string_view peer;
    std::string_view lines;
    std::string_view expected;
  };
  for (auto const& each : {
           row{"as the request says", "", "198.51.100.1", "Host: a.example:8080\r\n",
               "http://a.example:8080/scim/v2"},
           row{"a stranger is not believed", "", "198.51.100.1",
               "Host: a.example\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: b.example\r\n",
               "http://a.example/scim/v2"},
           row{"a trusted proxy is", "", "192.0.2.1",
               "Host: a.example\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: b.example\r\n",
               "https://b.example/scim/v2"},
           row{"a public URL with a path", ", scim: {public-url: \"https://x.example/directory\"}",
               "192.0.2.1", "Host: a.example\r\n", "https://x.example/directory"},
           row{"a public URL without one", ", scim: {public-url: \"https://x.example\"}",
               "192.0.2.1", "Host: a.example\r\n", "https://x.example/scim/v2"},
       }) {
    phase_fixture with(scim_config_text(each.more));
    with.from = {*http::parse_ip_address(each.peer), "http"};
    auto const made =
        asked(with, "GET /scim/v2/Users HTTP/1.1\r\n" + std::string(each.lines) + "\r\n");
    EXPECT_EQ(made.base, each.expected) << each.name;
  }
}

TEST(proxy_scim_request_of, has_no_query_where_there_is_none) {
  phase_fixture with(scim_config_text());
  EXPECT_EQ(asked(with, "GET /scim/v2/Users HTTP/1.1\r\nHost: h\r\n\r\n").query, "");
  EXPECT_EQ(asked(with, "GET /scim/v2/Users? HTTP/1.1\r\nHost: h\r\n\r\n").query, "");
}

}  // namespace
}  // namespace tidegate::gateway
