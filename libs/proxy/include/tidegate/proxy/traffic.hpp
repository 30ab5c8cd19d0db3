// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tidegate::gateway {

/// Upper bounds of the latency histogram, in microseconds.
inline constexpr std::array<std::uint32_t, 14> latency_bounds = {
    100,    250,    500,     1000,    2500,    5000,      10'000,
    25'000, 50'000, 100'000, 250'000, 500'000, 1'000'000, 5'000'000};

/// What all threads together counted since the start, of all routes.
struct traffic_sums {
  /// Groups of statuses; 429 is not among 4xx.
  static constexpr std::array<std::string_view, 6> response_names = {"1xx", "2xx", "3xx",
                                                                     "4xx", "5xx", "429"};
  /// What became of requests with an Idempotency-Key, as metrics call it.
  static constexpr std::array<std::string_view, 6> key_names = {"first",  "replayed", "conflict",
                                                                "reused", "unknown",  "others"};

  std::array<std::uint64_t, response_names.size()> responses{};
  /// Requests by the time to their answer: up to each of `latency_bounds`, and beyond.
  std::array<std::uint64_t, latency_bounds.size() + 1> latency{};
  std::array<std::uint64_t, key_names.size()> keys{};
  std::uint64_t upstream_failures = 0;
};

}  // namespace tidegate::gateway
