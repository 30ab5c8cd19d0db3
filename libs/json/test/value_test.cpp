// SPDX-License-Identifier: Apache-2.0
#include <tidegate/json/value.hpp>

#include <tidegate/json/parse.hpp>

#include <gtest/gtest.h>

namespace tidegate::TIDEGATE_ABI::json {
namespace {

TEST(json_value, finds_members_in_any_case) {
  object object{{"userName", "a"}};
  EXPECT_EQ(*object.find("USERNAME"), value("a"));
  object.set("username", 2);
  object.set("title", true);
  EXPECT_EQ(to_string(value(object)), R"({"userName":2,"title":true})");
  EXPECT_TRUE(object.erase("Title"));
  EXPECT_FALSE(object.erase("title"));
}

TEST(json_value, compares_without_the_order_of_members) {
  auto const same = [](std::string_view a, std::string_view b) { return *parse(a) == *parse(b); };
  EXPECT_TRUE(same(R"({"a":1,"b":[2,"x"]})", R"({"B":[2,"x"],"A":1})"));
  EXPECT_FALSE(same(R"({"a":1})", R"({"a":1,"b":1})"));
  EXPECT_FALSE(same(R"({"a":1})", R"({"a":1.0})"));
  EXPECT_FALSE(same("[1,2]", "[2,1]"));
  EXPECT_FALSE(same("{}", "[]"));
  EXPECT_TRUE(same("null", "null"));
  EXPECT_FALSE(same("null", "false"));
}

}  // namespace
}  // namespace tidegate::TIDEGATE_ABI::json
