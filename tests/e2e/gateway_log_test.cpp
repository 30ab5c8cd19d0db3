// SPDX-License-Identifier: Apache-2.0
//
// What the gateway says on standard error, for people.
#include "gateway.hpp"
#include "process.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/socket.h>

#include <csignal>
#include <sstream>
#include <string>
#include <vector>

namespace tidegate::e2e {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;

constexpr std::string_view get_request = "GET /a HTTP/1.1\r\nHost: a.example\r\n\r\n";

auto upstream(std::string const& servers, std::string const& more = "") -> std::string {
  return "upstreams: {api: {servers: [" + servers + "]" + more +
         "}}\nroutes: [{name: all, match: {path: /**}, upstream: api}]\n";
}

auto count(std::string_view text, std::string_view what) -> std::size_t {
  std::size_t found = 0;
  for (auto at = text.find(what); at != std::string_view::npos; at = text.find(what, at + 1)) {
    ++found;
  }
  return found;
}

TEST(gateway_log, has_time_and_level_on_every_line) {
  auto const gone = origin::refusing();
  gateway with(upstream(gone.url()));
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(with.get("/").status(), 502);
  }
  auto said = with.errors_until("failures in a row");
  with.signal(SIGHUP);
  said += with.errors_until("the configuration was applied");
  std::istringstream lines(said);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_THAT(line, MatchesRegex("[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\."
                                   "[0-9]{3}Z (error|warning|info|debug): .+"));
  }
}

TEST(gateway_log, says_that_the_only_server_fails_and_when_it_is_back) {
  auto gone = origin::refusing();
  gateway with(upstream(gone.url()), 2);
  auto client = with.connect();
  for (int i = 0; i < 40; ++i) {
    client.send(get_request);
    EXPECT_EQ(client.read_response().status(), 502);
  }
  auto const name = "upstream \"api\": server " + gone.url();
  auto said = with.errors_until("failures in a row");
  EXPECT_THAT(said, AllOf(HasSubstr("Z warning: " + name + " failed: Connection refused\n"),
                          HasSubstr("Z error: " + name +
                                    " has 5 failures in a row and is still used, since there is no "
                                    "other: Connection refused\n")));
  EXPECT_EQ(with.errors(), "") << "not a line for each request";
  ASSERT_EQ(::listen(gone.socket(), 8), 0);
  client.send(get_request);
  auto server = gone.accept();
  said.clear();
  expect_eventually(
      [&] {
        (void)server.read_request();
        server.send(response("200 OK", "back"));
        EXPECT_EQ(client.read_response().body, "back");
        said += with.errors();
        client.send(get_request);
        return said.contains("answers again");
      },
      "it says that the server is back");
  EXPECT_THAT(said, HasSubstr("Z info: " + name + " answers again, after "));
  EXPECT_EQ(count(said, "\n"), 1U);
  (void)server.read_request();
  server.send(response("200 OK", "last"));
  EXPECT_EQ(client.read_response().body, "last");
}

TEST(gateway_log, says_that_a_server_is_ejected) {
  origin well;
  auto const gone = origin::refusing();
  gateway with(upstream("\"" + gone.url() + "\", \"" + well.url() + "\""));
  auto client = with.connect();
  client.send(get_request);
  auto server = well.accept();
  for (int i = 0; i < 12; ++i) {
    (void)server.read_request();
    server.send(response("200 OK", "well"));
    EXPECT_EQ(client.read_response().body, "well");
    if (i < 11) {
      client.send(get_request);
    }
  }
  EXPECT_THAT(with.errors_until("is ejected"),
              HasSubstr("Z error: upstream \"api\": server " + gone.url() +
                        " is ejected for 10s after 5 failures in a row: Connection refused\n"));
}

TEST(gateway_log, says_that_a_server_did_not_answer_in_time) {
  origin const api;
  gateway with(upstream(api.url(), ", timeout: 100ms"));
  EXPECT_EQ(with.get("/").status(), 504);
  (void)with.errors_until("Z warning: upstream \"api\": server " + api.url() +
                          " failed: no response within 100ms (timeout)");
}

TEST(gateway_log, says_that_a_server_closed_in_the_middle_of_an_answer) {
  origin api;
  gateway with(upstream(api.url()));
  auto client = with.connect();
  client.send(get_request);
  auto server = api.accept();
  (void)server.read_request();
  server.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf");
  EXPECT_EQ(client.read_head().status(), 200);
  server.close();
  (void)client.read_to_end();
  (void)with.errors_until(" failed: it closed the connection in the middle of a response");
}

TEST(gateway_log, calls_changes_by_the_admin_address_no_warnings) {
  gateway with("routes: [{match: {path: /**}, service: echo}]\n");
  auto admin = with.connect_admin();
  admin.send("POST /api/v1/config/reload HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n");
  EXPECT_EQ(admin.read_response().status(), 200);
  EXPECT_THAT(with.errors_until("to POST /api/v1/config/reload: answered 200"),
              AllOf(HasSubstr("Z info: the admin address was asked by 127.0.0.1:"),
                    Not(HasSubstr("warning:"))));
}

TEST(gateway_log, says_what_its_level_lets_it_say) {
  auto const gone = origin::refusing();
  gateway with("log-level: error\n" + upstream(gone.url()));
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(with.get("/").status(), 502);
  }
  auto const said = with.errors_until("failures in a row");
  EXPECT_THAT(said, Not(HasSubstr("warning:")));
  EXPECT_THAT(with.reload("log-level: debug\n" + upstream(gone.url())),
              "the configuration was applied");
  EXPECT_EQ(with.get("/").status(), 502);
  (void)with.errors_until("Z debug: upstream \"api\": server ");
}

TEST(gateway_log, takes_its_level_from_the_command_line_first) {
  auto const gone = origin::refusing();
  gateway with(std::vector<std::string>{"--upstream", gone.url(), "--listen", "127.0.0.1:0",
                                        "--log-level", "debug"});
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(with.get("/").status(), 502);
  }
  (void)with.errors_until("Z debug: upstream \"upstream\": server ");
  auto const wrong =
      run({TIDEGATE_BINARY, "serve", "--upstream", gone.url(), "--log-level", "all"});
  EXPECT_EQ(wrong.status, 2);
}

}  // namespace
}  // namespace tidegate::e2e
