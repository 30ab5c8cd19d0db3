// SPDX-License-Identifier: Apache-2.0
#include "model.hpp"

#include <gtest/gtest.h>

#include <iostream>

// Every interleaving of two clients, two gateways, an upstream, a store and crashes at any step. Invariants:
// at most one effect for a key unless the upstream deduplicates; nobody sees another answer than the one
// before, nor one to a request of others; and once an answer was seen, every retry gets it.
namespace tidegate::idempotency::model {
namespace {

auto told(std::string_view name, settings const& s) -> report {
  auto r = check(s);
  std::cout << name << ": " << r.states << " states, " << r.transitions << " transitions; "
            << r.answers << " answers, " << r.replays << " replays, " << r.in_flight
            << " in flight, " << r.unknown << " unknown, " << r.reused << " reused, " << r.overtaken
            << " overtaken, " << r.resolved_late << " resolved late, " << r.second_attempts
            << " second attempts, " << r.given_back << " given back\n";
  if (!r.breach.empty()) {
    for (auto const& step : r.steps) {
      std::cout << "  " << step << '\n';
    }
    std::cout << "  => " << r.breach << '\n';
  }
  return r;
}

TEST(idempotency_model, has_one_effect_and_one_answer_whatever_happens) {
  auto const r = told("at most once", {.tries = {2, 1}, .crashes = 2});
  EXPECT_EQ(r.breach, "");
  EXPECT_GT(r.replays, 0U);
  EXPECT_GT(r.in_flight, 0U);
  EXPECT_GT(r.unknown, 0U);
  EXPECT_GT(r.resolved_late, 0U);
  EXPECT_GT(r.given_back, 0U);
  EXPECT_EQ(r.second_attempts, 0U);
}

TEST(idempotency_model, has_one_answer_when_the_upstream_deduplicates_and_attempts_are_repeated) {
  auto const r =
      told("deduplicating", {.tries = {1, 1}, .crashes = 1, .ticks = 2, .deduplicates = true});
  EXPECT_EQ(r.breach, "");
  EXPECT_GT(r.second_attempts, 0U);
  EXPECT_GT(r.overtaken, 0U);
}

TEST(idempotency_model, never_answers_a_request_with_the_answer_to_another) {
  auto const r = told("two bodies", {.tries = {2, 1}, .bodies = {0, 1}});
  EXPECT_EQ(r.breach, "");
  EXPECT_GT(r.reused, 0U);
  EXPECT_GT(r.answers, 0U);
}

TEST(idempotency_model, has_one_effect_and_no_second_answer_when_the_store_fails) {
  auto const r = told("failing store", {.tries = {1, 1}, .store_failures = 2});
  EXPECT_EQ(r.breach, "");
  EXPECT_GT(r.replays, 0U);
}

TEST(idempotency_model, fails_when_any_rule_is_broken) {
  struct row {
    broken_rule rule;
    std::string_view name;
    std::string_view breach;
    settings s;
  };
  settings const usual{.tries = {2, 1}};
  for (auto row : {
           row{broken_rule::r1_sends_before_the_claim_is_stored, "R1", "a key had two effects",
               usual},
           {broken_rule::r2_replies_before_the_answer_is_stored, "R2",
            "a retry was refused although the answer had been seen", usual},
           {broken_rule::r3_ignores_the_fencing_token,
            "R3",
            "a key had two effects",
            {.tries = {2, 1}, .crashes = 0, .ticks = 0, .store_failures = 1}},
           {broken_rule::r4_gives_back_without_proof, "R4", "a key had two effects", usual},
           {broken_rule::r5_gives_back_when_the_client_leaves, "R5", "a key had two effects",
            usual},
           {broken_rule::r6_takes_an_ended_lease_for_absent, "R6", "a key had two effects", usual},
           {broken_rule::r7_compares_no_fingerprints,
            "R7",
            "a client saw the answer to a request that it did not send",
            {.tries = {2, 1}, .bodies = {0, 1}}},
           {broken_rule::r8_sends_again_after_no_answer, "R8", "a key had two effects", usual},
       }) {
    row.s.broken = row.rule;
    EXPECT_EQ(told("without " + std::string(row.name), row.s).breach, row.breach) << row.name;
  }
}

}  // namespace
}  // namespace tidegate::idempotency::model
