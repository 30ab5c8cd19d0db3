// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/result.hpp>
#include <tidegate/store/idempotency_store.hpp>
#include <tidegate/store/seal.hpp>

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace tidegate::store_postgres {

struct idempotency_options {
  /// `postgres://user:password@host:port/database?sslmode=…`, as libpq reads it; several hosts are
  /// tried in order until one takes writes.
  std::string url;
  /// Of all gateways. When several add keys at once, it may be exceeded by what they added in the
  /// last minute.
  std::size_t records_max = 1'000'000;
  std::size_t queue_max = 65'536;  ///< how many requests may wait for an answer
  /// Of the responses in requests that wait.
  std::size_t queue_octets_max = std::size_t{256} << 20;
  std::chrono::milliseconds timeout{5'000};  ///< of an answer
  // NOLINTBEGIN(readability-redundant-member-init): so that they may be left out
  /// The first one seals what is to be sealed, all of them open. Without any, responses are stored
  /// in clear.
  std::vector<store::seal_key> seal_keys{};
  /// The clock that the times in changes are from; without one, the system's. Called on the thread
  /// of the store.
  std::function<idempotency::wall_time()> clock{};
  /// Of the secret that lookup keys are made with; the first gateway leaves it in the database.
  /// Where that of another secret is, the store is refused, and one that is open answers nothing:
  /// `store_fault::damaged`. Empty: not compared.
  std::string secret_digest{};
  // NOLINTEND(readability-redundant-member-init)
};

/// Records of idempotency keys in PostgreSQL, for any number of gateways.
///
/// Durable: a change is answered when the server has committed it with `synchronous_commit` on.
/// Requests that come while the server is busy share the next transaction; where that fails, each
/// is tried alone. A connection that is lost is made again; what was under way then is
/// `unavailable`, and may have been made.
///
/// Gateways need not agree about the time: records are kept in the time of the server, and each
/// gateway sees them in its own.
///
/// Answers come on the thread of the store: what they do must be short and must not call the
/// destructor.
///
/// Connects, makes the tables or brings them up to date, and makes sure that keys were stored with
/// the same secret. Records stay as they are: other gateways may be at work. The destructor waits
/// for the answers to what was asked.
[[nodiscard]] auto open_idempotency_store(idempotency_options options)
    -> result<std::unique_ptr<store::idempotency_store>, store::store_error>;

}  // namespace tidegate::store_postgres
