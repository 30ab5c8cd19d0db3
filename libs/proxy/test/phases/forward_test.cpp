// SPDX-License-Identifier: Apache-2.0
#include "phases/forward.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tidegate::gateway {
namespace {

using testing::HasSubstr;
using why = upstream_failure;

constexpr std::array all_failures{why::connect_refused,
                                  why::connect_timeout,
                                  why::closed_unanswered,
                                  why::closed,
                                  why::malformed,
                                  why::timeout,
                                  why::idle,
                                  why::no_descriptor};

TEST(proxy_forward, tells_clients_and_logs_why_an_upstream_did_not_answer) {
  struct row {
    why failure;
    std::string_view reason;
    int status;
    std::string_view title;
  };
  std::vector<row> const rows{
      {why::connect_refused, "upstream-refused", 502, "Bad Gateway"},
      {why::connect_timeout, "upstream-connect-timeout", 504, "Gateway Timeout"},
      {why::closed_unanswered, "upstream-closed", 502, "Bad Gateway"},
      {why::closed, "upstream-closed", 502, "Bad Gateway"},
      {why::malformed, "upstream-malformed", 502, "Bad Gateway"},
      {why::timeout, "upstream-timeout", 504, "Gateway Timeout"},
      {why::idle, "upstream-idle", 504, "Gateway Timeout"},
      {why::no_descriptor, "no-descriptor", 503, "Service Unavailable"},
  };
  ASSERT_EQ(rows.size(), all_failures.size());
  std::string content;
  std::string lines;
  for (auto const& [failure, reason, status, title] : rows) {
    EXPECT_EQ(reason_of(failure), reason);
    auto const reply = failure_reply(failure, {content, lines});
    EXPECT_EQ(reply.reason, reason);
    EXPECT_EQ(reply.status, status) << reason;
    EXPECT_EQ(reply.content_type, http::problem_json) << reason;
    EXPECT_THAT(reply.content, HasSubstr("\"title\":\"" + std::string(title) + '"')) << reason;
    EXPECT_THAT(reply.content, HasSubstr("\"status\":" + std::to_string(status))) << reason;
  }
}

TEST(proxy_forward, has_clients_come_again_only_where_the_gateway_itself_has_no_room) {
  std::string content;
  std::string lines;
  for (auto const failure : all_failures) {
    EXPECT_EQ(failure_reply(failure, {content, lines}).field_lines,
              failure == why::no_descriptor ? "Retry-After: 1\r\n" : "")
        << reason_of(failure);
  }
}

TEST(proxy_forward, knows_when_nothing_was_sent) {
  for (auto const failure : all_failures) {
    EXPECT_EQ(was_not_sent(failure),
              failure == why::connect_refused || failure == why::connect_timeout)
        << reason_of(failure);
  }
}

/// How many tries there are with `retries`, at most; 1 where a failure is final.
TEST(proxy_forward, tries_again_as_often_as_is_allowed_and_safe) {
  struct row {
    why failure;
    bool may_repeat;
    std::array<std::int64_t, 3> tries;  // with 0, 1 and 2 retries
  };
  std::vector<row> const rows{
      // Nothing was sent: any request may be sent again.
      {why::connect_refused, false, {1, 2, 3}},
      {why::connect_refused, true, {1, 2, 3}},
      {why::connect_timeout, false, {1, 2, 3}},
      {why::connect_timeout, true, {1, 2, 3}},
      // The server had closed a connection that was kept: that costs no try.
      {why::closed_unanswered, false, {1, 1, 1}},
      {why::closed_unanswered, true, {2, 3, 4}},
      {why::closed, false, {1, 1, 1}},
      {why::closed, true, {1, 2, 3}},
      // Another try would not be better, or would make it worse.
      {why::malformed, false, {1, 1, 1}},
      {why::malformed, true, {1, 1, 1}},
      {why::timeout, false, {1, 1, 1}},
      {why::timeout, true, {1, 1, 1}},
      {why::idle, false, {1, 1, 1}},
      {why::idle, true, {1, 1, 1}},
      {why::no_descriptor, false, {1, 1, 1}},
      {why::no_descriptor, true, {1, 1, 1}},
  };
  ASSERT_EQ(rows.size(), 2 * all_failures.size());
  for (auto const& [failure, may_repeat, tries_max] : rows) {
    for (std::int64_t retries = 0; retries < 3; ++retries) {
      for (std::int64_t tries = 1; tries <= 6; ++tries) {
        EXPECT_EQ(is_worth_a_retry(failure, may_repeat, tries, retries),
                  tries < tries_max[static_cast<std::size_t>(retries)])
            << reason_of(failure) << (may_repeat ? ", may be repeated" : "") << ", try " << tries
            << " with " << retries << " retries";
      }
    }
  }
}

TEST(proxy_forward, repeats_only_methods_that_are_idempotent) {
  struct row {
    std::string_view name;
    wire::method method;
    bool idempotent;
  };
  for (auto const& [name, method, idempotent] : std::vector<row>{
           {"GET", wire::method::get, true},
           {"HEAD", wire::method::head, true},
           {"PUT", wire::method::put, true},
           {"DELETE", wire::method::delete_, true},
           {"OPTIONS", wire::method::options, true},
           {"TRACE", wire::method::trace, true},
           {"POST", wire::method::post, false},
           {"PATCH", wire::method::patch, false},
           {"CONNECT", wire::method::connect, false},
           {"another", wire::method::other, false},
       }) {
    EXPECT_EQ(is_idempotent(method), idempotent) << name;
  }
}

}  // namespace
}  // namespace tidegate::gateway
