// SPDX-License-Identifier: Apache-2.0
#include "support/allocations.hpp"

#include <tidegate/http/query.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace tidegate::TIDEGATE_ABI::http {
namespace {

using namespace std::string_view_literals;

TEST(http_query, finds_the_first_value_of_a_name) {
  struct row {
    std::string_view query, name;
    std::optional<std::string_view> value;
  };
  for (auto const& [query, name, value] : {
           row{"a=1", "a", "1"},
           {"a=1&b=2", "b", "2"},
           {"a=1&a=2", "a", "1"},
           {"a=1=2", "a", "1=2"},
           {"a", "a", ""},
           {"a=", "a", ""},
           {"a&a=2", "a", ""},
           {"ab=1&a=2", "a", "2"},
           {"a=1&ab=2", "ab", "2"},
           {"&&a=1&", "a", "1"},
           {"A=1", "a", std::nullopt},
           {"", "a", std::nullopt},
           {"", "", std::nullopt},
           {"&&", "", std::nullopt},
           {"=1", "", "1"},
           {"b=a=1", "a", std::nullopt},
           {"a=1;b=2", "b", std::nullopt},  // only "&" divides
           {"a=1;b=2", "a", "1;b=2"},
           // decoding
           {"a=x+y%20z", "a", "x y z"},
           {"%61=1", "a", "1"},
           {"a+b=1", "a b", "1"},
           {"a%2Bb=1", "a+b", "1"},
           {"a%3db=1", "a=b", "1"},
           {"a%26b=1", "a&b", "1"},
           {"a=%c3%A9", "a", "\xc3\xa9"},
           {"a=%00%ff", "a", "\0\xff"sv},
           {"a=%252b", "a", "%2b"},
           // what is not an escape stands for itself
           {"a=100%", "a", "100%"},
           {"a=%4", "a", "%4"},
           {"a=%zz%%41", "a", "%zz%A"},
           {"%=1", "%", "1"},
           {"a%6=1&a=2", "a", "2"},
       }) {
    std::string scratch;
    EXPECT_EQ(query_value(query, name, scratch), value) << query << " / " << name;
  }
}

TEST(http_query, says_whether_a_name_comes_more_than_once) {
  for (auto const* const query : {"", "a", "a=1", "b=1&a=2&ab=3&c=a", "a=1&&b=a=2"}) {
    EXPECT_FALSE(is_repeated_in_query(query, "a")) << query;
  }
  for (auto const* const query : {"a&a", "a=1&a=1", "a=&b&%61=2", "b=1&a=2&c=3&a"}) {
    EXPECT_TRUE(is_repeated_in_query(query, "a")) << query;
  }
}

TEST(http_query, gives_a_plain_value_back_without_a_copy) {
  std::string scratch = "untouched";
  auto const query = "page=2&cursor=abc-_.~"sv;
  auto const value = query_value(query, "cursor", scratch);
  ASSERT_TRUE(value);
  EXPECT_EQ(value->data(), query.data() + 14);
  EXPECT_EQ(scratch, "untouched");
  EXPECT_EQ(find_query_value("a=%41+", "a"), "%41+");
}

TEST(http_query, finds_a_value_in_any_spelling_among_repeated_parameters) {
  struct row {
    char const* query;
    char const* name;
    std::optional<std::string_view> value;
    bool found;
  };
  for (auto const& [text, name, value, found] : std::vector<row>{
           {"a=1", "a", "1", true},        {"a=1", "a", std::nullopt, true},
           {"a=1", "a", "2", false},       {"a=1", "b", std::nullopt, false},
           {"a=1&a=2", "a", "2", true},    {"a=1&b=3&a=2", "a", "2", true},
           {"a=1&b=2", "a", "2", false},   {"a", "a", "", true},
           {"a=", "a", "", true},          {"a", "a", "1", false},
           {"a=b+c", "a", "b c", true},    {"a=b%20c", "a", "b c", true},
           {"a=b%2Bc", "a", "b+c", true},  {"a=b%2bc", "a", "b+c", true},
           {"%61=1", "a", "1", true},      {"a=%C3%A9", "a", "\xc3\xa9", true},
           {"a=%zz", "a", "%zz", true},    {"a=1=2", "a", "1=2", true},
           {"A=1", "a", "1", false},       {"a=X", "a", "x", false},
           {"", "a", std::nullopt, false}, {"&&", "a", std::nullopt, false},
           {"a=1&", "a", "2", false},
       }) {
    EXPECT_EQ(has_query_value(text, name, value), found) << text << " " << name;
  }
}

TEST(http_query, finds_any_name_and_value_again_however_they_are_escaped) {
  std::mt19937_64 random(17);
  auto const any_bytes = [&random] {
    std::string bytes;
    for (auto size = random() % 6; size > 0; --size) {
      bytes.push_back(static_cast<char>(random()));
    }
    return bytes;
  };
  auto const escape = [&random](std::string_view bytes) {
    constexpr std::string_view upper = "0123456789ABCDEF";
    constexpr std::string_view lower = "0123456789abcdef";
    std::string text;
    for (char const c : bytes) {
      bool const plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
      if (c == ' ' && random() % 2 == 0) {
        text += '+';
      } else if (plain && random() % 2 == 0) {
        text += c;
      } else {
        auto const octet = static_cast<unsigned char>(c);
        text += '%';
        text += (random() % 2 == 0 ? upper : lower)[octet >> 4U];
        text += (random() % 2 == 0 ? upper : lower)[octet & 15U];
      }
    }
    return text;
  };
  std::string scratch;
  for (int round = 0; round < 20'000; ++round) {
    auto const name = "n" + any_bytes();
    auto const value = any_bytes();
    auto const query = "other=1&" + escape(name) + '=' + escape(value) + "&" + escape(name) + "=2";
    ASSERT_EQ(query_value(query, name, scratch), value) << query;
  }
}

TEST(http_query, allocates_nothing_when_the_string_has_room) {
  std::string scratch;
  scratch.reserve(64);
  auto const before = test::allocations();
  EXPECT_TRUE(query_value("a=1&key=x%20y+z", "key", scratch));
  EXPECT_FALSE(query_value("a=1&key=x%20y+z", "none", scratch));
  EXPECT_EQ(test::allocations(), before);
}

TEST(http_query, escapes_all_that_is_not_unreserved) {
  std::string out = "q=";
  append_query_encoded(out, "aZ09-._~ +&=%/\xc3\xa4");
  EXPECT_EQ(out, "q=aZ09-._~%20%2B%26%3D%25%2F%C3%A4");
  std::string back;
  append_query_decoded(back, out);
  EXPECT_EQ(back, "q=aZ09-._~ +&=%/\xc3\xa4");
}

}  // namespace
}  // namespace tidegate::TIDEGATE_ABI::http
