// SPDX-License-Identifier: Apache-2.0
#include "serve/shown_fault.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace tidegate::app {
namespace {

auto shown(std::string_view text, std::size_t line, std::size_t column,
           std::string const& message = "wrong") -> std::string {
  return shown_fault({"a.yaml", line, column, message}, text, explain::colours::off);
}

TEST(shown_fault, has_the_line_and_a_mark_under_the_place) {
  EXPECT_EQ(shown("routes:\n  - servce: echo\n", 2, 5),
            "a.yaml:2:5: wrong\n"
            "  2 |   - servce: echo\n"
            "    |     ^\n");
  EXPECT_EQ(shown("a: 1\r\n\r\n", 1, 5), "a.yaml:1:5: wrong\n  1 | a: 1\n    |     ^\n");
}

TEST(shown_fault, keeps_the_mark_in_its_column) {
  EXPECT_EQ(shown("\ta: \xc3\xa4\xc3\xb6 x\n", 1, 10),
            "a.yaml:1:10: wrong\n  1 | \ta: \xc3\xa4\xc3\xb6 x\n    | \t      ^\n");
}

TEST(shown_fault, says_a_line_once) {
  EXPECT_EQ(shown("\tx\n", 1, 2, "tabs cannot indent; the line: \"\tx\""),
            "a.yaml:1:2: tabs cannot indent\n  1 | \tx\n    | \t^\n");
}

TEST(shown_fault, is_the_message_alone_where_the_place_is_not_in_the_text) {
  for (auto const& [line, column] : {std::pair{3U, 1U}, {0U, 1U}, {1U, 0U}, {1U, 99U}}) {
    EXPECT_EQ(shown("a: 1\n", line, column),
              "a.yaml:" + std::to_string(line) + ":" + std::to_string(column) + ": wrong\n");
  }
  EXPECT_EQ(shown("", 1, 1), "a.yaml:1:1: wrong\n");
}

TEST(shown_fault, shows_what_is_near_in_a_long_line) {
  auto const text = std::string(500, 'a') + "b" + std::string(500, 'c') + "\n";
  EXPECT_EQ(shown(text, 1, 501), "a.yaml:1:501: wrong\n  1 | " + std::string(60, 'a') + "b" +
                                     std::string(39, 'c') + "\n    | " + std::string(60, ' ') +
                                     "^\n");
}

TEST(shown_fault, lets_nothing_control_the_terminal) {
  EXPECT_THAT(shown("a: \x1b[2J\n", 1, 4), testing::Not(testing::HasSubstr("\x1b")));
  EXPECT_THAT(shown_fault({"a.yaml", 1, 1, "wrong"}, "a\n", explain::colours::on),
              testing::HasSubstr("\x1b[1;31m^\x1b[0m\n"));
}

}  // namespace
}  // namespace tidegate::app
