// SPDX-License-Identifier: Apache-2.0
#include <tidegate/json/parse.hpp>

#include <gtest/gtest.h>

namespace tidegate::TIDEGATE_ABI::json {
namespace {

using enum fault;

TEST(json_parse, writes_what_it_reads) {
  struct row {
    std::string_view text;
    std::string_view written;
  };
  for (auto const& [text, written] : {
           row{" null ", "null"},
           row{"[ true , false ]", "[true,false]"},
           row{"-0", "0"},
           row{"9223372036854775807", "9223372036854775807"},
           row{"1.0", "1.0"},
           row{"1.50", "1.5"},
           row{"1e3", "1000.0"},
           row{"1E+400e", ""},
           row{R"("\u00e9\ud83d\ude00\n\/")", "\"\u00e9\U0001f600\\n/\""},
           row{R"({"a":{},"b":[]})", R"({"a":{},"b":[]})"},
       }) {
    auto const value = parse(text);
    EXPECT_EQ(value ? to_string(*value) : "", written) << text;
  }
}

TEST(json_parse, refuses_what_is_wrong_with_the_place) {
  struct row {
    std::string_view text;
    json::error error;
  };
  for (auto const& [text, error] : {
           row{"", {value_expected, 0}},
           row{"  ", {value_expected, 2}},
           row{"tru", {value_expected, 0}},
           row{"[1,]", {value_expected, 3}},
           row{"[1 2]", {comma_expected, 3}},
           row{R"({"a" 1})", {colon_expected, 5}},
           row{R"({"a":1,})", {name_expected, 7}},
           row{R"({"a":1)", {comma_expected, 6}},
           row{R"({"a":1,"b":2,"a":3})", {name_twice, 19}},
           row{R"({"userName":1,"USERNAME":2})", {name_twice, 27}},
           row{R"("a)", {unterminated_string, 2}},
           row{R"("\x")", {invalid_escape, 1}},
           row{R"("\u12g4")", {invalid_escape, 1}},
           row{R"("\ud800")", {lone_surrogate, 1}},
           row{R"("\udc00")", {lone_surrogate, 1}},
           row{"\"a\n\"", {control_character, 2}},
           row{"\"a\xc3\"", {invalid_utf8, 2}},
           row{"\"\xed\xa0\x80\"", {invalid_utf8, 1}},
           row{"01", {invalid_number, 0}},
           row{"-", {invalid_number, 0}},
           row{"1.", {invalid_number, 0}},
           row{"1e", {invalid_number, 0}},
           row{"+1", {value_expected, 0}},
           row{"NaN", {value_expected, 0}},
           row{"9223372036854775808", {number_out_of_range, 0}},
           row{"1e400", {number_out_of_range, 0}},
           row{"[[[[1]]]]", {too_deep, 3}},
           row{"1 2", {end_expected, 2}},
           row{R"("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa")", {too_long, 40}},
       }) {
    auto const value = parse(text, {.octets_max = 40, .depth_max = 3});
    ASSERT_FALSE(value) << text;
    EXPECT_EQ(value.error(), error) << text << ": " << to_string(value.error());
  }
}

TEST(json_parse, reads_a_literal_and_stops_behind_it) {
  auto const literal = parse_literal(R"("a\"b" and)");
  ASSERT_TRUE(literal);
  EXPECT_EQ(literal->value, value("a\"b"));
  EXPECT_EQ(literal->octets, 6U);
  EXPECT_EQ(parse_literal("[1]").error(), (error{value_expected, 0}));
}

}  // namespace
}  // namespace tidegate::TIDEGATE_ABI::json
