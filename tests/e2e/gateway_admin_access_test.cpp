// SPDX-License-Identifier: Apache-2.0
//
// Who may use the admin address, and what is said of those who do.
#include "gateway.hpp"
#include "process.hpp"

#include <tidegate/base/hex.hpp>
#include <tidegate/base/sha256.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

namespace tidegate::e2e {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;
using testing::StartsWith;

std::string const echo = "routes: [{match: {path: /**}, service: echo}]\n";
std::string const as_ops = "Authorization: Bearer secret\r\n";
std::string const as_reader = "Authorization: Bearer reader\r\n";

auto digest_of(std::string_view token) -> std::string {
  return to_hex(sha256::of(token));
}

auto admin_with_tokens(std::string const& address = "127.0.0.1:0") -> std::string {
  return "{address: \"" + address + "\", tokens: [{name: ops, sha256: " + digest_of("secret") +
         "}, {name: look, sha256: " + digest_of("reader") + ", read-only: true}]}";
}

auto options(std::string admin = admin_with_tokens()) -> gateway_options {
  gateway_options made;
  made.admin = std::move(admin);
  return made;
}

auto ask(gateway const& with, std::string_view request_line, std::string_view lines = "")
    -> message {
  auto client = with.connect_admin();
  client.send(std::string(request_line) + " HTTP/1.1\r\nHost: localhost\r\n" + std::string(lines) +
              "\r\n");
  return client.read_response();
}

/// `Cookie: NAME=ID` of a session that was opened with the token.
auto log_in(gateway const& with, std::string_view token) -> std::string {
  auto const answer =
      ask(with, "POST /api/v1/session", "Authorization: Bearer " + std::string(token) + "\r\n");
  EXPECT_EQ(answer.status(), 200);
  auto const cookie = answer.field("Set-Cookie");
  EXPECT_THAT(cookie, MatchesRegex("tidegate_session_[0-9]+=[0-9a-f]{32}; Path=/; HttpOnly; "
                                   "SameSite=Strict; Max-Age=43200"));
  return "Cookie: " + cookie.substr(0, cookie.find(';')) + "\r\n";
}

TEST(gateway_admin_address, needs_a_token_where_others_reach_it) {
  for (auto const* const address : {"0.0.0.0:0", "127.0.0.1:0"}) {
    gateway const with(echo, options(admin_with_tokens(address)));
    for (auto const* const open : {"/healthz", "/readyz"}) {
      EXPECT_EQ(ask(with, "GET " + std::string(open)).status(), 200) << open;
    }
    for (auto const* const closed :
         {"/metrics", "/api/v1/policies", "/api/v1/partitions", "/api/v1/config",
          "/api/v1/config/reload", "/api/v1/session", "/api/v1/events", "/api/v1/explain",
          "/api/v1/idempotency/x", "/nothing", "/healthz/x"}) {
      auto const refused = ask(with, "GET " + std::string(closed));
      EXPECT_EQ(refused.status(), 401) << closed;
      EXPECT_EQ(refused.field("Content-Type"), "application/problem+json");
      EXPECT_EQ(refused.field("WWW-Authenticate"), "Bearer realm=\"tidegate admin\"");
      EXPECT_THAT(refused.body, Not(HasSubstr("tidegate_")));
    }
    EXPECT_EQ(ask(with, "GET /metrics", as_ops).status(), 200);
    EXPECT_EQ(ask(with, "GET /metrics", as_reader).status(), 200);
    EXPECT_EQ(ask(with, "GET /metrics", "Authorization: Bearer Secret\r\n").status(), 401);
  }
}

TEST(gateway_admin_address, needs_none_on_the_loopback_interface_unless_there_are_some) {
  gateway const with(echo);
  EXPECT_EQ(ask(with, "GET /metrics").status(), 200);
  EXPECT_EQ(ask(with, "GET /metrics", "Authorization: Bearer whatever\r\n").status(), 200);
  EXPECT_EQ(ask(with, "POST /api/v1/session", as_ops).status(), 409);
  EXPECT_EQ(ask(with, "GET /api/v1/session").body,
            "{\"token\":null,\"read-only\":false,\"session\":false}\n");
}

TEST(gateway_admin_address, has_any_name_where_it_needs_a_token) {
  gateway const with(echo, options());
  auto client = with.connect_admin();  // as from a proxy with TLS on this machine
  client.send("GET /metrics HTTP/1.1\r\nHost: gw.example\r\n" + as_ops + "\r\n");
  EXPECT_EQ(client.read_response().status(), 200);
}

TEST(gateway_admin_address, is_refused_without_tokens_where_others_reach_it) {
  auto const folder = std::filesystem::temp_directory_path() / "tidegate_admin_XXXXXX";
  auto name = folder.string();
  ASSERT_NE(::mkdtemp(name.data()), nullptr);
  auto const file = name + "/t.yaml";
  std::ofstream(file) << "listen: '127.0.0.1:0'\nadmin: ':9901'\n" << echo;
  for (auto const* const command : {"check", "serve"}) {
    auto const refused = run({TIDEGATE_BINARY, command, "-c", file});
    EXPECT_EQ(refused.status, 2);
    EXPECT_THAT(
        refused.err,
        StartsWith(
            file +
            ":2:8: admin: other machines can reach \":9901\", so it needs tokens (expected "));
    EXPECT_THAT(refused.err, HasSubstr("sha256sum"));
  }
  auto const by_flag =
      run({TIDEGATE_BINARY, "serve", "--upstream", "http://127.0.0.1:9", "--admin", "0.0.0.0:0"});
  EXPECT_EQ(by_flag.status, 2);
  EXPECT_THAT(by_flag.err, StartsWith("error: --admin: other machines can reach this address"));
  std::filesystem::remove_all(name);
}

TEST(gateway_admin_address, shows_who_brings_no_token_a_page_without_anything_of_the_gateway) {
  gateway const with(echo, options());
  auto const page = ask(with, "GET /");
  EXPECT_EQ(page.status(), 200);
  EXPECT_EQ(page.field("Content-Type"), "text/html; charset=utf-8");
  EXPECT_THAT(page.field("Content-Security-Policy"),
              StartsWith("default-src 'none'; script-src 'nonce-"));
  EXPECT_THAT(page.body, AllOf(HasSubstr("id=\"login-form\""), Not(HasSubstr("tidegate_")),
                               Not(HasSubstr("@nonce@")), Not(HasSubstr("http://"))));
  EXPECT_EQ(ask(with, "GET /", "Authorization: Bearer wrong\r\n").status(), 401);
  EXPECT_THAT(ask(with, "GET /", as_ops).body,
              AllOf(HasSubstr("tidegate_connections_open"), HasSubstr("{\"token\":\"ops\"")));
}

TEST(gateway_admin_address, lets_a_browser_log_in_and_out) {
  gateway with(echo, options());
  auto const cookie = log_in(with, "secret");
  EXPECT_NE(cookie, log_in(with, "secret"));
  EXPECT_EQ(ask(with, "GET /metrics", cookie).status(), 200);
  EXPECT_EQ(ask(with, "GET /api/v1/session", cookie).body,
            "{\"token\":\"ops\",\"read-only\":false,\"session\":true}\n");
  EXPECT_THAT(ask(with, "GET /", cookie).body, HasSubstr("tidegate_connections_open"));
  std::string const here = "Origin: http://localhost\r\n";
  EXPECT_EQ(ask(with, "DELETE /api/v1/session", cookie).status(), 403);
  EXPECT_EQ(
      ask(with, "DELETE /api/v1/session", cookie + "Origin: http://evil.example\r\n").status(),
      403);
  auto const gone = ask(with, "DELETE /api/v1/session", cookie + here);
  EXPECT_EQ(gone.status(), 204);
  EXPECT_THAT(gone.field("Set-Cookie"),
              HasSubstr("=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0"));
  EXPECT_EQ(ask(with, "GET /metrics", cookie).status(), 401);
  EXPECT_EQ(ask(with, "PUT /api/v1/session", as_ops).field("Allow"), "GET, HEAD, POST, DELETE");
  auto const said = with.errors_until(" (token ops) to DELETE /api/v1/session: answered 204");
  EXPECT_THAT(said, HasSubstr(" (token ops) to POST /api/v1/session: answered 200"));
  EXPECT_THAT(said, Not(HasSubstr("secret")));
}

TEST(gateway_admin_address, marks_the_cookie_of_a_page_that_came_by_tls) {
  gateway const with(echo, options());
  EXPECT_THAT(ask(with, "POST /api/v1/session", as_ops + "Origin: https://localhost\r\n")
                  .field("Set-Cookie"),
              testing::EndsWith("; Secure"));
}

TEST(gateway_admin_address, changes_nothing_for_a_token_that_only_reads) {
  gateway with(echo, options());
  auto const cookie = log_in(with, "reader") + "Origin: http://localhost\r\n";
  for (auto const& who : {as_reader, cookie}) {
    for (auto const* const change : {"POST /api/v1/config/reload", "DELETE /api/v1/idempotency/x",
                                     "POST /api/v1/idempotency/x/resolve", "PUT /nothing"}) {
      auto const refused = ask(with, change, who);
      EXPECT_EQ(refused.status(), 403) << change;
      EXPECT_THAT(refused.body, HasSubstr("This token is read-only."));
    }
    EXPECT_EQ(ask(with, "POST /api/v1/explain", who).status(), 200);
    EXPECT_EQ(ask(with, "GET /api/v1/config", who).status(), 200);
  }
  (void)with.errors_until(" (token look) to POST /api/v1/config/reload: answered 403");
}

TEST(gateway_admin_address, lets_no_other_page_use_the_session_of_a_browser) {
  gateway const with(echo, options());
  auto const cookie = log_in(with, "secret");
  EXPECT_EQ(ask(with, "POST /api/v1/config/reload", cookie).status(), 403);
  EXPECT_EQ(ask(with, "POST /api/v1/config/reload", cookie + "Origin: http://localhost:3000\r\n")
                .status(),
            403);
  EXPECT_EQ(
      ask(with, "POST /api/v1/config/reload", cookie + "Sec-Fetch-Site: same-site\r\n").status(),
      403);
  EXPECT_EQ(ask(with, "GET /metrics", cookie + "Sec-Fetch-Site: cross-site\r\n").status(), 403);
  EXPECT_EQ(
      ask(with, "POST /api/v1/config/reload", cookie + "Sec-Fetch-Site: same-origin\r\n").status(),
      200);
  EXPECT_EQ(
      ask(with, "POST /api/v1/config/reload", as_ops + "Origin: http://evil.example\r\n").status(),
      403);
}

TEST(gateway_admin_address, looks_at_so_many_wrong_tokens_and_says_so_once) {
  gateway with(echo, options());
  for (int i = 0; i < 10; ++i) {
    auto const refused = ask(with, "GET /metrics", "Authorization: Bearer wrong\r\n");
    EXPECT_EQ(refused.status(), 401);
    EXPECT_EQ(refused.field("WWW-Authenticate"),
              "Bearer realm=\"tidegate admin\", error=\"invalid_token\"");
  }
  auto const refused = ask(with, "GET /metrics", as_ops);
  EXPECT_EQ(refused.status(), 429);
  EXPECT_THAT(refused.field("Retry-After"), MatchesRegex("[1-6]?[0-9]"));
  EXPECT_EQ(ask(with, "GET /healthz").status(), 200);
  auto const said = with.errors_until("wrong token");
  EXPECT_THAT(said, HasSubstr("Z warning: the admin address refused 1 wrong token; the last came "
                              "from 127.0.0.1"));
  EXPECT_THAT(with.errors(), Not(HasSubstr("wrong token")));
}

TEST(gateway_admin_address, takes_other_tokens_over_by_a_reload_and_ends_what_the_old_ones_opened) {
  gateway with(echo, options());
  auto const cookie = log_in(with, "secret");
  auto stream = with.connect_admin();
  stream.send("GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n" + cookie + "\r\n");
  EXPECT_EQ(stream.read_head().status(), 200);
  with.options().admin =
      "{address: \"127.0.0.1:0\", tokens: [{name: new, sha256: " + digest_of("another") + "}]}";
  EXPECT_EQ(with.reload(echo), "the configuration was applied");
  expect_eventually(
      [&] {
        return ask(with, "GET /metrics", "Authorization: Bearer another\r\n").status() == 200;
      },
      "the new token counts");
  EXPECT_EQ(ask(with, "GET /metrics", cookie).status(), 401);
  (void)stream.read_to_end();  // and it ends
}

TEST(gateway_admin_address, stays_closed_when_a_reload_would_open_it) {
  gateway with(echo, options(admin_with_tokens("0.0.0.0:0")));
  with.options().admin = "\"127.0.0.1:0\"";
  EXPECT_THAT(
      with.reload(echo),
      StartsWith("the configuration was not applied: the admin address stays 0.0.0.0:0 until "
                 "a restart"));
  EXPECT_EQ(ask(with, "GET /metrics").status(), 401);
  with.options().admin = "off";
  EXPECT_EQ(with.reload(echo), "the configuration was applied");
  EXPECT_EQ(ask(with, "GET /metrics", as_ops).status(), 200);
  EXPECT_EQ(ask(with, "GET /metrics").status(), 401);
}

TEST(gateway_admin_address, is_named_by_a_flag) {
  gateway with(
      {"--upstream", "http://127.0.0.1:9", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"});
  auto const line = with.output();
  EXPECT_THAT(line, StartsWith("admin on 127.0.0.1:"));
  auto client = connect_to(static_cast<std::uint16_t>(std::stoi(line.substr(line.rfind(':') + 1))));
  client.send("GET /api/v1/config HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_THAT(
      client.read_response().body,
      HasSubstr(
          R"({"path":"upstreams.upstream.servers","value":"[http://127.0.0.1:9]","origin":"command line"})"));
}

TEST(top_command, brings_a_token) {
  gateway const with(echo, options());
  auto const top = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(),
                     {TIDEGATE_BINARY, "top", "--once", "--admin", with.admin_url()});
    return run(arguments);
  };
  EXPECT_EQ(top({"--token", "reader"}).status, 0);
  auto const without = top({});
  EXPECT_EQ(without.status, 1);
  EXPECT_THAT(
      without.err,
      HasSubstr(
          "the address needs a token: --token-file FILE, or the variable TIDEGATE_ADMIN_TOKEN"));
  auto const wrong = top({"--token", "wrong"});
  EXPECT_EQ(wrong.status, 1);
  EXPECT_THAT(wrong.err, HasSubstr("invalid token"));
  auto name = (std::filesystem::temp_directory_path() / "tidegate_token_XXXXXX").string();
  descriptor const made(::mkstemp(name.data()));
  std::ofstream(name) << "reader\n";
  EXPECT_EQ(top({"--token-file", name}).status, 0);
  std::filesystem::remove(name);
  EXPECT_EQ(top({"--token-file", name}).status, 2);
  EXPECT_EQ(top({"--token", "two words"}).status, 2);
  auto const by_variable =
      run({"/bin/sh", "-c", "TIDEGATE_ADMIN_TOKEN=reader exec \"$0\" top --once --admin \"$1\"",
           TIDEGATE_BINARY, with.admin_url()});
  EXPECT_EQ(by_variable.status, 0) << by_variable.err;
}

}  // namespace
}  // namespace tidegate::e2e
