// SPDX-License-Identifier: Apache-2.0
#include <tidegate/ratelimit/problems.hpp>

#include "support/allocations.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace tidegate::TIDEGATE_ABI::ratelimit {
namespace {

TEST(ratelimit_problems, writes_the_three_types_of_section_5) {
  struct row {
    problem_type type;
    std::vector<std::string_view> violated;
    std::string_view detail;
    int status;
    std::string_view content;
  };
  for (
      auto const& row : {
          row{problem_type::quota_exceeded,
              {"daily", "bandwidth"},
              "",
              429,
              R"({"type":"https://iana.org/assignments/http-problem-types#quota-exceeded",)"
              R"("title":"Request cannot be satisfied as assigned quota has been exceeded",)"
              R"("status":429,"violated-policies":["daily","bandwidth"]})"},
          {problem_type::temporary_reduced_capacity,
           {"hourly"},
           "Try again in a minute.",
           503,
           R"({"type":"https://iana.org/assignments/http-problem-types#temporary-reduced-capacity",)"
           R"("title":"Request cannot be satisfied due to temporary server capacity constraints",)"
           R"("status":503,"detail":"Try again in a minute.","violated-policies":["hourly"]})"},
          {problem_type::abnormal_usage_detected,
           {},
           "",
           429,
           R"({"type":"https://iana.org/assignments/http-problem-types#abnormal-usage-detected",)"
           R"("title":"Request not satisfied due to detection of abnormal request pattern",)"
           R"("status":429})"},
      }) {
    std::string out = "before ";
    append_problem(out, row.type, row.violated, row.detail);
    EXPECT_EQ(out, "before " + std::string(row.content));
    EXPECT_EQ(status_of(row.type), row.status);
  }
}

TEST(ratelimit_problems, writes_valid_json_whatever_a_policy_is_called) {
  std::string out;
  std::vector<std::string_view> const violated = {R"(a "quoted\ name)"};
  append_problem(out, problem_type::quota_exceeded, violated);
  EXPECT_TRUE(out.ends_with(R"("violated-policies":["a \"quoted\\ name"]})")) << out;
}

TEST(ratelimit_problems, allocates_nothing_when_there_is_room) {
  std::string out;
  out.reserve(1024);
  std::vector<std::string_view> const violated = {"daily", "bandwidth"};
  auto const before = test::allocations();
  append_problem(out, problem_type::quota_exceeded, violated, "Come back tomorrow.");
  EXPECT_EQ(test::allocations(), before);
}

}  // namespace
}  // namespace tidegate::TIDEGATE_ABI::ratelimit
