// SPDX-License-Identifier: Apache-2.0
//
// What routes say of pages, paths and headers, of requests that wait for a store of quotas.
#include "keyed.hpp"
#include "raw_http2.hpp"
#include "scripted_quotas.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace tidegate::e2e {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class gateway_shared_quota_edge : public with_scripted_quotas {};

TEST_F(gateway_shared_quota_edge, lets_pages_read_what_waited_for_the_store) {
  serving_origin const api(response("200 OK", "ok"));
  inner_gateway const with(
      limited(api.url(), "", ", cors: {origins: [\"https://a.example\", \"https://b.example\"]}"),
      script_);
  script_->holds = true;
  auto first = with.connect();
  first.send("GET / HTTP/1.1\r\nHost: a\r\nOrigin: https://a.example\r\n\r\n");
  raw_client second(with.connect());
  second.send(headers, 5, 1,
              std::string("\x82\x84\x86") + literal(":authority", "a") +
                  literal("origin", "https://b.example"));
  auto foreign = with.connect();
  foreign.send("GET / HTTP/1.1\r\nHost: a\r\nOrigin: https://c.example\r\n\r\n");
  expect_asked(3);
  // A preflight does not wait, and costs nothing.
  auto const preflight = with.ask(
      "OPTIONS / HTTP/1.1\r\nHost: a\r\nOrigin: https://a.example\r\n"
      "Access-Control-Request-Method: PUT\r\n\r\n");
  EXPECT_EQ(preflight.status(), 204);
  EXPECT_EQ(preflight.field("Access-Control-Allow-Origin"), "https://a.example");
  EXPECT_TRUE(first.is_silent());
  script_->let_go();
  auto const answer = first.read_response();
  EXPECT_EQ(answer.status(), 200);
  EXPECT_EQ(answer.field("Access-Control-Allow-Origin"), "https://a.example");
  auto const of_second = second.decode(second.read(headers)).fields;
  EXPECT_THAT(of_second, StartsWith(":status: 200\n"));
  EXPECT_THAT(of_second, HasSubstr("access-control-allow-origin: https://b.example\n"));
  auto const of_foreign = foreign.read_response();
  EXPECT_EQ(of_foreign.status(), 200);
  EXPECT_EQ(of_foreign.count("Access-Control-Allow-Origin"), 0U);
  EXPECT_EQ(of_foreign.field("Vary"), "Origin");
  auto const refused = with.get("Origin: https://b.example\r\n");
  EXPECT_EQ(refused.status(), 429);
  EXPECT_EQ(refused.field("Access-Control-Allow-Origin"), "https://b.example");
  EXPECT_THAT(refused.field("Access-Control-Expose-Headers"), HasSubstr("Retry-After"));
  EXPECT_EQ(script_->asked, 4);
}

TEST_F(gateway_shared_quota_edge, serves_what_waited_by_the_rules_that_it_came_under) {
  serving_origin const api(
      [](message const& got) { return response("200 OK", got.start_line + got.field("X-A")); });
  auto const config = [&](std::string const& name) {
    std::string const rules = ", limits: [p], cors: {origins: [\"https://" + name +
                              ".example\"]}, response: {set: {X-B: " + name + "}}}\n";
    return "upstreams: {api: " + api.url() +
           "}\npolicies: {p: {quota: 100, window: 1h}}\nroutes:\n"
           "  - {match: {path: /r/**}, redirect: {to: \"/" +
           name + "/{**}\"}" + rules +
           "  - {match: {path: /t/**}, respond: {status: 200, body: " + name + "}" + rules +
           "  - {match: {path: /**}, upstream: api, rewrite: {add-prefix: /" + name +
           "}, request: {set: {X-A: " + name + "}}" + rules;
  };
  inner_gateway const with(config("old"), script_);
  script_->holds = true;
  std::vector<connection> clients;
  for (std::string const path : {"/r/%41/b?q", "/t/", "/%41/b?q"}) {
    clients.push_back(with.connect());
    clients.back().send("GET " + path +
                        " HTTP/1.1\r\nHost: a\r\nOrigin: https://old.example\r\n\r\n");
  }
  expect_asked(3);
  for (auto const* const name : {"new", "newer"}) {  // what is gone is freed by the second
    with.reload(config(name));
  }
  script_->let_go();
  std::vector<message> answers;
  for (auto& client : clients) {
    answers.push_back(client.read_response());
    EXPECT_EQ(answers.back().field("Access-Control-Allow-Origin"), "https://old.example");
    EXPECT_EQ(answers.back().field("X-B"), "old");
  }
  EXPECT_EQ(answers[0].field("Location"), "/old/A/b?q");
  EXPECT_EQ(answers[1].body, "old");
  EXPECT_EQ(answers[2].body, "GET /old/A/b?q HTTP/1.1old");
  EXPECT_EQ(with.get().body, "GET /newer/a HTTP/1.1newer");
}

}  // namespace
}  // namespace tidegate::e2e
