// SPDX-License-Identifier: Apache-2.0
#include "model.hpp"

#include <gtest/gtest.h>

#include <iostream>

// Every interleaving of two clients, two gateways, an upstream, a store and crashes at any step.
// Invariants: at most one effect for a key unless the upstream deduplicates; no client sees another
// answer than the one before, nor one to a request of others; and once an answer was seen, every
// retry gets it.
namespace tidegate::TIDEGATE_ABI::idempotency::model {
namespace {

auto checked(std::string_view name, settings const& s) -> report {
  auto r = check(s);
  std::cout << name << ": " << r.states << " states, " << r.transitions << " transitions; "
            << r.answers << " answers, " << r.replays << " replays, " << r.in_flight
            << " in flight, " << r.unknown << " unknown, " << r.reused << " reused, " << r.overtaken
            << " overtaken, " << r.resolved_late << " resolved late, " << r.second_attempts
            << " second attempts, " << r.given_back << " given back, " << r.waited << " waited, "
            << r.told_late << " told late, " << r.renewed << " renewed\n";
  if (!r.breach.empty()) {
    for (auto const& step : r.steps) {
      std::cout << "  " << step << '\n';
    }
    std::cout << "  => " << r.breach << '\n';
  }
  return r;
}

TEST(idempotency_model, has_one_effect_and_one_answer_whatever_happens) {
  auto const r = checked("at most once", {.tries = {2, 1}, .crashes = 2});
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
      checked("deduplicating", {.tries = {1, 1}, .crashes = 1, .ticks = 2, .deduplicates = true});
  EXPECT_EQ(r.breach, "");
  EXPECT_GT(r.second_attempts, 0U);
  EXPECT_GT(r.overtaken, 0U);
}

TEST(idempotency_model, never_answers_a_request_with_the_answer_to_another) {
  auto const r = checked("two bodies", {.tries = {2, 1}, .bodies = {0, 1}});
  EXPECT_EQ(r.breach, "");
  EXPECT_GT(r.reused, 0U);
  EXPECT_GT(r.answers, 0U);
}

TEST(idempotency_model, has_one_effect_and_no_second_answer_when_the_store_fails) {
  auto const r =
      checked("failing store", {.tries = {1, 1}, .store_failures = 2, .rare_events = true});
  EXPECT_EQ(r.breach, "");
  EXPECT_GT(r.replays, 0U);
}

TEST(idempotency_model, has_one_effect_and_one_answer_whatever_happens_rarely) {
  auto const r =
      checked("rarely", {.tries = {1, 1}, .crashes = 1, .ticks = 2, .rare_events = true});
  EXPECT_EQ(r.breach, "");
  EXPECT_GT(r.told_late, 0U);
  EXPECT_GT(r.renewed, 0U);
  EXPECT_GT(r.resolved_late, 0U);
  EXPECT_GT(r.given_back, 0U);
}

TEST(idempotency_model, has_one_effect_and_one_answer_when_duplicates_wait) {
  auto const r = checked("waiting", {.tries = {2, 1}, .crashes = 0, .waits = true});
  EXPECT_EQ(r.breach, "");
  EXPECT_GT(r.waited, 0U);
  EXPECT_GT(r.in_flight, 0U);
}

// What ships keeps all rules; each of these breaks one in the same machine.

auto breach_without(rule broken, settings s = {.tries = {2, 1}}) -> std::string {
  s.broken = broken;
  return checked("without R" + std::to_string(static_cast<int>(broken) + 1), s).breach;
}

TEST(idempotency_model, fails_without_r1_when_a_request_is_sent_before_its_claim_is_durable) {
  EXPECT_EQ(breach_without(rule::r1), "a key had two effects");
}

TEST(idempotency_model, fails_without_r2_when_the_client_is_answered_before_the_record_is_durable) {
  EXPECT_EQ(breach_without(rule::r2), "a retry was refused although the answer had been seen");
}

TEST(idempotency_model, fails_without_r3_when_the_fencing_token_of_every_claim_is_the_same) {
  EXPECT_EQ(
      breach_without(rule::r3, {.tries = {2, 1}, .crashes = 0, .ticks = 0, .store_failures = 1}),
      "a key had two effects");
}

TEST(idempotency_model, fails_without_r4_when_a_key_is_given_back_without_proof) {
  EXPECT_EQ(breach_without(rule::r4), "a key had two effects");
}

TEST(idempotency_model, fails_without_r5_when_a_key_is_given_back_because_the_client_left) {
  EXPECT_EQ(breach_without(rule::r5), "a key had two effects");
}

TEST(idempotency_model, fails_without_r6_when_an_ended_lease_is_taken_for_absent) {
  EXPECT_EQ(breach_without(rule::r6), "a key had two effects");
}

TEST(idempotency_model, fails_without_r7_when_fingerprints_are_not_compared) {
  EXPECT_EQ(breach_without(rule::r7, {.tries = {2, 1}, .bodies = {0, 1}}),
            "a client saw the answer to a request that it did not send");
}

TEST(idempotency_model, fails_without_r8_when_a_request_is_sent_again_after_no_answer) {
  EXPECT_EQ(breach_without(rule::r8), "a key had two effects");
}

}  // namespace
}  // namespace tidegate::TIDEGATE_ABI::idempotency::model
