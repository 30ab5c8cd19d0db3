// SPDX-License-Identifier: Apache-2.0
#include <tidegate/idempotency/retry.hpp>

#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace tidegate::TIDEGATE_ABI::idempotency {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

constexpr repeatability plain_post{};
constexpr repeatability get{.idempotent_method = true};
constexpr repeatability keyed{.has_key = true};
constexpr auto most = std::numeric_limits<std::uint64_t>::max();

auto answered(int status, std::optional<std::chrono::seconds> retry_after = {},
              std::optional<problem_code> code = {}) -> attempt {
  return {.status = status, .retry_after = retry_after, .code = code};
}

auto again(repeatability const& request, attempt const& outcome, std::uint32_t retries = 0)
    -> bool {
  return decide_retry(request, outcome, retries, {}, 0).again;
}

TEST(idempotency_retry, knows_the_methods_that_may_be_sent_twice) {
  for (auto const* const method : {"GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"}) {
    EXPECT_TRUE(is_idempotent(method)) << method;
  }
  for (auto const* const method : {"POST", "PATCH", "CONNECT", "get", "", "PURGE"}) {
    EXPECT_FALSE(is_idempotent(method)) << method;
  }
}

TEST(idempotency_retry, sends_again_what_no_server_has_seen) {
  for (auto const& request : {plain_post, get, keyed}) {
    EXPECT_TRUE(again(request, {.delivery = delivery::not_sent}));
  }
}

TEST(idempotency_retry, sends_again_what_was_lost_only_where_that_is_safe) {
  EXPECT_FALSE(again(plain_post, {.delivery = delivery::no_answer}));
  EXPECT_TRUE(again(get, {.delivery = delivery::no_answer}));
  EXPECT_TRUE(again(keyed, {.delivery = delivery::no_answer}));
}

TEST(idempotency_retry, tells_final_answers_from_passing_ones) {
  for (auto const status : {408, 425, 429, 502, 503, 504}) {
    EXPECT_TRUE(again(get, answered(status))) << status;
    EXPECT_TRUE(again(keyed, answered(status))) << status;
    EXPECT_FALSE(again(plain_post, answered(status))) << status;
    EXPECT_FALSE(again(plain_post, answered(status, 1s))) << status;
  }
  for (auto const status : {200, 201, 304, 400, 401, 403, 404, 410, 413, 422, 500, 501}) {
    EXPECT_FALSE(again(get, answered(status, 1s))) << status;
    EXPECT_FALSE(again(keyed, answered(status, 1s))) << status;
  }
}

TEST(idempotency_retry, waits_for_a_key_in_flight_for_as_long_as_there_is_time) {
  auto const verdict = decide_retry(keyed, answered(409, 2s, problem_code::in_flight), 1000, {}, 0);
  EXPECT_EQ(verdict,
            (retry_verdict{.again = true, .wait = 2s, .counts = false, .asked_for = true}));
}

TEST(idempotency_retry, judges_other_conflicts_by_what_they_say) {
  EXPECT_TRUE(again(keyed, answered(409, 1s, problem_code::outcome_unknown)));
  EXPECT_FALSE(again(keyed, answered(409, 1s, problem_code::result_expired)));
  EXPECT_FALSE(again(keyed, answered(409, 1s, problem_code::response_not_replayable)));
  EXPECT_TRUE(again(keyed, answered(409, 1s))) << "a server that knows no codes";
  EXPECT_FALSE(again(keyed, answered(409))) << "the key is new, so nothing is in flight";
  EXPECT_TRUE(again(keyed, answered(409), 1)) << "the attempt before it may be";
  EXPECT_FALSE(again(get, answered(409, 1s)));
}

TEST(idempotency_retry, stops_after_as_many_as_are_allowed) {
  retry_rules const rules{.retries_max = 2};
  EXPECT_TRUE(decide_retry(get, answered(503), 1, rules, 0).again);
  EXPECT_FALSE(decide_retry(get, answered(503), 2, rules, 0).again);
}

TEST(idempotency_retry, backs_off_exponentially_with_full_jitter) {
  retry_rules const rules{.backoff_first = 100ms, .backoff_max = 1s};
  constexpr auto bound = 1us;  // of rounding
  for (auto const& [retries, longest] : {std::pair(0U, 100ms),
                                         {1U, 200ms},
                                         {2U, 400ms},
                                         {3U, 800ms},
                                         {4U, 1000ms},
                                         {1000U, 1000ms}}) {
    EXPECT_EQ(backoff(rules, retries, 0), 0ns);
    EXPECT_NEAR(static_cast<double>(backoff(rules, retries, most / 2).count()),
                static_cast<double>(nanoseconds(longest / 2).count()),
                static_cast<double>(nanoseconds(bound).count()));
    EXPECT_LE(backoff(rules, retries, most), longest);
    EXPECT_GT(backoff(rules, retries, most), longest - bound);
  }
}

TEST(idempotency_retry, obeys_retry_after_first) {
  auto const early = decide_retry(get, answered(503, 7s), 0, {}, 0);
  auto const late = decide_retry(get, answered(503, 7s), 0, {}, most);
  EXPECT_EQ(early.wait, 7s);
  EXPECT_GE(late.wait, 7s);
  EXPECT_LE(late.wait, 7200ms) << "so that not all come back at once";
  EXPECT_TRUE(early.asked_for);
  EXPECT_FALSE(decide_retry(get, answered(503), 0, {}, 0).asked_for);
}

TEST(idempotency_retry, takes_the_bound_of_the_user_over_retry_after) {
  retry_rules const rules{.retry_after_max = 1500ms};
  EXPECT_TRUE(decide_retry(get, answered(429, 1s), 0, rules, 0).again);
  EXPECT_FALSE(decide_retry(get, answered(429, 2s), 0, rules, 0).again);
  EXPECT_FALSE(decide_retry(get, answered(429, std::chrono::seconds::max()), 0, rules, 0).again);
}

TEST(idempotency_retry, reads_the_code_of_a_problem) {
  constexpr std::string_view content = R"({"status":409,"code" : "in-flight"})";
  EXPECT_EQ(read_problem_code("application/problem+json", content), problem_code::in_flight);
  EXPECT_EQ(read_problem_code("Application/Problem+JSON ; charset=utf-8", content),
            problem_code::in_flight);
  EXPECT_EQ(read_problem_code("application/problem+json", R"({"code":"store-unavailable"})"),
            problem_code::store_unavailable);
}

TEST(idempotency_retry, reads_no_code_from_what_has_none) {
  auto const code = [](std::string_view content) {
    return read_problem_code("application/problem+json", content);
  };
  EXPECT_EQ(read_problem_code("application/json", R"({"code":"in-flight"})"), std::nullopt);
  EXPECT_EQ(read_problem_code("application/problem+jsonx", R"({"code":"in-flight"})"),
            std::nullopt);
  EXPECT_EQ(read_problem_code("", ""), std::nullopt);
  EXPECT_EQ(code(R"({"code":"something else"})"), std::nullopt);
  EXPECT_EQ(code(R"({"code":409})"), std::nullopt);
  EXPECT_EQ(code(R"({"inner":{"code":"in-flight"}})"), std::nullopt);
  EXPECT_EQ(code(R"({"code":"in-flight")"), std::nullopt);
  EXPECT_EQ(code(R"({"code":"in-flight","x":")" + std::string(65536, 'x') + "\"}"), std::nullopt);
}

TEST(idempotency_retry, spends_a_budget_and_earns_it_with_requests_and_time) {
  retry_budget budget({.share = 0.5, .per_second = 2, .tokens_max = 3});
  instant const t{100s};
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(budget.take(t));
  }
  EXPECT_FALSE(budget.take(t));
  budget.earn(t);
  EXPECT_FALSE(budget.take(t));
  budget.earn(t);
  EXPECT_TRUE(budget.take(t)) << "two requests, one retry";
  EXPECT_FALSE(budget.take(t + 400ms));
  EXPECT_TRUE(budget.take(t + 500ms));
  EXPECT_FALSE(budget.take(t)) << "a clock that steps back gives nothing";
  EXPECT_FALSE(budget.take(t + 500ms)) << "nor does time that passes twice";
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(budget.take(t + 1h));
  }
  EXPECT_FALSE(budget.take(t + 1h)) << "no more than three are kept";
}

}  // namespace
}  // namespace tidegate::TIDEGATE_ABI::idempotency
