// SPDX-License-Identifier: Apache-2.0
#include "process.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tidegate::e2e {
namespace {

auto tidegate(std::vector<std::string> arguments, std::string const& input = {}) -> outcome {
  arguments.insert(arguments.begin(), TIDEGATE_BINARY);
  return run(arguments, input);
}

auto parse(std::string const& type, std::vector<std::string> values, std::string const& input = {})
    -> outcome {
  values.insert(values.begin(), {"sf", "parse", "--type", type});
  return tidegate(std::move(values), input);
}

TEST(tidegate_command, prints_its_version_and_commit) {
  auto const answer = tidegate({"--version"});
  EXPECT_EQ(answer.status, 0);
  EXPECT_THAT(answer.out,
              testing::MatchesRegex(R"(tidegate [0-9]+\.[0-9]+\.[0-9]+ \([0-9a-z]+\).)"));
}

TEST(tidegate_command, shows_its_subcommands_in_the_help) {
  auto const answer = tidegate({"--help"});
  EXPECT_EQ(answer.status, 0);
  EXPECT_NE(answer.out.find("sf "), std::string::npos);
}

TEST(tidegate_command, exits_with_2_when_it_is_called_wrongly) {
  EXPECT_EQ(tidegate({}).status, 2);
  EXPECT_EQ(tidegate({"nonsense"}).status, 2);
  EXPECT_EQ(tidegate({"sf"}).status, 2);
  EXPECT_EQ(tidegate({"sf", "parse", "1"}).status, 2);
  EXPECT_EQ(tidegate({"sf", "parse", "--type", "thing", "1"}).status, 2);
  EXPECT_EQ(tidegate({"sf", "parse", "--type", "item", "--dialect", "rfc1", "1"}).status, 2);
  EXPECT_EQ(tidegate({"sf", "parse", "--type", "item", "--typo", "1"}).status, 2);
  EXPECT_EQ(tidegate({"sf", "format", "--type", "item", "--", "1"}).status, 2);
}

TEST(sf_command, prints_a_value_as_one_line_of_json) {
  auto const answer = parse("list", {R"("default";r=50;t=30)"});
  EXPECT_EQ(answer.status, 0);
  EXPECT_EQ(answer.out, "[[\"default\",[[\"r\",50],[\"t\",30]]]]\n");
  EXPECT_EQ(answer.err, "");
}

TEST(sf_command, combines_its_arguments_as_field_lines) {
  EXPECT_EQ(parse("dictionary", {"a=1", "b=2, a=3"}).out, "[[\"a\",[3,[]]],[\"b\",[2,[]]]]\n");
  EXPECT_EQ(parse("item", {"1", "2"}).status, 1);
}

TEST(sf_command, reads_field_lines_from_standard_input) {
  EXPECT_EQ(parse("dictionary", {}, "a=1\nb=2\n").out, "[[\"a\",[1,[]]],[\"b\",[2,[]]]]\n");
  EXPECT_EQ(parse("list", {}, "").out, "[]\n");
  EXPECT_EQ(parse("item", {}, "").err, "error: the value ends too early at offset 0\n");
}

TEST(sf_command, takes_values_that_begin_with_a_dash) {
  EXPECT_EQ(parse("item", {"-5"}).out, "[-5,[]]\n");
  EXPECT_EQ(parse("item", {"--", "-5"}).out, "[-5,[]]\n");
  EXPECT_EQ(parse("item", {"--", "--5"}).err, "error: expected a digit at offset 1\n");
}

TEST(sf_command, says_what_is_wrong_and_exits_with_1) {
  auto const answer = parse("list", {"1, 2, (3"});
  EXPECT_EQ(answer.status, 1);
  EXPECT_EQ(answer.out, "");
  EXPECT_EQ(answer.err, "error: the value ends too early at offset 8\n");
}

TEST(sf_command, reads_the_three_dialects) {
  EXPECT_EQ(parse("item", {"--dialect", "rfc9651", "@1"}).out,
            "[{\"__type\":\"date\",\"value\":1},[]]\n");
  EXPECT_EQ(parse("item", {"--dialect", "rfc8941", "@1"}).status, 1);
  EXPECT_EQ(parse("item", {"*aGk=*", "--dialect", "draft11"}).out,
            "[{\"__type\":\"binary\",\"value\":\"NBUQ====\"},[]]\n");
  EXPECT_EQ(parse("list", {"--dialect", "draft11", "a;b"}).out,
            "[[{\"__type\":\"token\",\"value\":\"a\"},[[\"b\",null]]]]\n");
}

TEST(sf_command, formats_json_as_a_field_value) {
  auto format = [](std::string const& type, std::string const& json, std::string const& dialect) {
    return tidegate({"sf", "format", "--type", type, "--dialect", dialect}, json);
  };
  EXPECT_EQ(format("item", "[1.0005,[]]", "rfc9651").out, "1.0\n");
  EXPECT_EQ(format("list", "[[[[1,[]],[2,[]]],[]]]", "rfc8941").out, "(1 2)\n");
  EXPECT_EQ(format("list", "[[[[1,[]],[2,[]]],[]]]", "draft11").out, "(1 2 )\n");
  EXPECT_EQ(format("list", "[]", "rfc9651").out, "");
  EXPECT_EQ(format("dictionary", "[]", "rfc9651").status, 0);
  auto const wrong = format("item", "[\"\\u00e9\",[]]", "rfc9651");
  EXPECT_EQ(wrong.status, 1);
  EXPECT_EQ(wrong.err, "error: a String holds a character that is not allowed at offset 1\n");
}

TEST(sf_command, formats_what_parse_read) {
  std::string const value = R"(a=1, b=2;x, c=(1 2 "three"), d=:cHJldGVuZA==:, e=4.5, f=tok/en)";
  auto const json = parse("dictionary", {value}).out;
  EXPECT_EQ(tidegate({"sf", "format", "--type", "dictionary"}, json).out, value + "\n");
}

}  // namespace
}  // namespace tidegate::e2e
