// SPDX-License-Identifier: Apache-2.0
#include <tidegate/config/values.hpp>

#include <gtest/gtest.h>

#include <limits>

namespace tidegate::gateway {
namespace {

using namespace std::chrono_literals;

TEST(gateway_config_values, reads_durations) {
  EXPECT_EQ(parse_duration("500ms"), 500ms);
  EXPECT_EQ(parse_duration("10s"), 10s);
  EXPECT_EQ(parse_duration("5m"), 5min);
  EXPECT_EQ(parse_duration("24h"), 24h);
  EXPECT_EQ(parse_duration("7d"), 168h);
  EXPECT_EQ(parse_duration("0s"), 0s);
  for (auto const* text : {"", "s", "10", "1.5s", "-1s", "+1s", "1 s", "1S", "1us", "01s", "1s1s",
                           "9999999999999d", "99999999999999999999s", "1w"}) {
    EXPECT_EQ(parse_duration(text), std::nullopt) << text;
  }
}

TEST(gateway_config_values, writes_durations_as_they_are_read) {
  for (auto const* text : {"0s", "1ms", "1500ms", "90s", "1m", "25h", "7d", "366d"}) {
    EXPECT_EQ(format_duration(*parse_duration(text)), text);
  }
}

TEST(gateway_config_values, reads_and_writes_sizes) {
  EXPECT_EQ(parse_size("512"), 512);
  EXPECT_EQ(parse_size("64KiB"), 65536);
  EXPECT_EQ(parse_size("10MiB"), 10 << 20);
  EXPECT_EQ(parse_size("1GiB"), 1 << 30);
  EXPECT_EQ(parse_size("1TiB"), std::int64_t{1} << 40);
  for (auto const* text : {"", "KiB", "1KB", "1kib", "1K", "1.5MiB", "-1", "0x10", "1_000",
                           "9223372036854775808", "8388608TiB"}) {
    EXPECT_EQ(parse_size(text), std::nullopt) << text;
  }
  for (auto const* text : {"0", "1", "1000", "1KiB", "1536MiB", "8388607TiB"}) {
    EXPECT_EQ(format_size(*parse_size(text)), text);
  }
}

TEST(gateway_config_values, reads_rates) {
  EXPECT_EQ(parse_rate("10/s"), *ratelimit::rate::make(10, 1s));
  EXPECT_EQ(parse_rate("100/m"), *ratelimit::rate::make(100, 60s));
  EXPECT_EQ(parse_rate("5/10s"), *ratelimit::rate::make(5, 10s));
  for (auto const* text :
       {"", "10", "/s", "10/", "10/x", "0/s", "-1/s", "1/0s", "1/367d", "1/s/s"}) {
    EXPECT_EQ(parse_rate(text), std::nullopt) << text;
  }
}

TEST(gateway_config_values, reads_addresses_to_listen_on) {
  struct row {
    char const* text;
    char const* address;
  };
  for (auto const& [text, address] : std::vector<row>{{"127.0.0.1:8080", "127.0.0.1:8080"},
                                                      {"[::1]:80", "[::1]:80"},
                                                      {"localhost:0", "127.0.0.1:0"},
                                                      {":80", ":80"},
                                                      {"unix:/run/t.sock", "unix:/run/t.sock"}}) {
    EXPECT_EQ(parse_listen_address(text), std::string(address));
  }
  for (auto const* text :
       {"", "80", "127.0.0.1", "127.0.0.1:", "1.2.3:80", "::1:80", "[127.0.0.1]:80", "[]:80",
        "a.example:80", ":65536", ":080", "unix:", "unix:t.sock"}) {
    EXPECT_FALSE(parse_listen_address(text).has_value()) << text;
  }
  EXPECT_FALSE(parse_listen_address("unix:/" + std::string(107, 'x')).has_value());
}

TEST(gateway_config_values, knows_which_addresses_only_this_machine_reaches) {
  for (auto const* text :
       {"127.0.0.1:1", "127.1.2.3:0", "[::1]:1", "unix:/run/t.sock", "[::ffff:127.0.0.1]:1"}) {
    EXPECT_TRUE(is_local_address(text)) << text;
  }
  for (auto const* text : {":1", "0.0.0.0:1", "[::]:1", "128.0.0.1:1", "10.0.0.1:1", "[::2]:1",
                           "[fe80::1]:1", "[::ffff:10.0.0.1]:1"}) {
    EXPECT_FALSE(is_local_address(text)) << text;
  }
}

TEST(gateway_config_values, leaves_passwords_out_of_urls) {
  using row = std::pair<char const*, char const*>;
  for (auto const& [text, shown] : std::vector<row>{
           {"memory", "memory"},
           {"sqlite:a@b", "sqlite:a@b"},
           {"redis://h:1", "redis://h:1"},
           {"redis://:p@h:1", "redis://:***@h:1"},
           {"redis://u:p@h:1,i:2", "redis://u:***@h:1,i:2"},
           {"postgres://u:p@q/r?s@h/d", "postgres://u:***@h/d"},
           {"postgres://u/p:q@h/d", "postgres://u:***@h/d"},
           {"postgres://h/d?password=p", "postgres://h/d?password=***"},
           {"postgres://h/d?a=b&sslpassword=p&c=d", "postgres://h/d?a=b&sslpassword=***&c=d"},
           {"postgres://h/d?p%61ssword=p", "postgres://h/d?p%61ssword=***"},
           {"redis+sentinel://h/n?sentinel-password=p@q", "redis+sentinel://h:***@q"}}) {
    EXPECT_EQ(without_passwords(text), shown);
  }
}

TEST(gateway_config_values, reads_urls_of_servers) {
  struct row {
    std::string_view text;
    upstream_server server;
  };
  for (auto const& [text, server] : std::vector<row>{
           {"http://127.0.0.1:3000", {false, "127.0.0.1", 3000}},
           {"http://a.example", {false, "a.example", 80}},
           {"https://a.example/", {true, "a.example", 443}},
           {"https://[::1]:1", {true, "::1", 1}},
           {"http://a/b/c/", {false, "a", 80, "/b/c"}},
           {"unix:/run/a.sock", {false, "", 0, "", "/run/a.sock"}},
       }) {
    auto read = parse_server_url(text);
    ASSERT_TRUE(read) << text;
    EXPECT_EQ(read->written, text);
    read->written.clear();
    EXPECT_EQ(*read, server) << text;
  }
  EXPECT_EQ(to_string(*parse_server_url("https://[::1]")), "https://[::1]:443");
  EXPECT_EQ(to_string(*parse_server_url("http://a/b")), "http://a:80/b");
  EXPECT_EQ(to_string(*parse_server_url("unix:/a")), "unix:/a");
  for (auto const* text :
       {"", "a.example", "ftp://a", "http:/a", "http://", "http://:80", "http://a/b?c",
        "http://a?b", "http://a/b/../c", "unix:", "unix:a", "http://a#b", "http://u@a",
        "http://a:x", "http://a:0", "http://a b", "HTTP://a"}) {
    EXPECT_FALSE(parse_server_url(text).has_value()) << text;
  }
}

}  // namespace
}  // namespace tidegate::gateway
