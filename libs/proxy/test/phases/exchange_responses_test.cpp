// SPDX-License-Identifier: Apache-2.0
#include "phases/exchange_fixture.hpp"

#include <gmock/gmock.h>

namespace tidegate::gateway {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class proxy_exchange_responses : public testing::Test {
 protected:
  /// What a client gets that an upstream answers so.
  void answer(one_request& asked, std::string_view text) {
    ASSERT_TRUE(with_.turn_until([&] { return upstream_.has(""); }));
    upstream_.answer(text);
    EXPECT_TRUE(asked.is_answered());
  }

  scripted_upstream upstream_;
  exchange_fixture with_{upstream_.config() +
                         "policies: {p: {quota: 9, window: 1h}}\n"
                         "routes: [{match: {path: /echo}, service: echo, limits: [p]},\n"
                         "         {match: {path: /**}, upstream: api, limits: [p]}]\n"};
};

TEST_F(proxy_exchange_responses, have_a_date_and_the_fields_of_quotas) {
  one_request own(with_, "GET /echo HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_THAT(own.client.lines, StartsWith("Date: "));
  EXPECT_THAT(own.client.lines, HasSubstr("RateLimit: \"p\";r=8;"));
  one_request passed(with_, "GET /a HTTP/1.1\r\nHost: h\r\n\r\n");
  answer(passed, "HTTP/1.1 204 No Content\r\nDate: then\r\n\r\n");
  EXPECT_THAT(passed.client.lines, Not(HasSubstr("Date: "))) << "that of the upstream is sent on";
  EXPECT_THAT(passed.client.lines, HasSubstr("RateLimit: \"p\";r=7;"));
}

TEST_F(proxy_exchange_responses, name_only_the_trailers_that_go_on) {
  one_request asked(with_, "GET /a HTTP/1.1\r\nHost: h\r\n\r\n");
  answer(asked,
         "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum, Host\r\n\r\n"
         "0\r\nX-Sum: 1\r\nHost: h\r\nRateLimit: \"a\";r=1\r\nX-B: 2\r\n\r\n");
  EXPECT_THAT(asked.client.lines, HasSubstr("Trailer: X-Sum\r\n"));
  EXPECT_EQ(asked.client.trailers, "X-Sum: 1\r\nX-B: 2\r\n");
  EXPECT_THAT(asked.client.trace, ElementsAre("head 200", "end"));
}

TEST_F(proxy_exchange_responses, are_counted_by_status) {
  one_request own(with_, "GET /echo HTTP/1.1\r\nHost: h\r\n\r\n");
  std::vector<std::size_t> counted;
  with_.on->current->routes.front().counts->by_status.for_each(
      [&](std::size_t status, std::uint64_t /*count*/) { counted.push_back(status); });
  EXPECT_THAT(counted, ElementsAre(200));
}

TEST(proxy_exchange_response_rules, change_answers_of_upstreams_and_of_the_gateway) {
  scripted_upstream upstream;
  exchange_fixture with(upstream.config() +
                        "policies: {p: {quota: 1, window: 1h}}\n"
                        "routes: [{match: {path: /**}, upstream: api, limits: [p], response: "
                        "{set: {X-A: b, Server: s}, add: {Vary: X}, remove: [X-B, Date]}}]\n");
  one_request passed(with, "GET /a HTTP/1.1\r\nHost: h\r\n\r\n");
  ASSERT_TRUE(with.turn_until([&] { return upstream.has(""); }));
  upstream.answer("HTTP/1.1 204 No Content\r\nX-A: 1\r\n\r\n");
  ASSERT_TRUE(passed.is_answered());
  EXPECT_THAT(passed.client.lines, HasSubstr("X-A: b\r\nServer: s\r\nVary: X\r\n"));
  EXPECT_THAT(passed.client.lines, HasSubstr("RateLimit: "));
  EXPECT_THAT(passed.client.lines, Not(HasSubstr("Date: ")));
  EXPECT_TRUE(passed.client.dropped.contains(wire::known_field::server));
  EXPECT_TRUE(passed.client.dropped.contains(wire::known_field::date));
  EXPECT_TRUE(passed.client.dropped.contains(wire::known_field::ratelimit));
  EXPECT_FALSE(passed.client.dropped.contains(wire::known_field::vary));
  EXPECT_THAT(passed.client.dropped_names, ElementsAre("x-b", "x-a"));

  one_request refused(with, "GET /a HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_EQ(refused.client.status, 429);
  EXPECT_THAT(refused.client.lines, HasSubstr("Retry-After: "));
  EXPECT_THAT(refused.client.lines, HasSubstr("X-A: b\r\nServer: s\r\nVary: X\r\n"));
  EXPECT_THAT(refused.client.lines, Not(HasSubstr("Date: ")));
  EXPECT_EQ(refused.client.type, "application/problem+json");
}

TEST(proxy_exchange_response_rules, say_the_type_of_content_in_one_place) {
  exchange_fixture with(
      "routes: [{match: {path: /set}, service: echo, response: {set: {Content-Type: text/x}}},\n"
      "         {match: {path: /removed}, service: echo, response: {remove: [Content-Type]}}]\n");
  one_request set(with, "GET /set HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_EQ(set.client.type, "");
  EXPECT_THAT(set.client.lines, HasSubstr("Content-Type: text/x\r\n"));
  one_request removed(with, "GET /removed HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_EQ(removed.client.type, "");
  EXPECT_THAT(removed.client.lines, Not(HasSubstr("Content-Type")));
}

TEST(proxy_exchange_response_rules, hold_where_the_route_refuses_or_answers_itself) {
  exchange_fixture with(
      "routes: [{match: {path: /denied}, service: echo, deny: [192.0.2.1], response: {set: {A: "
      "b}}},\n"
      "         {match: {path: /moved}, redirect: {to: /x}, response: {set: {A: b}}},\n"
      "         {match: {path: /fixed}, respond: {status: 503}, response: {set: {A: b}}}]\n");
  for (auto const& [path, status] :
       {std::pair{"/denied", 403}, std::pair{"/moved", 308}, std::pair{"/fixed", 503}}) {
    one_request asked(with, "GET " + std::string(path) + " HTTP/1.1\r\nHost: h\r\n\r\n");
    EXPECT_EQ(asked.client.status, status);
    EXPECT_THAT(asked.client.lines, HasSubstr("A: b\r\n")) << path;
  }
}

}  // namespace
}  // namespace tidegate::gateway
