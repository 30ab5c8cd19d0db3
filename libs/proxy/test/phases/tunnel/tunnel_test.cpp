// SPDX-License-Identifier: Apache-2.0
#include "phases/tunnel/tunnel.hpp"

#include "phases/exchange_fixture.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace tidegate::gateway {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr std::string_view asked =
    "GET /chat HTTP/1.1\r\nHost: h\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n"
    "Sec-WebSocket-Key: a\r\nTE: trailers\r\n\r\n";
constexpr std::string_view switched =
    "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    "Sec-WebSocket-Accept: b\r\n\r\n";

/// A client that has asked a scripted upstream for a WebSocket.
class proxy_tunnel : public testing::Test {
 protected:
  [[nodiscard]] auto config(std::string const& of_route = ", upgrade: [websocket]") const
      -> std::string {
    return api.config() +
           "policies: {slots: {quota: 1, unit: concurrent-requests}}\n"
           "routes: [{match: {path: /**}, upstream: api, limits: [slots]" +
           of_route + "}]\n";
  }
  /// Has the upstream answer the request of `of` with this.
  void answer(exchange_fixture& in, one_request& of, std::string_view text) {
    ASSERT_TRUE(in.turn_until([&] { return api.has(""); }));
    sent = api.received();
    api.answer(text);
    ASSERT_TRUE(in.turn_until([&] { return of.client.is_over || of.client.opened; }));
  }

  scripted_upstream api;
  std::string sent;  // what the upstream got
};

TEST_F(proxy_tunnel, takes_the_place_of_an_exchange_that_was_upgraded) {
  exchange_fixture in(config());
  one_request request(in, asked);
  answer(in, request, std::string(switched) + "hello");
  EXPECT_THAT(sent, HasSubstr("Connection: upgrade\r\nUpgrade: websocket\r\n"));
  EXPECT_THAT(sent, HasSubstr("Sec-WebSocket-Key: a\r\n"));
  EXPECT_THAT(sent, Not(HasSubstr("trailers")));
  ASSERT_TRUE(request.client.opened);
  EXPECT_THAT(request.client.trace, ElementsAre("tunnel 101"));
  EXPECT_THAT(request.client.lines, HasSubstr("RateLimit: \"slots\";r=0"));
  EXPECT_EQ(request.client.content, "hello");
  EXPECT_EQ(in.metrics->tunnels_open.value(), 1U);
  EXPECT_EQ(in.metrics->tunnel_octets_to_client.value(), 5U);

  request.client.opened->client_sent("hi there");
  ASSERT_TRUE(in.turn_until([&] { return api.has("\r\n\r\n") || api.received() == "hi there"; }));
  EXPECT_EQ(in.metrics->tunnel_octets_to_upstream.value(), 8U);
  request.client.opened->client_gone();
  EXPECT_TRUE(in.turn_until([&] { return api.is_left(); }));
  EXPECT_EQ(in.metrics->tunnels_open.value(), 0U);
  request.vanish();
}

TEST_F(proxy_tunnel, holds_its_place_among_concurrent_requests_until_it_ends) {
  exchange_fixture in(config());
  one_request request(in, asked);
  answer(in, request, switched);
  {
    one_request refused(in, asked);
    ASSERT_TRUE(refused.is_answered());
    EXPECT_EQ(refused.client.status, 429);
  }
  request.client.opened->client_gone();
  api.hang_up();
  one_request admitted(in, asked);
  ASSERT_TRUE(in.turn_until([&] { return api.has(""); }));
  request.vanish();
}

TEST_F(proxy_tunnel, passes_the_end_of_each_direction_on) {
  exchange_fixture in(config());
  one_request request(in, asked);
  answer(in, request, switched);
  auto& client = request.client;
  client.opened->client_ended();
  EXPECT_TRUE(in.turn_until([&] { return api.is_left(); }));
  api.answer("the rest");
  api.hang_up();
  ASSERT_TRUE(in.turn_until([&] { return client.is_over; }));
  EXPECT_EQ(client.content, "the rest");
  EXPECT_THAT(client.trace, ElementsAre("tunnel 101", "end"));
  EXPECT_EQ(in.metrics->tunnels_open.value(), 0U);
  request.vanish();
}

TEST_F(proxy_tunnel, stays_open_for_the_client_when_the_upstream_sends_no_more) {
  exchange_fixture in(config());
  one_request request(in, asked);
  answer(in, request, switched);
  auto& client = request.client;
  api.end_sending();
  ASSERT_TRUE(in.turn_until([&] { return client.trace.back() == "no more"; }));
  client.opened->client_sent("more");
  ASSERT_TRUE(in.turn_until([&] { return api.has("") || api.received() == "more"; }));
  client.opened->client_ended();
  EXPECT_THAT(client.trace, ElementsAre("tunnel 101", "no more", "end"));
  request.vanish();
}

TEST_F(proxy_tunnel, ends_after_nothing_has_passed_for_a_while) {
  exchange_fixture in(config(", upgrade: websocket, tunnel-idle-timeout: 50ms"));
  one_request request(in, asked);
  answer(in, request, switched);
  ASSERT_TRUE(in.turn_until([&] { return request.client.is_over; }));
  EXPECT_THAT(request.client.trace, ElementsAre("tunnel 101", "end"));
  EXPECT_TRUE(in.turn_until([&] { return api.is_left(); }));
  request.vanish();
}

TEST_F(proxy_tunnel, stops_the_upstream_while_the_client_is_full) {
  exchange_fixture in(config());
  one_request request(in, asked);
  request.client.is_full = true;
  answer(in, request, std::string(switched) + "1");
  auto& client = request.client;
  api.answer("2");
  in.turn();
  EXPECT_EQ(client.content, "1");
  client.is_full = false;
  client.opened->client_resumed();
  EXPECT_TRUE(in.turn_until([&] { return client.content == "12"; }));
  client.opened->client_gone();
  request.vanish();
}

TEST_F(proxy_tunnel, is_opened_only_by_an_answer_that_was_asked_for) {
  struct row {
    std::string_view name;
    std::string route;
    std::string_view request;
    std::string_view answer;
    int status;
  };
  std::string const upgrades = ", upgrade: [websocket]";
  constexpr std::string_view plain = "GET /chat HTTP/1.1\r\nHost: h\r\n\r\n";
  std::vector<row> const rows{
      {"a 101 to a plain request", upgrades, plain, switched, 502},
      {"a 101 where the route has no upgrade", "", asked, switched, 502},
      {"a 101 to another protocol", upgrades, asked,
       "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n", 502},
      {"a 101 without a protocol", upgrades, asked, "HTTP/1.1 101 Switching Protocols\r\n\r\n",
       502},
      {"another answer", upgrades, asked, "HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n", 403},
      {"a 200", upgrades, asked, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", 200},
  };
  for (auto const& [name, route, head, text, status] : rows) {
    exchange_fixture in(config(route));
    one_request request(in, head);
    answer(in, request, text);
    EXPECT_EQ(request.client.status, status) << name;
    EXPECT_FALSE(request.client.opened) << name;
    EXPECT_EQ(sent.find("Upgrade") != std::string::npos, head == asked && !route.empty()) << name;
    api.hang_up();
  }
}

}  // namespace
}  // namespace tidegate::gateway
