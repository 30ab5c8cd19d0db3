// SPDX-License-Identifier: Apache-2.0
#include <tidegate/json/writer.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tidegate::TIDEGATE_ABI::json {
namespace {

TEST(json_writer, puts_commas_between_members_and_elements) {
  std::string out;
  writer(out)
      .begin_object()
      .member("text", "a\"b")
      .member("number", std::int64_t{-3})
      .member("truth", true)
      .member("none", std::optional<std::string>())
      .member("some", std::optional<std::string>("s"))
      .member_raw("decimal", "1.5")
      .list("texts", std::vector<std::string>{"x", "y"})
      .begin_array("empty")
      .end_array()
      .begin_array("objects")
      .begin_object()
      .end_object()
      .begin_object()
      .member("ends", "with [")
      .end_object()
      .end_array()
      .end_object();
  EXPECT_EQ(out, R"({"text":"a\"b","number":-3,"truth":true,"none":null,"some":"s","decimal":1.5,)"
                 R"("texts":["x","y"],"empty":[],"objects":[{},{"ends":"with ["}]})");
}

TEST(json_writer, goes_on_with_what_is_there) {
  std::string out = R"({"a":1)";
  writer(out).member("b", 2).begin_object("c").end_object().end_object();
  EXPECT_EQ(out, R"({"a":1,"b":2,"c":{}})");
}

}  // namespace
}  // namespace tidegate::TIDEGATE_ABI::json
