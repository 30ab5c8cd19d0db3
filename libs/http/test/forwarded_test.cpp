// SPDX-License-Identifier: Apache-2.0
#include "support/allocations.hpp"

#include <tidegate/http/forwarded.hpp>

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace tidegate::TIDEGATE_ABI::http {
namespace {

using namespace std::string_view_literals;

auto address(std::string_view text) -> ip_address {
  auto const parsed = parse_ip_address(text);
  EXPECT_TRUE(parsed) << text;
  return parsed.value_or(ip_address());
}

/// 10.0.0.0/8 and fd00::/8.
auto trusted_proxies() -> cidr_set {
  std::array const networks = {*parse_cidr("10.0.0.0/8"), *parse_cidr("fd00::/8")};
  return cidr_set(networks);
}

struct row {
  std::string_view peer;
  std::vector<std::string_view> lines;
  std::string_view client;
};

auto joined(row const& r) -> std::string {
  std::string text(r.peer);
  for (auto line : r.lines) {
    text.append(" | ").append(line);
  }
  return text;
}

TEST(http_forwarded, finds_the_client_by_x_forwarded_for) {
  auto const trusted = trusted_proxies();
  for (auto const& r : {
           row{"10.0.0.1", {}, "10.0.0.1"},
           {"10.0.0.1", {""}, "10.0.0.1"},
           {"10.0.0.1", {"192.0.2.1"}, "192.0.2.1"},
           {"10.0.0.1", {"192.0.2.1, 10.0.0.2"}, "192.0.2.1"},
           {"10.0.0.1", {"192.0.2.1,10.0.0.2,10.0.0.3"}, "192.0.2.1"},
           {"10.0.0.1", {"\t192.0.2.1 ,\t10.0.0.2 "}, "192.0.2.1"},
           {"10.0.0.1", {"192.0.2.1", "10.0.0.2"}, "192.0.2.1"},
           {"10.0.0.1", {"192.0.2.9, 192.0.2.1", "10.0.0.3, 10.0.0.2"}, "192.0.2.1"},
           // all are trusted: the first one
           {"10.0.0.1", {"10.0.0.3, 10.0.0.2"}, "10.0.0.3"},
           // what stands before the first stranger is his word
           {"10.0.0.1", {"127.0.0.1, 192.0.2.1"}, "192.0.2.1"},
           {"10.0.0.1", {"10.9.9.9, 192.0.2.1, 10.0.0.2"}, "192.0.2.1"},
           {"192.0.2.7", {"127.0.0.1"}, "192.0.2.7"},
           {"192.0.2.7", {"10.0.0.1"}, "192.0.2.7"},
           // IPv6, ports and brackets
           {"fd00::1", {"2001:db8::1"}, "2001:db8::1"},
           {"fd00::1", {"[2001:db8::1]"}, "2001:db8::1"},
           {"fd00::1", {"[2001:db8::1]:4711, [fd00::2]:1"}, "2001:db8::1"},
           {"10.0.0.1", {"192.0.2.1:4711, 10.0.0.2:80"}, "192.0.2.1"},
           {"::ffff:10.0.0.1", {"::ffff:192.0.2.1"}, "192.0.2.1"},
           // empty entries mean nothing
           {"10.0.0.1", {",192.0.2.1, ,,10.0.0.2,"}, "192.0.2.1"},
       }) {
    EXPECT_EQ(to_string(client_by_x_forwarded_for(address(r.peer), r.lines, trusted)), r.client)
        << joined(r);
  }
}

TEST(http_forwarded, stops_at_the_last_good_address_when_an_entry_of_x_forwarded_for_is_none) {
  auto const trusted = trusted_proxies();
  for (std::string_view const entry :
       {"unknown", "-", "localhost", "192.0.2", "192.0.2.256", "192.0.2.1:", "192.0.2.1:x",
        "192.0.2.1:123456", "192.0.2.1 192.0.2.2", "\"192.0.2.1\"", "[192.0.2.1]", "[::1", "::1]",
        "[::1]x", "[::1]:", "fe80::1%eth0", "192.0.2.1;", "2001:db8::1:g", "192.0.2.1\r\n"}) {
    std::string const line = "192.0.2.1, " + std::string(entry) + ", 10.0.0.2";
    std::array const lines = {std::string_view(line)};
    EXPECT_EQ(to_string(client_by_x_forwarded_for(address("10.0.0.1"), lines, trusted)), "10.0.0.2")
        << line;
  }
}

TEST(http_forwarded, looks_at_a_bounded_number_of_entries) {
  auto const trusted = trusted_proxies();
  auto const line_of = [](std::size_t proxies) {
    std::string line = "192.0.2.1";
    for (std::size_t i = 0; i < proxies; ++i) {
      line += ", 10.0.0.2";
    }
    return line;
  };
  auto const within = line_of(forwarded_entries_max - 1);
  auto const beyond = line_of(forwarded_entries_max);
  std::array const lines_within = {std::string_view(within)};
  std::array const lines_beyond = {std::string_view(beyond)};
  std::string const commas(100'000, ',');
  std::array const empty = {"192.0.2.1"sv, std::string_view(commas)};
  auto const peer = address("10.0.0.1");
  EXPECT_EQ(to_string(client_by_x_forwarded_for(peer, lines_within, trusted)), "192.0.2.1");
  EXPECT_EQ(to_string(client_by_x_forwarded_for(peer, lines_beyond, trusted)), "10.0.0.2");
  EXPECT_EQ(to_string(client_by_x_forwarded_for(peer, empty, trusted)), "10.0.0.1");
}

TEST(http_forwarded, finds_the_client_by_forwarded) {
  auto const trusted = trusted_proxies();
  for (auto const& r : {
           row{"10.0.0.1", {"for=192.0.2.60;proto=http;by=203.0.113.43"}, "192.0.2.60"},
           {"10.0.0.1", {"For=\"[2001:db8:cafe::17]:4711\""}, "2001:db8:cafe::17"},
           {"10.0.0.1", {"for=192.0.2.43, for=10.0.0.9"}, "192.0.2.43"},
           {"10.0.0.1", {"for=192.0.2.43", "for=10.0.0.9"}, "192.0.2.43"},
           {"10.0.0.1", {"for=192.0.2.43,for=\"[fd00::9]\";host=\"a,b;c\""}, "192.0.2.43"},
           {"10.0.0.1", {"for=\"192.0.2.43:47011\""}, "192.0.2.43"},
           {"10.0.0.1", {"for=\"192.0.2.43:_port\""}, "192.0.2.43"},
           {"10.0.0.1", {"proto=https ; FOR=192.0.2.43 ; by=_x"}, "192.0.2.43"},
           {"10.0.0.1", {";for=192.0.2.43;;"}, "192.0.2.43"},
           {"10.0.0.1", {"for=127.0.0.1, for=192.0.2.43"}, "192.0.2.43"},
           {"192.0.2.7", {"for=127.0.0.1"}, "192.0.2.7"},
           {"10.0.0.1", {"for=192.0.2.1, for=10.0.0.2;host=\"a\\\",for=1.2.3.4\""}, "192.0.2.1"},
           // a quote that a stranger left open swallows nothing
           {"10.0.0.1", {"for=\"127.0.0.1, for=192.0.2.43"}, "192.0.2.43"},
           {"10.0.0.1", {"for=\", for=192.0.2.43, for=\"[fd00::2]\""}, "192.0.2.43"},
           {"10.0.0.1", {"x=\"\\, for=192.0.2.43, for=10.0.0.3"}, "192.0.2.43"},
       }) {
    EXPECT_EQ(to_string(client_by_forwarded(address(r.peer), r.lines, trusted)), r.client)
        << joined(r);
  }
}

TEST(http_forwarded, says_how_the_client_asked_the_outermost_proxy_that_is_trusted) {
  auto const trusted = trusted_proxies();
  std::array const lines = {
      "for=1.1.1.1;proto=ftp, for=192.0.2.43;proto=https;host=\"a.example:81\""sv,
      "for=10.0.0.9;proto=http;host=inner"sv};
  auto const client = read_forwarded(address("10.0.0.1"), lines, trusted);
  EXPECT_EQ(to_string(client.address), "192.0.2.43");
  EXPECT_EQ(client.proto, "https");
  EXPECT_EQ(client.host, "a.example:81");
  auto const stranger = read_forwarded(address("192.0.2.7"), lines, trusted);
  EXPECT_EQ(to_string(stranger.address), "192.0.2.7");
  EXPECT_EQ(stranger.proto, "");
}

TEST(http_forwarded, stops_at_the_last_good_address_when_an_element_of_forwarded_has_none) {
  auto const trusted = trusted_proxies();
  for (std::string_view const element : {"for=unknown",
                                         "for=_hidden",
                                         "proto=https",
                                         "for",
                                         "for=",
                                         "=192.0.2.1",
                                         "192.0.2.1",
                                         "for=192.0.2.1:80",
                                         "for=[2001:db8::1]",
                                         "for=2001:db8::1",
                                         "for =192.0.2.1",
                                         "for= 192.0.2.1",
                                         "for=192.0.2.1;for=192.0.2.2",
                                         "for=192.0.2.1 by=x",
                                         "for=\"192.0.2.1",
                                         "for=192.0.2.1\"",
                                         "for=\"\"",
                                         "for=\"192.0.2.\\1\"",
                                         "for=\"192.0.2.1\"x",
                                         "for=192.0.2.1;by",
                                         "for=\"192.0.2.1:\"",
                                         "for=\"192.0.2.1:_\"",
                                         "for=\"192.0.2.1:_a b\""}) {
    std::string const line = "for=192.0.2.9, " + std::string(element) + ", for=10.0.0.2";
    std::array const lines = {std::string_view(line)};
    EXPECT_EQ(to_string(client_by_forwarded(address("10.0.0.1"), lines, trusted)), "10.0.0.2")
        << line;
  }
}

TEST(http_forwarded, is_done_with_long_lines_in_no_time) {
  auto const trusted = trusted_proxies();
  for (std::string_view const piece : {"\\\"", "\"", "\\", "\"\\", ";", "a=b;", "for=\"", ",\""}) {
    std::string line;
    while (line.size() < 1'000'000) {
      line += piece;
    }
    for (auto const end : {"", "\"", "\\\"", "=\""}) {
      auto const text = line + end;
      std::array const lines = {std::string_view(text)};
      EXPECT_EQ(to_string(client_by_forwarded(address("10.0.0.1"), lines, trusted)), "10.0.0.1");
    }
  }
}

TEST(http_forwarded, appends_the_peer_to_what_it_sent) {
  std::string value;
  append_x_forwarded_for(value, address("192.0.2.1"));
  EXPECT_EQ(value, "192.0.2.1");
  append_x_forwarded_for(value, address("2001:db8::1"));
  EXPECT_EQ(value, "192.0.2.1, 2001:db8::1");

  struct element_row {
    forwarded_element element;
    std::string_view text;
  };
  for (auto const& [element, text] : {
           element_row{{.peer = address("192.0.2.60")}, "for=192.0.2.60"},
           {{.peer = address("2001:db8::1"), .scheme = "https"},
            "for=\"[2001:db8::1]\";proto=https"},
           {{.peer = address("192.0.2.60"), .host = "example.com", .scheme = "http"},
            "for=192.0.2.60;host=example.com;proto=http"},
           {{.peer = address("192.0.2.60"), .host = "example.com:8080"},
            "for=192.0.2.60;host=\"example.com:8080\""},
           {{.peer = address("192.0.2.60"), .host = "[::1]"}, "for=192.0.2.60;host=\"[::1]\""},
           {{.peer = address("192.0.2.60"), .host = "a;b=c"}, "for=192.0.2.60;host=\"a;b=c\""},
           {{.peer = address("192.0.2.60"), .host = "a\"\r\nX: y"}, "for=192.0.2.60"},
       }) {
    std::string out;
    append_forwarded(out, element);
    EXPECT_EQ(out, text);
    append_forwarded(out, element);
    EXPECT_EQ(out, std::string(text) + ", " + std::string(text));
  }
}

TEST(http_forwarded, reads_what_it_has_appended) {
  auto const trusted = trusted_proxies();
  for (auto const client : {"192.0.2.1", "2001:db8::1", "::"}) {
    std::string x_forwarded_for = "127.0.0.1";
    std::string forwarded = "for=\"127.0.0.1";
    for (auto const peer : {client, "10.0.0.2", "fd00::2"}) {
      append_x_forwarded_for(x_forwarded_for, address(peer));
      append_forwarded(forwarded, {address(peer), "a,b:80", "https"});
    }
    std::array const x_lines = {std::string_view(x_forwarded_for)};
    std::array const lines = {std::string_view(forwarded)};
    EXPECT_EQ(client_by_x_forwarded_for(address("10.0.0.1"), x_lines, trusted), address(client));
    EXPECT_EQ(client_by_forwarded(address("10.0.0.1"), lines, trusted), address(client));
  }
}

TEST(http_forwarded, sends_scheme_and_host_of_a_trusted_peer_on) {
  EXPECT_EQ(x_forwarded_proto("https", true, "http"), "https");
  EXPECT_EQ(x_forwarded_proto("HTTPS", true, "http"), "HTTPS");
  EXPECT_EQ(x_forwarded_proto("https", false, "http"), "http");
  EXPECT_EQ(x_forwarded_proto("gopher", true, "http"), "http");
  EXPECT_EQ(x_forwarded_proto("https, http", true, "http"), "http");
  EXPECT_EQ(x_forwarded_proto("", true, "http"), "http");
  EXPECT_EQ(x_forwarded_host("a.example:8080", true, "b.example"), "a.example:8080");
  EXPECT_EQ(x_forwarded_host("a.example", false, "b.example"), "b.example");
  EXPECT_EQ(x_forwarded_host("a/b", true, "b.example"), "b.example");
  EXPECT_EQ(x_forwarded_host("", true, "b.example"), "b.example");
}

TEST(http_forwarded, allocates_nothing_when_the_string_has_room) {
  auto const trusted = trusted_proxies();
  auto const peer = address("10.0.0.1");
  std::array const x_lines = {"192.0.2.1, [2001:db8::1]:80"sv, "10.0.0.2"sv};
  std::array const lines = {"for=192.0.2.1, for=\"[fd00::1]\";proto=https"sv};
  std::string out;
  out.reserve(256);
  auto const before = test::allocations();
  EXPECT_EQ(client_by_x_forwarded_for(peer, x_lines, trusted).bits(), 128U);
  EXPECT_EQ(client_by_forwarded(peer, lines, trusted).bits(), 32U);
  append_x_forwarded_for(out, peer);
  append_forwarded(out, {peer, "example.com:80", "https"});
  EXPECT_EQ(test::allocations(), before);
}

}  // namespace
}  // namespace tidegate::TIDEGATE_ABI::http
