// SPDX-License-Identifier: Apache-2.0
#include <tidegate/json/pointer.hpp>

#include <tidegate/json/canonical.hpp>

#include <gtest/gtest.h>

namespace tidegate::TIDEGATE_ABI::json {
namespace {

auto canonical(std::string_view text) -> std::string {
  std::string out;
  EXPECT_TRUE(append_canonical(out, text)) << text;
  return out;
}

TEST(json_pointer, finds_values_as_rfc_6901_shows) {
  auto const text = canonical(
      R"({"foo":["bar","baz"],"":0,"a/b":1,"c%d":2,"e^f":3,"g|h":4,"i\\j":5,"k\"l":6," ":7,"m~n":8,
          "o":{"p":[[],{"q":"}]\\\""},10]},"1":"one"})");
  struct row {
    std::string_view pointer;
    std::optional<std::string_view> value;
  };
  for (auto const& [pointer, value] : {
           row{"", text},
           {"/foo", R"(["bar","baz"])"},
           {"/foo/0", R"("bar")"},
           {"/foo/1", R"("baz")"},
           {"/", "0"},
           {"/a~1b", "1"},
           {"/c%d", "2"},
           {"/e^f", "3"},
           {"/g|h", "4"},
           {"/i\\j", "5"},
           {"/k\"l", "6"},
           {"/ ", "7"},
           {"/m~0n", "8"},
           {"/o/p/0", "[]"},
           {"/o/p/1/q", R"("}]\\\"")"},
           {"/o/p/2", "1e1"},
           {"/1", R"("one")"},
           {"/foo/2", {}},
           {"/foo/00", {}},
           {"/foo/01", {}},
           {"/foo/-", {}},
           {"/foo/18446744073709551616", {}},
           {"/foo/bar", {}},
           {"/foo/", {}},
           {"/foo/0/0", {}},
           {"/o/p/0/0", {}},
           {"/x", {}},
           {"/o/x", {}},
           {"//", {}},
       }) {
    auto const parsed = pointer::parse(pointer);
    ASSERT_TRUE(parsed.has_value()) << pointer;
    EXPECT_EQ(parsed->find(text), value) << pointer;
  }
  EXPECT_EQ(pointer::parse("/a")->find("{}"), std::nullopt);
  EXPECT_EQ(pointer::parse("/0")->find("[]"), std::nullopt);
  EXPECT_EQ(pointer::parse("")->find("1"), "1");
}

TEST(json_pointer, says_why_a_text_is_none) {
  using enum pointer_fault;
  struct row {
    std::string text;
    pointer_error error;
  };
  for (auto const& [text, error] : {
           row{"a", {slash_expected, 0}},
           {"#/a", {slash_expected, 0}},
           {"/~", {invalid_escape, 1}},
           {"/a~2", {invalid_escape, 2}},
           {"/\xff", {invalid_utf8, 1}},
           {"/" + std::string(256, 'a'), {too_long, 256}},
       }) {
    auto const parsed = pointer::parse(text);
    ASSERT_FALSE(parsed.has_value()) << text;
    EXPECT_EQ(parsed.error(), error) << text;
    EXPECT_TRUE(to_string(error).ends_with(" at offset " + std::to_string(error.offset)));
  }
}

}  // namespace
}  // namespace tidegate::TIDEGATE_ABI::json
