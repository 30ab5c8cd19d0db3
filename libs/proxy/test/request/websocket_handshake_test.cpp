// SPDX-License-Identifier: Apache-2.0
#include "request/websocket_handshake.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tidegate::gateway {
namespace {

TEST(proxy_websocket_handshake, makes_keys_that_are_valid_and_new) {
  std::set<std::string> keys;
  for (int i = 0; i < 100; ++i) {
    auto const key = make_websocket_key();
    EXPECT_TRUE(is_websocket_key(key)) << key;
    keys.insert(key);
  }
  EXPECT_EQ(keys.size(), 100U);
}

TEST(proxy_websocket_handshake, takes_only_keys_of_16_octets) {
  EXPECT_TRUE(is_websocket_key("dGhlIHNhbXBsZSBub25jZQ=="));
  EXPECT_TRUE(is_websocket_key("//////////++++++++++AA=="));
  for (std::string_view const wrong :
       {"", "dGhlIHNhbXBsZSBub25jZQ", "dGhlIHNhbXBsZSBub25jZQ=", "dGhlIHNhbXBsZSBub25jZQ===",
        "dGhlIHNhbXBsZSBub25jZQa=", "dGhlIHNhbXBsZSBub25jZQa1", "dGhlIHNhbXBsZSBub2-jZQ==",
        "dGhlIHNhbXBs ZSBub25jZQ==", "dGhlIHNhbXBsZSBub25j====", "dGhl"}) {
    EXPECT_FALSE(is_websocket_key(wrong)) << wrong;
  }
}

TEST(proxy_websocket_handshake, knows_what_answers_a_key) {
  // RFC 6455, section 1.3; the others by Python's hashlib.
  std::vector<std::pair<std::string, std::string>> const rows{
      {"dGhlIHNhbXBsZSBub25jZQ==", "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="},
      {"x3JJHMbDL1EzLkh9GBhXDw==", "HSmrc0sMlYUkAGmm5OPpG2HaGWk="},
      {"", "Kfh9QIsMVZcl6xEPYxPHzW8SZ8w="},
  };
  for (auto const& [key, accept] : rows) {
    EXPECT_EQ(websocket_accept_of(key), accept) << key;
  }
}

TEST(proxy_websocket_handshake, hashes_messages_that_fill_a_block_or_nearly_do) {
  // With the constant of 36 octets: 55, 56, 64 and 65, where the padding begins another block.
  std::vector<std::pair<std::size_t, std::string>> const rows{
      {19, "yzaGyu0mcUukN7CdsSwa30tnCpc="},
      {20, "dUYRM7bOMwDmbriNIPr11x+r3E0="},
      {28, "xMWmCBqYJY4uXzUs8PNU1t+Pzro="},
      {29, "m8kT+K/C9sp8j44+NnEexy4o+Tg="},
      {200, "W7nwfYCuwcatB7HT3divf5cVU2A="}};
  for (auto const& [size, accept] : rows) {
    EXPECT_EQ(websocket_accept_of(std::string(size, 'a')), accept) << size;
  }
}

TEST(proxy_websocket_handshake, finds_a_field_that_is_there_once) {
  wire::response_head head;
  ASSERT_EQ(wire::parse_response_head("HTTP/1.1 101 x\r\nA: 1\r\nB: 2\r\nb: 3\r\nC:\r\n\r\n", 0, {},
                                      wire::method::get, head)
                .state,
            wire::head_state::complete);
  EXPECT_EQ(only_value_of(head, "a"), "1");
  EXPECT_EQ(only_value_of(head, "b"), "");
  EXPECT_EQ(only_value_of(head, "c"), "");
  EXPECT_EQ(only_value_of(head, "d"), "");
}

TEST(proxy_websocket_handshake, takes_lines_out) {
  std::string lines = "A: 1\r\nSec-Key: x\r\nB: 2\r\nsec-key:y\r\nSec-Key-2: z\r\n";
  EXPECT_EQ(take_line(lines, "sec-key"), "x");
  EXPECT_EQ(lines, "A: 1\r\nB: 2\r\nSec-Key-2: z\r\n");
  EXPECT_EQ(take_line(lines, "sec-key"), "");
  EXPECT_EQ(take_line(lines, "a"), "1");
  EXPECT_EQ(take_line(lines, "b"), "2");
  EXPECT_EQ(take_line(lines, "sec-key-2"), "z");
  EXPECT_EQ(lines, "");
  EXPECT_EQ(take_line(lines, "a"), "");
}

TEST(proxy_websocket_handshake, makes_the_101_of_a_2xx) {
  wire::response_head head;
  ASSERT_EQ(wire::parse_response_head("HTTP/1.1 200 OK\r\nSec-WebSocket-Protocol: chat\r\n"
                                      "Sec-WebSocket-Accept: theirs\r\nConnection: X\r\nX: 1\r\n"
                                      "Content-Length: 5\r\nSet-Cookie: a=b\r\n\r\n",
                                      0, {}, wire::method::get, head)
                .state,
            wire::head_state::complete);
  auto const text = switching_head_of(head, "ours");
  EXPECT_EQ(
      text,
      "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n"
      "Sec-WebSocket-Accept: ours\r\nSec-WebSocket-Protocol: chat\r\nSet-Cookie: a=b\r\n\r\n");
  EXPECT_EQ(wire::parse_response_head(text, 0, {}, wire::method::get, head).size, text.size());
}

}  // namespace
}  // namespace tidegate::gateway
