// SPDX-License-Identifier: Apache-2.0
#include "phases/edge/redirect.hpp"

#include "phases/phase_fixture.hpp"

#include <tidegate/wire/http1_write.hpp>

#include <string>
#include <string_view>

namespace tidegate::gateway {
namespace {

TEST(proxy_redirect, says_where_to_go) {
  struct row {
    std::string_view options, path, head_target, lines;
    int status;
  };
  for (auto const& each : {
           row{"{to: \"https://example.com/{**}\"}", "/a/b", "/a/b?c=d",
               "Location: https://example.com/a/b?c=d\r\n", 308},
           row{"{to: \"/new/{**}\", status: 301}", "/a", "/a", "Location: /new/a\r\n", 301},
           row{"{to: \"https://example.com/\", status: 302}", "/a", "/a?b",
               "Location: https://example.com/?b\r\n", 302},
           row{"{to: \"https://example.com/{**}\"}", "/a%0D%0AX:%20y", "/a%0d%0aX:%20y",
               "Location: https://example.com/a%0D%0AX:%20y\r\n", 308},
       }) {
    phase_fixture with("routes: [{match: {path: /**}, redirect: " + std::string(each.options) +
                       "}]\n");
    auto context =
        with.ask("GET " + std::string(each.head_target) + " HTTP/1.1\r\nHost: h\r\n\r\n");
    context.path = each.path;
    auto const reply = redirect(context, with.texts());
    EXPECT_EQ(reply.status, each.status);
    EXPECT_EQ(reply.field_lines, each.lines);
    EXPECT_EQ(reply.content_type, "text/plain");
    EXPECT_EQ(reply.content, std::string(wire::reason_phrase(each.status)) + "\n");
  }
}

TEST(proxy_redirect, refuses_what_would_be_another_host) {
  phase_fixture with("routes: [{match: {path: /old/**}, redirect: {to: \"/{**}\"}}]\n");
  auto context = with.get();
  context.path = "/old//evil.example";
  auto const reply = redirect(context, with.texts());
  EXPECT_EQ(reply.status, 400);
  EXPECT_EQ(reply.content_type, http::problem_json);
  EXPECT_EQ(reply.field_lines, "");
}

TEST(proxy_redirect, goes_to_https_with_the_host_and_the_target_as_they_came) {
  struct row {
    std::string_view head, location;
    std::uint16_t port = 443;
  };
  for (auto const& each : {
           row{"GET /a/../b?c=%64 HTTP/1.1\r\nHost: a.example\r\n\r\n",
               "https://a.example/a/../b?c=%64"},
           row{"GET / HTTP/1.1\r\nHost: a.example:8080\r\n\r\n", "https://a.example/"},
           row{"GET / HTTP/1.1\r\nHost: a.example:8080\r\n\r\n", "https://a.example:8443/", 8443},
           row{"GET / HTTP/1.1\r\nHost: [2001:DB8::1]:80\r\n\r\n", "https://[2001:DB8::1]/"},
           row{"GET //evil.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n",
               "https://a.example//evil.example/"},
           row{"GET /\\evil.example HTTP/1.1\r\nHost: a.example\r\n\r\n",
               "https://a.example/\\evil.example"},
           row{"GET http://a.example/x?y HTTP/1.1\r\nHost: a.example\r\n\r\n",
               "https://a.example/x?y"},
           row{"OPTIONS * HTTP/1.1\r\nHost: a.example\r\n\r\n", "https://a.example/"},
       }) {
    phase_fixture with("routes: [{match: {path: /**}, service: echo}]\n");
    auto const context = with.ask(each.head);
    auto const reply = redirect_to_https(*context.head, each.port, with.texts());
    EXPECT_EQ(reply.status, 308) << each.head;
    EXPECT_EQ(reply.field_lines, "Location: " + std::string(each.location) + "\r\n") << each.head;
  }
}

TEST(proxy_redirect, needs_a_host_for_https) {
  phase_fixture with("routes: [{match: {path: /**}, service: echo}]\n");
  auto const context = with.ask("GET / HTTP/1.0\r\n\r\n");
  auto const reply = redirect_to_https(*context.head, 443, with.texts());
  EXPECT_EQ(reply.status, 400);
  EXPECT_EQ(reply.reason, "host-invalid");
  EXPECT_EQ(reply.field_lines, "");
}

TEST(proxy_redirect, finds_the_port_of_https) {
  auto const bound = [](std::string configured, std::string_view address) {
    return bound_listener{std::move(configured), *engine::socket_address::parse(address)};
  };
  config settings;
  settings.https_port = 8443;
  EXPECT_EQ(https_port_of(settings, {}), 8443);
  settings.https_port = 0;
  settings.listen = {{.address = "127.0.0.1:80", .tls = {}},
                     {.address = "127.0.0.1:0", .tls = tls_files{}}};
  std::vector<bound_listener> const listeners{bound("127.0.0.1:80", "127.0.0.1:80"),
                                              bound("127.0.0.1:0", "127.0.0.1:4433")};
  EXPECT_EQ(https_port_of(settings, listeners), 4433);
  EXPECT_EQ(https_port_of(settings, {}), 443);
}

}  // namespace
}  // namespace tidegate::gateway
