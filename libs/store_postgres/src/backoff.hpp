// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <random>

namespace tidegate::store_postgres {

/// How long to wait after so many failures in a row: at random up to what has doubled with each, so
/// that gateways do not come back all at once.
[[nodiscard]] inline auto backoff(int failures) -> std::chrono::milliseconds {
  constexpr std::chrono::milliseconds first{50};
  constexpr std::chrono::milliseconds most{2'000};
  thread_local std::minstd_rand random(std::random_device{}());
  auto const limit = std::min(most, first * (1 << std::min(failures, 10)));
  return std::chrono::milliseconds(
      std::uniform_int_distribution<std::int64_t>(first.count(), limit.count())(random));
}

}  // namespace tidegate::store_postgres
