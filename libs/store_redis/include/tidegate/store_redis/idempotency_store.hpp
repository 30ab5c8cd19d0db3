// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/result.hpp>
#include <tidegate/store/idempotency_store.hpp>
#include <tidegate/store/seal.hpp>
#include <tidegate/store_redis/server_url.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

/// What gateways share in Redis.
namespace tidegate::store_redis {

struct idempotency_options {
  server_url where;
  /// Of all gateways. When several add keys at once, it may be exceeded by what they added since
  /// the last sweep.
  std::size_t records_max = 1'000'000;
  std::size_t queue_max = 65'536;  ///< how many requests may wait for an answer
  std::size_t queue_octets_max = std::size_t{256} << 20;  ///< and of the responses in them
  std::chrono::milliseconds command_timeout{2'000};
  std::chrono::milliseconds open_timeout{5'000};
  /// How many replicas must have a change before it is answered; fewer within the time: it fails,
  /// and its outcome is not known.
  std::uint32_t replicas_min = 0;
  std::chrono::milliseconds replicas_timeout{500};
  // NOLINTBEGIN(readability-redundant-member-init): so that they may be left out
  /// The first one seals what is to be sealed, all of them open. Without any, responses are stored
  /// in clear.
  std::vector<store::seal_key> seal_keys{};
  /// The clock by which changes are made. Without one it is the time of the last `sweep`, and
  /// before the first one the system's.
  std::function<idempotency::wall_time()> clock{};
  /// Of the secret that lookup keys are made with; the first gateway leaves it in Redis. Where that
  /// of another secret is, the store is refused, and one that is open takes and finds no keys:
  /// `store_fault::damaged`. Empty: not compared.
  std::string secret_digest{};
  // NOLINTEND(readability-redundant-member-init)
};

/// Records of idempotency keys in Redis, for any number of gateways. A change is one script there,
/// so it is made on its condition or not at all.
///
/// As durable as Redis is: see the README of this module for what a fail-over may lose. Gateways
/// need not agree about the time: with a record goes when it was written, by the clock of the
/// gateway and by that of Redis, and another one that reads it moves its times to its own clock.
///
/// Answers come on a thread of the store: what they do must be short and must not call the
/// destructor.
///
/// Connects, and makes sure that Redis drops no keys when its memory is full (maxmemory-policy
/// noeviction), and that its keys were stored with the same secret. Records stay as they are: other
/// gateways may be at work. The destructor waits for the answers to what was asked.
[[nodiscard]] auto open_idempotency_store(idempotency_options options)
    -> result<std::unique_ptr<store::idempotency_store>, store::store_error>;

}  // namespace tidegate::store_redis
