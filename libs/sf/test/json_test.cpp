// SPDX-License-Identifier: Apache-2.0
#include "base32.hpp"
#include "json_value.hpp"

#include <tidegate/sf.hpp>

#include <gtest/gtest.h>

#include <string>

namespace tidegate::TIDEGATE_ABI::sf {
namespace {

TEST(sf_json, shows_every_type) {
  auto const value =
      parse_list(R"(1;a, 1.50, "q\"\\", tok, :aGVsbG8=:, ?0, @7, %"%c3%bc%0a", (1 2;b=?0);c=x)")
          .value();
  auto const json = list_to_json<dialect::rfc9651>(value);
  EXPECT_EQ(
      json,
      R"([[1,[["a",true]]],[1.5,[]],["q\"\\",[]],[{"__type":"token","value":"tok"},[]],)"
      R"([{"__type":"binary","value":"NBSWY3DP"},[]],[false,[]],[{"__type":"date","value":7},[]],)"
      "[{\"__type\":\"displaystring\",\"value\":\"\xc3\xbc\\n\"},[]],"
      R"([[[1,[]],[2,[["b",false]]]],[["c",{"__type":"token","value":"x"}]]]])");
  EXPECT_EQ(list_from_json(json).value(), value);
}

TEST(sf_json, shows_a_parameter_without_value_of_draft11_as_null) {
  auto const value = parse_list<dialect::draft11>("x;a;b=?1").value();
  auto const json = list_to_json<dialect::draft11>(value);
  EXPECT_EQ(json, R"([[{"__type":"token","value":"x"},[["a",null],["b",true]]]])");
  EXPECT_EQ(list_from_json<dialect::draft11>(json).value(), value);
  EXPECT_FALSE(list_from_json(json).has_value());
}

TEST(sf_json, shows_a_dictionary_as_pairs) {
  auto const value = parse_dictionary("a=(1);x, b").value();
  auto const json = dictionary_to_json<dialect::rfc9651>(value);
  EXPECT_EQ(json, R"([["a",[[[1,[]]],[["x",true]]]],["b",[true,[]]]])");
  EXPECT_EQ(dictionary_from_json(json).value(), value);
  EXPECT_EQ(dictionary_to_json<dialect::rfc9651>(dictionary()), "[]");
}

TEST(sf_json, says_what_cannot_be_a_field_and_where) {
  struct row {
    std::string_view json;
    std::string_view what;
    std::size_t offset;
  };
  for (auto const& [json, what, offset] : {
           row{"", "a value is expected", 0},
           {"[1]", "expected an item: [bare item, parameters]", 0},
           {"[1,[]] x", "more behind the value", 7},
           {"[null,[]]", "expected a bare item", 1},
           {"[1000000000000000,[]]", "an Integer is out of range", 1},
           {"[1e3000,[]]", "a Decimal is out of range", 1},
           {"[1,[[\"A\",1]]]", "a key holds a character that is not allowed", 5},
           {"[1,[[\"a\"]]]", "expected a parameter: [key, bare item]", 4},
           {"[\"\\u00fc\",[]]", "a String holds a character that is not allowed", 1},
           {R"([{"__type":"token","value":""},[]])", "a Token must not be empty", 27},
           {R"([{"__type":"binary","value":"A"},[]])", "a Byte Sequence must be in padded base32",
            28},
           {R"([{"__type":"date","value":1.5},[]])", "a Date must be a number without a point", 26},
           {R"([{"__type":"x","value":"y"},[]])",
            "unknown \"__type\": token, binary, date or displaystring", 11},
           {R"([{"value":"y"},[]])", "an object must have \"__type\" and \"value\"", 1},
           {R"(["\ud800",[]])", "invalid escape in a string", 8},
           {R"(["\udc00",[]])", "invalid escape in a string", 8},
           {"[\"\xff\",[]]", "not UTF-8", 2},
           {"[\"\n\",[]]", "control character in a string", 2},
           {R"({"a":1,"a":2})", "a name comes twice in an object", 10},
           {"[01,[]]", "invalid number", 2},
           {"[1.,[]]", "invalid number", 3},
           {"[tru,[]]", "a value is expected", 1},
           {R"([1,[["a",1],["a",2]]])", "a parameter comes twice", 3},
       }) {
    auto const value = item_from_json(json);
    ASSERT_FALSE(value.has_value()) << json;
    EXPECT_EQ(value.error(), (json_error{std::string(what), offset})) << json;
  }
}

TEST(sf_json, has_no_newer_types_in_older_dialects) {
  auto const json = R"([{"__type":"date","value":1},[]])";
  EXPECT_TRUE(item_from_json(json).has_value());
  EXPECT_EQ(item_from_json<dialect::rfc8941>(json).error().message,
            "there is no Date in this dialect");
  auto const display = R"([{"__type":"displaystring","value":"x"},[]])";
  EXPECT_EQ(item_from_json<dialect::draft11>(display).error().message,
            "there is no Display String in this dialect");
}

TEST(sf_json, decodes_surrogate_pairs_and_all_escapes) {
  auto const text =
      detail::parse_json(R"("\"\\\/\b\f\n\r\t\u0041\u20AC\ud83c\udf0a")").value().text;
  EXPECT_EQ(text, "\"\\/\b\f\n\r\tA\xe2\x82\xac\xf0\x9f\x8c\x8a");
}

TEST(sf_json, is_bounded_in_depth) {
  EXPECT_TRUE(detail::parse_json(std::string(64, '[') + std::string(64, ']')).has_value());
  auto const deep = detail::parse_json(std::string(100'000, '['));
  EXPECT_EQ(deep.error().message, "nested too deep");
}

TEST(sf_json, encodes_base32_with_padding) {
  for (auto [octets, text] : {std::pair{"", ""},
                              {"f", "MY======"},
                              {"fo", "MZXQ===="},
                              {"foo", "MZXW6==="},
                              {"foob", "MZXW6YQ="},
                              {"fooba", "MZXW6YTB"},
                              {"foobar", "MZXW6YTBOI======"}}) {
    EXPECT_EQ(detail::base32_encode(octets), text);
    EXPECT_EQ(detail::base32_decode(text), octets);
  }
  for (auto bad : {"M", "MY", "MY=====", "MZ======", "my======", "MY======MY", "========", "1"}) {
    EXPECT_EQ(detail::base32_decode(bad), std::nullopt) << bad;
  }
}

}  // namespace
}  // namespace tidegate::TIDEGATE_ABI::sf
