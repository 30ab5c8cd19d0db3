// SPDX-License-Identifier: Apache-2.0
#include "gateway.hpp"
#include "raw_http2.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <charconv>
#include <string>
#include <string_view>
#include <vector>

/// Server-sent events: each one is with the client before the next one is made.
namespace tidegate::e2e {

namespace {

/// How a server frames a stream that has no length.
struct framing {
  std::string_view name;
  std::string_view field_line;
  bool is_chunked;
};

std::vector<framing> const framings{
    {"in chunks", "Transfer-Encoding: chunked\r\n", true},
    {"until it closes", "Connection: close\r\n", false},
};

/// As the size of a chunk.
auto number_text(std::size_t number) -> std::string {
  std::array<char, 16> digits{};
  auto const end = std::to_chars(digits.begin(), digits.end(), number, 16).ptr;
  return {digits.begin(), end};
}

/// An event as it goes over the wire.
auto framed(std::string const& event, framing const& how) -> std::string {
  if (!how.is_chunked) {
    return event;
  }
  return number_text(event.size()) + "\r\n" + event + "\r\n";
}

auto event_number(int number) -> std::string {
  return "id: " + std::to_string(number) + "\ndata: tick\n\n";
}

constexpr int events_count = 20;

TEST(gateway_events, arrive_one_by_one_by_http1) {
  for (auto const& how : framings) {
    SCOPED_TRACE(how.name);
    origin api;
    gateway const under_test(proxy_config(api.url()));
    auto client = under_test.connect();
    client.send("GET /events HTTP/1.1\r\nHost: a.example\r\nAccept: text/event-stream\r\n\r\n");
    auto upstream = api.accept();
    (void)upstream.read_request();
    upstream.send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n" +
                  std::string(how.field_line) + "\r\n");
    // The head alone comes before the first event.
    auto const head = client.read_head();
    EXPECT_EQ(head.status(), 200);
    EXPECT_EQ(head.field("Content-Type"), "text/event-stream");
    EXPECT_EQ(head.field("Transfer-Encoding"), "chunked");
    framing const in_chunks{"", "", true};
    for (int i = 0; i < events_count; ++i) {
      auto const event = event_number(i);
      upstream.send(framed(event, how));
      auto const expected = framed(event, in_chunks);
      EXPECT_EQ(client.read(expected.size()), expected);
    }
    if (how.is_chunked) {
      upstream.send("0\r\n\r\n");
    }
    upstream.close();
    EXPECT_EQ(client.read(5), "0\r\n\r\n");
  }
}

TEST(gateway_events, arrive_one_by_one_by_http2) {
  for (auto const& how : framings) {
    SCOPED_TRACE(how.name);
    origin api;
    gateway const under_test(proxy_config(api.url()));
    raw_client client(under_test.connect());
    client.get(1);
    auto upstream = api.accept();
    (void)upstream.read_request();
    upstream.send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n" +
                  std::string(how.field_line) + "\r\n");
    EXPECT_EQ(client.read(headers).stream, 1U);
    for (int i = 0; i < events_count; ++i) {
      auto const event = event_number(i);
      upstream.send(framed(event, how));
      EXPECT_EQ(client.read(data).payload, event);
    }
    if (how.is_chunked) {
      upstream.send("0\r\n\r\n");
    }
    upstream.close();
    EXPECT_EQ(client.read(data).payload, "");
  }
}

TEST(gateway_events, of_one_stream_do_not_wait_for_another_that_is_not_read) {
  origin api;
  gateway const under_test(proxy_config(api.url()));
  raw_client client(under_test.connect());
  client.get(1);
  auto stuck = api.accept();
  (void)stuck.read_request();
  client.get(3);
  auto live = api.accept();
  (void)live.read_request();
  auto const head =
      "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
  stuck.send(head);
  // More than the window of its stream lets through, which the client does not open.
  auto const sent = stuck.send_until_blocked(std::string(64U << 20U, 'x'));
  EXPECT_LT(sent, 64U << 20U);
  live.send(head);
  // Its window of the connection is opened, that of the first stream is not.
  client.send(window_update, 0, 0, std::string_view("\0\1\0\0", 4));
  for (int i = 0; i < events_count; ++i) {
    auto const event = event_number(i);
    live.send(event);
    auto found = client.read(data);
    while (found.stream != 3) {
      found = client.read(data);
    }
    EXPECT_EQ(found.payload, event);
  }
}

}  // namespace
}  // namespace tidegate::e2e
