// SPDX-License-Identifier: Apache-2.0
#include "request/client_address.hpp"

#include <gtest/gtest.h>

#include <string_view>

namespace tidegate::gateway {
namespace {

[[nodiscard]] auto address(std::string_view text) -> http::ip_address {
  return *http::parse_ip_address(text);
}

TEST(proxy_client_address, makes_the_lines_for_upstreams_once) {
  struct row {
    std::string_view name;
    std::string_view peer;
    std::string_view scheme;
    std::string_view lines;
  };
  for (auto const& each : {
           row{"IPv4 in clear", "192.0.2.1", "http",
               "X-Forwarded-For: 192.0.2.1\r\nX-Forwarded-Proto: http\r\nVia: 1.1 tidegate\r\n"},
           row{"IPv6 by TLS", "2001:db8::1", "https",
               "X-Forwarded-For: 2001:db8::1\r\nX-Forwarded-Proto: https\r\n"
               "Via: 1.1 tidegate\r\n"},
       }) {
    client_address const from(address(each.peer), each.scheme);
    EXPECT_EQ(from.forwarding_lines, each.lines) << each.name;
    EXPECT_EQ(from.peer_text(), each.peer) << each.name;
    EXPECT_EQ(from.peer, address(each.peer)) << each.name;
    EXPECT_EQ(from.scheme, each.scheme) << each.name;
    EXPECT_TRUE(from.may_name_others) << each.name;
  }
}

TEST(proxy_client_address, says_in_via_that_the_connection_goes_on_in_http_2) {
  client_address from(address("192.0.2.1"), "https");
  from.becomes_http2();
  EXPECT_EQ(from.forwarding_lines,
            "X-Forwarded-For: 192.0.2.1\r\nX-Forwarded-Proto: https\r\nVia: 2 tidegate\r\n");
  EXPECT_EQ(from.peer_text(), "192.0.2.1");
}

TEST(proxy_client_address, is_zero_for_a_peer_without_an_address) {
  client_address const from({}, "http");
  EXPECT_EQ(from.peer_text(), http::to_string(http::ip_address()));
}

TEST(proxy_client_address, stays_itself_when_it_is_copied) {
  client_address const from(address("2001:db8::1"), "https");
  auto const copy = from;
  EXPECT_EQ(copy.peer_text(), "2001:db8::1");
  EXPECT_NE(copy.peer_text().data(), from.peer_text().data());
}

}  // namespace
}  // namespace tidegate::gateway
