// SPDX-License-Identifier: Apache-2.0
#include "phases/tunnel/upgrade.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace tidegate::gateway {
namespace {

struct row {
  std::string_view name;
  std::string text;
  bool expected;
};

TEST(proxy_upgrade, takes_only_a_plain_request_for_a_websocket) {
  auto const get = [](std::string_view lines) {
    return "GET /chat HTTP/1.1\r\nHost: h\r\n" + std::string(lines) + "\r\n";
  };
  std::vector<row> const rows{
      {"as browsers ask", get("Connection: Upgrade\r\nUpgrade: websocket\r\n"), true},
      {"in any case", get("connection: keep-alive, UPGRADE\r\nupgrade: WebSocket\r\n"), true},
      {"among others", get("Connection: upgrade\r\nUpgrade: h2c, websocket\r\n"), true},
      {"in two lines", get("Connection: upgrade\r\nUpgrade: x\r\nUpgrade: websocket\r\n"), true},
      {"without Connection", get("Upgrade: websocket\r\n"), false},
      {"without Upgrade", get("Connection: upgrade\r\n"), false},
      {"another protocol", get("Connection: upgrade\r\nUpgrade: h2c\r\n"), false},
      {"with a version", get("Connection: upgrade\r\nUpgrade: websocket/13\r\n"), false},
      {"with content", get("Connection: upgrade\r\nUpgrade: websocket\r\nContent-Length: 5\r\n"),
       false},
      {"with chunks",
       get("Connection: upgrade\r\nUpgrade: websocket\r\nTransfer-Encoding: chunked\r\n"), false},
      {"with an empty content",
       get("Connection: upgrade\r\nUpgrade: websocket\r\nContent-Length: 0\r\n"), true},
      {"POST", "POST / HTTP/1.1\r\nHost: h\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n",
       false},
      {"HTTP/1.0", "GET / HTTP/1.0\r\nHost: h\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n",
       false},
  };
  for (auto const& [name, text, expected] : rows) {
    wire::request_head head;
    ASSERT_EQ(wire::parse_request_head(text, 0, {}, head).state, wire::head_state::complete)
        << name;
    EXPECT_EQ(asks_for_websocket(head), expected) << name;
  }
}

TEST(proxy_upgrade, takes_only_a_101_to_that_protocol_alone) {
  auto const answer = [](std::string_view lines) {
    return "HTTP/1.1 101 Switching Protocols\r\n" + std::string(lines) + "\r\n";
  };
  std::vector<row> const rows{
      {"as servers answer", answer("Connection: Upgrade\r\nUpgrade: websocket\r\n"), true},
      {"without Connection", answer("Upgrade: websocket\r\n"), false},
      {"without Upgrade", answer("Connection: upgrade\r\n"), false},
      {"another protocol", answer("Connection: upgrade\r\nUpgrade: h2c\r\n"), false},
      {"two protocols", answer("Connection: upgrade\r\nUpgrade: websocket, h2c\r\n"), false},
      {"two lines", answer("Connection: upgrade\r\nUpgrade: websocket\r\nUpgrade: websocket\r\n"),
       false},
  };
  for (auto const& [name, text, expected] : rows) {
    wire::response_head head;
    ASSERT_EQ(wire::parse_response_head(text, 0, {}, wire::method::get, head).state,
              wire::head_state::complete)
        << name;
    EXPECT_EQ(is_websocket(head), expected) << name;
  }
}

}  // namespace
}  // namespace tidegate::gateway
