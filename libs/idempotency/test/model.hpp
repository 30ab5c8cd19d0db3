// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/idempotency/execution.hpp>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// A model of clients that retry one key, gateways that crash, a store and an upstream: everything
/// that can happen, one step at a time. What gateways do is decided by `execution`, the machine
/// that ships; the model performs its actions.
namespace tidegate::TIDEGATE_ABI::idempotency::model {

struct settings {
  std::array<std::uint8_t, 2> tries = {2, 2};   ///< of each client: at most `slots_max` together
  std::array<std::uint8_t, 2> bodies = {0, 0};  ///< what each client sends
  std::uint8_t crashes = 1;
  std::uint8_t ticks = 1;           ///< how often time passes; a lease is one tick
  std::uint8_t store_failures = 0;  ///< how often the store gives no answer, whatever it did
  bool deduplicates = false;  ///< the upstream does nothing twice, and unknown outcomes are retried
  bool waits = false;         ///< duplicates wait for the answer to the first
  /// Also: connections that end while a claim is made, a 504 before the answer, renewed leases.
  bool rare_events = false;
  std::optional<rule> broken{};  ///< to show that the invariants need it
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
  std::size_t waited = 0;     ///< replays to a request that had waited
  std::size_t told_late = 0;  ///< clients that were told 504 while their request went on
  std::size_t renewed = 0;    ///< leases
};

/// Walks breadth first through every state that can be reached. Ends at the first breach.
[[nodiscard]] auto check(settings const& settings) -> report;

}  // namespace tidegate::TIDEGATE_ABI::idempotency::model
