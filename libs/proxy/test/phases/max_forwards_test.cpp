// SPDX-License-Identifier: Apache-2.0
#include "phases/max_forwards.hpp"

#include "phases/phase_fixture.hpp"

#include <gmock/gmock.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace tidegate::gateway {
namespace {

using testing::HasSubstr;
using count = std::optional<std::uint64_t>;

constexpr auto unbounded = "routes: [{match: {path: /**}, service: echo}]\n";

[[nodiscard]] auto options_with(phase_fixture& with, std::string const& lines)
    -> std::variant<count, local_reply> {
  return max_forwards_of(with.ask("OPTIONS /a HTTP/1.1\r\nHost: h\r\n" + lines + "\r\n"),
                         with.texts());
}

TEST(proxy_max_forwards, counts_down) {
  struct row {
    std::string lines;
    count left;
  };
  constexpr auto most = std::numeric_limits<std::uint64_t>::max();
  phase_fixture with(unbounded);
  for (auto const& [lines, left] : std::vector<row>{
           {"", std::nullopt},
           {"X-Max-Forwards: 0\r\n", std::nullopt},
           {"Max-Forwards: 1\r\n", 0},
           {"max-forwards: 10\r\n", 9},
           {"Max-Forwards: 007\r\n", 6},
           {"Max-Forwards: 18446744073709551615\r\n", most - 1},
           {"Max-Forwards: 99999999999999999999\r\n", most - 1},  // more than fits
       }) {
    auto const said = options_with(with, lines);
    ASSERT_TRUE(std::holds_alternative<count>(said)) << lines;
    EXPECT_EQ(std::get<count>(said), left) << lines;
  }
}

TEST(proxy_max_forwards, refuses_what_is_not_one_number) {
  struct row {
    std::string lines;
    std::string_view detail;
  };
  phase_fixture with(unbounded);
  for (auto const& [lines, detail] : std::vector<row>{
           {"Max-Forwards: \r\n", "is not a number"},
           {"Max-Forwards: x\r\n", "is not a number"},
           {"Max-Forwards: -1\r\n", "is not a number"},
           {"Max-Forwards: +1\r\n", "is not a number"},
           {"Max-Forwards: 1x\r\n", "is not a number"},
           {"Max-Forwards: 1, 2\r\n", "is not a number"},
           {"Max-Forwards: 99999999999999999999x\r\n", "is not a number"},
           {"Max-Forwards: 1\r\nMax-Forwards: 1\r\n", "more than once"},
           {"Max-Forwards: 0\r\nmax-forwards: 5\r\n", "more than once"},
       }) {
    auto const said = options_with(with, lines);
    ASSERT_TRUE(std::holds_alternative<local_reply>(said)) << lines;
    auto const& reply = std::get<local_reply>(said);
    EXPECT_EQ(reply.status, 400) << lines;
    EXPECT_EQ(reply.reason, "malformed") << lines;
    EXPECT_THAT(reply.content, HasSubstr(std::string(detail))) << lines;
  }
}

TEST(proxy_max_forwards, answers_itself_at_0_with_the_methods_of_the_route) {
  struct row {
    std::string_view match;
    std::string_view allow;
  };
  for (auto const& [match, allow] : std::vector<row>{
           {"{path: /**}", "Allow: GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS\r\n"},
           {"{path: /**, methods: [OPTIONS]}", "Allow: OPTIONS\r\n"},
           {"{path: /**, methods: [GET, OPTIONS]}", "Allow: GET, OPTIONS\r\n"},
       }) {
    phase_fixture with("routes: [{match: " + std::string(match) + ", service: echo}]\n");
    auto const said = options_with(with, "Max-Forwards: 0\r\n");
    ASSERT_TRUE(std::holds_alternative<local_reply>(said)) << match;
    EXPECT_EQ(std::get<local_reply>(said).status, 200) << match;
    EXPECT_EQ(std::get<local_reply>(said).field_lines, allow) << match;
    EXPECT_EQ(std::get<local_reply>(said).content, "") << match;
  }
}

TEST(proxy_max_forwards, replaces_the_count_in_a_head) {
  struct row {
    std::string_view name;
    std::string head;
    std::string_view lines;  // behind the request line
  };
  for (auto const& [name, head, lines] : std::vector<row>{
           {"none", "Host: h\r\n\r\n", "Host: h\r\nMax-Forwards: 4\r\n\r\n"},
           {"first", "Max-Forwards: 5\r\nHost: h\r\n\r\n", "Host: h\r\nMax-Forwards: 4\r\n\r\n"},
           {"last", "Host: h\r\nmax-forwards: 5\r\n\r\n", "Host: h\r\nMax-Forwards: 4\r\n\r\n"},
           {"between", "A: 1\r\nMAX-FORWARDS: 5\r\nB: 2\r\n\r\n",
            "A: 1\r\nB: 2\r\nMax-Forwards: 4\r\n\r\n"},
           {"two in a row", "Max-Forwards: 5\r\nMax-Forwards: 6\r\nB: 2\r\n\r\n",
            "B: 2\r\nMax-Forwards: 4\r\n\r\n"},
           {"another that begins so", "Max-Forwards-Not: 5\r\n\r\n",
            "Max-Forwards-Not: 5\r\nMax-Forwards: 4\r\n\r\n"},
           {"in a value", "A: max-forwards: 5\r\n\r\n",
            "A: max-forwards: 5\r\nMax-Forwards: 4\r\n\r\n"},
       }) {
    auto text = "OPTIONS /a HTTP/1.1\r\n" + head;
    replace_max_forwards(text, 4);
    EXPECT_EQ(text, "OPTIONS /a HTTP/1.1\r\n" + std::string(lines)) << name;
  }
}

}  // namespace
}  // namespace tidegate::gateway
