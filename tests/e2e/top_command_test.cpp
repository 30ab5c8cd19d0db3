// SPDX-License-Identifier: Apache-2.0
#include "gateway.hpp"
#include "on_a_terminal.hpp"
#include "process.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <memory>
#include <string>
#include <vector>

namespace tidegate::e2e {
namespace {

using testing::ContainsRegex;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr std::string_view other_screen = "\x1b[?1049h";
constexpr std::string_view screen_given_back = "\x1b[?25h\x1b[?1049l";

auto top(std::vector<std::string> arguments) -> outcome {
  arguments.insert(arguments.begin(), {TIDEGATE_BINARY, "top"});
  return run(arguments);
}

/// A gateway with two policies, one of which has refused a client.
auto config() -> std::string {
  return R"(policies:
  burst: {quota: 2, window: 1m, partition: [header:x-api-key]}
  per-address: {quota: 100, window: 1h, partition: [client-ip]}
routes: [{match: {path: /v1/**}, service: echo, limits: [burst, per-address]}]
)";
}

void use(gateway const& running) {
  for (int i = 0; i < 3; ++i) {
    (void)running.get("/v1/a", "X-Api-Key: swordfish\r\n");
  }
}

TEST(top_command, prints_one_snapshot_where_there_is_no_terminal) {
  gateway const running(config());
  use(running);
  auto const shown = top({"--admin", running.admin_url()});
  EXPECT_EQ(shown.status, 0) << shown.err;
  EXPECT_THAT(shown.out, StartsWith("tidegate " + running.admin_url()));
  EXPECT_THAT(shown.out, ContainsRegex("/v1/\\*\\* +- .* 3\n"));
  EXPECT_THAT(shown.out, ContainsRegex("burst +2/1m +- +- +- +2 +1\n"));
  EXPECT_THAT(shown.out,
              ContainsRegex("header:x-api-key=#[0-9a-f]{8} +burst +0.[0-3] +0.[01] +0 +2 "));
  EXPECT_THAT(shown.out, ContainsRegex("client-ip=127.0.0.1 +per-address "));
  EXPECT_THAT(shown.out, Not(HasSubstr("\x1b")));
  EXPECT_THAT(shown.out, Not(HasSubstr("swordfish")));
}

TEST(top_command, prints_json_for_programs) {
  gateway const running(config());
  use(running);
  auto const shown = top({"--json", "--once", "--admin", running.admin_url() + "/"});
  EXPECT_EQ(shown.status, 0) << shown.err;
  EXPECT_THAT(shown.out, StartsWith("{\"time\":\""));
  EXPECT_THAT(shown.out, HasSubstr(R"({"name":"/v1/**","requests":3,"1xx":0,"2xx":2,)"));
  EXPECT_THAT(shown.out, HasSubstr(R"("throttled":1)"));
  EXPECT_THAT(shown.out, EndsWith("]}\n"));
}

TEST(top_command, prints_a_line_of_json_each_interval) {
  gateway const running(config());
  on_a_terminal seen(
      {TIDEGATE_BINARY, "top", "--json", "--interval", "100ms", "--admin", running.admin_url()}, 80,
      24);
  seen.see(R"("seconds":null)");
  seen.see(R"("seconds":0.)");
  use(running);
  seen.see(R"("throttled":1)");
  seen.type("\x03");
  EXPECT_EQ(seen.wait(), 130);
}

TEST(top_command, is_redrawn_until_ctrl_c_and_restores_the_terminal) {
  gateway const running(config());
  on_a_terminal seen(
      {TIDEGATE_BINARY, "top", "--interval", "100ms", "--admin", running.admin_url()}, 100, 30);
  seen.see(other_screen);
  seen.see("\x1b[7mROUTE");
  EXPECT_FALSE(seen.has_plain_keys());
  use(running);
  seen.see("header:x-api-key=#");
  seen.type("\x03");
  seen.see(screen_given_back);
  EXPECT_EQ(seen.wait(), 130);
  EXPECT_TRUE(seen.has_plain_keys());
  EXPECT_THAT(seen.shown(), EndsWith(screen_given_back));
}

TEST(top_command, ends_with_q) {
  gateway const running(config());
  on_a_terminal seen({TIDEGATE_BINARY, "top", "--admin", running.admin_url()}, 100, 30);
  seen.see("HOTTEST PARTITIONS");
  seen.type("q");
  seen.see(screen_given_back);
  EXPECT_EQ(seen.wait(), 0);
  EXPECT_TRUE(seen.has_plain_keys());
}

TEST(top_command, shows_help_while_it_is_asked_for) {
  gateway const running(config());
  on_a_terminal seen({TIDEGATE_BINARY, "top", "--admin", running.admin_url()}, 100, 24);
  seen.see("HOTTEST PARTITIONS");
  seen.type("?");
  seen.see("429/s      refused by a quota");
  seen.type("?");
  seen.see("HOTTEST PARTITIONS");
  seen.type("q");
  EXPECT_EQ(seen.wait(), 0);
}

TEST(top_command, follows_the_size_of_the_terminal) {
  gateway const running(config());
  on_a_terminal seen({TIDEGATE_BINARY, "top", "--interval", "1h", "--admin", running.admin_url()},
                     60, 30);
  seen.see("req/s");
  EXPECT_THAT(seen.shown(), Not(HasSubstr("p99 ms")));
  seen.resize(150, 30);
  seen.see("p99 ms");
  seen.type("q");
  EXPECT_EQ(seen.wait(), 0);
}

TEST(top_command, gives_the_terminal_back_while_it_is_stopped) {
  gateway const running(config());
  on_a_terminal seen(
      {TIDEGATE_BINARY, "top", "--interval", "100ms", "--admin", running.admin_url()}, 100, 30);
  seen.see("ROUTE");
  ::kill(seen.process(), SIGTSTP);
  seen.see(screen_given_back);
  seen.wait_for_stop();
  EXPECT_TRUE(seen.has_plain_keys());
  seen.resume();
  seen.see(other_screen);
  seen.see("ROUTE");
  seen.type("q");
  seen.see(screen_given_back);
  EXPECT_EQ(seen.wait(), 0);
}

TEST(top_command, continues_when_the_gateway_is_away) {
  auto running = std::make_unique<gateway>(config());
  on_a_terminal seen(
      {TIDEGATE_BINARY, "top", "--interval", "100ms", "--admin", running->admin_url()}, 100, 30);
  seen.see("ROUTE");
  running.reset();
  seen.see("no answer: ");
  seen.type("q");
  seen.see(screen_given_back);
  EXPECT_EQ(seen.wait(), 0);
}

TEST(top_command, says_when_there_is_no_gateway) {
  auto const closed = origin::refusing();
  auto const shown = top({"--admin", closed.url()});
  EXPECT_EQ(shown.status, 1);
  EXPECT_EQ(shown.out, "");
  EXPECT_THAT(shown.err, StartsWith("error: " + closed.url() + "/metrics: "));
  serving_origin const other(response("200 OK", "{}"));
  EXPECT_EQ(top({"--admin", other.url()}).status, 1);
}

TEST(top_command, exits_with_2_when_it_is_called_wrongly) {
  EXPECT_EQ(top({"--interval", "0s"}).status, 2);
  EXPECT_EQ(top({"--interval", "soon"}).status, 2);
  EXPECT_EQ(top({"--nonsense"}).status, 2);
}

}  // namespace
}  // namespace tidegate::e2e
