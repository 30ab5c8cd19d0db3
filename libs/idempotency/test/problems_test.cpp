// SPDX-License-Identifier: Apache-2.0
#include <tidegate/idempotency/problems.hpp>

#include <gtest/gtest.h>

#include <set>

namespace tidegate::TIDEGATE_ABI::idempotency {
namespace {

using namespace std::chrono_literals;
using enum problem_code;

auto written(problem_details const& problem) -> std::string {
  std::string out;
  append_problem(out, problem);
  return out;
}

TEST(idempotency_problems, have_the_status_and_code_of_the_contract) {
  struct row {
    problem_code code;
    int status;
    std::string_view name;
  };
  std::set<std::string_view> titles;
  for (auto const& [code, status, name] : {
           row{key_missing, 400, "key-missing"},
           {key_malformed, 400, "key-malformed"},
           {key_too_old, 400, "key-too-old"},
           {scope_missing, 400, "scope-missing"},
           {key_reused, 422, "key-reused"},
           {in_flight, 409, "in-flight"},
           {outcome_unknown, 409, "outcome-unknown"},
           {result_expired, 409, "result-expired"},
           {response_not_replayable, 409, "response-not-replayable"},
           {body_too_large, 413, "body-too-large"},
           {digest_mismatch, 400, "digest-mismatch"},
           {too_many_keys, 429, "too-many-keys"},
           {store_unavailable, 503, "store-unavailable"},
       }) {
    EXPECT_EQ(status_of(code), status) << name;
    EXPECT_EQ(name_of(code), name);
    titles.insert(title_of(code));
    auto const text = written({.code = code});
    auto const type = R"({"type":"/.well-known/tidegate#)" + std::string(name) + "\",";
    EXPECT_TRUE(text.starts_with(type)) << text;
    EXPECT_NE(text.find("\"status\":" + std::to_string(status) + ","), std::string::npos) << text;
    EXPECT_TRUE(text.ends_with("\"code\":\"" + std::string(name) + "\"}")) << text;
    EXPECT_NE(text.find("\"detail\":\""), std::string::npos) << text;
  }
  EXPECT_EQ(titles.size(), 13U) << "each has its own title";
}

TEST(idempotency_problems, say_of_a_missing_key_what_the_draft_shows) {
  EXPECT_EQ(
      written({.code = key_missing, .documentation = "https://developer.example.com/idempotency"}),
      R"({"type":"https://developer.example.com/idempotency#key-missing",)"
      R"("title":"Idempotency-Key is missing","status":400,)"
      R"("detail":"This operation requires an Idempotency-Key.","code":"key-missing"})");
}

TEST(idempotency_problems, name_the_parts_that_differ) {
  auto const text = written({.code = key_reused,
                             .detail = "Other.",
                             .differs = {request_part::body, request_part::method}});
  EXPECT_TRUE(text.ends_with(
      R"("status":422,"detail":"Other.","code":"key-reused","differs":["method","body"]})"))
      << text;
}

TEST(idempotency_problems, tell_the_first_status_and_time_of_an_expired_result) {
  auto const text = written({.code = result_expired,
                             .first_status = 201,
                             .first_completed = wall_time(1'700'000'000'999ms)});
  EXPECT_TRUE(text.ends_with(
      R"("code":"result-expired","first-status":201,"first-completed":"2023-11-14T22:13:20Z"})"))
      << text;
  auto const never = written({.code = result_expired, .first_completed = wall_time::max()});
  EXPECT_TRUE(never.ends_with(R"("code":"result-expired"})")) << never;
}

TEST(idempotency_problems, take_another_status_for_the_first_answer) {
  EXPECT_NE(written({.code = outcome_unknown, .status = 504}).find("\"status\":504"),
            std::string::npos);
}

TEST(idempotency_problems, link_to_the_documentation) {
  std::string out;
  append_link(out, "https://developer.example.com/idempotency");
  EXPECT_EQ(out,
            R"(<https://developer.example.com/idempotency>; rel="describedby"; type="text/html")");
}

}  // namespace
}  // namespace tidegate::TIDEGATE_ABI::idempotency
