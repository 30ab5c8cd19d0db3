// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/result.hpp>
#include <tidegate/store/idempotency_store.hpp>
#include <tidegate/store/seal.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
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
class idempotency_store final : public store::idempotency_store {
 public:
  /// Connects, makes the tables or brings them up to date, and makes sure that keys were stored
  /// with the same secret. Records stay as they are: other gateways may be at work.
  [[nodiscard]] static auto open(idempotency_options options)
      -> result<std::unique_ptr<idempotency_store>, store::store_error>;

  /// Waits for the answers to what was asked.
  ~idempotency_store() override;

  void find(idempotency::lookup_key const& key,
            std::move_only_function<void(store::find_answer)> answer) override;
  void apply(idempotency::change change,
             std::move_only_function<void(store::apply_answer)> answer) override;
  void list_unknown(std::size_t records,
                    std::move_only_function<void(store::list_answer)> answer) override;
  void sweep(idempotency::wall_time now, std::size_t records) override;
  [[nodiscard]] auto is_shared() const -> bool override { return true; }
  /// Records by the last answers; nothing of them is in the memory of this process.
  [[nodiscard]] auto used() const -> usage override;

  /// How many transactions there were, and how many requests they answered: with many clients a
  /// transaction answers many.
  struct counts {
    std::uint64_t transactions = 0;
    std::uint64_t requests = 0;
  };
  [[nodiscard]] auto counted() const -> counts;

 private:
  class worker;
  explicit idempotency_store(std::unique_ptr<worker> worker);

  std::unique_ptr<worker> worker_;
};

}  // namespace tidegate::store_postgres
