// SPDX-License-Identifier: Apache-2.0
#include "support/allocations.hpp"

#include <tidegate/http/cookie.hpp>

#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <string_view>
#include <vector>

namespace tidegate::TIDEGATE_ABI::http {
namespace {

using namespace std::string_view_literals;

TEST(http_cookie, finds_the_first_cookie_of_a_name) {
  struct row {
    std::vector<std::string_view> lines;
    std::string_view name;
    std::optional<std::string_view> value;
  };
  for (auto const& [lines, name, value] : {
           row{{"SID=31d4d96e407aad42"}, "SID", "31d4d96e407aad42"},
           {{"SID=31d4d96e407aad42; lang=en-US"}, "lang", "en-US"},
           {{"a=1; a=2"}, "a", "1"},
           {{"a=1;a=2;b=3"}, "b", "3"},
           {{"a=1", "b=2", "a=3"}, "a", "1"},
           {{"a=1", "b=2"}, "b", "2"},  // HTTP/2 sends a line for each
           {{"a=1; ab=2"}, "ab", "2"},
           {{"ab=2; a=1"}, "a", "1"},
           {{"a=b=c"}, "a", "b=c"},
           {{"a=\"x y\""}, "a", "\"x y\""},
           {{"a=\"x;b=y\""}, "a", "\"x"},
           {{"a=\"x;b=y\""}, "b", "y\""},
           {{" \ta = 1 \t; b"}, "a", "1"},
           {{"a="}, "a", ""},
           {{";;; a=1;"}, "a", "1"},
           {{"a=%41+"}, "a", "%41+"},  // nothing is decoded
           {{"a=\xc3\xa9"}, "a", "\xc3\xa9"},
           {{"A=1"}, "a", std::nullopt},
           {{"a"}, "a", std::nullopt},
           {{"a; b=1"}, "a", std::nullopt},
           {{""}, "a", std::nullopt},
           {{}, "a", std::nullopt},
           {{"b=a=1"}, "a", std::nullopt},
           {{"a=1, b=2"}, "b", std::nullopt},  // a comma divides nothing
       }) {
    EXPECT_EQ(find_cookie(lines, name), value) << (lines.empty() ? "" : lines[0]) << " / " << name;
  }
}

TEST(http_cookie, says_whether_a_name_comes_more_than_once) {
  std::array const once = {"a=1; b=2"sv, "ab=3; c; d=a=4"sv};
  std::array const in_one_line = {"a=1; b=2;a =1"sv};
  std::array const in_two_lines = {"a=1"sv, "b=2; a=3"sv};
  EXPECT_FALSE(is_repeated_cookie(once, "a"));
  EXPECT_FALSE(is_repeated_cookie(once, "x"));
  EXPECT_TRUE(is_repeated_cookie(in_one_line, "a"));
  EXPECT_TRUE(is_repeated_cookie(in_two_lines, "a"));
  EXPECT_FALSE(is_repeated_cookie(in_two_lines, "b"));
}

TEST(http_cookie, allocates_nothing) {
  std::array const lines = {"a=1; session=0123456789abcdef0123456789abcdef; b=2"sv};
  auto const before = test::allocations();
  EXPECT_TRUE(find_cookie(lines, "session"));
  EXPECT_FALSE(find_cookie(lines, "none"));
  EXPECT_EQ(test::allocations(), before);
}

}  // namespace
}  // namespace tidegate::TIDEGATE_ABI::http
