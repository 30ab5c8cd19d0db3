// SPDX-License-Identifier: Apache-2.0
#include "support/allocations.hpp"

#include <tidegate/http/proxy_protocol.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tidegate::TIDEGATE_ABI::http {
namespace {

using namespace std::string_literals;
using namespace std::string_view_literals;
using fault = proxy_fault;

auto connection(std::string_view source, std::uint16_t source_port, std::string_view destination,
                std::uint16_t destination_port) -> proxied_connection {
  return {{*parse_ip_address(source), source_port},
          {*parse_ip_address(destination), destination_port}};
}

/// A header of version 2.
auto v2(std::uint8_t version_and_command, std::uint8_t family, std::string_view rest,
        std::optional<std::size_t> length = std::nullopt) -> std::string {
  auto text = "\r\n\r\n\0\r\nQUIT\n"s;
  auto const size = length.value_or(rest.size());
  for (auto octet :
       {std::size_t{version_and_command}, std::size_t{family}, size / 256, size % 256}) {
    text.push_back(static_cast<char>(octet));
  }
  return text.append(rest);
}

auto const v4_addresses = "\xc0\x00\x02\x01\x0a\x00\x00\x01\x12\x67\x01\xbb"s;
auto const v6_addresses =
    "\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x01"
    "\xfd\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x02\x12\x67\x01\xbb"s;
auto const v4_connection = connection("192.0.2.1", 4711, "10.0.0.1", 443);
auto const v6_connection = connection("2001:db8::1", 4711, "fd00::2", 443);

struct accepted {
  std::string text;
  std::optional<proxied_connection> connection;
};

auto accepted_headers() -> std::vector<accepted> {
  return {
      {"PROXY TCP4 192.0.2.1 10.0.0.1 4711 443\r\n", v4_connection},
      {"PROXY TCP6 2001:db8::1 fd00::2 4711 443\r\n", v6_connection},
      {"PROXY TCP4 255.255.255.255 255.255.255.255 65535 65535\r\n",
       connection("255.255.255.255", 65535, "255.255.255.255", 65535)},
      {"PROXY TCP4 0.0.0.0 0.0.0.0 0 0\r\n", connection("0.0.0.0", 0, "0.0.0.0", 0)},
      {"PROXY TCP6 ::ffff:192.0.2.1 fd00::2 1 2\r\n", connection("192.0.2.1", 1, "fd00::2", 2)},
      {"PROXY UNKNOWN\r\n", std::nullopt},
      {"PROXY UNKNOWN whatever  there is\r\n", std::nullopt},
      {"PROXY UNKNOWN ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff "
       "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 65535\r\n",
       std::nullopt},
      {v2(0x21, 0x11, v4_addresses), v4_connection},
      {v2(0x21, 0x21, v6_addresses), v6_connection},
      {v2(0x21, 0x11, v4_addresses + "\x04\0\0"s), v4_connection},
      {v2(0x21, 0x11, v4_addresses + "\x02\0\x03"s + "a.b" + "\x04\0\x01x"s), v4_connection},
      {v2(0x21, 0x12, v4_addresses), std::nullopt},           // UDP
      {v2(0x21, 0x10, v4_addresses), std::nullopt},           // no transport
      {v2(0x21, 0x31, std::string(216, 'u')), std::nullopt},  // UNIX
      {v2(0x21, 0x00, ""), std::nullopt},                     // UNSPEC
      {v2(0x21, 0x00, "\x04\0\x02xy"s), std::nullopt},
      {v2(0x20, 0x00, ""), std::nullopt},  // LOCAL
      {v2(0x20, 0x11, v4_addresses), std::nullopt},
      {v2(0x20, 0xff, "anything"), std::nullopt},
      {v2(0x21, 0x11, v4_addresses + "\x04"s + "\x0f\xe1"s + std::string(4065, '\0')),
       v4_connection},
  };
}

TEST(http_proxy_protocol, reads_both_versions_and_leaves_what_follows) {
  for (auto const& [text, expected] : accepted_headers()) {
    for (auto const behind : {""sv, "GET / HTTP/1.1\r\n"sv, "\r\n"sv, "\0"sv}) {
      auto const parsed = parse_proxy_header(text + std::string(behind));
      ASSERT_TRUE(parsed) << text << ": " << message(parsed.error().fault) << " at "
                          << parsed.error().offset;
      ASSERT_TRUE(*parsed) << text;
      EXPECT_EQ((*parsed)->size, text.size()) << text;
      EXPECT_EQ((*parsed)->connection, expected) << text;
    }
  }
}

TEST(http_proxy_protocol, waits_for_more_at_every_byte_before_the_end) {
  for (auto const& header : accepted_headers()) {
    for (std::size_t size = 0; size < header.text.size(); ++size) {
      auto const parsed = parse_proxy_header(std::string_view(header.text).substr(0, size));
      ASSERT_TRUE(parsed) << header.text << " at " << size;
      ASSERT_FALSE(*parsed) << header.text << " at " << size;
    }
  }
}

struct rejected {
  std::string text;
  proxy_error error;
};

auto rejected_headers() -> std::vector<rejected> {
  return {
      {"GET / HTTP/1.1\r\n", {fault::no_signature, 0}},
      {"PROXX", {fault::no_signature, 4}},
      {"PROXY\r\n", {fault::no_signature, 5}},
      {"proxy TCP4", {fault::no_signature, 0}},
      {"\r\n\r\n\r\n", {fault::no_signature, 4}},
      {"\r\n\r\n\0\r\nQUIT\r"s, {fault::no_signature, 11}},
      {"\x16\x03\x01", {fault::no_signature, 0}},
      // version 1
      {"PROXY \r\n", {fault::unknown_protocol, 6}},
      {"PROXY TCP5 \r\n", {fault::unknown_protocol, 6}},
      {"PROXY  TCP4 1.1.1.1 2.2.2.2 1 2\r\n", {fault::unknown_protocol, 6}},
      {"PROXY tcp4 1.1.1.1 2.2.2.2 1 2\r\n", {fault::unknown_protocol, 6}},
      {"PROXY UNKNOWNX\r\n", {fault::unknown_protocol, 6}},
      {"PROXY TCP4\r\n", {fault::invalid_address, 10}},
      {"PROXY TCP4 \r\n", {fault::invalid_address, 11}},
      {"PROXY TCP4 1.1.1.1\r\n", {fault::invalid_address, 18}},
      {"PROXY TCP4 1.1.1.1  2.2.2.2 1 2\r\n", {fault::invalid_address, 19}},
      {"PROXY TCP4 1.1.1.01 2.2.2.2 1 2\r\n", {fault::invalid_address, 11}},
      {"PROXY TCP4 ::1 ::2 1 2\r\n", {fault::invalid_address, 11}},
      {"PROXY TCP4 ::ffff:1.1.1.1 2.2.2.2 1 2\r\n", {fault::invalid_address, 11}},
      {"PROXY TCP6 1.1.1.1 2.2.2.2 1 2\r\n", {fault::invalid_address, 11}},
      {"PROXY TCP6 ::1 2.2.2.2 1 2\r\n", {fault::invalid_address, 15}},
      {"PROXY TCP4 1.1.1.1 2.2.2.2\r\n", {fault::invalid_port, 26}},
      {"PROXY TCP4 1.1.1.1 2.2.2.2 1\r\n", {fault::invalid_port, 28}},
      {"PROXY TCP4 1.1.1.1 2.2.2.2 65536 2\r\n", {fault::invalid_port, 27}},
      {"PROXY TCP4 1.1.1.1 2.2.2.2 01 2\r\n", {fault::invalid_port, 27}},
      {"PROXY TCP4 1.1.1.1 2.2.2.2 1 -2\r\n", {fault::invalid_port, 29}},
      {"PROXY TCP4 1.1.1.1 2.2.2.2 1 2 \r\n", {fault::unexpected_character, 30}},
      {"PROXY TCP4 1.1.1.1 2.2.2.2 1 2 3\r\n", {fault::unexpected_character, 30}},
      {"PROXY TCP4 1.1.1.1 2.2.2.2 1 2\n", {fault::unexpected_character, 30}},
      {"PROXY TCP4 1.1.1.1 2.2.2.2 1 2\n\r", {fault::unexpected_character, 30}},
      {"PROXY TCP4 1.1.1.1 2.2.2.2 1 2\r ", {fault::unexpected_character, 31}},
      {"PROXY UNKNOWN a\rb\r\n", {fault::unexpected_character, 16}},
      {"PROXY UNKNOWN " + std::string(93, 'x'), {fault::too_long, 107}},
      {"PROXY UNKNOWN " + std::string(92, 'x') + "\r\n", {fault::too_long, 107}},
      // version 2
      {v2(0x11, 0x11, v4_addresses), {fault::unknown_version, 12}},
      {v2(0x31, 0x11, v4_addresses), {fault::unknown_version, 12}},
      {v2(0x22, 0x11, v4_addresses), {fault::unknown_command, 12}},
      {v2(0x21, 0x41, v4_addresses), {fault::unknown_family, 13}},
      {v2(0x21, 0x13, v4_addresses), {fault::unknown_family, 13}},
      {v2(0x21, 0x11, v4_addresses.substr(1)), {fault::too_short, 14}},
      {v2(0x21, 0x21, v4_addresses), {fault::too_short, 14}},
      {v2(0x21, 0x31, v6_addresses), {fault::too_short, 14}},
      {v2(0x21, 0x11, "", 4081), {fault::too_long, 14}},
      {v2(0x20, 0x00, "", 65535), {fault::too_long, 14}},
      {v2(0x21, 0x11, v4_addresses + "\x04"s), {fault::invalid_tlv, 28}},
      {v2(0x21, 0x11, v4_addresses + "\x04\0"s), {fault::invalid_tlv, 28}},
      {v2(0x21, 0x11, v4_addresses + "\x04\0\x01"s), {fault::invalid_tlv, 28}},
      {v2(0x21, 0x11, v4_addresses + "\x04\0\x01xx"s), {fault::invalid_tlv, 32}},
  };
}

TEST(http_proxy_protocol, refuses_others_with_the_place_of_the_fault) {
  for (auto const& [text, error] : rejected_headers()) {
    auto const parsed = parse_proxy_header(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error(), error)
        << text << ": " << message(parsed.error().fault) << " at " << parsed.error().offset;
  }
}

TEST(http_proxy_protocol, refuses_no_prefix_otherwise_than_the_whole) {
  for (auto const& [text, error] : rejected_headers()) {
    for (std::size_t size = 0; size < text.size(); ++size) {
      auto const parsed = parse_proxy_header(std::string_view(text).substr(0, size));
      if (parsed) {
        EXPECT_FALSE(*parsed) << text << " at " << size;
      } else {
        EXPECT_EQ(parsed.error(), error) << text << " at " << size;
      }
    }
  }
}

TEST(http_proxy_protocol, allocates_nothing) {
  auto const v1_text = "PROXY TCP6 2001:db8::1 fd00::2 4711 443\r\n"sv;
  auto const v2_text = v2(0x21, 0x21, v6_addresses);
  auto const before = test::allocations();
  EXPECT_TRUE(parse_proxy_header(v1_text).has_value());
  EXPECT_TRUE(parse_proxy_header(v2_text).has_value());
  EXPECT_EQ(test::allocations(), before);
}

}  // namespace
}  // namespace tidegate::TIDEGATE_ABI::http
