// SPDX-License-Identifier: Apache-2.0
#include <tidegate/config/effective.hpp>

#include "options/options.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace tidegate::gateway {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

auto options_of(std::string_view text, std::string_view file = "t.yaml")
    -> std::vector<effective_option> {
  auto made = parse_config(text, file);
  if (!made) {
    for (auto const& fault : made.error()) {
      ADD_FAILURE() << to_string(fault);
    }
    return {};
  }
  return made->effective;
}

/// `PATH = VALUE (ORIGIN)`
auto lines_of(std::string_view text, std::string_view file = "t.yaml") -> std::vector<std::string> {
  std::vector<std::string> lines;
  for (auto const& each : options_of(text, file)) {
    lines.push_back(each.path + " = " + each.value + " (" + each.origin + ")");
  }
  return lines;
}

/// `PATH: FROM -> TO`
auto changes(std::string_view before, std::string_view after) -> std::vector<std::string> {
  auto const from = options_of(before);
  auto const to = options_of(after);
  std::vector<std::string> lines;
  for (auto const& each : differences(from, to)) {
    lines.push_back((each.to != nullptr ? each.to : each.from)->path + ": " +
                    (each.from != nullptr ? each.from->value : "-") + " -> " +
                    (each.to != nullptr ? each.to->value : "-"));
  }
  return lines;
}

std::string const echo = "routes: [{match: {path: /**}, service: echo}]\n";

TEST(gateway_config_effective, says_where_each_value_comes_from) {
  EXPECT_THAT(
      lines_of(R"(listen: ":8080"
policies:
  burst: {quota: 100, window: 1m, partition: client-ip}
upstreams: {api: "http://127.0.0.1:3000"}
routes:
  - {match: {path: /v1/**}, upstream: api, limits: [burst], cost: {default: 1, "POST /v1/a": 5}}
)"),
      AllOf(Contains("listen = [:8080] (t.yaml:1:9)"),
            Contains("listen[:8080].address = :8080 (t.yaml:1:9)"),
            Contains("listen[:8080].http2 = true (default)"), Contains("admin = off (default)"),
            Contains("policies.burst.quota = 100 (t.yaml:3:18)"),
            Contains("policies.burst.partition = [client-ip] (t.yaml:3:46)"),
            Contains("policies.burst.algorithm = sliding (default)"),
            Contains("upstreams.api.servers = [http://127.0.0.1:3000] (t.yaml:4:18)"),
            Contains("upstreams.api.timeout = 30s (default)"),
            Contains("routes = [/v1/**] (t.yaml:6:3)"),
            Contains("routes[/v1/**].name = /v1/** (default)"),
            Contains("routes[/v1/**].cost.POST /v1/a = 5 (t.yaml:6:94)"),
            Contains("routes[/v1/**].idempotency.mode = off (default)"),
            Contains("secrets = data/secrets.key (default)"),
            Contains("stores.idempotency = sqlite:data/idempotency.db (default)"),
            Contains("http.max-body = none (default)")));
}

TEST(gateway_config_effective, leaves_out_what_means_nothing) {
  auto const lines = lines_of(echo);
  EXPECT_THAT(lines, Not(Contains(HasSubstr("idempotency.ttl"))));
  EXPECT_THAT(lines, Not(Contains(HasSubstr("max-page-size"))));
  EXPECT_THAT(lines, Not(Contains(HasSubstr("scan-budget"))));
  auto const scim = lines_of(
      "routes: [{match: {path: /scim/**}, service: scim, idempotency: {mode: optional}}]\n");
  EXPECT_THAT(
      scim,
      AllOf(Contains("routes[/scim/**].scim.max-page-size = 500 (default)"),
            Contains("routes[/scim/**].scim.bulk.max-operations = 1000 (default)"),
            Contains("routes[/scim/**].idempotency.ttl = 24h (default)"),
            Contains("routes[/scim/**].idempotency.methods = [POST, PATCH] (default)"),
            Contains("routes[/scim/**].idempotency.scope = [header:authorization] (default)")));
}

TEST(gateway_config_effective, shows_options_of_scim_under_their_name_wherever_they_stand) {
  std::string const start = "routes: [{match: {path: /scim/**}, service: scim, ";
  EXPECT_THAT(lines_of(start + "cursor-timeout: 5m}]\n"),
              AllOf(Contains("routes[/scim/**].scim.cursor-timeout = 5m (t.yaml:1:67)"),
                    Not(Contains(HasSubstr("].cursor-timeout")))));
  EXPECT_THAT(lines_of("upstreams: {u: 'http://a'}\n"
                       "routes: [{match: {path: /**}, upstream: u, bridge: scim-cursor}]\n"),
              AllOf(Contains("routes[/**].scim.max-page-size = 500 (default)"),
                    Not(Contains(HasSubstr("scim.scan-budget")))));
  EXPECT_THAT(changes(start + "max-page-size: 9}]\n", start + "scim: {max-page-size: 9}}]\n"),
              IsEmpty());
  EXPECT_THAT(changes(start + "max-page-size: 9}]\n", start + "scim: {max-page-size: 8}}]\n"),
              ElementsAre("routes[/scim/**].scim.max-page-size: 9 -> 8"));
}

TEST(gateway_config_effective, has_every_option_that_a_file_gives) {
  // Every option of the table that has a default or stands in the file is there, also one that is
  // new.
  std::set<std::string> seen;
  for (auto const& each : options_of(
           "policies: {p: {quota: 1, window: {calendar: day}, algorithm: fixed}}\nupstreams: {u: "
           "{servers: ['http://a'], "
           "health: {path: /}}}\n"
           "routes: [{match: {path: /a}, redirect: {to: /b}}, {match: {path: /c}, respond: {}}, "
           "{match: {path: /**}, service: scim, idempotency: {mode: required}, "
           "cors: {origins: '*'}}]\n"
           "access-log: {file: x}\nadmin: {address: '127.0.0.1:1', tokens: [{name: a, sha256: " +
           std::string(64, 'a') + "}]}\n")) {
    std::string path;
    bool is_name = false;  // `[...]` and the names of policies and upstreams are not in the table
    for (char const c : each.path) {
      is_name = c == '[' || (is_name && c != ']');
      path += is_name || c == ']' ? "" : std::string(1, c);
    }
    for (std::string const named : {"policies.p", "upstreams.u"}) {
      if (path.starts_with(named)) {
        path.erase(named.find('.'), 2);
      }
    }
    seen.insert(path);
  }
  std::set<std::string_view> const without = {"policies.abuse.refusals",
                                              "policies.abuse.within",
                                              "policies.abuse.block",
                                              "routes.auth.bearer-tokens.tenant",
                                              "routes.auth.bearer-tokens.read-only",
                                              "access-log"};
  for (auto const& rule : options()) {
    if (!rule.initial.empty() && !without.contains(rule.path)) {
      EXPECT_TRUE(seen.contains(std::string(rule.path))) << rule.path;
    }
  }
}

TEST(gateway_config_effective, shows_no_secret) {
  auto const lines =
      lines_of(echo + "admin: {address: '127.0.0.1:1', tokens: [{name: ops, sha256: " +
               std::string(64, 'a') +
               "}]}\nstores: {quota: 'redis://u:p4ss@h:1', idempotency: "
               "'postgres://u:p4ss@h/d?sslpassword=p4ss&x=y'}\n");
  EXPECT_THAT(lines, Contains(StartsWith("admin.tokens[ops].sha256 = (hidden) ")));
  EXPECT_THAT(lines, Contains(StartsWith("stores.quota = redis://u:***@h:1 ")));
  EXPECT_THAT(
      lines,
      Contains(StartsWith("stores.idempotency = postgres://u:***@h/d?sslpassword=***&x=y ")));
  EXPECT_THAT(lines, Not(Contains(HasSubstr("p4ss"))));
  EXPECT_THAT(lines, Not(Contains(HasSubstr("aaaa"))));
}

TEST(gateway_config_effective, says_that_flags_come_from_the_command_line) {
  auto const made =
      config_from_flags({.upstream = "http://127.0.0.1:3000", .admin = "127.0.0.1:1"});
  ASSERT_TRUE(made.has_value());
  std::vector<std::string> lines;
  for (auto const& each : made->effective) {
    lines.push_back(each.path + " (" + each.origin + ")");
  }
  EXPECT_THAT(lines, AllOf(Contains("admin.address (command line)"), Contains("listen (default)"),
                           Contains("upstreams.upstream.servers (command line)")));
}

TEST(gateway_config_effective, finds_what_another_configuration_changes) {
  EXPECT_THAT(changes(echo, "# the same\n\n" + echo), IsEmpty());
  EXPECT_THAT(changes(echo, echo + "http: {max-uri: 4KiB}\n"),
              ElementsAre("http.max-uri: 8KiB -> 4KiB"));
  EXPECT_THAT(changes(echo + "admin: '127.0.0.1:1'\n", echo + "admin: {address: '127.0.0.1:1'}\n"),
              IsEmpty());
  EXPECT_THAT(changes("policies: {p: {quota: 1, window: 1s}}\n" + echo, echo),
              Contains("policies.p.quota: 1 -> -"));
  std::string const a = "{match: {path: /a}, service: echo}";
  std::string const b = "{match: {path: /b}, service: echo}";
  EXPECT_THAT(changes("routes: [" + a + ", " + b + "]\n", "routes: [" + b + ", " + a + "]\n"),
              ElementsAre("routes: [/a, /b] -> [/b, /a]"));
}

TEST(gateway_config_effective, tells_secrets_and_long_values_apart_without_showing_them) {
  auto const with_token = [](char digit) {
    return echo + "admin: {address: '127.0.0.1:1', tokens: [{name: a, sha256: '" +
           std::string(64, digit) + "'}]}\n";
  };
  EXPECT_THAT(changes(with_token('a'), with_token('b')),
              ElementsAre("admin.tokens[a].sha256: (hidden) -> (hidden)"));
  EXPECT_THAT(changes(echo + "stores: {quota: 'redis://:a@h:1'}\n",
                      echo + "stores: {quota: 'redis://:b@h:1'}\n"),
              ElementsAre("stores.quota: redis://:***@h:1 -> redis://:***@h:1"));
  std::string const name(300, 'n');
  auto const named = [](std::string const& text) {
    return "routes: [{name: x, match: {path: /" + text + "}, service: echo}]\n";
  };
  EXPECT_THAT(
      changes(named(name + "1"), named(name + "2")),
      ElementsAre(AllOf(StartsWith("routes[x].match.path: /nnn"), HasSubstr("... -> /nnn"))));
}

TEST(gateway_config_effective, is_bounded) {
  std::string text = "routes:\n";
  for (int i = 0; i < 5000; ++i) {
    text += "- {match: {path: /" + std::to_string(i) + "}, service: echo}\n";
  }
  EXPECT_EQ(options_of(text).size(), effective_options_max);
}

}  // namespace
}  // namespace tidegate::gateway
