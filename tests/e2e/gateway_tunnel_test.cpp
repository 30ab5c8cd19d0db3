// SPDX-License-Identifier: Apache-2.0
#include "gateway.hpp"

#include "support/sanitized.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/resource.h>

#include <chrono>
#include <csignal>
#include <cstddef>
#include <iostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Connections that were upgraded to a WebSocket: octets go both ways as they are.
namespace tidegate::e2e {

namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::StartsWith;

constexpr std::string_view asked =
    "GET /chat HTTP/1.1\r\nHost: a.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
constexpr std::string_view switched =
    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";

/// A route that upgrades, and `more` at the end.
auto config(origin const& to, std::string const& of_route = "", std::string const& more = "")
    -> std::string {
  return "upstreams: {api: \"" + to.url() +
         "\"}\n"
         "policies: {slots: {quota: 2, unit: concurrent-requests}, p: {quota: 9, window: 1h}}\n"
         "routes: [{name: chat, match: {path: /**}, upstream: api, upgrade: [websocket], "
         "limits: [slots, p]" +
         of_route + "}]\n" + more;
}

/// Both ends of a tunnel.
struct tunnel {
  tunnel(gateway const& through, origin& to) : client(through.connect()), upstream(descriptor()) {
    client.send(asked);
    upstream = to.accept();
    (void)upstream.read_request();
    upstream.send(switched);
    EXPECT_EQ(client.read_response().status(), 101);
  }

  connection client;
  connection upstream;
};

void expect_tunnels(gateway const& of, double count) {
  expect_eventually([&] { return of.metric("tidegate_tunnels_open") == count; },
                    "so many tunnels are open");
}

TEST(gateway_tunnel, passes_a_websocket_both_ways) {
  origin api;
  gateway const under_test(config(api));
  auto client = under_test.connect();
  client.send(asked);
  auto upstream = api.accept();
  auto const request = upstream.read_request();
  EXPECT_EQ(request.start_line, "GET /chat HTTP/1.1");
  EXPECT_EQ(request.field("Connection"), "upgrade");
  EXPECT_EQ(request.field("Upgrade"), "websocket");
  EXPECT_EQ(request.field("Sec-WebSocket-Key"), "dGhlIHNhbXBsZSBub25jZQ==");
  EXPECT_EQ(request.field("X-Forwarded-For"), "127.0.0.1");
  upstream.send(std::string(switched) + "first");
  auto const response = client.read_response();
  EXPECT_EQ(response.start_line, "HTTP/1.1 101 Switching Protocols");
  EXPECT_EQ(response.field("Connection"), "upgrade");
  EXPECT_EQ(response.field("Upgrade"), "websocket");
  EXPECT_EQ(response.field("Sec-WebSocket-Accept"), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
  EXPECT_THAT(response.field("RateLimit"), StartsWith("\"slots\";r=1, \"p\";r=8;"));
  EXPECT_EQ(client.read(5), "first");
  expect_tunnels(under_test, 1);
  for (int i = 0; i < 3; ++i) {
    auto const text = "GET / HTTP/1.1\r\n\r\n" + std::to_string(i);
    client.send(text);
    EXPECT_EQ(upstream.read(text.size()), text);
    upstream.send(text + text);
    EXPECT_EQ(client.read(2 * text.size()), text + text);
  }
  upstream.close();
  EXPECT_TRUE(client.is_closed());
  client.close();
  expect_tunnels(under_test, 0);
  EXPECT_EQ(under_test.metric("tidegate_requests_total{route=\"chat\",status=\"101\"}"), 1);
  EXPECT_EQ(under_test.metric("tidegate_tunnel_bytes_total{direction=\"to-upstream\"}"), 57);
  EXPECT_EQ(under_test.metric("tidegate_tunnel_bytes_total{direction=\"to-client\"}"), 119);
}

TEST(gateway_tunnel, sends_what_came_behind_the_request_only_after_the_101) {
  origin api;
  gateway const under_test(config(api));
  auto client = under_test.connect();
  client.send(std::string(asked) + "early");
  auto upstream = api.accept();
  (void)upstream.read_request();
  EXPECT_TRUE(upstream.is_silent());
  upstream.send("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n");
  EXPECT_EQ(client.read_response().status(), 103);
  EXPECT_TRUE(upstream.is_silent());
  upstream.send(switched);
  EXPECT_EQ(client.read_response().status(), 101);
  EXPECT_EQ(upstream.read(5), "early");
}

TEST(gateway_tunnel, takes_what_is_behind_the_request_for_http_when_the_answer_is_another) {
  origin api;
  gateway const under_test(config(api));
  auto client = under_test.connect();
  client.send(std::string(asked) + "GET /next HTTP/1.1\r\nHost: a.example\r\n\r\n");
  auto upstream = api.accept();
  (void)upstream.read_request();
  upstream.send(response("403 Forbidden", "no"));
  EXPECT_EQ(client.read_response().status(), 403);
  auto const next = upstream.read_request();
  EXPECT_EQ(next.start_line, "GET /next HTTP/1.1");
  EXPECT_EQ(next.count("Upgrade"), 0U);
  upstream.send(response("200 OK", "yes"));
  EXPECT_EQ(client.read_response().body, "yes");
}

TEST(gateway_tunnel, does_not_upgrade_a_request_with_content) {
  origin api;
  gateway const under_test(config(api));
  auto client = under_test.connect();
  client.send(
      "GET /chat HTTP/1.1\r\nHost: a.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
      "Content-Length: 4\r\n\r\nbody");
  auto upstream = api.accept();
  auto const request = upstream.read_request();
  EXPECT_EQ(request.count("Upgrade"), 0U);
  EXPECT_EQ(request.body, "body");
  upstream.send(switched);
  EXPECT_EQ(client.read_response().status(), 502);
}

TEST(gateway_tunnel, passes_half_closes_on) {
  origin api;
  gateway const under_test(config(api));
  {
    tunnel open(under_test, api);
    open.client.send("all");
    open.client.shut_down_sending();
    EXPECT_EQ(open.upstream.read_to_end(), "all");
    open.upstream.send("answer");
    open.upstream.close();
    EXPECT_EQ(open.client.read_to_end(), "answer");
  }
  tunnel open(under_test, api);
  open.upstream.send("all");
  open.upstream.shut_down_sending();
  EXPECT_EQ(open.client.read_to_end(), "all");
  open.client.send("answer");
  open.client.close();
  EXPECT_EQ(open.upstream.read_to_end(), "answer");
  expect_tunnels(under_test, 0);
}

TEST(gateway_tunnel, ends_when_either_end_dies) {
  origin api;
  gateway const under_test(config(api));
  {
    tunnel open(under_test, api);
    open.client.abort();
    EXPECT_TRUE(open.upstream.is_closed());
  }
  {
    tunnel open(under_test, api);
    open.upstream.abort();
    EXPECT_TRUE(open.client.is_closed());
  }
  expect_tunnels(under_test, 0);
  auto const again = tunnel(under_test, api);  // the server is as good as before
}

TEST(gateway_tunnel, counts_among_concurrent_requests_until_it_ends) {
  origin api;
  gateway const under_test(config(api));
  tunnel first(under_test, api);
  {
    tunnel const second(under_test, api);
    auto const refused = under_test.ask(asked);
    EXPECT_EQ(refused.status(), 429);
    EXPECT_EQ(refused.field("Retry-After"), "1");
  }
  expect_tunnels(under_test, 1);
  tunnel const third(under_test, api);
}

TEST(gateway_tunnel, closes_what_is_idle_and_logs_it) {
  origin api;
  gateway under_test(config(api, ", tunnel-idle-timeout: 100ms", "access-log: stdout\n"));
  auto client = under_test.connect();
  client.send(std::string(asked) + "12345");
  auto upstream = api.accept();
  (void)upstream.read_request();
  upstream.send(std::string(switched) + "123");
  EXPECT_EQ(client.read_response().status(), 101);
  EXPECT_EQ(client.read_to_end(), "123");
  EXPECT_EQ(upstream.read_to_end(), "12345");
  auto const line = under_test.output();
  EXPECT_THAT(line, HasSubstr("\"status\":101,\"reason\":\"tunnel-idle\""));
  EXPECT_THAT(line, HasSubstr("\"request_bytes\":5,\"response_bytes\":3"));
  EXPECT_THAT(line, HasSubstr("\"decision\":\"admitted\""));
  EXPECT_THAT(line, HasSubstr("\"route\":\"chat\",\"upstream\":\"api\""));
}

TEST(gateway_tunnel, is_waited_for_when_the_gateway_stops) {
  origin api;
  gateway under_test(config(api));
  tunnel open(under_test, api);
  under_test.signal(SIGTERM);
  expect_eventually([&] { return !under_test.accepts(); }, "the gateway does not listen");
  open.client.send("still here");
  EXPECT_EQ(open.upstream.read(10), "still here");
  open.client.close();
  EXPECT_TRUE(open.upstream.is_closed());
  open.upstream.close();
  EXPECT_EQ(under_test.wait(), 0);
}

TEST(gateway_tunnel, is_ended_by_drain_timeout) {
  origin api;
  gateway under_test(config(api, "", "drain-timeout: 200ms\naccess-log: stdout\n"));
  tunnel open(under_test, api);
  under_test.signal(SIGTERM);
  EXPECT_TRUE(open.client.is_closed());
  EXPECT_TRUE(open.upstream.is_closed());
  EXPECT_EQ(under_test.wait(), 0);
  EXPECT_THAT(under_test.output(), HasSubstr("\"status\":101"));
  EXPECT_THAT(under_test.errors(), HasSubstr("are dropped (drain-timeout)"));
}

TEST(gateway_tunnel, needs_the_option_and_the_log_says_so_once) {
  origin api;
  gateway under_test(proxy_config(api.url()));
  for (int i = 0; i < 3; ++i) {
    auto client = under_test.connect();
    client.send(asked);
    auto upstream = api.accept();
    EXPECT_EQ(upstream.read_request().count("Upgrade"), 0U);
    upstream.send(response("200 OK", "plain", "Connection: close\r\n"));
    EXPECT_EQ(client.read_response().body, "plain");
  }
  under_test.signal(SIGTERM);
  EXPECT_EQ(under_test.wait(), 0);
  auto const said = under_test.errors();
  constexpr std::string_view line = "a client asked to upgrade its connection";
  EXPECT_THAT(said, HasSubstr(line));
  EXPECT_EQ(said.find(line), said.rfind(line));
}

TEST(gateway_tunnel, keeps_little_for_a_reader_that_is_slow) {
  origin api;
  gateway const under_test(config(api));
  tunnel open(under_test, api);
  constexpr double octets_max = 512 * 1024;
  std::string const much(64U << 20U, 'x');
  auto const fill = [&](connection& from, connection& to) {
    auto const sent = from.send_until_blocked(much);
    EXPECT_LT(sent, much.size());
    auto const buffered = under_test.metric("tidegate_buffered_bytes");
    EXPECT_GT(buffered, 0);
    EXPECT_LE(buffered, octets_max);
    EXPECT_EQ(to.read(sent), much.substr(0, sent));
    from.send("end");
    EXPECT_EQ(to.read(3), "end");
  };
  fill(open.upstream, open.client);
  fill(open.client, open.upstream);
  expect_eventually([&] { return under_test.metric("tidegate_buffered_bytes") == 0; },
                    "nothing waits any more");
}

TEST(gateway_tunnel, keeps_a_thousand_open_in_two_kilobytes_each) {
  constexpr std::size_t count = test_support::sanitized ? 100 : 1'000;
  constexpr std::size_t warm_count = 50;  // what is made once is not counted as theirs
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_cur < 8 * count && limit.rlim_max >= 8 * count) {
    limit.rlim_cur = 8 * count;
    ::setrlimit(RLIMIT_NOFILE, &limit);
  }
  if (limit.rlim_cur < 8 * count) {
    GTEST_SKIP() << "the system allows too few open files";
  }
  origin api;
  gateway const under_test(
      "upstreams: {api: \"" + api.url() +
      "\"}\nhttp: {max-connections: 2000}\n"
      "policies: {slots: {quota: 9999, unit: concurrent-requests}}\n"
      "routes: [{match: {path: /**}, upstream: api, upgrade: [websocket], limits: [slots]}]\n");
  std::vector<tunnel> open;
  open.reserve(warm_count + count);
  for (std::size_t i = 0; i < warm_count; ++i) {
    open.emplace_back(under_test, api);
  }
  auto const before = under_test.own_memory();
  for (std::size_t i = 0; i < count; ++i) {
    open.emplace_back(under_test, api);
  }
  EXPECT_EQ(under_test.metric("tidegate_tunnels_open"), static_cast<double>(warm_count + count));
  auto const now = under_test.own_memory();
  auto const each = now < before ? 0 : (now - before) / count;
  std::cout << count << " idle tunnels: " << each << " octets each\n";
  if (!test_support::sanitized) {
    EXPECT_LE(each, 2048U);
  }
  for (auto& each_of : open) {
    each_of.client.send("a");
    each_of.upstream.send("b");
  }
  for (auto& each_of : open) {
    EXPECT_EQ(each_of.upstream.read(1), "a");
    EXPECT_EQ(each_of.client.read(1), "b");
  }
  open.clear();
  expect_tunnels(under_test, 0);
}

}  // namespace
}  // namespace tidegate::e2e
