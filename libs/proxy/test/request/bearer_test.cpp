// SPDX-License-Identifier: Apache-2.0
#include <tidegate/proxy/bearer.hpp>

#include <tidegate/base/sha256.hpp>

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace tidegate::gateway {
namespace {

/// The token of a request with these field lines.
[[nodiscard]] auto token(std::string_view lines) -> std::string {
  std::string const text = "GET / HTTP/1.1\r\nHost: h\r\n" + std::string(lines) + "\r\n";
  wire::request_head head;
  EXPECT_EQ(wire::parse_request_head(text, 0, {}, head).state, wire::head_state::complete);
  return std::string(bearer_token_of(head));
}

[[nodiscard]] auto token_named(std::string name, std::string_view secret) -> bearer_token {
  return {.name = std::move(name), .digest = sha256::of(secret), .tenant = "default"};
}

TEST(proxy_bearer, reads_the_token_of_a_request) {
  struct row {
    std::string_view name;
    std::string_view lines;
    std::string_view expected;
  };
  for (auto const& each : {
           row{"a token", "Authorization: Bearer abc\r\n", "abc"},
           row{"the scheme in any case", "authorization: bEARER abc\r\n", "abc"},
           row{"several spaces", "Authorization: Bearer   abc\r\n", "abc"},
           row{"what is in the token stays", "Authorization: Bearer a.b-c_d~e+f/g==\r\n",
               "a.b-c_d~e+f/g=="},
           row{"no field", "", ""},
           row{"no token", "Authorization: Bearer\r\n", ""},
           row{"only spaces", "Authorization: Bearer  \r\n", ""},
           row{"another scheme", "Authorization: Basic YTpi\r\n", ""},
           row{"a scheme that begins the same", "Authorization: Bearerx abc\r\n", ""},
           row{"two fields", "Authorization: Bearer a\r\nAuthorization: Bearer a\r\n", ""},
           row{"two fields of two schemes", "Authorization: Bearer a\r\nAuthorization: Basic b\r\n",
               ""},
       }) {
    EXPECT_EQ(token(each.lines), each.expected) << each.name;
  }
}

TEST(proxy_bearer, finds_the_principal_of_a_token) {
  std::vector<bearer_token> const tokens{token_named("a", "one"), token_named("b", "two")};
  ASSERT_NE(find_token(tokens, "one"), nullptr);
  EXPECT_EQ(find_token(tokens, "one")->name, "a");
  ASSERT_NE(find_token(tokens, "two"), nullptr);
  EXPECT_EQ(find_token(tokens, "two")->name, "b");
}

TEST(proxy_bearer, finds_nothing_for_another_token) {
  std::vector<bearer_token> const tokens{token_named("a", "one"), token_named("none", "")};
  for (std::string_view const given : {"", "on", "onee", "ONE", "two"}) {
    EXPECT_EQ(find_token(tokens, given), nullptr) << given;
  }
  EXPECT_EQ(find_token({}, "one"), nullptr);
}

}  // namespace
}  // namespace tidegate::gateway
