// SPDX-License-Identifier: Apache-2.0
#include "request/key_replies.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <string_view>

namespace tidegate::gateway {
namespace {

using namespace std::chrono_literals;
using idempotency::problem_code;
using testing::HasSubstr;

class proxy_key_replies : public testing::Test {
 protected:
  std::string content_ = "of the reply before";
  std::string lines_ = "of the reply before";
  reply_texts texts_{content_, lines_};
};

TEST_F(proxy_key_replies, have_the_status_and_the_reason_of_their_code) {
  struct row {
    problem_code code;
    int status;
    std::string_view reason;
  };
  for (auto const& each : {
           row{problem_code::key_missing, 400, "key-missing"},
           row{problem_code::key_malformed, 400, "key-malformed"},
           row{problem_code::key_too_old, 400, "key-too-old"},
           row{problem_code::scope_missing, 400, "scope-missing"},
           row{problem_code::digest_mismatch, 400, "digest-mismatch"},
           row{problem_code::key_reused, 422, "key-reused"},
           row{problem_code::in_flight, 409, "in-flight"},
           row{problem_code::outcome_unknown, 409, "outcome-unknown"},
           row{problem_code::result_expired, 409, "result-expired"},
           row{problem_code::response_not_replayable, 409, "response-not-replayable"},
           row{problem_code::body_too_large, 413, "body-too-large"},
           row{problem_code::too_many_keys, 429, "too-many-keys"},
           row{problem_code::store_unavailable, 503, "store-unavailable"},
       }) {
    auto const reply = key_refusal(texts_, {.code = each.code}, 0s);
    EXPECT_EQ(reply.status, each.status) << each.reason;
    EXPECT_EQ(reply.reason, each.reason);
    EXPECT_EQ(reply.content_type, "application/problem+json");
    EXPECT_THAT(reply.content, HasSubstr("\"code\":\"" + std::string(each.reason) + "\""));
    EXPECT_EQ(reply.retry_after, 0s) << each.reason;
    EXPECT_FALSE(reply.is_service) << each.reason;
  }
}

TEST_F(proxy_key_replies, link_to_the_documentation_and_have_further_lines) {
  auto const reply =
      key_refusal(texts_, {.code = problem_code::in_flight, .documentation = "/docs"}, 3s,
                  "Idempotency-Status: x\r\n");
  EXPECT_EQ(reply.field_lines,
            "Link: </docs>; rel=\"describedby\"; type=\"text/html\"\r\n"
            "Idempotency-Status: x\r\n");
  EXPECT_EQ(reply.retry_after, 3s);
  EXPECT_THAT(reply.content, HasSubstr("\"type\":\"/docs#in-flight\""));
}

TEST_F(proxy_key_replies, write_into_the_buffers_of_the_thread) {
  auto const reply = key_refusal(texts_, {.code = problem_code::key_missing}, 0s);
  EXPECT_EQ(reply.content.data(), content_.data());
  EXPECT_EQ(reply.field_lines.data(), lines_.data());
  EXPECT_THAT(content_, testing::Not(HasSubstr("before")));
  EXPECT_THAT(lines_, testing::Not(HasSubstr("before")));
}

TEST_F(proxy_key_replies, say_that_an_outcome_is_unknown_with_the_status_of_the_failure) {
  struct row {
    std::string_view name;
    int status;
    std::string_view reason;
    std::string_view expected;
  };
  idempotency_config settings;
  settings.documentation = "/docs";
  settings.policy.retry_unknown_outcome = 7s;
  for (auto const& each : {
           row{"no answer in time", 504, "", "upstream-timeout"},
           row{"no whole answer", 502, "", "upstream-closed"},
           row{"for another reason", 502, "upstream-malformed", "upstream-malformed"},
       }) {
    auto const reply = unknown_reply(texts_, each.status, each.reason, settings);
    EXPECT_EQ(reply.status, each.status) << each.name;
    EXPECT_EQ(reply.reason, each.expected) << each.name;
    EXPECT_EQ(reply.retry_after, 7s) << each.name;
    EXPECT_THAT(reply.content, HasSubstr("\"code\":\"outcome-unknown\"")) << each.name;
    EXPECT_THAT(reply.content, HasSubstr("\"status\":" + std::to_string(each.status)));
  }
}

TEST_F(proxy_key_replies, know_which_field_of_a_first_answer_is_stale) {
  EXPECT_TRUE(is_stale({"Retry-After", "120"}));
  EXPECT_TRUE(is_stale({"retry-after", "0"}));
  EXPECT_FALSE(is_stale({"Retry-After", "Sun, 06 Nov 1994 08:49:37 GMT"}));
  EXPECT_FALSE(is_stale({"Age", "120"}));
}

}  // namespace
}  // namespace tidegate::gateway
