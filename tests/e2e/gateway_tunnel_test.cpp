// SPDX-License-Identifier: Apache-2.0
#include "gateway.hpp"
#include "tunnel_ends.hpp"

#include "support/sanitized.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <openssl/evp.h>
#include <openssl/sha.h>
#include <sys/resource.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <memory>
#include <optional>
#include <set>
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

/// False when the system allows too few of them.
auto may_open_files(std::size_t count) -> bool {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_cur < count && limit.rlim_max >= count) {
    limit.rlim_cur = count;
    ::setrlimit(RLIMIT_NOFILE, &limit);
  }
  return limit.rlim_cur >= count;
}

TEST(gateway_tunnel, keeps_a_thousand_open_in_two_kilobytes_each) {
  constexpr std::size_t count = test_support::sanitized ? 100 : 1'000;
  constexpr std::size_t warm_count = 50;  // what is made once is not counted as theirs
  if (!may_open_files(8 * count)) {
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

// ---- over HTTP/1.1 and HTTP/2, on either side ----

/// Which protocols the client and the server of a tunnel speak.
struct way {
  std::string_view name;
  bool from_http2;
  bool to_http2;
};

void PrintTo(way const& row, std::ostream* out) {
  *out << row.name;
}

constexpr way ways[] = {{"from_http1_to_http1", false, false},
                        {"from_http2_to_http1", true, false},
                        {"from_http1_to_http2", false, true},
                        {"from_http2_to_http2", true, true}};

auto config_to(origin const& to, bool is_http2, std::string const& of_route = "",
               std::string const& more = "") -> std::string {
  return "upstreams: {api: {servers: [\"" + to.url() +
         "\"], http2: " + (is_http2 ? "true" : "false") +
         "}}\npolicies: {slots: {quota: 1, unit: concurrent-requests}}\n"
         "routes: [{name: chat, match: {path: /**}, upstream: api, upgrade: [websocket], "
         "limits: [slots]" +
         of_route + "}]\n" + more;
}

/// The value of a field in lines of `name: value`.
auto value_of(std::string_view fields, std::string_view name) -> std::string {
  auto const line = "\n" + std::string(name) + ": ";
  auto const text = "\n" + std::string(fields);
  auto const at = text.find(line);
  return at == text.npos
             ? "(none)"
             : text.substr(at + line.size(), text.find('\n', at + 1) - at - line.size());
}

/// What answers a key (RFC 6455, section 4.2.2).
auto accept_of(std::string const& key) -> std::string {
  auto const text = key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
  std::array<unsigned char, SHA_DIGEST_LENGTH> digest{};
  SHA1(reinterpret_cast<unsigned char const*>(text.data()), text.size(), digest.data());
  std::array<unsigned char, 32> out{};
  auto const size = EVP_EncodeBlock(out.data(), digest.data(), static_cast<int>(digest.size()));
  return {reinterpret_cast<char const*>(out.data()), static_cast<std::size_t>(size)};
}

/// A client over HTTP/2 that has asked for a WebSocket.
auto ask_over_http2(gateway const& through, std::string const& block = connect_block())
    -> std::unique_ptr<http2_end> {
  raw_client client(through.connect());
  client.send(headers, 4, 1, block);
  return std::make_unique<http2_end>(std::move(client), 1U);
}

class gateway_websocket : public testing::TestWithParam<way> {
 protected:
  [[nodiscard]] auto text(std::string const& of_route = "", std::string const& more = "") const
      -> std::string {
    return config_to(api, GetParam().to_http2, of_route, more);
  }
  auto start(std::string const& with) -> gateway& {
    under_test_ = std::make_unique<gateway>(with);
    return *under_test_;
  }
  void ask(gateway const& through) {
    if (GetParam().from_http2) {
      client = ask_over_http2(through);
    } else {
      auto made = std::make_unique<http1_end>(through.connect());
      made->send(asked);
      client = std::move(made);
    }
  }
  /// The server takes the request.
  void accept() {
    if (GetParam().to_http2) {
      auto server = std::make_unique<http2_end>(raw_server(api.accept(), takes_connect), 1U);
      request_fields = server->read_fields();
      EXPECT_FALSE(server->is_ended());
      server->frames().send(headers, 4, 1, "\x88" + literal("sec-websocket-protocol", "chat"));
      upstream = std::move(server);
      return;
    }
    auto server = api.accept();
    auto const request = server.read_request();
    request_fields = request.start_line + "\n";
    for (auto const& [name, value] : request.fields) {
      request_fields += name + ": " + value + "\n";
    }
    server.send(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Protocol: chat\r\nSec-WebSocket-Accept: " +
        accept_of(request.field("Sec-WebSocket-Key")) + "\r\n\r\n");
    upstream = std::make_unique<http1_end>(std::move(server));
  }
  /// The client has its answer.
  void expect_open() {
    if (auto* const over = dynamic_cast<http2_end*>(client.get())) {
      response_fields = over->read_fields();
      EXPECT_EQ(value_of(response_fields, ":status"), "200");
    } else {
      auto const response = dynamic_cast<http1_end&>(*client).socket().read_response();
      EXPECT_EQ(response.status(), 101);
      for (auto const& [name, value] : response.fields) {
        response_fields += name + ": " + value + "\n";
      }
    }
  }
  void open(gateway const& through) {
    ask(through);
    accept();
    expect_open();
  }

  origin api;

 private:
  std::unique_ptr<gateway> under_test_;  // ends after the connections, for which it would wait

 protected:
  std::unique_ptr<tunnel_end> client;
  std::unique_ptr<tunnel_end> upstream;
  std::string request_fields;
  std::string response_fields;
};

INSTANTIATE_TEST_SUITE_P(passes, gateway_websocket, testing::ValuesIn(ways),
                         [](auto const& row) { return std::string(row.param.name); });

TEST_P(gateway_websocket, is_opened_as_each_side_does_it) {
  auto& under_test = start(text());
  open(under_test);
  if (GetParam().to_http2) {
    EXPECT_THAT(request_fields, StartsWith(":method: CONNECT\n:protocol: websocket\n:scheme: http\n"
                                           ":authority: a.example\n:path: /chat\n"));
    EXPECT_EQ(value_of(request_fields, "sec-websocket-key"), "(none)");
    EXPECT_EQ(value_of(request_fields, "sec-websocket-version"), "13");
    EXPECT_EQ(value_of(request_fields, "upgrade"), "(none)");
  } else {
    EXPECT_THAT(request_fields, StartsWith("GET /chat HTTP/1.1\n"));
    EXPECT_EQ(value_of(request_fields, "Connection"), "upgrade");
    EXPECT_EQ(value_of(request_fields, "Upgrade"), "websocket");
    EXPECT_EQ(value_of(request_fields, "Host"), "a.example");
  }
  if (GetParam().from_http2) {
    EXPECT_EQ(value_of(response_fields, "sec-websocket-protocol"), "chat");
    EXPECT_EQ(value_of(response_fields, "sec-websocket-accept"), "(none)");
    EXPECT_EQ(value_of(response_fields, "upgrade"), "(none)");
    EXPECT_EQ(value_of(response_fields, "content-length"), "(none)");
    EXPECT_EQ(value_of(response_fields, "ratelimit"), "\"slots\";r=0");
  } else {
    EXPECT_EQ(value_of(response_fields, "Sec-WebSocket-Accept"), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    EXPECT_EQ(value_of(response_fields, "Connection"), "upgrade");
    EXPECT_EQ(value_of(response_fields, "Upgrade"), "websocket");
    EXPECT_EQ(value_of(response_fields, "RateLimit"), "\"slots\";r=0");
  }
  client->send("there");
  EXPECT_EQ(upstream->read(5), "there");
  upstream->send("and back");
  EXPECT_EQ(client->read(8), "and back");
  expect_tunnels(under_test, 1);
  client->close();
  EXPECT_EQ(upstream->read_to_end(), "");
  upstream->close();
  EXPECT_EQ(client->reset_code(), std::nullopt);
  expect_tunnels(under_test, 0);
  EXPECT_EQ(under_test.metric("tidegate_tunnel_bytes_total{direction=\"to-upstream\"}"), 5);
  EXPECT_EQ(under_test.metric("tidegate_tunnel_bytes_total{direction=\"to-client\"}"), 8);
}

/// A frame of a WebSocket (RFC 6455, section 5.2).
auto websocket_frame(unsigned first, std::string_view payload, bool masked) -> std::string {
  std::string out(1, static_cast<char>(first));
  unsigned const mask_bit = masked ? 0x80U : 0U;
  auto const size = payload.size();
  unsigned octets = 0;
  if (size < 126) {
    out.push_back(static_cast<char>(mask_bit | size));
  } else {
    octets = size < 65'536 ? 2 : 8;
    out.push_back(static_cast<char>(mask_bit | (octets == 2 ? 126U : 127U)));
  }
  for (unsigned i = octets; i-- > 0;) {
    out.push_back(static_cast<char>(size >> 8 * i));
  }
  constexpr std::string_view key = "\x12\x34\x56\x78";
  if (masked) {
    out.append(key);
  }
  for (std::size_t i = 0; i < size; ++i) {
    out.push_back(masked ? static_cast<char>(payload[i] ^ key[i % 4]) : payload[i]);
  }
  return out;
}

/// What the list of Autobahn's cases has that a proxy could harm.
struct frames_row {
  std::string name;
  std::vector<std::pair<unsigned, std::string>> frames;  // the first octet, and the payload
  std::size_t chop = 0;                                  // octets sent at once; 0: all of a frame
};

auto rows_of_frames() -> std::vector<frames_row> {
  constexpr unsigned fin = 0x80;
  constexpr unsigned text = 1;
  constexpr unsigned binary = 2;
  constexpr unsigned close = 8;
  constexpr unsigned ping = 9;
  constexpr unsigned pong = 10;
  std::vector<frames_row> rows;
  for (auto const size : {0U, 125U, 126U, 127U, 128U, 65'535U, 65'536U, 1U << 20U}) {
    std::string payload;
    for (unsigned i = 0; i < size; ++i) {
      payload.push_back(static_cast<char>(i * 7 + i / 256));
    }
    rows.push_back({"text of " + std::to_string(size), {{fin | text, std::string(size, 'x')}}});
    rows.push_back({"octets of " + std::to_string(size), {{fin | binary, payload}}});
    if (size <= 128) {
      rows.push_back({std::to_string(size) + " one by one", {{fin | binary, payload}}, 1});
    } else {
      rows.push_back({std::to_string(size) + " in odd parts", {{fin | binary, payload}}, 997});
    }
    if (size <= 125) {
      rows.push_back({"ping of " + std::to_string(size), {{fin | ping, payload}}});
      rows.push_back({"pong of " + std::to_string(size), {{fin | pong, payload}}});
    }
  }
  rows.push_back({"fragments", {{text, "a"}, {0, "b"}, {fin, "c"}}});
  rows.push_back({"fragments with a ping", {{text, "a"}, {fin | ping, "p"}, {fin, "c"}}, 1});
  rows.push_back({"empty fragments", {{binary, ""}, {0, ""}, {fin, ""}}});
  rows.push_back({"ten pings", std::vector(10, std::pair(fin | ping, std::string("p")))});
  rows.push_back({"a ping that is too long", {{fin | ping, std::string(126, 'p')}}});
  rows.push_back({"reserved bits", {{fin | 0x70U | text, "x"}}});
  rows.push_back({"reserved opcodes", {{fin | 3, "x"}, {fin | 11, "x"}}});
  rows.push_back({"a continuation of nothing", {{fin, "x"}}});
  rows.push_back({"text that is not UTF-8", {{fin | text, "\xce\xba\xed\xa0\x80"}}});
  rows.push_back({"no status", {{fin | close, ""}}});
  rows.push_back({"half a status", {{fin | close, "\x03"}}});
  for (unsigned code = 0; code <= 0xffff;) {
    rows.push_back({"close " + std::to_string(code),
                    {{fin | close, std::string{static_cast<char>(code >> 8U),
                                               static_cast<char>(code), 'b', 'y', 'e'}}}});
    code = code == 0      ? 999
           : code < 1016  ? code + 1
           : code == 1016 ? 2999
           : code == 2999 ? 3000
           : code == 3000 ? 4999
           : code == 4999 ? 5000
           : code == 5000 ? 0xffff
                          : code + 1;
  }
  return rows;
}

TEST_P(gateway_websocket, passes_every_octet_of_every_frame) {
  auto& under_test = start(text());
  open(under_test);
  for (auto const& [name, frames, chop] : rows_of_frames()) {
    for (bool const to_upstream : {true, false}) {
      auto& from = to_upstream ? *client : *upstream;
      auto& to = to_upstream ? *upstream : *client;
      for (auto const& [first, payload] : frames) {
        auto const sent = websocket_frame(first, payload, to_upstream);
        std::string got;
        // Not more at once than sockets and windows hold, since they are not read meanwhile.
        for (std::string_view rest = sent; !rest.empty();) {
          auto const part = rest.substr(0, 64 * 1024);
          for (auto left = part; !left.empty();) {
            auto const piece = left.substr(0, chop == 0 ? left.size() : chop);
            from.send(piece);
            left.remove_prefix(piece.size());
          }
          got += to.read(part.size());
          rest.remove_prefix(part.size());
        }
        ASSERT_TRUE(got == sent) << name << (to_upstream ? " to the server" : " to the client");
      }
    }
  }
  client->close();
  EXPECT_EQ(upstream->read_to_end(), "");
}

TEST_P(gateway_websocket, passes_half_closes_in_either_direction) {
  auto& under_test = start(text());
  open(under_test);
  client->send("all");
  client->shut_down_sending();
  EXPECT_EQ(upstream->read_to_end(), "all");
  std::string const much(400'000, 'x');  // more than a window
  for (std::size_t at = 0; at < much.size(); at += 16'000) {
    upstream->send(std::string_view(much).substr(at, 16'000));
    ASSERT_EQ(client->read(16'000).size(), 16'000U);
  }
  upstream->close();
  EXPECT_EQ(client->read_to_end(), "");
  EXPECT_EQ(client->reset_code(), std::nullopt);
  EXPECT_EQ(upstream->reset_code(), std::nullopt);
  expect_tunnels(under_test, 0);
}

TEST_P(gateway_websocket, lets_the_client_send_when_the_upstream_has_ended) {
  auto& under_test = start(text());
  open(under_test);
  upstream->send("all");
  upstream->shut_down_sending();
  EXPECT_EQ(client->read_to_end(), "all");
  std::string const much(400'000, 'x');  // more than a window
  for (std::size_t at = 0; at < much.size(); at += 16'000) {
    client->send(std::string_view(much).substr(at, 16'000));
    ASSERT_EQ(upstream->read(16'000).size(), 16'000U);
  }
  client->close();
  EXPECT_EQ(upstream->read_to_end(), "");
  EXPECT_EQ(upstream->reset_code(), std::nullopt);
  expect_tunnels(under_test, 0);
}

TEST_P(gateway_websocket, ends_for_the_upstream_when_the_client_dies) {
  auto& under_test = start(text());
  open(under_test);
  client->abort();
  EXPECT_EQ(upstream->read_to_end(), "");
  if (GetParam().to_http2) {
    EXPECT_EQ(upstream->reset_code(), 8U) << "CANCEL";
  }
  expect_tunnels(under_test, 0);
}

TEST_P(gateway_websocket, ends_for_the_client_when_the_upstream_dies) {
  auto& under_test = start(text());
  open(under_test);
  upstream->abort();
  EXPECT_EQ(client->read_to_end(), "");
  if (GetParam().from_http2) {
    EXPECT_EQ(client->reset_code(), 8U) << "CANCEL";
  }
  expect_tunnels(under_test, 0);
  EXPECT_EQ(under_test.metric("tidegate_upstream_failures_total{upstream=\"api\",server=\"" +
                              api.authority() + "\"}"),
            0)
      << "it has answered";
}

TEST_P(gateway_websocket, is_closed_when_nothing_passes_for_a_while) {
  auto& under_test = start(text(", tunnel-idle-timeout: 100ms", "access-log: stdout\n"));
  open(under_test);
  EXPECT_EQ(client->read_to_end(), "");
  EXPECT_EQ(upstream->read_to_end(), "");
  EXPECT_EQ(upstream->reset_code(), std::nullopt) << "a plain close";
  expect_tunnels(under_test, 0);
  EXPECT_THAT(under_test.output(), HasSubstr("\"status\":101,\"reason\":\"tunnel-idle\""));
}

TEST_P(gateway_websocket, counts_until_it_ends) {
  auto& under_test = start(text());
  open(under_test);
  EXPECT_EQ(under_test.ask(asked).status(), 429);
  auto refused = ask_over_http2(under_test);
  EXPECT_EQ(value_of(refused->read_fields(), ":status"), "429");
  client->close();
  EXPECT_EQ(upstream->read_to_end(), "");
  upstream->close();
  expect_tunnels(under_test, 0);
}

TEST_P(gateway_websocket, is_waited_for_when_the_gateway_stops) {
  auto& under_test = start(text());
  open(under_test);
  under_test.signal(SIGTERM);
  expect_eventually([&] { return !under_test.accepts(); }, "the gateway does not listen");
  client->send("still here");
  EXPECT_EQ(upstream->read(10), "still here");
  upstream->send("me too");
  EXPECT_EQ(client->read(6), "me too");
  client->close();
  EXPECT_EQ(upstream->read_to_end(), "");
  upstream->close();
  EXPECT_EQ(under_test.wait(), 0);
}

TEST_P(gateway_websocket, is_ended_by_drain_timeout) {
  auto& under_test = start(text("", "drain-timeout: 200ms\n"));
  open(under_test);
  under_test.signal(SIGTERM);
  EXPECT_EQ(under_test.wait(), 0);
  EXPECT_THAT(under_test.errors(), HasSubstr("are dropped (drain-timeout)"));
}

TEST_P(gateway_websocket, keeps_little_for_a_reader_that_never_reads) {
  auto& under_test = start(text());
  open(under_test);
  constexpr double octets_max = 768 * 1024;
  std::string const much(64U << 20U, 'x');
  for (bool const to_upstream : {true, false}) {
    auto& from = to_upstream ? *client : *upstream;
    auto& to = to_upstream ? *upstream : *client;
    auto const sent = from.send_until_blocked(much);
    EXPECT_LT(sent, much.size());
    EXPECT_LE(under_test.metric("tidegate_buffered_bytes"), octets_max);
    auto const got = to.read(sent);
    EXPECT_TRUE(got == std::string_view(much).substr(0, sent));
    from.send("end");
    EXPECT_EQ(to.read(3), "end");
  }
  expect_eventually([&] { return under_test.metric("tidegate_buffered_bytes") == 0; },
                    "nothing waits any more");
}

// ---- extended CONNECT that opens nothing ----

/// The status of the answer to `block`.
auto status_of(gateway const& of, std::string const& block) -> std::string {
  return value_of(ask_over_http2(of, block)->read_fields(), ":status");
}

TEST(gateway_extended_connect, is_501_where_no_route_upgrades) {
  origin api;
  gateway const under_test(proxy_config(api.url()));
  auto client = ask_over_http2(under_test);
  EXPECT_FALSE(client->is_offered());
  EXPECT_EQ(value_of(client->read_fields(), ":status"), "501");
  EXPECT_EQ(status_of(under_test, connect_block("websocket", "/.well-known/tidegate")), "501");
  EXPECT_TRUE(api.is_untouched());
}

TEST(gateway_extended_connect, is_501_on_other_routes_and_for_other_protocols) {
  origin api;
  gateway const under_test(
      "upstreams: {api: \"" + api.url() +
      "\"}\nroutes:\n"
      "  - {match: {path: /chat}, upstream: api, upgrade: [websocket]}\n"
      "  - {match: {path: /plain}, upstream: api}\n"
      "  - {match: {path: /echo}, service: echo}\n"
      "  - {match: {path: /closed}, upstream: api, upgrade: [websocket],\n"
      "     auth: {bearer-tokens: [{name: a, sha256: "
      "8ed3f6ad685b959ead7022518e1af76cd816f8e8ec7ccdda1ed4018e8f2223f8}]}}\n");
  auto client = ask_over_http2(under_test, connect_block("websocket", "/plain"));
  EXPECT_TRUE(client->is_offered());
  EXPECT_EQ(value_of(client->read_fields(), ":status"), "501");
  EXPECT_THAT(client->read_to_end(), HasSubstr("does not support this protocol here"));
  EXPECT_EQ(status_of(under_test, connect_block("websocket", "/echo")), "501");
  EXPECT_EQ(status_of(under_test, connect_block("connect-udp")), "501");
  EXPECT_EQ(status_of(under_test, connect_block("webtransport")), "501");
  EXPECT_EQ(status_of(under_test, connect_block("websocket", "/elsewhere")), "404");
  EXPECT_EQ(status_of(under_test, connect_block("websocket", "/.well-known/tidegate")), "404");
  EXPECT_EQ(status_of(under_test, connect_block("websocket", "/closed")), "401");
  EXPECT_TRUE(api.is_untouched());
}

TEST(gateway_extended_connect, is_not_the_old_connect) {
  origin api;
  gateway const under_test(config(api));
  auto const status =
      status_of(under_test, literal(":method", "CONNECT") + literal(":authority", "a:80"));
  EXPECT_EQ(status.front(), '4') << status;
  EXPECT_TRUE(api.is_untouched());
}

TEST(gateway_extended_connect, is_502_when_a_server_of_http_1_answers_it_otherwise) {
  struct row {
    std::string_view name;
    std::string answer;
    std::string status;
    std::string content;
  };
  constexpr std::string_view begin =
      "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n";
  for (auto const& [name, answer, status, content] :
       {row{"a plain response", response("200 OK", "plain"), "502", "with a plain response"},
        row{"a response without content", "HTTP/1.1 204 No Content\r\n\r\n", "502", "plain"},
        row{"a refusal", response("403 Forbidden", "no"), "403", "no"},
        row{"no accept", std::string(begin) + "\r\n", "502", "not valid HTTP"},
        row{"another accept",
            std::string(begin) + "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n",
            "502", "not valid HTTP"},
        row{"two of them",
            std::string(begin) + "Sec-WebSocket-Accept: a\r\nSec-WebSocket-Accept: a\r\n\r\n",
            "502", "not valid HTTP"}}) {
    SCOPED_TRACE(name);
    origin api;
    gateway const under_test(config(api));
    auto client = ask_over_http2(under_test);
    auto upstream = api.accept();
    EXPECT_EQ(upstream.read_request().field("Sec-WebSocket-Key").size(), 24U);
    upstream.send(answer);
    EXPECT_EQ(value_of(client->read_fields(), ":status"), status);
    EXPECT_THAT(client->read_to_end(), HasSubstr(content));
    expect_tunnels(under_test, 0);
  }
}

TEST(gateway_extended_connect, makes_a_new_key_for_each_and_takes_none_from_the_client) {
  origin api;
  gateway const under_test(config(api));
  std::set<std::string> keys;
  for (int i = 0; i < 3; ++i) {
    auto client =
        ask_over_http2(under_test, connect_block() + literal("sec-websocket-key", "theirs"));
    auto upstream = api.accept();
    auto const request = upstream.read_request();
    EXPECT_EQ(request.count("Sec-WebSocket-Key"), 1U);
    keys.insert(request.field("Sec-WebSocket-Key"));
    upstream.send(response("403 Forbidden", "no", "Connection: close\r\n"));
    EXPECT_EQ(value_of(client->read_fields(), ":status"), "403");
  }
  EXPECT_EQ(keys.size(), 3U);
}

TEST(gateway_extended_connect, sends_what_came_behind_it_only_after_the_101) {
  origin api;
  gateway const under_test(config(api));
  raw_client raw(under_test.connect());
  raw.send(headers, 4, 1, connect_block());
  raw.send(data, 0, 1, "early");
  raw.send(data, 1, 1, " bird");
  auto upstream = api.accept();
  auto const request = upstream.read_request();
  EXPECT_TRUE(upstream.is_silent());
  upstream.send(
      "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
      "Sec-WebSocket-Accept: " +
      accept_of(request.field("Sec-WebSocket-Key")) + "\r\n\r\n");
  EXPECT_EQ(upstream.read_to_end(), "early bird");
  upstream.send("answer");
  upstream.close();
  http2_end client(std::move(raw), 1);
  EXPECT_EQ(client.read_to_end(), "answer");
  EXPECT_EQ(client.reset_code(), std::nullopt);
}

TEST(gateway_extended_connect, sends_nothing_of_it_behind_a_request_that_was_refused) {
  origin api;
  gateway const under_test(config(api));
  raw_client raw(under_test.connect());
  raw.send(headers, 4, 1, connect_block());
  raw.send(data, 0, 1, "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n");
  auto upstream = api.accept();
  (void)upstream.read_request();
  upstream.send(response("403 Forbidden", "no"));
  http2_end client(std::move(raw), 1);
  EXPECT_EQ(value_of(client.read_fields(), ":status"), "403");
  EXPECT_EQ(client.read_to_end(), "no");
  client.frames().send(headers, 5, 3,
                       "\x82\x86\x84\x41\x01"
                       "a");
  auto const next = upstream.read_request();
  EXPECT_EQ(next.start_line, "GET / HTTP/1.1");
}

// ---- towards HTTP/2 ----

TEST(gateway_extended_connect, is_502_towards_a_server_that_does_not_announce_it) {
  origin api;
  gateway const under_test(config_to(api, true));
  auto client = ask_over_http2(under_test);
  raw_server server(api.accept());
  EXPECT_EQ(value_of(client->read_fields(), ":status"), "502");
  EXPECT_THAT(client->read_to_end(), HasSubstr("takes no WebSocket over HTTP/2"));
  auto const refused = under_test.ask(asked);
  EXPECT_EQ(refused.status(), 502);
  // The connection is good for others.
  auto plain = under_test.connect();
  plain.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  auto const request = server.read_request();
  EXPECT_EQ(request.stream, 1U) << "nothing came before it";
  server.answer_whole(request.stream, "hello");
  EXPECT_EQ(plain.read_response().body, "hello");
}

TEST(gateway_extended_connect, waits_for_the_settings_of_the_server) {
  origin api;
  gateway const under_test(config_to(api, true));
  auto client = under_test.connect();
  client.send(asked);
  raw_frames server(api.accept());
  EXPECT_EQ(server.socket().read(24), "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
  EXPECT_EQ(server.read().type, settings);
  EXPECT_EQ(server.read().type, window_update);
  EXPECT_TRUE(server.socket().is_silent());
  server.send(settings, 0, 0, takes_connect);
  auto const request = server.decode(server.read(headers));
  EXPECT_THAT(request.fields, HasSubstr(":protocol: websocket\n"));
  server.send(headers, 4, request.stream, "\x88");
  EXPECT_EQ(client.read_response().status(), 101);
}

TEST(gateway_extended_connect, needs_a_valid_key_of_a_client_of_http_1) {
  origin api;
  gateway const under_test(config_to(api, true));
  for (std::string const lines :
       {"", "Sec-WebSocket-Key: dGhl\r\n", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=!\r\n",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"}) {
    auto const answer = under_test.ask(
        "GET /chat HTTP/1.1\r\nHost: a.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
        lines + "\r\n");
    EXPECT_EQ(answer.status(), 400) << lines;
  }
  EXPECT_TRUE(api.is_untouched());
}

TEST(gateway_extended_connect, passes_other_answers_of_a_server_of_http_2_on) {
  origin api;
  gateway const under_test(config_to(api, true));
  auto client = under_test.connect();
  client.send(asked);
  raw_server server(api.accept(), takes_connect);
  auto const request = server.read_request();
  server.send(headers, 4, request.stream, literal(":status", "403"));
  server.send(data, 1, request.stream, "no");
  auto const refused = client.read_response();
  EXPECT_EQ(refused.status(), 403);
  EXPECT_EQ(refused.body, "no");
  client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  auto const next = server.read_request();
  EXPECT_THAT(next.fields, StartsWith(":method: GET\n"));
  server.answer_whole(next.stream, "hello");
  EXPECT_EQ(client.read_response().body, "hello");
}

TEST(gateway_extended_connect, is_reset_for_frames_that_a_tunnel_does_not_have) {
  origin api;
  gateway const under_test(config_to(api, true));
  auto client = under_test.connect();
  client.send(asked);
  raw_server server(api.accept(), takes_connect);
  auto const request = server.read_request();
  server.answer(request.stream);
  EXPECT_EQ(client.read_response().status(), 101);
  server.send(headers, 5, request.stream, literal("x-sum", "1"));
  auto const reset = server.read(rst_stream);
  EXPECT_EQ(number_of(reset.payload), 1U) << "PROTOCOL_ERROR";
  EXPECT_TRUE(client.is_closed());
}

TEST(gateway_extended_connect, ends_when_the_connection_to_the_server_does) {
  origin api;
  gateway const under_test(config_to(api, true));
  auto client = ask_over_http2(under_test);
  {
    raw_server server(api.accept(), takes_connect);
    server.answer(server.read_request().stream);
    EXPECT_EQ(value_of(client->read_fields(), ":status"), "200");
  }
  EXPECT_EQ(client->read_to_end(), "");
  EXPECT_EQ(client->reset_code(), 8U);
  expect_tunnels(under_test, 0);
}

TEST(gateway_extended_connect, is_cut_where_the_client_goes_on_after_an_idle_close) {
  origin api;
  gateway const under_test(config(api, ", tunnel-idle-timeout: 50ms"));
  raw_client raw(under_test.connect());
  raw.send(headers, 4, 1, connect_block());
  auto upstream = api.accept();
  auto const request = upstream.read_request();
  upstream.send(
      "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
      "Sec-WebSocket-Accept: " +
      accept_of(request.field("Sec-WebSocket-Key")) + "\r\n\r\n");
  auto const end = raw.read(data);
  EXPECT_EQ(end.flags & 1U, 1U);
  EXPECT_EQ(number_of(raw.read(rst_stream).payload), 0U) << "NO_ERROR";
  raw.send(data, 0, 1, "too late");
  raw.get(3);  // the connection is as good as before
  EXPECT_EQ(upstream.read_to_end(), "");
  EXPECT_EQ(api.accept().read_request().start_line, "GET / HTTP/1.1");
}

TEST(gateway_extended_connect, is_cut_where_the_server_goes_on_after_an_idle_close) {
  origin api;
  gateway const under_test(config_to(api, true, ", tunnel-idle-timeout: 50ms"));
  auto client = under_test.connect();
  client.send(asked);
  raw_server server(api.accept(), takes_connect);
  auto const request = server.read_request();
  server.answer(request.stream);
  EXPECT_EQ(client.read_response().status(), 101);
  EXPECT_EQ(server.read(data).flags & 1U, 1U);
  EXPECT_EQ(client.read_to_end(), "");
  server.send(data, 0, request.stream, "too late");
  EXPECT_EQ(number_of(server.read(rst_stream).payload), 8U) << "CANCEL";
  auto plain = under_test.connect();
  plain.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  auto const next = server.read_request();  // the connection is as good as before
  server.answer_whole(next.stream, "hello");
  EXPECT_EQ(plain.read_response().body, "hello");
}

TEST(gateway_extended_connect, is_open_for_the_client_alone_when_the_server_ends_with_its_head) {
  origin api;
  gateway const under_test(config_to(api, true));
  auto client = under_test.connect();
  client.send(asked);
  raw_server server(api.accept(), takes_connect);
  auto const request = server.read_request();
  server.answer(request.stream, true);
  EXPECT_EQ(client.read_response().status(), 101);
  EXPECT_EQ(client.read_to_end(), "");
  client.send("still");
  EXPECT_EQ(server.read(data).payload, "still");
  client.close();
  EXPECT_EQ(server.read(data).flags & 1U, 1U);
  expect_tunnels(under_test, 0);
}

/// So many streams on each connection, as many as the gateway lets a client have.
constexpr std::uint32_t streams_of_one = 100;

TEST(gateway_extended_connect, keeps_a_thousand_open_in_little_memory) {
  constexpr std::size_t count = test_support::sanitized ? 100 : 1'000;
  if (!may_open_files(8 * count)) {
    GTEST_SKIP() << "the system allows too few open files";
  }
  origin api;
  gateway const under_test(
      "upstreams: {api: \"" + api.url() +
      "\"}\npolicies: {slots: {quota: 9999, unit: concurrent-requests}}\n"
      "routes: [{match: {path: /**}, upstream: api, upgrade: [websocket], limits: [slots]}]\n");
  std::vector<raw_client> clients;
  std::vector<connection> upstreams;
  auto const open = [&](raw_client& client, std::uint32_t stream) {
    client.send(headers, 4, stream, connect_block());
    upstreams.push_back(api.accept());
    auto const request = upstreams.back().read_request();
    upstreams.back().send(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Accept: " +
        accept_of(request.field("Sec-WebSocket-Key")) + "\r\n\r\n");
    (void)client.decode(client.read(headers));
  };
  clients.emplace_back(under_test.connect());
  open(clients.back(), 1);
  auto const before = under_test.own_memory();
  for (std::size_t i = 0; i < count; ++i) {
    auto const at = static_cast<std::uint32_t>(i % streams_of_one);
    if (at == 0) {
      clients.emplace_back(under_test.connect());
    }
    open(clients.back(), 2 * at + 1);
  }
  EXPECT_EQ(under_test.metric("tidegate_tunnels_open"), static_cast<double>(count + 1));
  auto const now = under_test.own_memory();
  auto const each = now < before ? 0 : (now - before) / count;
  std::cout << count << " idle tunnels of HTTP/2: " << each << " octets each\n";
  if (!test_support::sanitized) {
    EXPECT_LE(each, 2048U);
  }
  clients.clear();
  for (auto& upstream : upstreams) {
    EXPECT_TRUE(upstream.is_closed());
  }
  expect_tunnels(under_test, 0);
}

TEST(gateway_extended_connect, keeps_a_thousand_open_towards_servers_of_http_2) {
  constexpr std::size_t count = test_support::sanitized ? 100 : 1'000;
  if (!may_open_files(8 * count)) {
    GTEST_SKIP() << "the system allows too few open files";
  }
  origin api;
  gateway const under_test(
      "upstreams: {api: {servers: [\"" + api.url() +
      "\"], http2: true}}\nhttp: {max-connections: 2000}\n"
      "policies: {slots: {quota: 9999, unit: concurrent-requests}}\n"
      "routes: [{match: {path: /**}, upstream: api, upgrade: [websocket], limits: [slots]}]\n");
  std::vector<connection> clients;
  std::vector<raw_server> servers;
  std::vector<std::uint32_t> streams;
  auto const open = [&] {
    clients.push_back(under_test.connect());
    clients.back().send(asked);
    if (streams.size() % streams_of_one == 0) {
      servers.emplace_back(api.accept(), takes_connect);
    }
    streams.push_back(servers.back().read_request().stream);
    servers.back().answer(streams.back());
    EXPECT_EQ(clients.back().read_response().status(), 101);
  };
  open();
  auto const before = under_test.own_memory();
  for (std::size_t i = 0; i < count; ++i) {
    open();
  }
  EXPECT_EQ(under_test.metric("tidegate_tunnels_open"), static_cast<double>(count + 1));
  auto const now = under_test.own_memory();
  auto const each = now < before ? 0 : (now - before) / count;
  std::cout << count << " idle tunnels towards HTTP/2: " << each << " octets each\n";
  if (!test_support::sanitized) {
    EXPECT_LE(each, 2048U);
  }
  for (std::size_t i = 0; i < clients.size(); ++i) {
    servers[i / streams_of_one].send(data, 0, streams[i], "a");
  }
  for (auto& client : clients) {
    EXPECT_EQ(client.read(1), "a");
  }
  clients.clear();
  servers.clear();  // each side has ended, and not only the clients'
  expect_tunnels(under_test, 0);
}

}  // namespace
}  // namespace tidegate::e2e
