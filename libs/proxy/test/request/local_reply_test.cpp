// SPDX-License-Identifier: Apache-2.0
#include "request/local_reply.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace tidegate::gateway {
namespace {

TEST(proxy_local_reply, is_a_problem_without_a_type) {
  std::string content = "of the reply before";
  std::string lines;
  auto const reply =
      problem_reply({content, lines}, "no-route", 404, "Not Found", "No \"route\" matches.");
  EXPECT_EQ(reply.status, 404);
  EXPECT_EQ(reply.reason, "no-route");
  EXPECT_EQ(reply.content_type, "application/problem+json");
  EXPECT_EQ(reply.content,
            R"({"title":"Not Found","status":404,"detail":"No \"route\" matches."})");
  EXPECT_EQ(reply.content.data(), content.data());
}

TEST(proxy_local_reply, has_no_further_lines_and_no_retry_unless_they_are_set) {
  std::string content;
  std::string lines = "X: y\r\n";
  auto const reply = problem_reply({content, lines}, "", 503, "t", "d");
  EXPECT_TRUE(reply.field_lines.empty());
  EXPECT_TRUE(reply.content_head.empty());
  EXPECT_EQ(reply.retry_after, std::chrono::nanoseconds(0));
  EXPECT_TRUE(reply.has_resets);
  EXPECT_FALSE(reply.is_service);
  EXPECT_EQ(reply.owner, nullptr);
}

}  // namespace
}  // namespace tidegate::gateway
