// SPDX-License-Identifier: Apache-2.0
#include <tidegate/wire/http1_write.hpp>

#include "support/allocations.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace tidegate::TIDEGATE_ABI::wire {
namespace {

auto forwarded(std::string_view bytes, request_forwarding forwarding = {}) -> std::string {
  request_head head;
  auto const status = parse_request_head(bytes, 0, {}, head);
  EXPECT_EQ(status.state, head_state::complete) << bytes;
  forwarding.body = head.body();
  std::string out;
  append_request_head(out, head, forwarding);
  return out;
}

auto answered(std::string_view bytes, response_forwarding const& forwarding,
              method asked = method::get) -> std::string {
  response_head head;
  EXPECT_EQ(parse_response_head(bytes, 0, {}, asked, head).state, head_state::complete) << bytes;
  std::string out;
  append_response_head(out, head, forwarding);
  return out;
}

TEST(wire_write, makes_heads_line_by_line) {
  std::string out;
  append_status_line(out, 429);
  append_field(out, "Retry-After", 30);
  append_field(out, "Content-Type", "text/plain");
  append_end_of_head(out);
  EXPECT_EQ(
      out, "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 30\r\nContent-Type: text/plain\r\n\r\n");
  out.clear();
  append_status_line(out, 299);
  EXPECT_EQ(out, "HTTP/1.1 299 \r\n");
}

TEST(wire_write, puts_parts_together) {
  std::string out = "<";
  std::string const text = "text";
  append_parts(out, "", text, std::string_view(), ": ", 0U, ", ",
               std::numeric_limits<std::uint64_t>::max(), ">");
  EXPECT_EQ(out, "<text: 0, 18446744073709551615>");
  out.reserve(1000);
  auto const before = tidegate::test::allocations();
  append_parts(out, text, std::uint16_t{65535});
  EXPECT_EQ(tidegate::test::allocations(), before);
  EXPECT_TRUE(out.ends_with(">text65535"));
}

TEST(wire_write, makes_chunks) {
  std::string out;
  append_chunk_size(out, 5);
  out += "hello";
  out += chunk_end;
  append_chunk_size(out, 0xfedcba9876543210);
  EXPECT_EQ(out, "5\r\nhello\r\nfedcba9876543210\r\n");
}

TEST(wire_write, sends_requests_on) {
  struct row {
    std::string_view in, out;
  };
  for (auto const& [in, out] : {
           row{"GET /a?b HTTP/1.1\r\nAccept: */*\r\nHost: h\r\nX-A:1\r\n\r\n",
               "GET /a?b HTTP/1.1\r\nHost: h\r\nAccept: */*\r\nX-A:1\r\n\r\n"},
           {"GET http://h?q HTTP/1.1\r\nHost: h\r\n\r\n", "GET /?q HTTP/1.1\r\nHost: h\r\n\r\n"},
           {"OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n", "OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n"},
           {"GET http://h/ HTTP/1.0\r\n\r\n", "GET / HTTP/1.1\r\nHost: h\r\n\r\n"},
           // What belongs to the connection.
           {"GET / HTTP/1.1\r\nHost: h\r\nConnection: keep-alive\r\nKeep-Alive: 5\r\nA: 1\r\n"
            "Proxy-Connection: close\r\nHTTP2-Settings: x\r\nUpgrade: h2c\r\nB: 2\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: h\r\nA: 1\r\nB: 2\r\n\r\n"},
           {"GET / HTTP/1.1\r\nHost: h\r\nX-Hop: 1\r\nConnection: x-hop, close\r\nX-Hop: 2\r\n"
            "X-Hope: 3\r\nConnection: Y-Hop\r\ny-hop: 4\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: h\r\nX-Hope: 3\r\n\r\n"},
           // What only says so.
           {"GET / HTTP/1.1\r\nHost: h\r\nConnection: Host, Authorization, x\r\n"
            "Authorization: y\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: h\r\nAuthorization: y\r\n\r\n"},
           {"GET / HTTP/1.1\r\nHost: h\r\nTE: gzip\r\n\r\n", "GET / HTTP/1.1\r\nHost: h\r\n\r\n"},
           {"GET / HTTP/1.1\r\nHost: h\r\nTE: gzip, trailers\r\nConnection: te\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: h\r\nConnection: te\r\nTE: trailers\r\n\r\n"},
           {"GET http://h/ HTTP/1.0\r\nExpect: 100-continue\r\nA: 1\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: h\r\nA: 1\r\n\r\n"},
           {"GET / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\n\r\n"},
           // The body.
           {"PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n",
            "PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n"},
           {"PUT / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nA: 1\r\nExpect:  100-Continue"
            "\r\n\r\n",
            "PUT / HTTP/1.1\r\nHost: h\r\nA: 1\r\nExpect: 100-continue\r\n\r\n"},
           {"PUT / HTTP/1.1\r\nHost: h\r\nContent-Length:\t7\t\r\nA: 1\r\n\r\n",
            "PUT / HTTP/1.1\r\nHost: h\r\nA: 1\r\nContent-Length: 7\r\n\r\n"},
           {"PUT / HTTP/1.1\r\nHost: h\r\nContent-Length:7\r\n\r\n",
            "PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 7\r\n\r\n"},
           {"PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 7 \r\n\r\n",
            "PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 7\r\n\r\n"},
           {"PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 007\r\n\r\n",
            "PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 7\r\n\r\n"},
           {"PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 00\r\n\r\n",
            "PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n"},
           {"GET / HTTP/1.1\r\nHost: h\r\nX_Forwarded_For: 1\r\nX-Forwarded_For: 2\r\nA_B: 1\r\n"
            "idempotency_key: \"k\"\r\nX_API_KEY: k\r\nContent_Length: 9\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: h\r\nA_B: 1\r\n\r\n"},
           {"GET / HTTP/1.1\r\nHost: h\r\nX.Forwarded.For: 1\r\n_X-Forwarded-For: 2\r\n"
            "X__Forwarded__For: 3\r\nX--Forwarded-For-: 4\r\n~x!forwarded|For: 5\r\n"
            "Idempotency.Attempt: 6\r\nXForwardedFor: 7\r\nX-Forwarded.Fo: 8\r\n_: 9\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: h\r\nXForwardedFor: 7\r\nX-Forwarded.Fo: 8\r\n_: 9\r\n\r\n"},
           {"PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 7\r\nConnection: content-length\r\n\r\n",
            "PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 7\r\n\r\n"},
           {"PUT / HTTP/1.1\r\nHost: h\r\ntransfer-encoding:  Chunked\r\nA: 1\r\n\r\n",
            "PUT / HTTP/1.1\r\nHost: h\r\nA: 1\r\nTransfer-Encoding: chunked\r\n\r\n"},
       }) {
    EXPECT_EQ(forwarded(in), out);
  }
}

TEST(wire_write, changes_what_the_proxy_wants_changed) {
  std::string_view const in =
      "GET /a HTTP/1.1\r\nHost: h\r\nX-Forwarded-For: 1\r\nA: 1\r\nCookie: c\r\n\r\n";
  EXPECT_EQ(forwarded(in, {.target = "/b?c",
                           .host = "origin:81",
                           .drop = {known_field::x_forwarded_for},
                           .field_lines = "X-Forwarded-For: 1, 2\r\n"}),
            "GET /b?c HTTP/1.1\r\nHost: origin:81\r\nA: 1\r\nCookie: c\r\n"
            "X-Forwarded-For: 1, 2\r\n\r\n");
  EXPECT_EQ(forwarded(in, {.drop = {known_field::other, known_field::cookie}}),
            "GET /a HTTP/1.1\r\nHost: h\r\nX-Forwarded-For: 1\r\n\r\n");
  std::vector<std::string> const names{"a", "x-b"};
  EXPECT_EQ(forwarded("GET /a HTTP/1.1\r\nHost: h\r\nA: 1\r\nX-B: 2\r\nX-Bc: 3\r\na: 4\r\n\r\n",
                      {.drop_names = names, .field_lines = "A: 5\r\n"}),
            "GET /a HTTP/1.1\r\nHost: h\r\nX-Bc: 3\r\nA: 5\r\n\r\n");
  EXPECT_EQ(
      forwarded("GET / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                "A: 1\r\n\r\n",
                {.upgrade = true}),
      "GET / HTTP/1.1\r\nHost: h\r\nA: 1\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n");
}

TEST(wire_write, frames_a_request_again_when_its_body_changes) {
  request_head head;
  std::string_view const in = "PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 7\r\n\r\n";
  ASSERT_EQ(parse_request_head(in, 0, {}, head).state, head_state::complete);
  auto with = [&head](body_framing body) {
    std::string out;
    append_request_head(out, head, {.body = body});
    return out.substr(25);
  };
  EXPECT_EQ(with({body_kind::content_length, 9}), "Content-Length: 9\r\n\r\n");
  EXPECT_EQ(with({body_kind::chunked, 0}), "Transfer-Encoding: chunked\r\n\r\n");
  EXPECT_EQ(with({body_kind::none, 0}), "Content-Length: 0\r\n\r\n");
}

TEST(wire_write, sends_responses_on) {
  body_framing const chunked{body_kind::chunked, 0};
  EXPECT_EQ(answered("HTTP/1.0 200 Fine\r\nContent-Length: 7\r\nConnection: close\r\nA: 1\r\n\r\n",
                     {.body = {body_kind::content_length, 7}}),
            "HTTP/1.1 200 Fine\r\nContent-Length: 7\r\nA: 1\r\n\r\n");
  EXPECT_EQ(answered("HTTP/1.1 200\r\nA: 1\r\n\r\n",
                     {.body = chunked, .connection = connection_option::close}),
            "HTTP/1.1 200 \r\nA: 1\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n");
  EXPECT_EQ(answered("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nServer: s\r\n\r\n",
                     {.drop = {known_field::server},
                      .field_lines = "Via: 1.1 t\r\n",
                      .body = {body_kind::until_close, 0},
                      .connection = connection_option::keep_alive}),
            "HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nVia: 1.1 t\r\n\r\n");
  // HEAD and 304 say how long the content would be; 1xx and 204 do not.
  EXPECT_EQ(answered("HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n", {}, method::head),
            "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n");
  EXPECT_EQ(answered("HTTP/1.1 304 NM\r\nContent-Length:\t0070\r\nA: 1\r\n\r\n", {}),
            "HTTP/1.1 304 NM\r\nA: 1\r\nContent-Length: 70\r\n\r\n");
  EXPECT_EQ(answered("HTTP/1.1 304 NM\r\nContent-Length: 7\r\n\r\n", {}),
            "HTTP/1.1 304 NM\r\nContent-Length: 7\r\n\r\n");
  EXPECT_EQ(answered("HTTP/1.1 204 NC\r\nContent-Length: 0\r\nA: 1\r\n\r\n", {}),
            "HTTP/1.1 204 NC\r\nA: 1\r\n\r\n");
  // A body that is left out leaves no length behind.
  EXPECT_EQ(answered("HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n", {}),
            "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
  EXPECT_EQ(answered("HTTP/1.1 101 SP\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n",
                     {.upgrade = true}),
            "HTTP/1.1 101 SP\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n");
  std::vector<std::string> const names{"x-powered-by"};
  EXPECT_EQ(
      answered("HTTP/1.1 204 NC\r\nX-Powered-By: p\r\nX-Powered: q\r\n\r\n", {.drop_names = names}),
      "HTTP/1.1 204 NC\r\nX-Powered: q\r\n\r\n");
}

TEST(wire_write, allocates_nothing_when_there_is_room) {
  request_head request;
  std::string_view const in =
      "PUT / HTTP/1.1\r\nHost: h\r\nConnection: x\r\nX: 1\r\nA: 1\r\nContent-Length: 7\r\n\r\n";
  ASSERT_EQ(parse_request_head(in, 0, {}, request).state, head_state::complete);
  std::string out;
  out.reserve(in.size() + 256);
  auto const before = tidegate::test::allocations();
  append_request_head(out, request, {.body = request.body()});
  out.clear();
  append_status_line(out, 200);
  append_field(out, "A", 1);
  append_chunk_size(out, 77);
  EXPECT_EQ(tidegate::test::allocations(), before);
}

}  // namespace
}  // namespace tidegate::TIDEGATE_ABI::wire
