// SPDX-License-Identifier: Apache-2.0
#include "request/request_fields.hpp"

#include "phases/phase_fixture.hpp"

#include <gmock/gmock.h>

#include <optional>
#include <string>
#include <string_view>

namespace tidegate::gateway {
namespace {

using ratelimit::partition_source_kind;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr auto echo = "routes: [{name: all, match: {path: /**}, service: echo}]\n";
constexpr auto trusting =
    "trusted-proxies: [192.0.2.0/24]\n"
    "routes: [{name: all, match: {path: /**}, service: echo}]\n";

class proxy_request_fields : public testing::Test {
 protected:
  /// The value of a source in a request with this head.
  [[nodiscard]] auto value(partition_source_kind kind, std::string name, std::string_view head)
      -> std::string {
    source_ = {kind, std::move(name)};
    auto context = with_.ask(head);
    context.token = token_;
    auto const field = kind == partition_source_kind::header ? wire::find_known_field(source_.name)
                                                             : wire::known_field::other;
    with_.values.repeated = nullptr;
    return std::string(value_of(source_, field, context, with_.values));
  }
  [[nodiscard]] auto is_repeated() const -> bool { return with_.values.repeated == &source_; }

  phase_fixture with_{echo};
  ratelimit::partition_source source_;
  bearer_token const* token_ = nullptr;
};

TEST_F(proxy_request_fields, find_the_value_of_each_source) {
  struct row {
    std::string_view name;
    partition_source_kind kind;
    std::string source;
    std::string_view head;
    std::string_view expected;
  };
  using enum partition_source_kind;
  for (auto const& each : {
           row{"the address of the peer", client_ip, "", "GET / HTTP/1.1\r\nHost: h\r\n\r\n",
               "192.0.2.1"},
           row{"a field", header, "x-api-key", "GET / HTTP/1.1\r\nHost: h\r\nX-API-Key: k\r\n\r\n",
               "k"},
           row{"a field that is known", header, "user-agent",
               "GET / HTTP/1.1\r\nHost: h\r\nUser-Agent: curl\r\n\r\n", "curl"},
           row{"a field that is missing", header, "x-api-key", "GET / HTTP/1.1\r\nHost: h\r\n\r\n",
               ""},
           row{"a parameter", query, "user", "GET /?a=1&user=u%20v HTTP/1.1\r\nHost: h\r\n\r\n",
               "u v"},
           row{"a parameter that is missing", query, "user",
               "GET /?a=1 HTTP/1.1\r\nHost: h\r\n\r\n", ""},
           row{"a parameter without a query", query, "user", "GET / HTTP/1.1\r\nHost: h\r\n\r\n",
               ""},
           row{"a cookie", cookie, "sid", "GET / HTTP/1.1\r\nHost: h\r\nCookie: a=1; sid=s\r\n\r\n",
               "s"},
           row{"a cookie that is missing", cookie, "sid",
               "GET / HTTP/1.1\r\nHost: h\r\nCookie: a=1\r\n\r\n", ""},
           row{"the method", method, "", "PATCH / HTTP/1.1\r\nHost: h\r\n\r\n", "PATCH"},
           row{"the host, in lower case", host, "", "GET / HTTP/1.1\r\nHost: API.example\r\n\r\n",
               "api.example"},
           row{"the path", path, "", "GET /a/b?c HTTP/1.1\r\nHost: h\r\n\r\n", "/a/b"},
           row{"the name of the route", route, "", "GET / HTTP/1.1\r\nHost: h\r\n\r\n", "all"},
           row{"the principal of no token", principal, "", "GET / HTTP/1.1\r\nHost: h\r\n\r\n", ""},
       }) {
    EXPECT_EQ(value(each.kind, each.source, each.head), each.expected) << each.name;
    EXPECT_FALSE(is_repeated()) << each.name;
  }
}

TEST_F(proxy_request_fields, name_the_principal_by_its_token) {
  bearer_token const token{.name = "acme", .tenant = "default"};
  token_ = &token;
  EXPECT_EQ(value(partition_source_kind::principal, "", "GET / HTTP/1.1\r\nHost: h\r\n\r\n"),
            "acme");
}

TEST_F(proxy_request_fields, tell_what_a_request_has_more_than_once) {
  struct row {
    std::string_view name;
    partition_source_kind kind;
    std::string source;
    std::string_view head;
    std::string_view expected;
  };
  using enum partition_source_kind;
  for (auto const& each : {
           row{"two lines of a field", header, "x-api-key",
               "GET / HTTP/1.1\r\nHost: h\r\nX-API-Key: a\r\nx-api-key: b\r\n\r\n", "a, b"},
           row{"three lines", header, "x-api-key",
               "GET / HTTP/1.1\r\nHost: h\r\nX-API-Key: a\r\nA: z\r\nX-API-Key: b\r\n"
               "X-API-Key: c\r\n\r\n",
               "a, b, c"},
       }) {
    EXPECT_EQ(value(each.kind, each.source, each.head), each.expected) << each.name;
    EXPECT_TRUE(is_repeated()) << each.name;
  }
  (void)value(query, "user", "GET /?user=a&user=b HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_TRUE(is_repeated()) << "a parameter";
  (void)value(cookie, "sid", "GET / HTTP/1.1\r\nHost: h\r\nCookie: sid=a; sid=b\r\n\r\n");
  EXPECT_TRUE(is_repeated()) << "a cookie";
  (void)value(header, "x-b", "GET / HTTP/1.1\r\nHost: h\r\nX-A: a\r\nX-A: b\r\nX-B: c\r\n\r\n");
  EXPECT_FALSE(is_repeated()) << "another field";
}

TEST_F(proxy_request_fields, cut_an_address_of_ipv6_to_its_network) {
  with_.from = {*http::parse_ip_address("2001:db8:1:2:3:4:5:6"), "http"};
  EXPECT_EQ(value(partition_source_kind::client_ip, "", "GET / HTTP/1.1\r\nHost: h\r\n\r\n"),
            "2001:db8:1:2::/64");
}

TEST_F(proxy_request_fields, read_an_escaped_path_as_it_is_meant) {
  EXPECT_EQ(value(partition_source_kind::path, "", "GET /a%3Ab%2F HTTP/1.1\r\nHost: h\r\n\r\n"),
            "/a:b%2F");
}

TEST_F(proxy_request_fields, list_the_lines_of_a_field) {
  auto const context = with_.get("Via: 1.1 a\r\nAccept: x/y\r\nVia: 1.1 b\r\n");
  EXPECT_THAT(lines_of(*context.head, wire::known_field::via, with_.lines),
              ElementsAre("1.1 a", "1.1 b"));
  EXPECT_THAT(lines_of(*context.head, wire::known_field::forwarded, with_.lines), IsEmpty());
}

TEST_F(proxy_request_fields, join_what_a_client_accepts) {
  EXPECT_EQ(accepted_types(*with_.get().head), "");
  EXPECT_EQ(accepted_types(*with_.get("Accept: a/b\r\n").head), "a/b");
  EXPECT_EQ(accepted_types(*with_.get("Accept: a/b;q=0.5\r\nAccept: c/d\r\n").head),
            "a/b;q=0.5,c/d");
}

TEST(proxy_forwarded_client, is_believed_of_trusted_peers_only) {
  struct row {
    std::string_view name;
    std::string config;
    std::string_view peer;
    std::string_view lines;
    std::string_view expected;
  };
  std::string const by_forwarded = std::string("client-address: forwarded\n") + trusting;
  for (auto const& each : {
           row{"no proxy is trusted", echo, "192.0.2.1", "X-Forwarded-For: 198.51.100.7\r\n",
               "192.0.2.1"},
           row{"a trusted one", trusting, "192.0.2.1", "X-Forwarded-For: 198.51.100.7\r\n",
               "198.51.100.7"},
           row{"another peer", trusting, "203.0.113.9", "X-Forwarded-For: 198.51.100.7\r\n",
               "203.0.113.9"},
           row{"only up to the first that is not trusted", trusting, "192.0.2.1",
               "X-Forwarded-For: 10.0.0.1, 198.51.100.7, 192.0.2.2\r\n", "198.51.100.7"},
           row{"nothing is said", trusting, "192.0.2.1", "", "192.0.2.1"},
           row{"the other field counts for nothing", trusting, "192.0.2.1",
               "Forwarded: for=198.51.100.7\r\n", "192.0.2.1"},
           row{"by Forwarded", by_forwarded, "192.0.2.1", "Forwarded: for=198.51.100.7\r\n",
               "198.51.100.7"},
           row{"not by X-Forwarded-For then", by_forwarded, "192.0.2.1",
               "X-Forwarded-For: 198.51.100.7\r\n", "192.0.2.1"},
       }) {
    phase_fixture with(each.config);
    with.from = {*http::parse_ip_address(each.peer), "http"};
    auto const context = with.get(each.lines);
    EXPECT_EQ(
        http::to_string(find_client(*context.head, *context.from, *context.active, with.lines)),
        each.expected)
        << each.name;
  }
}

TEST(proxy_forwarded_client, is_not_believed_where_the_proxy_names_no_client_itself) {
  phase_fixture with(trusting);
  EXPECT_TRUE(is_trusted_peer(with.settings(), with.from));
  with.from.may_name_others = false;
  EXPECT_FALSE(is_trusted_peer(with.settings(), with.from));
  auto const context = with.get("X-Forwarded-For: 198.51.100.7\r\n");
  EXPECT_EQ(find_client(*context.head, *context.from, *context.active, with.lines), with.from.peer);
}

TEST(proxy_forwarded_client, tells_how_it_asked) {
  phase_fixture with(trusting);
  auto const context = with.get(
      "X-Forwarded-For: 198.51.100.7\r\nX-Forwarded-Proto: https\r\n"
      "X-Forwarded-Host: api.example\r\n");
  auto const client =
      find_forwarded_client(*context.head, *context.from, *context.active, with.lines);
  EXPECT_EQ(client.proto, "https");
  EXPECT_EQ(client.host, "api.example");
}

}  // namespace
}  // namespace tidegate::gateway
