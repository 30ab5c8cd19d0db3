// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/store/idempotency_store.hpp>
#include <tidegate/store/scope_counts.hpp>

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>

namespace tidegate::TIDEGATE_ABI::store {

/// Records in memory, for as long as the process lives: nothing is known of a key after a restart.
/// Answers before the call returns.
class memory_idempotency_store final : public idempotency_store {
 public:
  /// How much it may hold.
  struct options {
    std::size_t records_max = 1'000'000;
    /// Of all records and responses together. When it is reached, no key is claimed any more;
    /// answers to those that were claimed are still taken.
    std::size_t octets_max = std::size_t{1} << 30;
  };

  explicit memory_idempotency_store(options const& options);
  ~memory_idempotency_store() override;

  void find(idempotency::lookup_key const& key, find_callback answer) override;
  void apply(idempotency::change change, apply_callback answer) override;
  void list_unknown(std::size_t records, list_callback answer) override;
  void sweep(idempotency::wall_time now, std::size_t records) override;
  [[nodiscard]] auto used() const -> usage override;

 private:
  struct shard;
  [[nodiscard]] auto shard_of(idempotency::lookup_key const& key) const noexcept -> shard&;
  [[nodiscard]] auto make(idempotency::change change) -> apply_answer;
  void count(shard& s);
  [[nodiscard]] auto add_to_scope(idempotency::change const& change) -> bool;
  void remove_from_scope(idempotency::lookup_key const& key);

  options options_;
  std::unique_ptr<shard[]> shards_;
  std::atomic<std::size_t> records_ = 0;  // of all shards
  std::atomic<std::size_t> response_octets_ = 0;
  mutable std::mutex scopes_mutex_;  // may be taken with that of a shard
  scope_counts scopes_;
};

}  // namespace tidegate::TIDEGATE_ABI::store
