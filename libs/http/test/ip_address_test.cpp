// SPDX-License-Identifier: Apache-2.0
#include "support/allocations.hpp"

#include <tidegate/http/ip_address.hpp>

#include <gtest/gtest.h>

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace tidegate::TIDEGATE_ABI::http {
namespace {

using namespace std::string_view_literals;
using fault = ip_fault;

auto address(std::string_view text) -> ip_address {
  auto const parsed = parse_ip_address(text);
  EXPECT_TRUE(parsed) << text;
  return parsed.value_or(ip_address());
}

auto network(std::string_view text) -> cidr {
  auto const parsed = parse_cidr(text);
  EXPECT_TRUE(parsed) << text;
  return parsed.value_or(cidr());
}

TEST(http_ip_address, writes_addresses_as_rfc_5952_does) {
  struct row {
    std::string_view text, canonical;
  };
  for (auto const& [text, canonical] : {
           row{"0.0.0.0", "0.0.0.0"},
           {"255.255.255.255", "255.255.255.255"},
           {"192.0.2.1", "192.0.2.1"},
           {"::", "::"},
           {"::1", "::1"},
           {"1::", "1::"},
           {"2001:DB8::1", "2001:db8::1"},
           {"2001:0db8:0000:0000:0000:0000:0000:0001", "2001:db8::1"},
           {"2001:db8::1:0:0:1", "2001:db8::1:0:0:1"},  // the first of two equal runs
           {"2001:db8:0:0:1:0:0:1", "2001:db8::1:0:0:1"},
           {"2001:0:0:1:0:0:0:1", "2001:0:0:1::1"},           // the longer run
           {"2001:db8:0:1:1:1:1:1", "2001:db8:0:1:1:1:1:1"},  // one group is not a run
           {"2001:db8::1:1:1:1:1", "2001:db8:0:1:1:1:1:1"},
           {"1:2:3:4:5:6:7::", "1:2:3:4:5:6:7:0"},
           {"::2:3:4:5:6:7:8", "0:2:3:4:5:6:7:8"},
           {"1:2:3:4:5:6:192.0.2.1", "1:2:3:4:5:6:c000:201"},
           {"64:ff9b::192.0.2.33", "64:ff9b::c000:221"},
           {"::192.0.2.1", "::c000:201"},
           {"::ffff:192.0.2.1", "192.0.2.1"},
           {"::ffff:c000:201", "192.0.2.1"},
           {"0:0:0:0:0:FFFF:192.0.2.1", "192.0.2.1"},
           {"::fffe:c000:201", "::fffe:c000:201"},
       }) {
    EXPECT_EQ(to_string(address(text)), canonical) << text;
    EXPECT_EQ(address(canonical), address(text)) << text;
  }
}

TEST(http_ip_address, refuses_a_text_with_the_place_of_the_fault) {
  struct row {
    std::string_view text;
    ip_error error;
  };
  for (auto const& [text, error] : {
           row{"", {fault::unexpected_end, 0}},
           {"1", {fault::unexpected_end, 1}},
           {"1.2.3", {fault::unexpected_end, 5}},
           {"1.2.3.", {fault::unexpected_end, 6}},
           {"1.2.3.4.", {fault::unexpected_character, 7}},
           {"1.2.3.4.5", {fault::unexpected_character, 7}},
           {"1..2.3", {fault::unexpected_character, 2}},
           {".1.2.3", {fault::unexpected_character, 0}},
           {"1.2.3.256", {fault::octet_out_of_range, 6}},
           {"1.2.3.4444444444444", {fault::octet_out_of_range, 6}},
           {"01.2.3.4", {fault::leading_zero, 0}},
           {"1.2.3.00", {fault::leading_zero, 6}},
           {"1.2.3.4 ", {fault::unexpected_character, 7}},
           {" 1.2.3.4", {fault::unexpected_character, 0}},
           {"1.2.3.-4", {fault::unexpected_character, 6}},
           {"0x7f.0.0.1", {fault::unexpected_character, 1}},
           {"localhost", {fault::unexpected_character, 0}},
           {":", {fault::unexpected_end, 1}},
           {":1", {fault::unexpected_character, 1}},
           {"1:", {fault::unexpected_end, 2}},
           {"1:2", {fault::unexpected_end, 3}},
           {"1:2:3:4:5:6:7", {fault::unexpected_end, 13}},
           {"1:2:3:4:5:6:7:", {fault::unexpected_end, 14}},
           {"1:2:3:4:5:6:7:8:9", {fault::too_many_groups, 16}},
           {"1:2:3:4:5:6:7:8::", {fault::too_many_groups, 15}},
           {"::1:2:3:4:5:6:7:8", {fault::too_many_groups, 16}},
           {"1:2:3:4:5:6:7:1.2.3.4", {fault::too_many_groups, 14}},
           {"1:2:3:4:5:6::1.2.3.4", {fault::too_many_groups, 13}},
           {"1::2::3", {fault::second_gap, 4}},
           {":::", {fault::unexpected_character, 2}},
           {"1:::2", {fault::unexpected_character, 3}},
           {"12345::", {fault::group_too_long, 0}},
           {"::00001", {fault::group_too_long, 2}},
           {"::g", {fault::unexpected_character, 2}},
           {"::1%eth0", {fault::unexpected_character, 3}},
           {"[::1]", {fault::unexpected_character, 0}},
           {"::1/64", {fault::unexpected_character, 3}},
           {"1.2.3.4:80", {fault::unexpected_character, 7}},
           {"::1.2.3", {fault::unexpected_end, 7}},
           {"::1.2.3.256", {fault::octet_out_of_range, 8}},
           {"::1.2.3.4:5", {fault::unexpected_character, 9}},
           {"::f.2.3.4", {fault::unexpected_character, 2}},
           {"::1\0"sv, {fault::unexpected_character, 3}},
       }) {
    auto const parsed = parse_ip_address(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error(), error)
        << text << ": " << message(parsed.error().fault) << " at " << parsed.error().offset;
  }
}

TEST(http_ip_address, agrees_with_the_c_library_on_random_texts) {
  constexpr std::string_view characters = "0123456789abcdefABCDEF::::::....1g";
  std::mt19937_64 random(11);
  std::size_t taken = 0;
  auto const check = [&taken](std::string const& text) {
    std::array<std::uint8_t, 16> bytes{};
    auto const parsed = parse_ip_address(text);
    bool const is_v4 = inet_pton(AF_INET, text.c_str(), bytes.data()) == 1;
    bool const is_v6 = !is_v4 && inet_pton(AF_INET6, text.c_str(), bytes.data()) == 1;
    ASSERT_EQ(parsed.has_value(), is_v4 || is_v6) << text;
    if (parsed) {
      ++taken;
      auto const expected =
          is_v4 ? ip_address::from_v4(std::span(bytes).first<4>()) : ip_address::from_v6(bytes);
      ASSERT_EQ(*parsed, expected) << text;
      ASSERT_EQ(parse_ip_address(to_string(*parsed)), *parsed) << text;
    }
  };
  for (int round = 0; round < 200'000; ++round) {
    std::string text;
    for (auto size = random() % 16; size > 0; --size) {
      text += characters[random() % characters.size()];
    }
    check(text);
    // An address with one character changed is more often nearly right.
    std::array<std::uint8_t, 16> bytes{};
    std::ranges::generate(bytes, [&] {
      return random() % 3 == 0 ? static_cast<std::uint8_t>(random()) : std::uint8_t{0};
    });
    text = to_string(ip_address::from_v6(bytes));
    check(text);
    text[random() % text.size()] = characters[random() % characters.size()];
    check(text);
  }
  EXPECT_GT(taken, 200'000U);
}

TEST(http_ip_address, goes_to_bytes_and_back) {
  constexpr std::array<std::uint8_t, 4> v4 = {192, 0, 2, 1};
  EXPECT_EQ(ip_address::from_v4(v4), address("192.0.2.1"));
  EXPECT_TRUE(std::ranges::equal(address("192.0.2.1").bytes(), v4));
  EXPECT_EQ(address("192.0.2.1").bits(), 32U);
  std::array<std::uint8_t, 16> v6 = {0x20, 0x01, 0x0d, 0xb8};
  EXPECT_EQ(to_string(ip_address::from_v6(v6)), "2001:db8::");
  EXPECT_TRUE(std::ranges::equal(address("2001:db8::").bytes(), v6));
  EXPECT_EQ(address("2001:db8::").bits(), 128U);
}

TEST(http_ip_address, orders_ipv4_before_ipv6) {
  EXPECT_LT(address("9.255.255.255"), address("10.0.0.0"));
  EXPECT_LT(address("255.255.255.255"), address("::"));
  EXPECT_LT(address("::1"), address("::2"));
}

TEST(http_ip_address, cuts_ipv6_to_a_network_in_client_keys) {
  struct row {
    std::string_view text;
    unsigned prefix_length;
    std::string_view key;
  };
  for (auto const& [text, prefix_length, key] : {
           row{"192.0.2.1", 64, "192.0.2.1"},
           {"::ffff:192.0.2.1", 64, "192.0.2.1"},
           {"2001:db8:1:2:3:4:5:6", 64, "2001:db8:1:2::/64"},
           {"2001:db8:1:2ff:3:4:5:6", 56, "2001:db8:1:200::/56"},
           {"2001:db8:1:2:3:4:5:6", 128, "2001:db8:1:2:3:4:5:6"},
           {"2001:db8:1:2:3:4:5:6", 1000, "2001:db8:1:2:3:4:5:6"},
           {"ffff::1", 1, "8000::/1"},
           {"ffff::1", 0, "::/0"},
       }) {
    std::string out = "ip=";
    append_client_key(out, address(text), prefix_length);
    EXPECT_EQ(out, "ip=" + std::string(key)) << text;
  }
}

TEST(http_cidr, contains_the_addresses_that_share_its_prefix) {
  struct row {
    std::string_view network, address;
    bool contained;
  };
  for (auto const& [net, candidate, contained] : {
           row{"10.0.0.0/8", "10.255.255.255", true},
           {"10.0.0.0/8", "11.0.0.0", false},
           {"10.0.0.0/8", "9.255.255.255", false},
           {"10.1.2.3/8", "10.0.0.0", true},
           {"192.0.2.128/25", "192.0.2.127", false},
           {"192.0.2.128/25", "192.0.2.128", true},
           {"192.0.2.1", "192.0.2.1", true},
           {"192.0.2.1", "192.0.2.2", false},
           {"192.0.2.1/31", "192.0.2.0", true},
           {"0.0.0.0/0", "255.1.2.3", true},
           {"0.0.0.0/0", "::1", false},
           {"::/0", "::1", true},
           {"::/0", "192.0.2.1", false},
           {"::/0", "::ffff:192.0.2.1", false},
           {"::ffff:10.0.0.0/104", "10.1.1.1", true},
           {"2001:db8::/32", "2001:db8:ffff::", true},
           {"2001:db8::/32", "2001:db9::", false},
           {"2001:db8::/33", "2001:db8:8000::", false},
           {"::1", "::1", true},
       }) {
    EXPECT_EQ(network(net).contains(address(candidate)), contained) << net << ' ' << candidate;
    std::array const one = {network(net)};
    EXPECT_EQ(cidr_set(one).contains(address(candidate)), contained) << net << ' ' << candidate;
  }
}

TEST(http_cidr, is_written_as_the_first_address_and_the_length) {
  EXPECT_EQ(to_string(network("10.1.2.3/8")), "10.0.0.0/8");
  EXPECT_EQ(to_string(network("192.0.2.1")), "192.0.2.1/32");
  EXPECT_EQ(to_string(network("2001:db8::1/64")), "2001:db8::/64");
  EXPECT_EQ(to_string(network("::ffff:10.1.0.0/112")), "10.1.0.0/16");
}

TEST(http_cidr, refuses_a_text_with_the_place_of_the_fault) {
  struct row {
    std::string_view text;
    ip_error error;
  };
  for (auto const& [text, error] : {
           row{"", {fault::unexpected_end, 0}},
           {"10.0.0/8", {fault::unexpected_character, 6}},
           {"10.0.0.0/", {fault::unexpected_end, 9}},
           {"10.0.0.0/33", {fault::prefix_out_of_range, 9}},
           {"10.0.0.0/08", {fault::leading_zero, 9}},
           {"10.0.0.0/-1", {fault::unexpected_character, 9}},
           {"10.0.0.0/8 ", {fault::unexpected_character, 10}},
           {"10.0.0.0/8/8", {fault::unexpected_character, 10}},
           {"10.0.0.0/255.0.0.0", {fault::prefix_out_of_range, 9}},
           {"::/129", {fault::prefix_out_of_range, 3}},
           {"::ffff:10.0.0.0/95", {fault::prefix_out_of_range, 16}},
           {"::ffff:10.0.0.0/129", {fault::prefix_out_of_range, 16}},
           {"/8", {fault::unexpected_character, 0}},
       }) {
    auto const parsed = parse_cidr(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error(), error)
        << text << ": " << message(parsed.error().fault) << " at " << parsed.error().offset;
  }
}

TEST(http_cidr, a_set_contains_what_one_of_its_networks_contains) {
  std::mt19937_64 random(13);
  auto const any_address = [&random] {
    // Few different bytes, so that networks meet.
    std::array<std::uint8_t, 16> bytes{};
    std::ranges::generate(bytes, [&] {
      constexpr std::array<std::uint8_t, 4> values = {0, 1, 0x80, 0xff};
      return values[random() % values.size()];
    });
    return random() % 2 == 0 ? ip_address::from_v4(std::span(bytes).first<4>())
                             : ip_address::from_v6(bytes);
  };
  EXPECT_FALSE(cidr_set().contains(any_address()));
  EXPECT_TRUE(cidr_set().empty());
  for (int round = 0; round < 2'000; ++round) {
    std::vector<cidr> networks;
    for (auto count = random() % 8; count > 0; --count) {
      auto const first = any_address();
      networks.push_back({first, static_cast<unsigned>(random() % (first.bits() + 1))});
    }
    cidr_set const set(networks);
    for (int probe = 0; probe < 50; ++probe) {
      auto const candidate = any_address();
      ASSERT_EQ(set.contains(candidate),
                std::ranges::any_of(networks, [&](auto& n) { return n.contains(candidate); }))
          << to_string(candidate);
    }
  }
}

TEST(http_ip_address, allocates_nothing_when_the_string_has_room) {
  std::array const networks = {network("10.0.0.0/8"), network("2001:db8::/32")};
  cidr_set const set(networks);
  std::string out;
  out.reserve(128);
  auto const before = test::allocations();
  append_ip_address(out, *parse_ip_address("1111:2222:3333:4444:5555:6666:7777:8888"));
  append_client_key(out, *parse_ip_address("2001:db8::1"));
  EXPECT_TRUE(set.contains(*parse_ip_address("10.1.2.3")));
  EXPECT_EQ(test::allocations(), before);
}

}  // namespace
}  // namespace tidegate::TIDEGATE_ABI::http
