// SPDX-License-Identifier: Apache-2.0
//
// What the drafts ask for that no single header answers to: reading, writing and deciding together.
#include <tidegate/http/retry_after.hpp>
#include <tidegate/ratelimit/limiter.hpp>
#include <tidegate/ratelimit/merge.hpp>
#include <tidegate/ratelimit/read.hpp>
#include <tidegate/ratelimit/write.hpp>

#include "printing.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tidegate::TIDEGATE_ABI::ratelimit {
namespace {

using namespace std::chrono_literals;
using lines = std::vector<std::string_view>;
using policies = std::vector<quota_policy_view>;
using limits = std::vector<service_limit_view>;

auto make(std::int64_t quota, std::chrono::seconds window, algorithm a) -> policy {
  return policy::make({quota, window, quota_unit::requests, a, {}}).value();
}

TEST(ratelimit_conformance, repeats_the_policies_while_what_remains_changes) {
  // draft-09, section 3: that is how RateLimit-Policy differs from RateLimit.
  policies const p{{.name = "burst", .quota = 3, .window = 1min},
                   {.name = "daily", .quota = 9, .window = 24h}};
  auto const limiter = make(3, 60s, algorithm::sliding);
  for (auto version : {draft::draft_09, draft::draft_07}) {
    prepared_fields const prepared(p, version);
    std::vector<std::string> policy_texts;
    std::vector<std::string> limit_texts;
    bucket b;
    for (auto t : {0s, 1s, 2s, 3s, 70s}) {
      auto const d = decide(limiter, b, instant(t), 1);
      b = d.next;
      limits const l{{d.left.remaining, d.left.reset}, {9, 24h}};
      prepared.append_policies(policy_texts.emplace_back(), l);
      prepared.append_limits(limit_texts.emplace_back(), l);
    }
    EXPECT_EQ(policy_texts, std::vector<std::string>(5, policy_texts.front()));
    EXPECT_NE(limit_texts, std::vector<std::string>(5, limit_texts.front()));
  }
}

TEST(ratelimit_conformance, refuses_with_a_retry_after_of_the_same_moment_as_the_reset) {
  // draft-09, section 6; draft-07, section 4.
  for (auto a : {algorithm::fixed, algorithm::sliding, algorithm::gcra}) {
    auto const limiter = make(3, 10s, a);
    auto const full = decide(limiter, bucket(), instant(100s), 3).next;
    for (auto later : {1ns, 1'000'000'000ns, 2'500'000'000ns}) {
      auto const d = decide(limiter, full, instant(100s + later), 3);
      ASSERT_FALSE(d.admitted);
      std::string retry_after;
      append_retry_after(retry_after, d.retry);
      auto const delay = http::parse_retry_after(retry_after, {});
      ASSERT_TRUE(delay.has_value());
      for (auto version : {draft::draft_09, draft::draft_07}) {
        std::string limit;
        append_limits(limit, policies{{.name = "a", .quota = 3, .window = 10s}},
                      limits{{d.left.remaining, d.retry}}, version);
        EXPECT_EQ(read_limits(lines{limit}).value().limits.at(0).reset, delay->count()) << limit;
      }
      // Who comes back then is admitted, and who comes a second earlier is not.
      auto const back = instant(100s + later) + *delay;
      EXPECT_TRUE(decide(limiter, full, back, 3).admitted);
      EXPECT_FALSE(decide(limiter, full, back - 1s, 3).admitted);
    }
  }
}

TEST(ratelimit_conformance, weighs_requests_like_the_example_of_draft_07) {
  // Section 2.2: a search costs twice as much as a book.
  auto const limiter = make(4, 60s, algorithm::fixed);
  auto const book = decide(limiter, bucket(), instant(1s), 1);
  EXPECT_TRUE(book.admitted);
  EXPECT_EQ(book.left.remaining, 3);
  auto const search = decide(limiter, book.next, instant(2s), 2);
  EXPECT_TRUE(search.admitted);
  EXPECT_EQ(search.left.remaining, 1);
  EXPECT_FALSE(decide(limiter, search.next, instant(3s), 2).admitted);
}

TEST(ratelimit_conformance, admits_by_its_own_quota_though_the_origin_says_that_nothing_is_left) {
  // draft-09, section 7.2: an intermediary forwards even what it thinks will be refused.
  auto const limiter = make(10, 60s, algorithm::fixed);
  bucket b;
  for (auto t : {1s, 2s}) {
    auto const d = decide(limiter, b, instant(t), 1);
    EXPECT_TRUE(d.admitted);
    b = d.next;
    lines const theirs{R"("origin";r=0;t=3600)"};
    std::string policy;
    std::string limit;
    auto const dropped =
        merge_fields({{}, theirs}, policies{{.name = "ours", .quota = 10, .window = 1min}},
                     limits{{d.left.remaining, d.left.reset}}, draft::draft_09, policy, limit);
    EXPECT_EQ(dropped, dropped_fields());
    EXPECT_TRUE(limit.ends_with(R"(, "origin";r=0;t=3600)")) << limit;
  }
}

TEST(ratelimit_conformance, lets_a_reset_grow_from_one_response_to_the_next) {
  // draft-09, sections 4.1.2 and 8.4: t follows what was spent, not a clock on the wall.
  auto const limiter = make(10, 10s, algorithm::sliding);
  auto const first = decide(limiter, bucket(), instant(0s), 10);
  auto const refused = decide(limiter, first.next, instant(9s), 1);
  EXPECT_FALSE(refused.admitted);
  EXPECT_EQ(refused.retry, 1s);
  auto const second = decide(limiter, first.next, instant(10s), 1);
  ASSERT_TRUE(second.admitted);
  auto const greedy = decide(limiter, second.next, instant(10s), 9);
  EXPECT_FALSE(greedy.admitted);
  EXPECT_GT(greedy.retry, refused.retry);
}

}  // namespace
}  // namespace tidegate::TIDEGATE_ABI::ratelimit
