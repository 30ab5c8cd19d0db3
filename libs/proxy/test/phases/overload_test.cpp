// SPDX-License-Identifier: Apache-2.0
#include "phases/overload.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string_view>
#include <vector>

namespace tidegate::gateway {
namespace {

using namespace std::chrono_literals;

constexpr instant start{std::chrono::hours(1000)};

[[nodiscard]] auto admitted_at(instant at) -> request_context {
  return {.begun = at, .admitted_at = at};
}

/// One request that an upstream answered after `latency`, or did not.
struct ended {
  int status = 200;
  bool has_answer = true;
  bool was_sent = true;
  std::chrono::nanoseconds latency = 10ms;
};

/// Lets requests through until `load` has `count` of them, and ends one as said.
void run(upstream_load& load, int count, ended const& how) {
  std::vector<overload_phase> others(static_cast<std::size_t>(count));
  auto context = admitted_at(start);
  for (auto& each : others) {
    ASSERT_TRUE(each.admits(context, &load, start));
  }
  context.status = how.status;
  if (how.has_answer) {
    context.answered_at = start + how.latency;
  }
  others.front().leave(context, how.was_sent, start + how.latency);
}

TEST(proxy_overload, admits_everything_where_no_bound_is_set) {
  overload_phase phase;
  auto context = admitted_at(start);
  EXPECT_TRUE(phase.admits(context, nullptr, start));
  EXPECT_EQ(context.capacity, 1);
  phase.leave(context, true, start);
}

TEST(proxy_overload, refuses_what_is_more_than_may_be_in_flight) {
  upstream_load load({.max_in_flight = 2, .target_latency = {}});
  overload_phase first;
  overload_phase second;
  overload_phase third;
  auto context = admitted_at(start);
  EXPECT_TRUE(first.admits(context, &load, start));
  EXPECT_TRUE(second.admits(context, &load, start));
  EXPECT_EQ(load.in_flight, 2);
  EXPECT_FALSE(third.admits(context, &load, start));
  EXPECT_EQ(load.in_flight, 2) << "what is refused is not counted";
  third.leave(context, false, start);
  EXPECT_EQ(load.in_flight, 2);
  first.leave(context, true, start);
  EXPECT_EQ(load.in_flight, 1);
  EXPECT_TRUE(third.admits(context, &load, start));
}

TEST(proxy_overload, counts_a_request_once) {
  upstream_load load({.max_in_flight = 1, .target_latency = {}});
  overload_phase phase;
  auto context = admitted_at(start);
  EXPECT_TRUE(phase.admits(context, &load, start));
  EXPECT_TRUE(phase.admits(context, &load, start)) << "as a request with a key that waited does";
  EXPECT_EQ(load.in_flight, 1);
  phase.leave(context, true, start);
  phase.leave(context, true, start);
  EXPECT_EQ(load.in_flight, 0);
}

TEST(proxy_overload, says_how_much_of_the_capacity_is_left) {
  upstream_load load({.max_in_flight = 4, .target_latency = {}});
  run(load, 4, {.status = 503});
  load.in_flight = 0;
  overload_phase phase;
  auto context = admitted_at(start);
  EXPECT_TRUE(phase.admits(context, &load, start));
  EXPECT_EQ(context.capacity, 0.75);
  load.in_flight = 100;
  overload_phase refused;
  context.capacity = 1;
  EXPECT_FALSE(refused.admits(context, &load, start));
  EXPECT_EQ(context.capacity, 0.75) << "who is refused is told, too";
}

TEST(proxy_overload, lowers_the_bound_by_what_says_something_of_the_service) {
  struct row {
    std::string_view name;
    ended how;
    bool lowers;
  };
  for (auto const& [name, how, lowers] : std::vector<row>{
           {"an answer", {.status = 200}, false},
           {"an error of the client", {.status = 404}, false},
           {"an error of the service", {.status = 500}, false},
           {"502 of the service", {.status = 502}, true},
           {"503 of the service", {.status = 503}, true},
           {"504 of the service", {.status = 504}, true},
           {"an answer as slow as may be", {.status = 200, .latency = 50ms}, false},
           {"an answer that is too slow", {.status = 200, .latency = 51ms}, true},
           {"no connection", {.status = 502, .has_answer = false}, true},
           {"no answer in time", {.status = 504, .has_answer = false}, true},
           {"a client that has gone", {.status = 499, .has_answer = false}, false},
           {"a refusal by quota", {.status = 429, .has_answer = false, .was_sent = false}, false},
           {"a store that fails", {.status = 503, .has_answer = false, .was_sent = false}, false},
       }) {
    upstream_load load({.max_in_flight = 8, .target_latency = 50ms});
    run(load, 8, how);
    EXPECT_EQ(load.guard.limit() < 8, lowers) << name;
    EXPECT_EQ(load.in_flight, 7) << name;
  }
}

TEST(proxy_overload, measures_from_the_charge_to_the_head_of_the_answer) {
  upstream_load load({.max_in_flight = 8, .target_latency = 50ms});
  std::vector<overload_phase> phases(8);
  auto context = admitted_at(start);
  for (auto& each : phases) {
    ASSERT_TRUE(each.admits(context, &load, start));
  }
  context.begun = start - 1h;  // the client took its time for the content
  context.answered_at = start + 40ms;
  context.status = 200;
  phases.front().leave(context, true, start + 1h);  // and for the answer
  EXPECT_EQ(load.guard.limit(), 8);
}

TEST(proxy_overload, forgets_the_request_before) {
  upstream_load load({.max_in_flight = 2, .target_latency = {}});
  overload_phase phase;
  auto context = admitted_at(start);
  ASSERT_TRUE(phase.admits(context, &load, start));
  phase.reset();
  ASSERT_TRUE(phase.admits(context, &load, start));
  EXPECT_EQ(load.in_flight, 2) << "it is another request";
}

}  // namespace
}  // namespace tidegate::gateway
