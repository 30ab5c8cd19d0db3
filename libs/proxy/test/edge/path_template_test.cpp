// SPDX-License-Identifier: Apache-2.0
#include <tidegate/proxy/path_template.hpp>

#include "support/allocations.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace tidegate::gateway {
namespace {

constexpr std::string_view refused = "(refused)";

TEST(proxy_path_template, finds_dot_segments_as_any_server_would) {
  for (auto const* const path :
       {"/..",     "/.",      "/a/..",     "/../a",       "/a/../b",
        "/a/./b",  "/..;/a",  "/..;x=y/a", "/..;",        "/.;a/b",
        "/..%2F",  "/..%2Fa", "/a%2F..",   "/a%2F..%2Fb", "/a%2f..%2fb",
        "/..%5Ca", "/a%5C..", "/a%5c.",    "/a\\..\\b",   "/%2E%2E/a",
        "/.%2e/a", "/%2e",    "/..%3B/a",  "/..%3bx",     "/a/%2F..;%5C"}) {
    EXPECT_TRUE(may_have_dot_segments(path)) << path;
  }
  for (auto const* const path : {"",        "/",       "//",     "/a",     "/...",
                                 "/a..",    "/..a",    "/.a",    "/a./b",  "/a.b/c..d",
                                 "/a;../b", "/a;x=..", "/..%20", "/..%25", "/%252E%252E/a",
                                 "/..%",    "/..%2",   "/..%2G", "/..~",   "/.well-known/x"}) {
    EXPECT_FALSE(may_have_dot_segments(path)) << path;
  }
}

TEST(proxy_path_template, puts_captures_in) {
  struct row {
    std::string_view text, pattern, path, expected;
  };
  for (auto const& each : {
           row{"/users/{1}", "/v1/*", "/v1/anna", "/users/anna"},
           row{"/users/{1}", "/v1/*", "/v1/a%2Fb%20c", "/users/a%2Fb%20c"},
           row{"/{2}/{1}", "/v1/*/x/*", "/v1/a/x/b", "/b/a"},
           row{"/{1}-{1}", "/*", "/a", "/a-a"},
           row{"/{**}", "/v1/**", "/v1/a/b", "/a/b"},
           row{"/{**}", "/v1/**", "/v1/a/b/", "/a/b/"},
           row{"/{**}", "/v1/**", "/v1", "/"},
           row{"/{**}", "/v1/**", "/v1/", "/"},
           row{"/x{**}", "/**", "/a", "/xa"},
           row{"/x/{**}", "/**", "/", "/x/"},
           row{"/{1}/rest/{**}", "/v1/*/**", "/v1/a/b/c", "/a/rest/b/c"},
           row{"/{1}/rest/{**}", "/v1/*/**", "/v1/a", "/a/rest/"},
           row{"/{**}/{1}", "/v1/*/**", "/v1/a/b//c", "/b//c/a"},
           row{"/fixed", "/v1/**", "/v1/a", "/fixed"},
           row{"{1}", "/v1/*", "/v1/a", "a"},
           row{"/a{", "/*", "/x", "/a{"},
           row{"/a}{1}", "/*", "/x", "/a}x"},
           // What the reader of configurations refuses.
           row{"/{2}", "/*", "/a", "/"},
           row{"/{0}{-1}{x}{}{1x}", "/*", "/a", "/"},
           row{"/{**}", "/*", "/a", "/"},
       }) {
    std::string out = "before ";
    path_template(each.text, each.pattern).append(out, each.path);
    EXPECT_EQ(out, "before " + std::string(each.expected)) << each.text << " of " << each.path;
  }
}

[[nodiscard]] auto rewritten(rewrite_config const& settings, std::string_view pattern,
                             std::string_view path) -> std::string {
  std::string out = "GET ";
  if (path_rewrite(settings, pattern).append(out, path)) {
    return out.substr(4);
  }
  EXPECT_EQ(out, "GET ");
  return std::string(refused);
}

TEST(proxy_path_template, changes_prefixes) {
  struct row {
    std::string_view strip, add, path, expected;
  };
  for (auto const& each : {
           row{"/v1", "", "/v1/a", "/a"},
           row{"/v1", "", "/v1", "/"},
           row{"/v1", "", "/v1/", "/"},
           row{"/v1/", "", "/v1/a", "/a"},
           row{"/v1", "/api", "/v1/a/b", "/api/a/b"},
           row{"/v1", "/api", "/v1", "/api"},
           row{"/v1", "/api", "/v1/", "/api/"},
           row{"/v1", "/api/", "/v1/a", "/api/a"},
           row{"", "/api", "/v1/a", "/api/v1/a"},
           row{"", "/api", "/", "/api/"},
           row{"/", "/", "/a", "/a"},
           // Whole segments only.
           row{"/v1", "", "/v10/a", "/v10/a"},
           row{"/v1", "/api", "/v10", "/api/v10"},
           row{"/v1/users", "", "/v1", "/v1"},
           // What a client wrote stays.
           row{"/v1", "/api", "/v1/a%2Fb;c=d/%E2%82%AC", "/api/a%2Fb;c=d/%E2%82%AC"},
           row{"/v1", "/api", "/v1/a//b", "/api/a//b"},
           row{"/v1", "", "/v1//evil.example/a", refused},
           row{"", "", "//evil.example/a", refused},
           row{"/v1", "/api", "/v1/..%2Fadmin", refused},
           row{"/v1", "/api", "/v1/..;/admin", refused},
           row{"/v1", "/api", "/v1/a/..%5C..%5Cadmin", refused},
           row{"/v1", "/api", "/v1/x%2F..", refused},
       }) {
    EXPECT_EQ(rewritten({std::string(each.strip), std::string(each.add), {}}, "/**", each.path),
              each.expected)
        << each.strip << " to " << each.add << ": " << each.path;
  }
}

TEST(proxy_path_template, makes_paths_of_captures_and_none_that_leads_elsewhere) {
  struct row {
    std::string_view to, pattern, path, expected;
  };
  for (auto const& each : {
           row{"/users/{1}", "/v1/*", "/v1/anna", "/users/anna"},
           row{"/users/{1}", "/v1/*", "/v1/..%2Fadmin", refused},
           row{"/users/{1}", "/v1/*", "/v1/..%5Cadmin", refused},
           row{"/users/{1}", "/v1/*", "/v1/..;", refused},
           row{"/users/{1}", "/v1/*", "/v1/a%2F..%2F..%2Fadmin", refused},
           row{"/users/{1}", "/v1/*", "/v1/a;b", "/users/a;b"},
           row{"/users/{1}", "/v1/*", "/v1/...", "/users/..."},
           row{"/users/.{1}", "/v1/*", "/v1/.;x", refused},
           row{"/users/.{1}", "/v1/*", "/v1/%2Fx", refused},
           row{"/{**}", "/v1/**", "/v1//evil.example", refused},
           row{"/.{**}", "/v1/**", "/v1", refused},
           row{"{**}", "/v1/**", "/v1/a", refused},
           row{"{**}", "/v1/**", "/v1", "/"},
       }) {
    EXPECT_EQ(rewritten({{}, {}, std::string(each.to)}, each.pattern, each.path), each.expected)
        << each.to << " of " << each.path;
  }
}

[[nodiscard]] auto location(std::string_view to, std::string_view pattern, std::string_view path,
                            std::string_view query = "") -> std::string {
  std::string out = "Location: ";
  if (redirect_location(to, pattern).append(out, path, query)) {
    return out.substr(10);
  }
  EXPECT_EQ(out, "Location: ");
  return std::string(refused);
}

TEST(proxy_path_template, makes_locations_with_the_query_of_the_request) {
  struct row {
    std::string_view to, path, query, expected;
  };
  for (auto const& each : {
           row{"https://example.com/{**}", "/a/b", "?c=d", "https://example.com/a/b?c=d"},
           row{"https://example.com/{**}", "/", "", "https://example.com/"},
           row{"https://example.com:8443/x/{**}", "/a", "", "https://example.com:8443/x/a"},
           row{"https://[2001:db8::1]/{**}", "/a", "", "https://[2001:db8::1]/a"},
           row{"https://example.com", "/a", "?b", "https://example.com?b"},
           row{"https://example.com/?a=1", "/a", "?b", "https://example.com/?a=1&b"},
           row{"https://example.com/{**}?a=1", "/x", "", "https://example.com/x?a=1"},
           row{"https://example.com/{**}#top", "/x", "?b", "https://example.com/x?b#top"},
           row{"https://example.com/{**}?a#b?c", "/x", "?d", "https://example.com/x?a&d#b?c"},
           row{"https://example.com/#b?c", "/x", "?d", "https://example.com/?d#b?c"},
           row{"/new/{**}", "/a/b", "?c", "/new/a/b?c"},
           row{"/{**}", "/a%0D%0ASet-Cookie:%20x", "", "/a%0D%0ASet-Cookie:%20x"},
       }) {
    EXPECT_EQ(location(each.to, "/**", each.path, each.query), each.expected)
        << each.to << " of " << each.path << each.query;
  }
}

TEST(proxy_path_template, makes_no_location_of_another_authority) {
  struct row {
    std::string_view to, pattern, path, expected;
  };
  for (auto const& each : {
           row{"/{**}", "/old/**", "/old//evil.example", refused},
           row{"/{**}", "/old/**", "/old///evil.example", refused},
           row{"/{1}", "/old/*", "/old/%5Cevil.example", "/%5Cevil.example"},
           row{"/{1}", "/old/*", "/old/%2Fevil.example", "/%2Fevil.example"},
           row{"{**}", "/old/**", "/old//evil.example", "/evil.example"},  // a path of ours
           row{"{**}", "/old/**", "/old///evil.example", refused},
           row{"{1}", "/*", "/evil.example", refused},
           row{"//{1}", "/*", "/evil.example", refused},
           row{"https://{1}", "/*", "/evil.example", refused},
           row{"https://example.com{1}", "/*", "/.evil.example", refused},
           row{"https://example.com{1}", "/*", "/@evil.example", refused},
           row{"https://example.com{1}", "/*", "/:80@evil.example", refused},
           row{"https://example.com{**}", "/old/**", "/old//a", "https://example.com/a"},
           row{"https://example.com/{**}", "/old/**", "/old//evil.example",
               "https://example.com//evil.example"},
           row{"https://example.com/{1}", "/*", "/@evil.example",
               "https://example.com/@evil.example"},
           row{"{1}://example.com/", "/*", "/javascript", refused},
           row{"#a://example.com/", "/*", "/a", refused},
           row{"://example.com/", "/*", "/a", refused},
           row{"/a{1}://example.com/", "/*", "/b", "/ab://example.com/"},
           row{"/\\{1}", "/*", "/evil.example", refused},
           row{"https://example.com/x/{1}", "/*", "/..%2Fy", refused},
           row{"", "/*", "/a", refused},
       }) {
    EXPECT_EQ(location(each.to, each.pattern, each.path), each.expected)
        << each.to << " of " << each.path;
  }
}

TEST(proxy_path_template, allocates_nothing_when_there_is_room) {
  path_rewrite const prefixes({"/v1", "/a/very/long/prefix/that/is/not/short", {}}, "/v1/**");
  path_rewrite const captures({{}, {}, "/users/{1}/all/{**}"}, "/v1/*/**");
  redirect_location const to("https://example.com/{1}/{**}?a", "/v1/*/**");
  std::string out;
  out.reserve(1000);
  auto const before = test::allocations();
  EXPECT_TRUE(prefixes.append(out, "/v1/anna/a/b"));
  EXPECT_TRUE(captures.append(out, "/v1/anna/a/b"));
  EXPECT_TRUE(to.append(out, "/v1/anna/a/b", "?b=c"));
  EXPECT_EQ(test::allocations(), before);
}

}  // namespace
}  // namespace tidegate::gateway
