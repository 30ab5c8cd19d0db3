// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/idempotency/change.hpp>
#include <tidegate/idempotency/decide.hpp>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// A model of clients that retry one key, gateways that crash, a store and an upstream: everything that can
/// happen, one step at a time. What gateways decide and what stores write is computed by the library.
namespace tidegate::idempotency::model {

/// A rule that the gateways of the model break, to show that the invariants need it.
enum class broken_rule : std::uint8_t {
  none,
  r1_sends_before_the_claim_is_stored,
  r2_replies_before_the_answer_is_stored,
  r3_ignores_the_fencing_token,
  r4_gives_back_without_proof,
  r5_gives_back_when_the_client_leaves,
  r6_takes_an_ended_lease_for_absent,
  r7_compares_no_fingerprints,
  r8_sends_again_after_no_answer,
};

struct settings {
  std::array<std::uint8_t, 2> tries = {2, 2};   ///< of each client: at most `slots_max` together
  std::array<std::uint8_t, 2> bodies = {0, 0};  ///< what each client sends
  std::uint8_t crashes = 1;
  std::uint8_t ticks = 1;           ///< how often time passes; a lease is one tick
  std::uint8_t store_failures = 0;  ///< how often the store gives no answer, whatever it did
  bool deduplicates = false;  ///< the upstream does nothing twice, and unknown outcomes are retried
  broken_rule broken = broken_rule::none;
};

/// What was found out.
struct report {
  std::size_t states = 0;
  std::size_t transitions = 0;
  /// The first breach of an invariant, after the steps that lead to it; empty when there is none.
  std::string breach;
  std::vector<std::string> steps;
  // How many transitions showed each of these: an invariant that nothing tests would hold as well.
  std::size_t answers = 0;
  std::size_t replays = 0;
  std::size_t in_flight = 0;
  std::size_t unknown = 0;
  std::size_t reused = 0;
  std::size_t overtaken = 0;
  std::size_t resolved_late = 0;
  std::size_t second_attempts = 0;
  std::size_t given_back = 0;
};

/// Walks breadth first through every state that can be reached. Ends at the first breach.
[[nodiscard]] auto check(settings const& settings) -> report;

}  // namespace tidegate::idempotency::model
