// SPDX-License-Identifier: Apache-2.0
//
// What the console is made of, without a browser; tests/peers opens it in one.
#include "gateway.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace tidegate::e2e {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

std::string const nothing_there =
    "routes: [{match: {path: /**}, upstream: x}]\n"
    "upstreams: {x: {servers: [\"http://127.0.0.1:9\"]}}\n";

auto explain(gateway const& with, std::string_view text, std::string_view lines = "") -> message {
  auto client = with.connect_admin();
  client.send("POST /api/v1/explain HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\n" +
              std::string(lines) + "Content-Length: " + std::to_string(text.size()) + "\r\n\r\n" +
              std::string(text));
  return client.read_response();
}

TEST(gateway_console, is_one_page_that_runs_nothing_but_itself) {
  gateway const with(nothing_there);
  auto const page = with.admin("/");
  EXPECT_EQ(page.status(), 200);
  EXPECT_EQ(page.field("Content-Type"), "text/html; charset=utf-8");
  EXPECT_LT(page.body.size(), 250'000U);
  auto const policy = std::string(page.field("Content-Security-Policy"));
  EXPECT_THAT(policy, StartsWith("default-src 'none'; script-src 'nonce-"));
  auto const begin = policy.find("nonce-") + 6;
  auto const nonce = policy.substr(begin, policy.find('\'', begin) - begin);
  EXPECT_THAT(page.body, HasSubstr("<script nonce=\"" + nonce + "\">"));
  EXPECT_THAT(page.body, HasSubstr("<style nonce=\"" + nonce + "\">"));
  EXPECT_THAT(std::string(with.admin("/").field("Content-Security-Policy")), Not(HasSubstr(nonce)));
  EXPECT_THAT(page.body, HasSubstr(R"(tidegate_connections_open)"));
  for (auto const* const elsewhere : {"src=\"http", "href=\"http", "sourceMappingURL", "@nonce@"}) {
    EXPECT_THAT(page.body, Not(HasSubstr(elsewhere)));
  }
}

TEST(gateway_console, gets_the_figures_again_and_again) {
  gateway const with(nothing_there);
  auto client = with.connect_admin();
  client.send("GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n");
  std::string seen;
  for (std::size_t events = 0; events < 2;) {
    auto const more = client.read_some();
    ASSERT_FALSE(more.empty()) << seen;
    seen += more;
    events = 0;
    constexpr std::string_view begin = "event: metrics\ndata: {\"at\":";
    for (auto at = seen.find(begin); at != std::string::npos; at = seen.find(begin, at + 1)) {
      ++events;
    }
  }
  EXPECT_THAT(seen, HasSubstr("Content-Type: text/event-stream\r\n"));
  EXPECT_THAT(seen, HasSubstr("tidegate_connections_open"));
  EXPECT_THAT(seen, Not(HasSubstr("Content-Length")));
}

TEST(gateway_console, comes_with_the_history_and_with_what_the_gateway_says_of_itself) {
  gateway const with(nothing_there);
  auto const page = with.admin("/").body;
  EXPECT_THAT(page, HasSubstr(R"("history":{"interval":5,"first":)"));
  auto const about = with.admin("/api/v1/about").body;
  EXPECT_THAT(about, StartsWith(R"({"version":")"));
  EXPECT_THAT(page, HasSubstr(about.substr(0, about.find_last_not_of('\n') + 1)));
  EXPECT_THAT(with.admin("/api/v1/history").body, HasSubstr(R"("latency":{"p50":[)"));
  EXPECT_EQ(with.admin("/api/v1/history?seconds=0").status(), 400);
}

TEST(gateway_console, leaves_room_for_health_checks) {
  gateway const with(nothing_there);
  std::vector<connection> consoles;
  int open = 0;
  for (int i = 0; i < 40; ++i) {
    consoles.push_back(with.connect_admin());
    consoles.back().send("GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n");
    open += consoles.back().read_head().status() == 200 ? 1 : 0;
  }
  EXPECT_EQ(open, 32);
  EXPECT_EQ(with.admin("/healthz").status(), 200);
}

TEST(gateway_console, answers_421_for_foreign_hosts) {
  gateway const with(nothing_there);
  auto const status_for = [&](std::string_view host) {
    auto client = with.connect_admin();
    client.send("GET /metrics HTTP/1.1\r\nHost: " + std::string(host) + "\r\n\r\n");
    return client.read_response().status();
  };
  for (auto const* const known : {"localhost", "LOCALHOST:9901", "127.0.0.1:9901", "[::1]:9901"}) {
    EXPECT_EQ(status_for(known), 200) << known;
  }
  for (auto const* const foreign :
       {"evil.example", "evil.example:9901", "localhost.evil.example", "127.0.0.1.evil.example"}) {
    EXPECT_EQ(status_for(foreign), 421) << foreign;
  }
}

TEST(gateway_console, explains_what_is_pasted) {
  gateway const with(nothing_there);
  auto const told = explain(with, "HTTP/1.1 200 OK\r\nRateLimit: \"a\";r=5;t=9\r\n");
  EXPECT_EQ(told.status(), 200);
  EXPECT_THAT(told.body, HasSubstr("5 units left"));
  EXPECT_EQ(explain(with, "").body, "{\"findings\":[],\"errors\":0,\"warnings\":0}\n");
  EXPECT_EQ(explain(with, std::string(20'000, 'x')).status(), 413);
  EXPECT_EQ(explain(with, "x", "Origin: http://evil.example\r\n").status(), 403);
  EXPECT_EQ(with.admin("/api/v1/explain").status(), 405);
}

}  // namespace
}  // namespace tidegate::e2e
