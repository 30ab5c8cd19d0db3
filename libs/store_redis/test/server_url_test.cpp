// SPDX-License-Identifier: Apache-2.0
#include <tidegate/store_redis/server_url.hpp>

#include <gtest/gtest.h>

#include <string>

namespace tidegate::store_redis {
namespace {

TEST(store_redis_server_url, reads_every_part) {
  struct row {
    char const* text;
    server_url url;
  };
  row const rows[] = {
      {"redis://cache", {.servers = {{"cache", 6379}}}},
      {"redis://127.0.0.1:7000/3", {.servers = {{"127.0.0.1", 7000}}, .database = 3}},
      {"redis://[::1]:7000/", {.servers = {{"::1", 7000}}}},
      {"rediss://[::1]", {.tls = true, .servers = {{"::1", 6379}}}},
      {"redis://:secret@a", {.servers = {{"a", 6379}}, .login = {"", "secret"}}},
      {"redis://u%3a:p%40%2F%25:@a:1", {.servers = {{"a", 1}}, .login = {"u:", "p@/%:"}}},
      {"redis://u:p@q@a", {.servers = {{"a", 6379}}, .login = {"u", "p@q"}}},
      {"rediss://a?ca=/etc/ca.pem", {.tls = true, .servers = {{"a", 6379}}, .ca = "/etc/ca.pem"}},
      {"redis+cluster://a,b:1,[2001:db8::1]:2",
       {.kind = topology::cluster, .servers = {{"a", 6379}, {"b", 1}, {"2001:db8::1", 2}}}},
      {"rediss+cluster://u:p@a,b",
       {.kind = topology::cluster,
        .tls = true,
        .servers = {{"a", 6379}, {"b", 6379}},
        .login = {"u", "p"}}},
      {"redis+sentinel://a,b:1/primary",
       {.kind = topology::sentinel, .servers = {{"a", 26379}, {"b", 1}}, .master_name = "primary"}},
      {"redis+sentinel://:p@a/my%20one/2?sentinel-user=s&sentinel-password=t%26",
       {.kind = topology::sentinel,
        .servers = {{"a", 26379}},
        .login = {"", "p"},
        .sentinel_login = {"s", "t&"},
        .database = 2,
        .master_name = "my one"}},
  };
  for (auto const& [text, url] : rows) {
    auto const read = parse_server_url(text);
    ASSERT_TRUE(read.has_value()) << text << ": " << read.error();
    EXPECT_EQ(*read, url) << text;
  }
}

TEST(store_redis_server_url, says_what_is_wrong) {
  struct row {
    std::string text;
    char const* error;
  };
  auto const* const begins =
      "a URL of Redis begins with redis://, rediss://, redis+cluster:// or redis+sentinel://";
  auto const* const server = "a server is a name, an IPv4 address or an IPv6 address in brackets";
  auto const* const port = "a port is a number from 1 to 65535";
  auto const* const login =
      "what stands before @ is user:password, or :password for the default user";
  auto const* const percent =
      "a % is followed by two hexadecimal digits; write %25 for the sign itself";
  auto const* const database = "behind the server stands the number of a database, or nothing";
  row const rows[] = {
      {"", begins},
      {"redis", begins},
      {"redis:/a", begins},
      {"memcached://a", begins},
      {"REDIS://a", begins},
      {"redis://", server},
      {"redis://a b", server},
      {"redis://[::1", server},
      {"redis://[]", server},
      {"redis://[a.example]", server},
      {"redis://" + std::string(254, 'a'), server},
      {"redis+cluster://a,,b", server},
      {"redis://a:", port},
      {"redis://a:0", port},
      {"redis://a:65536", port},
      {"redis://a:1x", port},
      {"redis://[::1]1", port},
      {"redis://secret@a", login},
      {"redis://u:@a", "the password before @ is empty"},
      {"redis://u:%4@a", percent},
      {"redis://u:%zz@a", percent},
      {"redis://:" + std::string(513, 'p') + "@a",
       "a user, password or name has at most 512 bytes"},
      {"redis://a/b", database},
      {"redis://a/-1", database},
      {"redis://a/0/1", database},
      {"redis://a/4294967296", database},
      {"redis://a,b", "one server, unless it is redis+cluster:// or redis+sentinel://"},
      {"redis+cluster://a/1", "a cluster has database 0 only"},
      {"redis+sentinel://a",
       "behind the sentinels stands the name of the master: redis+sentinel://host/name"},
      {"redis://a?ca=/x", "ca is for TLS: write rediss instead of redis"},
      {"redis://a?sentinel-user=x", "sentinel-user and sentinel-password are for sentinels"},
      {"redis+sentinel://a/m?sentinel-user=x", "sentinel-user needs sentinel-password"},
      {"redis://a?timeout=1", "behind ? there may be ca, sentinel-user and sentinel-password"},
  };
  for (auto const& [text, error] : rows) {
    auto const read = parse_server_url(text);
    ASSERT_FALSE(read.has_value()) << text;
    EXPECT_EQ(read.error(), error) << text;
  }
  std::string many = "redis+cluster://a";
  for (std::size_t i = 0; i < url_servers_max; ++i) {
    many += ",a";
  }
  EXPECT_EQ(parse_server_url(many).error(), "too many servers: at most 64");
}

TEST(store_redis_server_url, shows_no_secrets) {
  EXPECT_EQ(to_string(*parse_server_url("rediss://u:p@[::1]:1/2?ca=/x")), "rediss://[::1]:1/2");
  EXPECT_EQ(to_string(*parse_server_url("redis+sentinel://u:p@a,b/m?sentinel-password=q")),
            "redis+sentinel://a:26379,b:26379/m");
  EXPECT_EQ(to_string(*parse_server_url("redis+cluster://u:p@a,b")),
            "redis+cluster://a:6379,b:6379");
}

}  // namespace
}  // namespace tidegate::store_redis
