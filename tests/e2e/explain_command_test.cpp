// SPDX-License-Identifier: Apache-2.0
#include "process.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tidegate::e2e {
namespace {

using testing::HasSubstr;

auto explain(std::vector<std::string> arguments, std::string const& input = {}) -> outcome {
  arguments.insert(arguments.begin(), {TIDEGATE_BINARY, "explain"});
  return run(arguments, input);
}

TEST(explain_command, says_in_words_what_fields_mean) {
  auto const answer =
      explain({R"(RateLimit: "burst";r=38;t=12)", R"(RateLimit-Policy: "burst";q=100;w=60)"});
  EXPECT_EQ(answer.status, 0);
  EXPECT_EQ(answer.out,
            "RateLimit\n  \"burst\": 38 of 100 requests left in this minute, resets in 12 s; pace "
            "yourself to 3.1 requests a second until then\n");
  EXPECT_EQ(answer.err, "");
}

TEST(explain_command, exits_with_1_when_something_is_wrong) {
  auto const answer = explain({R"(RateLimit: "burst";t=12)"});
  EXPECT_EQ(answer.status, 1);
  EXPECT_THAT(answer.out, HasSubstr("r is required"));
  EXPECT_THAT(answer.out, HasSubstr("draft-ietf-httpapi-ratelimit-headers-09, section 4.1"));
}

TEST(explain_command, reads_header_lines_from_standard_input) {
  auto const answer = explain({"-"},
                              "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 5\r\n"
                              "RateLimit: \"a\";r=0;t=30\r\n\r\n");
  EXPECT_EQ(answer.status, 1);
  EXPECT_THAT(answer.out, HasSubstr("25 s before the quota is reset"));
  EXPECT_EQ(explain({"-"}, "Content-Type: text/plain\n").status, 0);
}

TEST(explain_command, prints_json_when_asked_to) {
  EXPECT_EQ(
      explain({"--json", "Retry-After: 5"}).out,
      "{\"findings\":[{\"severity\":\"info\",\"field\":\"Retry-After\",\"text\":\"wait 5 s, then "
      "try again\"}],\"errors\":0,\"warnings\":0}\n");
}

TEST(explain_command, exits_with_2_when_it_is_called_wrongly) {
  EXPECT_EQ(explain({}).status, 2);
  EXPECT_EQ(explain({"no field"}).status, 2);
  EXPECT_EQ(explain({"-", "Retry-After: 5"}).status, 2);
  EXPECT_EQ(explain({"-"}, std::string((1U << 20U) + 1, 'x')).status, 2);
}

}  // namespace
}  // namespace tidegate::e2e
