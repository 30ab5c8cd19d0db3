// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/ratelimit/pacing.hpp>
#include <tidegate/ratelimit/policy.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

/// Many clients and one quota, by a clock that only events move: nothing waits, and the same
/// numbers give the same run.
namespace tidegate::simulation {

/// How the clients of a run behave. Each of them always has another request to send.
enum class behaviour : std::uint8_t {
  paced,     ///< asks a pacer of its own
  backs_off  ///< sends at once; after a 429 waits twice as long as before, with full jitter
};

struct pacing_run {
  ratelimit::algorithm algorithm = ratelimit::algorithm::fixed;
  behaviour clients_are = behaviour::paced;
  std::size_t clients = 1000;
  std::size_t workers =
      1;  ///< of each client, which share its pacer; each sends one request at a time
  std::int64_t quota = 10'000;
  std::optional<std::int64_t> burst{};  ///< of gcra
  std::chrono::seconds window{60};
  std::chrono::seconds length{1200};
  /// Of the way there and back, each time another; the thinking of a client comes on top of it.
  std::chrono::milliseconds latency_min{10};
  std::chrono::milliseconds latency_max{150};
  std::chrono::milliseconds start_within{1000};  ///< clients begin at random within this
  bool with_policy_field = true;
  /// When another client, which is not among these, spends all that is left at once; before 0 it is
  /// the time before the clients begin.
  std::optional<std::chrono::milliseconds> spent_at{};
  ratelimit::pacing_strategy strategy = ratelimit::pacing_strategy::spread;
  std::uint64_t seed = 1;
};

struct second_counts {
  std::int64_t admitted = 0;
  std::int64_t refused = 0;
};

struct pacing_outcome {
  std::int64_t admitted = 0;
  std::int64_t refused = 0;
  double used = 0;  ///< of what the quota gives over the whole run
  /// With `spent_at`: of what the quota gives from the first reset after that on.
  double used_after_reset = 0;
  double refused_share = 0;  ///< of all requests
  std::int64_t fewest = 0;   ///< admitted to one client
  std::int64_t most = 0;
  std::vector<second_counts> seconds;
};

[[nodiscard]] auto run(pacing_run const& run) -> pacing_outcome;

}  // namespace tidegate::simulation
