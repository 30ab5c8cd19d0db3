// SPDX-License-Identifier: Apache-2.0
#include "support/allocations.hpp"

#include <tidegate/http/target.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <optional>
#include <random>
#include <string>
#include <string_view>

namespace tidegate::TIDEGATE_ABI::http {
namespace {

using namespace std::string_view_literals;
using fault = target_fault;

struct accepted_path {
  std::string_view raw;
  std::string_view normal;
};

struct rejected {
  std::string_view text;
  target_error error;
};

auto normal(std::string_view raw) -> std::string {
  std::string out;
  auto const appended = append_normal_path(out, raw);
  return appended ? out : "fault at " + std::to_string(appended.error().offset);
}

// ---- the path ----

TEST(http_target, writes_a_path_in_its_one_spelling) {
  for (auto const& [raw, expected] : {
           accepted_path{"/", "/"},
           {"/users/42/orders", "/users/42/orders"},
           {"/a/", "/a/"},
           {"/%7Euser", "/~user"},
           {"/%7euser", "/~user"},
           {"/%41%62%30%2D%2E%5F", "/Ab0-._"},
           {"/a%2fb", "/a%2Fb"},
           {"/a%2Fb", "/a%2Fb"},
           {"/a%5cb", "/a%5Cb"},
           {"/%c3%a9", "/%C3%A9"},
           {"/%25", "/%25"},
           {"/%252e%252e/", "/%252e%252e/"},
           {"/%3f%23", "/%3F%23"},
           {"/a%20b%0d%0a", "/a%20b%0D%0A"},
           {"/:@!$&'()*+,;=-._~", "/:@!$&'()*+,;=-._~"},
           {"/a|b[c]{d}^`\"<>\\", "/a%7Cb%5Bc%5D%7Bd%7D%5E%60%22%3C%3E%5C"},
           {"/%21", "/%21"},  // escaped delimiters are not the same as bare ones
           {"/a;v=1/b", "/a;v=1/b"},
       }) {
    EXPECT_EQ(normal(raw), expected) << raw;
    EXPECT_EQ(is_normal_path(raw), raw == expected) << raw;
  }
}

TEST(http_target, removes_dot_segments_also_when_they_are_escaped) {
  for (auto const& [raw, expected] : {
           accepted_path{"/a/b/c/./../../g", "/a/g"},  // RFC 3986, section 5.2.4
           {"/.", "/"},
           {"/./", "/"},
           {"/..", "/"},
           {"/../", "/"},
           {"/a/.", "/a/"},
           {"/a/..", "/"},
           {"/a/b/..", "/a/"},
           {"/a/./b", "/a/b"},
           {"/a/%2e/b", "/a/b"},
           {"/a/%2E%2e/b", "/b"},
           {"/a/.%2e/b", "/b"},
           {"/a/%2e./b", "/b"},
           {"/static/%2e%2e/%2e%2e/etc/passwd", "/etc/passwd"},
           {"/a/...", "/a/..."},
           {"/a/.b", "/a/.b"},
           {"/a/..b", "/a/..b"},
           {"/a/b.", "/a/b."},
           {"/a/b../c", "/a/b../c"},
           {"/.well-known/acme", "/.well-known/acme"},
           {"/a/..%2fb", "/a/..%2Fb"},  // "%2F" does not end a segment
           {"/a/..;/b", "/a/..;/b"},
       }) {
    EXPECT_EQ(normal(raw), expected) << raw;
    EXPECT_EQ(is_normal_path(raw), raw == expected) << raw;
  }
}

TEST(http_target, stays_at_the_root_when_a_path_leads_above_it) {
  EXPECT_EQ(normal("/../../a"), "/a");
  EXPECT_EQ(normal("/a/../../../b/../c"), "/c");
  EXPECT_EQ(normal("/%2e%2e/%2e%2e"), "/");
}

TEST(http_target, keeps_empty_segments) {
  for (auto const& [raw, expected] : {
           accepted_path{"//", "//"},
           {"/a//b", "/a//b"},
           {"//a///b//", "//a///b//"},
           {"/a//../b", "/a/b"},
           {"/a/..//b", "//b"},
           {"//..", "/"},
           {"//.", "//"},
       }) {
    EXPECT_EQ(normal(raw), expected) << raw;
  }
}

TEST(http_target, refuses_a_path_with_the_place_of_the_fault) {
  for (auto const& [text, error] : {
           rejected{"", {fault::slash_expected, 0}},
           {"a", {fault::slash_expected, 0}},
           {"*", {fault::slash_expected, 0}},
           {"%2Fa", {fault::slash_expected, 0}},
           {"/%", {fault::invalid_escape, 1}},
           {"/a%4", {fault::invalid_escape, 2}},
           {"/a%4g", {fault::invalid_escape, 2}},
           {"/a%g4", {fault::invalid_escape, 2}},
           {"/a%%41", {fault::invalid_escape, 2}},
           {"/a%u0041", {fault::invalid_escape, 2}},
           {"/a%2", {fault::invalid_escape, 2}},
           {"/..%", {fault::invalid_escape, 3}},
           {"/a%00", {fault::nul_escape, 2}},
           {"/../%00/..", {fault::nul_escape, 4}},
           {"/a b", {fault::invalid_character, 2}},
           {"/a#b", {fault::invalid_character, 2}},
           {"/a?b", {fault::invalid_character, 2}},
           {"/\t", {fault::invalid_character, 1}},
           {"/\x7f", {fault::invalid_character, 1}},
           {"/\x80", {fault::invalid_character, 1}},
           {"/caf\xc3\xa9", {fault::invalid_character, 4}},
           {"/a\0b"sv, {fault::invalid_character, 2}},
           {"/0123456789abcdef0123456789abcdef\n", {fault::invalid_character, 33}},
       }) {
    std::string out = "kept";
    auto const appended = append_normal_path(out, text);
    ASSERT_FALSE(appended) << text;
    EXPECT_EQ(appended.error(), error) << text << ": " << message(appended.error().fault);
    EXPECT_EQ(out, "kept") << text;
    EXPECT_FALSE(is_normal_path(text)) << text;
  }
}

TEST(http_target, judges_every_byte_alike_at_every_place_of_a_path) {
  // The scan looks at sixteen bytes at once, then at one: both must know the same characters.
  for (unsigned octet = 0; octet < 256; ++octet) {
    for (std::size_t place = 1; place < 40; ++place) {
      std::string path(40, 'a');
      path[0] = '/';
      path[place] = static_cast<char>(octet);
      bool const plain =
          octet != 0 && std::string_view(
                            "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                            "0123456789-._~!$&'()*+,;=:@/")
                                .find(static_cast<char>(octet)) != std::string_view::npos;
      ASSERT_EQ(is_normal_path(path), plain) << octet << " at " << place;
    }
  }
}

TEST(http_target, gives_a_normal_path_back_without_a_copy) {
  std::string scratch = "untouched";
  std::string_view const raw = "/v1/users/42/.well-known/a%2Fb.html";
  auto const same = normal_path(raw, scratch);
  ASSERT_TRUE(same);
  EXPECT_EQ(same->data(), raw.data());
  EXPECT_EQ(same->size(), raw.size());
  EXPECT_EQ(scratch, "untouched");

  auto const made = normal_path("/a/../b", scratch);
  ASSERT_TRUE(made);
  EXPECT_EQ(*made, "/b");
  EXPECT_EQ(made->data(), scratch.data());
  EXPECT_EQ(normal_path("/a/%zz", scratch), failure(target_error{fault::invalid_escape, 3}));
}

/// Section 5.2.4 of RFC 3986, step by step as it is written there.
auto remove_dot_segments(std::string input) -> std::string {
  std::string output;
  auto const drop_last = [&output] {
    auto const slash = output.rfind('/');
    output.resize(slash == std::string::npos ? 0 : slash);
  };
  while (!input.empty()) {
    if (input.starts_with("../")) {
      input.erase(0, 3);
    } else if (input.starts_with("./") || input.starts_with("/./")) {
      input.erase(0, 2);
    } else if (input == "/.") {
      input = "/";
    } else if (input.starts_with("/../")) {
      input.erase(0, 3);
      drop_last();
    } else if (input == "/..") {
      input = "/";
      drop_last();
    } else if (input == "." || input == "..") {
      input.clear();
    } else {
      auto const end = input.find('/', 1);
      output += input.substr(0, end);
      input.erase(0, end);
    }
  }
  return output;
}

TEST(http_target, agrees_with_the_steps_of_the_rfc_and_is_its_own_normal_form) {
  // The three last ones are faults. No other piece begins with a hexadecimal digit, so "%" stays
  // one.
  constexpr std::array pieces = {"/"sv,
                                 "/"sv,
                                 "."sv,
                                 ".."sv,
                                 "/../"sv,
                                 "/./"sv,
                                 "x"sv,
                                 "yz"sv,
                                 "%2e"sv,
                                 "%2E"sv,
                                 "%2f"sv,
                                 "%41"sv,
                                 "%c3"sv,
                                 "//"sv,
                                 "|"sv,
                                 ";"sv,
                                 "~"sv,
                                 "%7C"sv,
                                 "ghijklmnopqrstuvwxyz"sv,
                                 "%"sv,
                                 " "sv,
                                 "%00"sv};
  std::mt19937_64 random(7);
  std::size_t taken = 0;
  for (int round = 0; round < 100'000; ++round) {
    std::string raw = "/";
    auto const faulty = random() % 8 == 0;
    for (auto count = random() % 12; count > 0; --count) {
      raw += pieces[random() % (faulty ? pieces.size() : pieces.size() - 3)];
    }
    std::string once;
    if (!append_normal_path(once, raw)) {
      ASSERT_FALSE(is_normal_path(raw)) << raw;
      continue;
    }
    ++taken;
    std::string spelled;
    for (std::size_t i = 0; i < raw.size(); ++i) {
      auto const escape = std::string_view(raw).substr(i, 3);
      struct rule {
        std::string_view from, to;
      };
      bool replaced = false;
      for (auto const& [from, to] :
           {rule{"%2e", "."}, {"%2E", "."}, {"%41", "A"}, {"%2f", "%2F"}, {"%c3", "%C3"}}) {
        if (escape == from) {
          spelled += to;
          i += 2;
          replaced = true;
          break;
        }
      }
      if (!replaced) {
        spelled += raw[i] == '|' ? "%7C" : std::string(1, raw[i]);
      }
    }
    ASSERT_EQ(once, remove_dot_segments(spelled)) << raw;
    ASSERT_EQ(normal(once), once) << raw;
    ASSERT_TRUE(is_normal_path(once)) << raw;
    ASSERT_EQ(is_normal_path(raw), raw == once) << raw;
  }
  EXPECT_GT(taken, 80'000U);
}

TEST(http_target, allocates_nothing_when_the_string_has_room) {
  std::string out;
  out.reserve(256);
  auto const before = test::allocations();
  for (auto raw : {"/users/42/orders/2024/items"sv, "/a/%2e%2e/b%2fc/./d"sv, "/a/%zz"sv}) {
    (void)append_normal_path(out, raw);
    (void)normal_path(raw, out);
  }
  (void)parse_target("GET", "http://example.com:8080/a/b?c=d");
  append_normal_host(out, *parse_host("[2001:DB8::1]:443"));
  EXPECT_EQ(test::allocations(), before);
}

TEST(http_target, is_done_with_a_megabyte_of_dots_in_no_time) {
  std::string raw;
  while (raw.size() < 1'000'000) {
    raw += "/aaaa/bbbb/../..";
  }
  EXPECT_EQ(normal(raw), "/");
}

// ---- the four forms ----

TEST(http_target, splits_the_four_forms) {
  struct row {
    std::string_view method, target;
    target_view expected;
  };
  host_view const host{host_kind::reg_name, "www.example.org", std::nullopt};
  for (auto const& [method, target, expected] : {
           // the examples of RFC 9112, section 3.2
           row{"GET", "/where?q=now", {target_form::origin, {}, {}, "/where", "q=now"}},
           {"GET",
            "http://www.example.org/pub/WWW/TheProject.html",
            {target_form::absolute, "http", host, "/pub/WWW/TheProject.html", {}}},
           {"CONNECT",
            "www.example.com:80",
            {target_form::authority,
             {},
             host_view{host_kind::reg_name, "www.example.com", 80},
             {},
             {}}},
           {"OPTIONS", "*", {target_form::asterisk, {}, {}, {}, {}}},
           {"OPTIONS",
            "http://www.example.org:8001",
            {target_form::asterisk,
             "http",
             host_view{host_kind::reg_name, "www.example.org", 8001},
             {},
             {}}},
           // others
           {"GET", "/", {target_form::origin, {}, {}, "/", {}}},
           {"GET", "/?", {target_form::origin, {}, {}, "/", ""}},
           {"GET", "/a?b?c=/d%", {target_form::origin, {}, {}, "/a", "b?c=/d%"}},
           {"GET", "//a", {target_form::origin, {}, {}, "//a", {}}},
           {"OPTIONS", "/", {target_form::origin, {}, {}, "/", {}}},
           {"GET", "http://www.example.org", {target_form::absolute, "http", host, "/", {}}},
           {"GET", "HTTPS://www.example.org?a", {target_form::absolute, "HTTPS", host, "/", "a"}},
           {"OPTIONS", "http://www.example.org?a", {target_form::absolute, "http", host, "/", "a"}},
           {"GET",
            "http://[::1]:8080/?u=a@b",
            {target_form::absolute, "http", host_view{host_kind::ipv6, "::1", 8080}, "/", "u=a@b"}},
           {"CONNECT",
            "[2001:db8::1]:443",
            {target_form::authority, {}, host_view{host_kind::ipv6, "2001:db8::1", 443}, {}, {}}},
       }) {
    auto const parsed = parse_target(method, target);
    ASSERT_TRUE(parsed) << target << ": " << message(parsed.error().fault);
    EXPECT_EQ(*parsed, expected) << method << ' ' << target;
  }
}

TEST(http_target, refuses_a_target_with_the_place_of_the_fault) {
  struct row {
    std::string_view method, target;
    target_error error;
  };
  for (auto const& [method, target, error] : {
           row{"GET", "", {fault::slash_expected, 0}},
           {"GET", "a", {fault::slash_expected, 0}},
           {"GET", "?a", {fault::slash_expected, 0}},
           {"GET", "*", {fault::form_not_allowed, 0}},
           {"OPTIONS", "**", {fault::slash_expected, 0}},
           {"options", "*", {fault::form_not_allowed, 0}},
           {"GET", "/a b", {fault::invalid_character, 2}},
           {"GET", "/a#b", {fault::invalid_character, 2}},
           {"GET", "/a?b#c", {fault::invalid_character, 4}},
           {"GET", "/a?\xc3\xa9", {fault::invalid_character, 3}},
           {"GET", "/a?\x7f", {fault::invalid_character, 3}},
           {"GET", "/\r", {fault::invalid_character, 1}},
           {"GET", "example.com:80", {fault::unsupported_scheme, 0}},
           {"GET", "ftp://example.com/", {fault::unsupported_scheme, 0}},
           {"GET", "://example.com/", {fault::unsupported_scheme, 0}},
           {"GET", "http:/a", {fault::slash_expected, 5}},
           {"GET", "http:example.com", {fault::slash_expected, 5}},
           {"GET", "http://", {fault::host_missing, 7}},
           {"GET", "http:///a", {fault::host_missing, 7}},
           {"GET", "http://:80/a", {fault::host_missing, 7}},
           {"GET", "http://u@example.com/", {fault::user_information, 7}},
           {"GET", "http://u:p@example.com/", {fault::user_information, 7}},
           {"GET", "http://example.com:x/", {fault::invalid_port, 19}},
           {"GET", "http://exa\\mple.com/", {fault::invalid_character, 10}},
           {"GET", "http://[::1/", {fault::invalid_ip_literal, 7}},
           {"CONNECT", "/", {fault::form_not_allowed, 0}},
           {"CONNECT", "*", {fault::form_not_allowed, 0}},
           {"CONNECT", "http://example.com:80/", {fault::form_not_allowed, 0}},
           {"CONNECT", "example.com", {fault::port_missing, 11}},
           {"CONNECT", "example.com:", {fault::port_missing, 12}},
           {"CONNECT", "example.com:0", {fault::invalid_port, 12}},
           {"CONNECT", "", {fault::host_missing, 0}},
           {"CONNECT", "u@example.com:80", {fault::invalid_character, 1}},
       }) {
    auto const parsed = parse_target(method, target);
    ASSERT_FALSE(parsed) << method << ' ' << target;
    EXPECT_EQ(parsed.error(), error)
        << method << ' ' << target << ": " << message(parsed.error().fault) << " at "
        << parsed.error().offset;
  }
}

// ---- the host ----

TEST(http_host, reads_names_addresses_and_ports) {
  struct row {
    std::string_view text;
    host_view expected;
    std::string_view normal;
  };
  for (auto const& [text, expected, expected_normal] : {
           row{"example.com", {host_kind::reg_name, "example.com", {}}, "example.com"},
           {"Example.COM:8080", {host_kind::reg_name, "Example.COM", 8080}, "example.com"},
           {"example.com.", {host_kind::reg_name, "example.com.", {}}, "example.com"},
           {"example.com:", {host_kind::reg_name, "example.com", {}}, "example.com"},
           {"example.com:00080", {host_kind::reg_name, "example.com", 80}, "example.com"},
           {"example.com:65535", {host_kind::reg_name, "example.com", 65535}, "example.com"},
           {".", {host_kind::reg_name, ".", {}}, "."},
           {"A..", {host_kind::reg_name, "A..", {}}, "a.."},
           {"my_host-1~!$&'()*+;=",
            {host_kind::reg_name, "my_host-1~!$&'()*+;=", {}},
            "my_host-1~!$&'()*+;="},
           {"192.0.2.1", {host_kind::ipv4, "192.0.2.1", {}}, "192.0.2.1"},
           {"192.0.2.1:80", {host_kind::ipv4, "192.0.2.1", 80}, "192.0.2.1"},
           {"192.0.2.256", {host_kind::reg_name, "192.0.2.256", {}}, "192.0.2.256"},
           {"127.1", {host_kind::reg_name, "127.1", {}}, "127.1"},
           {"[::1]", {host_kind::ipv6, "::1", {}}, "[::1]"},
           {"[2001:DB8:0::1]:443", {host_kind::ipv6, "2001:DB8:0::1", 443}, "[2001:db8::1]"},
           {"[::1]:", {host_kind::ipv6, "::1", {}}, "[::1]"},
           {"[0:0:0:0:0:0:0:1]", {host_kind::ipv6, "0:0:0:0:0:0:0:1", {}}, "[::1]"},
           {"[::FFFF:102:304]", {host_kind::ipv6, "::FFFF:102:304", {}}, "[::ffff:1.2.3.4]"},
       }) {
    auto const host = parse_host(text);
    ASSERT_TRUE(host) << text << ": " << message(host.error().fault);
    EXPECT_EQ(*host, expected) << text;
    std::string out;
    append_normal_host(out, *host);
    EXPECT_EQ(out, expected_normal) << text;
  }
}

TEST(http_host, is_compared_as_it_is_written) {
  constexpr std::array texts = {"example.com",
                                "example.com.",
                                "EXAMPLE.com:80",
                                "Example.Com.:80",
                                "example.com..",
                                "example.co",
                                "example.com.org",
                                "xexample.com",
                                ".",
                                "a",
                                "a.",
                                "[::1]",
                                "[0:0::1]:80",
                                "[::2]",
                                "127.0.0.1",
                                "127.0.0.1.",
                                "example.com:",
                                "1.2.3.4",
                                "[::ffff:102:304]",
                                "[::ffff:1.2.3.4]"};
  for (std::string_view const wanted : texts) {
    std::string normal;
    append_normal_host(normal, *parse_host(wanted));
    for (std::string_view const given : texts) {
      std::string other;
      append_normal_host(other, *parse_host(given));
      EXPECT_EQ(is_host_of(given, normal), other == normal) << given << " and " << normal;
    }
  }
  EXPECT_FALSE(is_host_of("", "example.com"));
  EXPECT_FALSE(is_host_of("exa%6dple.com", "example.com"));
}

TEST(http_host, refuses_others_with_the_place_of_the_fault) {
  for (auto const& [text, error] : {
           rejected{"", {fault::host_missing, 0}},
           {":80", {fault::host_missing, 0}},
           {" example.com", {fault::invalid_character, 0}},
           {"example.com ", {fault::invalid_character, 11}},
           {"exa mple.com", {fault::invalid_character, 3}},
           {"example.com/", {fault::invalid_character, 11}},
           {"user@example.com", {fault::invalid_character, 4}},
           {"ex%61mple.com", {fault::invalid_character, 2}},
           {"caf\xc3\xa9.fr", {fault::invalid_character, 3}},
           {"a\0b"sv, {fault::invalid_character, 1}},
           {"a\r\nb", {fault::invalid_character, 1}},
           {"a,b", {fault::invalid_character, 1}},
           {"example.com%00", {fault::invalid_character, 11}},
           {"a:00", {fault::invalid_port, 2}},
           {"a:80:80", {fault::invalid_port, 2}},
           {"a:65536", {fault::invalid_port, 2}},
           {"a:0", {fault::invalid_port, 2}},
           {"a:-1", {fault::invalid_port, 2}},
           {"a:8o", {fault::invalid_port, 2}},
           {"a:99999999999999999999", {fault::invalid_port, 2}},
           {"2001:db8::1", {fault::invalid_port, 5}},
           {"[", {fault::invalid_ip_literal, 0}},
           {"[]", {fault::invalid_ip_literal, 0}},
           {"[::1", {fault::invalid_ip_literal, 0}},
           {"[192.0.2.1]", {fault::invalid_ip_literal, 0}},
           {"[fe80::1%25eth0]", {fault::invalid_ip_literal, 0}},
           {"[v1.fe]", {fault::invalid_ip_literal, 0}},
           {"[::1]80", {fault::invalid_character, 5}},
           {"[::1]:x", {fault::invalid_port, 6}},
       }) {
    auto const host = parse_host(text);
    ASSERT_FALSE(host) << text;
    EXPECT_EQ(host.error(), error)
        << text << ": " << message(host.error().fault) << " at " << host.error().offset;
  }
}

}  // namespace
}  // namespace tidegate::TIDEGATE_ABI::http
