// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/version.hpp>

#include <chrono>
#include <cstddef>

namespace tidegate::TIDEGATE_ABI::idempotency {

/// What an operator says of the keys of a route, as far as decisions depend on it.
struct policy {
  std::chrono::seconds ttl = std::chrono::hours(24);  ///< how long a response is replayed
  std::chrono::seconds tombstone =
      std::chrono::hours(168);  ///< how long a key is remembered after it
  /// How long a gateway that is not heard of counts as alive; it renews its lease three times as
  /// often.
  std::chrono::milliseconds lease = std::chrono::seconds(30);
  bool wait_in_flight = false;   ///< duplicates wait for the first answer, instead of a 409
  std::size_t waiters_max = 64;  ///< how many may wait for one key
  std::size_t keys_max = 0;      ///< how many keys a scope may have at once; 0: any number
  bool store_5xx = false;        ///< 502, 503 and 504 of the upstream are final answers
  /// The upstream does nothing twice for one key. Only then may an unknown outcome be tried again.
  bool upstream_deduplicates = false;
  bool retry_unknown = false;  ///< forward again when the outcome is unknown
  /// What Retry-After says.
  std::chrono::seconds retry_in_flight{1};
  std::chrono::seconds retry_unknown_outcome{60};
};

}  // namespace tidegate::TIDEGATE_ABI::idempotency
