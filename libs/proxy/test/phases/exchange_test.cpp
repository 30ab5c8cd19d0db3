// SPDX-License-Identifier: Apache-2.0
#include "phases/exchange.hpp"

#include "phases/exchange_fixture.hpp"

#include <gmock/gmock.h>

namespace tidegate::gateway {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::string_view limited_echo =
    "policies: {p: {quota: 1, window: 1h, partition: header:x}}\n"
    "routes: [{match: {path: /a}, service: echo, limits: [p]}]\n";

TEST(proxy_exchange, is_answered_by_the_first_phase_that_has_an_answer) {
  exchange_fixture with{std::string(limited_echo)};
  one_request missing(with, "GET /b HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_THAT(missing.client.trace, ElementsAre("whole 404"));
  one_request repeated(with, "GET /a HTTP/1.1\r\nHost: h\r\nX: 1\r\nX: 2\r\n\r\n");
  EXPECT_THAT(repeated.client.trace, ElementsAre("whole 400")) << "before it is charged";
  one_request handled(with, "GET /a HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_THAT(handled.client.trace, ElementsAre("whole 200"));
  one_request refused(with, "GET /a HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_THAT(refused.client.trace, ElementsAre("whole 429"));
}

TEST(proxy_exchange, does_not_charge_what_the_upstream_has_no_room_for) {
  scripted_upstream upstream;
  exchange_fixture with(upstream.config(", overload: {max-in-flight: 1}") +
                        "policies: {p: {quota: 2, window: 1h}}\n"
                        "routes: [{match: {path: /**}, upstream: api, limits: [p]}]\n");
  one_request first(with, "GET /a HTTP/1.1\r\nHost: h\r\n\r\n");
  one_request second(with, "GET /a HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_THAT(first.client.trace, IsEmpty());
  EXPECT_THAT(second.client.trace, ElementsAre("whole 503"));
  EXPECT_THAT(second.client.lines, HasSubstr("RateLimit: \"p\";r=1\r\n"));
}

TEST(proxy_exchange, lets_its_configuration_go_at_the_end) {
  exchange_fixture with{std::string(limited_echo)};
  one_request done(with, "GET /a HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_EQ(with.on->current->users, 0U);
}

TEST(proxy_exchange, tells_a_client_nothing_that_has_gone) {
  scripted_upstream upstream;
  exchange_fixture with(upstream.config() + "routes: [{match: {path: /**}, upstream: api}]\n");
  one_request gone(with, "GET /a HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_EQ(with.on->current->users, 1U);
  gone->abandon();
  EXPECT_EQ(with.on->current->users, 0U);
  EXPECT_THAT(gone.client.trace, IsEmpty());
}

}  // namespace
}  // namespace tidegate::gateway
