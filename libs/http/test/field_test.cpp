// SPDX-License-Identifier: Apache-2.0
#include <tidegate/http/field.hpp>

#include <gtest/gtest.h>

#include <string>

namespace tidegate::TIDEGATE_ABI::http {
namespace {

TEST(http_field, knows_tokens) {
  EXPECT_TRUE(is_token("abcXYZ019!#$%&'*+-.^_`|~"));
  EXPECT_FALSE(is_token(""));
  for (int octet = 0; octet < 256; ++octet) {
    bool const other = std::string_view("\"(),/:;<=>?@[\\]{}").contains(static_cast<char>(octet));
    bool const token = octet > ' ' && octet < 0x7f && !other;
    EXPECT_EQ(is_token(std::string(1, static_cast<char>(octet))), token) << octet;
  }
}

TEST(http_field, knows_values_that_end_no_line) {
  EXPECT_TRUE(is_field_value(""));
  EXPECT_TRUE(is_field_value("a\tb \xff"));
  for (std::string_view const text : {"a\r", "a\n", "\x7f", "\x1f"}) {
    EXPECT_FALSE(is_field_value(text));
  }
  EXPECT_FALSE(is_field_value(std::string_view("\0", 1)));
}

TEST(http_field, takes_the_elements_of_a_list) {
  std::string_view list = " a b ,\tc,, d";
  EXPECT_EQ(take_element(list), "a b");
  EXPECT_EQ(take_element(list), "c");
  EXPECT_EQ(take_element(list), "");
  EXPECT_EQ(take_element(list), "d");
  EXPECT_TRUE(list.empty());
}

TEST(http_field, knows_the_content_type_of_json) {
  EXPECT_EQ(media_type("Text/HTML ; charset=utf-8"), "Text/HTML");
  for (auto const* const type :
       {"application/json", "Application/JSON; charset=utf-8", "application/json ;a=b"}) {
    EXPECT_TRUE(is_json(type)) << type;
  }
  for (auto const* const type : {"", "application/jsonp", "application/scim+json", "text/json"}) {
    EXPECT_FALSE(is_json(type)) << type;
  }
}

}  // namespace
}  // namespace tidegate::TIDEGATE_ABI::http
