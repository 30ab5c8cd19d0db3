// SPDX-License-Identifier: Apache-2.0
#include <tidegate/config/route.hpp>

#include "support/allocations.hpp"

#include <gtest/gtest.h>

namespace tidegate::gateway {
namespace {

auto found(std::vector<request_match> const& matches, std::string_view method,
           std::string_view host, std::string_view path) -> int {
  auto const position = router(matches).find(method, host, path);
  return position ? static_cast<int>(*position) : -1;
}

TEST(gateway_route, matches_paths_by_their_segments) {
  struct row {
    char const* pattern;
    char const* path;
    bool matches;
  };
  for (auto const& [pattern, path, matches] : std::vector<row>{
           {"/v1", "/v1", true},
           {"/v1", "/v1/", false},
           {"/v1", "/v10", false},
           {"/v1", "/V1", false},
           {"/v1/", "/v1/", true},
           {"/v1/", "/v1", false},
           {"/v1/**", "/v1", true},
           {"/v1/**", "/v1/", true},
           {"/v1/**", "/v1/a", true},
           {"/v1/**", "/v1/a/b//c", true},
           {"/v1/**", "/v10", false},
           {"/v1/**", "/v", false},
           {"/v1/**", "/", false},
           {"/**", "/", true},
           {"/**", "/a/b", true},
           {"/**", "*", false},
           {"/**", "", false},
           {"/", "/", true},
           {"/", "/a", false},
           {"/*", "/a", true},
           {"/*", "/", false},
           {"/*", "/a/", false},
           {"/users/*/orders", "/users/7/orders", true},
           {"/users/*/orders", "/users//orders", false},
           {"/users/*/orders", "/users/7/8/orders", false},
           {"/users/*/**", "/users/7", true},
           {"/users/*/**", "/users/7/8/9", true},
           {"/users/*/**", "/users", false},
           {"/a//b", "/a//b", true},
           {"/a//b", "/a/b", false},
           {"/caf%C3%A9", "/caf%C3%A9", true},
       }) {
    EXPECT_EQ(found({{pattern}}, "GET", "", path), matches ? 0 : -1) << pattern << " " << path;
  }
}

TEST(gateway_route, takes_the_first_match_in_the_order_of_the_file) {
  std::vector<request_match> const matches = {
      {"/v1/users/me"}, {"/v1/*/me"}, {"/v1/users/*"}, {"/v1/**"}, {"/v1/users/7"}, {"/**"},
  };
  EXPECT_EQ(found(matches, "GET", "", "/v1/users/me"), 0);
  EXPECT_EQ(found(matches, "GET", "", "/v1/orders/me"), 1);
  EXPECT_EQ(found(matches, "GET", "", "/v1/users/7"), 2);
  EXPECT_EQ(found(matches, "GET", "", "/v1/users/7/x"), 3);
  EXPECT_EQ(found(matches, "GET", "", "/v1"), 3);
  EXPECT_EQ(found(matches, "GET", "", "/v2"), 5);
}

TEST(gateway_route, goes_on_when_the_method_or_host_is_another) {
  std::vector<request_match> const matches = {
      {"/v1/**", {"GET", "POST"}, "api.example.com"},
      {"/v1/**", {"GET"}},
      {"/v1/a", {}, "[2001:db8::1]"},
      {"/v1/a", {"PATCH"}},
  };
  EXPECT_EQ(found(matches, "GET", "api.example.com", "/v1/a"), 0);
  EXPECT_EQ(found(matches, "POST", "API.Example.COM:8080", "/v1/a"), 0);
  EXPECT_EQ(found(matches, "GET", "other.example.com", "/v1/a"), 1);
  EXPECT_EQ(found(matches, "GET", "", "/v1/a"), 1);
  EXPECT_EQ(found(matches, "HEAD", "api.example.com", "/v1/a"), -1);
  EXPECT_EQ(found(matches, "get", "", "/v1/a"), -1);
  EXPECT_EQ(found(matches, "POST", "[2001:DB8::1]:443", "/v1/a"), 2);
  EXPECT_EQ(found(matches, "POST", "[2001:db8::1]", "/v1/a"), 2);
  EXPECT_EQ(found(matches, "PATCH", "x", "/v1/a"), 3);
}

TEST(gateway_route, takes_a_wildcard_for_one_label_or_more) {
  struct row {
    char const* host;
    bool matches;
  };
  for (auto const& [host, matches] : std::vector<row>{
           {"a.example.com", true},
           {"a.b.example.com", true},
           {"A.Example.COM", true},
           {"a.example.com.", true},
           {"a.example.com:8443", true},
           {"A.EXAMPLE.com.:80", true},
           {"*.example.com", true},
           {"example.com", false},
           {"example.com.", false},
           {".example.com", false},
           {"aexample.com", false},
           {"a.example.com.evil.org", false},
           {"a.example.org", false},
           {"", false},
           {"[2001:db8::1]", false},
           {"a.example.com:0", false},
           {"a@b.example.com", false},
       }) {
    EXPECT_EQ(found({{"/**", {}, "*.Example.com"}}, "GET", host, "/"), matches ? 0 : -1) << host;
  }
  EXPECT_EQ(found({{"/**", {}, "*.0.0.1"}}, "GET", "10.0.0.1", "/"), -1);
}

/// A request with these headers and parameters.
class known_details final : public request_details {
 public:
  known_details(std::vector<value_match> headers, std::vector<value_match> query)
      : headers_(std::move(headers)), query_(std::move(query)) {}

  [[nodiscard]] auto has_header(value_match const& wanted) const noexcept -> bool override {
    ++looks;
    return has(headers_, wanted);
  }
  [[nodiscard]] auto has_parameter(value_match const& wanted) const noexcept -> bool override {
    ++looks;
    return has(query_, wanted);
  }

  mutable int looks = 0;

 private:
  static auto has(std::vector<value_match> const& given, value_match const& wanted) -> bool {
    return std::ranges::any_of(given, [&](auto const& each) {
      return each.name == wanted.name && (!wanted.value || each.value == wanted.value);
    });
  }

  std::vector<value_match> headers_;
  std::vector<value_match> query_;
};

TEST(gateway_route, looks_at_headers_and_query_where_a_match_asks_for_them) {
  router const routes(std::vector<request_match>{
      {"/v1/**", {"GET"}, "", {{"x-version", "2"}}},
      {"/v1/**", {}, "", {{"x-beta"}}, {{"debug", "1"}}},
      {"/v1/a", {}, "", {}, {{"q"}}},
      {"/v1/**"},
      {"/v2"},
  });
  auto const find = [&](std::string_view method, std::string_view path,
                        known_details const& details) {
    auto const position = routes.find(method, "", path, &details);
    return position ? static_cast<int>(*position) : -1;
  };
  EXPECT_EQ(find("GET", "/v1/a", {{{"x-version", "2"}}, {}}), 0);
  EXPECT_EQ(find("GET", "/v1/a", {{{"x-version", "1"}, {"x-version", "2"}}, {}}), 0);
  EXPECT_EQ(find("GET", "/v1/a", {{{"x-version", "1"}}, {}}), 3);
  EXPECT_EQ(find("POST", "/v1/a", {{{"x-version", "2"}}, {}}), 3);
  EXPECT_EQ(find("GET", "/v1/a", {{{"x-beta", ""}}, {{"debug", "1"}}}), 1);
  EXPECT_EQ(find("GET", "/v1/a", {{{"x-beta", ""}}, {{"debug", "2"}}}), 3);
  EXPECT_EQ(find("GET", "/v1/a", {{}, {{"q", "anything"}}}), 2);
  EXPECT_EQ(find("GET", "/v1/b", {{}, {{"q", "anything"}}}), 3);
  EXPECT_EQ(routes.find("GET", "", "/v1/a"), 3U);
  known_details const plain({}, {});
  EXPECT_EQ(find("GET", "/v2", plain), 4);
  EXPECT_EQ(plain.looks, 0);
}

TEST(gateway_route, finds_nothing_without_matches) {
  EXPECT_EQ(found({}, "GET", "", "/"), -1);
}

TEST(gateway_route, says_where_a_pattern_is_wrong) {
  using enum path_pattern_fault;
  struct row {
    char const* pattern;
    path_pattern_error error;
  };
  for (auto const& [pattern, error] : std::vector<row>{
           {"", {no_leading_slash, 0}},
           {"v1", {no_leading_slash, 0}},
           {"/v1*", {wildcard_inside_segment, 3}},
           {"/*.jpg", {wildcard_inside_segment, 1}},
           {"/***", {wildcard_inside_segment, 1}},
           {"/a/**/b", {double_wildcard_not_last, 3}},
           {"/**/", {double_wildcard_not_last, 1}},
           {"/a/../b", {dot_segment, 3}},
           {"/.", {dot_segment, 1}},
           {"/a?b", {invalid_character, 2}},
           {"/a b", {invalid_character, 2}},
           {"/caf\xc3\xa9", {invalid_character, 4}},
           {"/%", {invalid_percent_encoding, 1}},
           {"/%2", {invalid_percent_encoding, 1}},
           {"/%2f", {invalid_percent_encoding, 1}},
           {"/a%41", {encoded_unreserved, 2}},
           {"/%7E", {encoded_unreserved, 1}},
           {"/v1/users%3Apurge", {encoded_without_need, 9}},
           {"/%40me", {encoded_without_need, 1}},
           {"/%2A", {encoded_without_need, 1}},
           {"/a%3Bb", {encoded_without_need, 2}},
       }) {
    auto const checked = check_path_pattern(pattern);
    ASSERT_FALSE(checked.has_value()) << pattern;
    EXPECT_EQ(checked.error(), error) << pattern << ": " << message(checked.error().fault);
  }
  for (auto const* pattern :
       {"/", "/v1/**", "/a/*/b", "/a.b/...", "/%2F", "/a%20b%5C%3F%25", "/a:b@c;d=e"}) {
    EXPECT_TRUE(check_path_pattern(pattern).has_value()) << pattern;
  }
}

TEST(gateway_route, takes_the_first_cost_that_matches_and_else_the_default) {
  cost_table const costs({.otherwise = 1,
                          .rules = {{{"/v1/search", {"POST"}}, 5},
                                    {{"/v1/export/**", {"GET"}}, 20},
                                    {{"/v1/**", {"POST"}}, 2}}});
  EXPECT_EQ(costs.cost("POST", "/v1/search"), 5);
  EXPECT_EQ(costs.cost("GET", "/v1/search"), 1);
  EXPECT_EQ(costs.cost("GET", "/v1/export/all"), 20);
  EXPECT_EQ(costs.cost("POST", "/v1/export/all"), 2);
  EXPECT_EQ(costs.cost("DELETE", "/v2"), 1);
  EXPECT_EQ(cost_table({.otherwise = 3, .rules = {}}).cost("GET", "/"), 3);
}

TEST(gateway_route, knows_which_match_covers_another) {
  struct row {
    request_match wide;
    request_match narrow;
    bool covered;
  };
  for (auto const& [wide, narrow, covered] : {
           row{{"/**"}, {"/v1/**"}, true},
           row{{"/**"}, {"/"}, true},
           row{{"/v1/**"}, {"/v1"}, true},
           row{{"/v1/**"}, {"/v1/a/*"}, true},
           row{{"/v1/**"}, {"/v2/**"}, false},
           row{{"/v1/**"}, {"/**"}, false},
           row{{"/v1"}, {"/v1/**"}, false},
           row{{"/v1/*"}, {"/v1/a"}, true},
           row{{"/v1/*"}, {"/v1/*"}, true},
           row{{"/v1/*"}, {"/v1/"}, false},
           row{{"/v1/*"}, {"/v1/**"}, false},
           row{{"/v1/*"}, {"/v1/a/b"}, false},
           row{{"/v1/*/b"}, {"/v1/a/*"}, false},
           row{{"/v1/a"}, {"/v1/*"}, false},
           row{{"/**", {"GET", "POST"}}, {"/a", {"GET"}}, true},
           row{{"/**", {"GET"}}, {"/a", {"GET", "POST"}}, false},
           row{{"/**", {"GET"}}, {"/a"}, false},
           row{{"/**"}, {"/a", {"GET"}}, true},
           row{{"/**", {}, "a.example"}, {"/a", {}, "A.example"}, true},
           row{{"/**", {}, "a.example"}, {"/a"}, false},
           row{{"/**"}, {"/a", {}, "a.example"}, true},
           row{{"/**", {}, "*.a.example"}, {"/a", {}, "B.A.example"}, true},
           row{{"/**", {}, "*.a.example"}, {"/a", {}, "*.b.a.example"}, true},
           row{{"/**", {}, "*.a.example"}, {"/a", {}, "*.A.example"}, true},
           row{{"/**", {}, "*.a.example"}, {"/a", {}, "a.example"}, false},
           row{{"/**", {}, "*.a.example"}, {"/a", {}, "ba.example"}, false},
           row{{"/**", {}, "*.a.example"}, {"/a"}, false},
           row{{"/**", {}, "b.a.example"}, {"/a", {}, "*.a.example"}, false},
           row{{"/**", {}, "", {{"x", "1"}}}, {"/a"}, false},
           row{{"/**"}, {"/a", {}, "", {{"x", "1"}}}, true},
           row{{"/**", {}, "", {{"x", "1"}}}, {"/a", {}, "", {{"x", "1"}, {"y", "2"}}}, true},
           row{{"/**", {}, "", {{"x"}}}, {"/a", {}, "", {{"x", "1"}}}, true},
           row{{"/**", {}, "", {{"x", "1"}}}, {"/a", {}, "", {{"x"}}}, false},
           row{{"/**", {}, "", {{"x", "1"}}}, {"/a", {}, "", {{"x", "2"}}}, false},
           row{{"/**", {}, "", {{"x", "1"}}}, {"/a", {}, "", {}, {{"x", "1"}}}, false},
           row{{"/**", {}, "", {}, {{"x"}}}, {"/a", {}, "", {}, {{"x", "1"}}}, true},
           row{{"/**", {}, "", {}, {{"x", ""}}}, {"/a", {}, "", {}, {{"x"}}}, false},
       }) {
    EXPECT_EQ(covers(wide, narrow), covered) << wide.path << " " << narrow.path;
  }
}

TEST(gateway_route, allocates_nothing_when_it_looks) {
  router const routes(std::vector<request_match>{{"/v1/**", {"GET"}, "api.example.com"}, {"/**"}});
  auto const before = test::allocations();
  EXPECT_EQ(routes.find("GET", "API.example.com.:80", "/v1/a/b"), 0U);
  EXPECT_EQ(test::allocations(), before);
}

}  // namespace
}  // namespace tidegate::gateway
