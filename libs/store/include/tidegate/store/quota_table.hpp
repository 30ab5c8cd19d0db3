// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/instant.hpp>
#include <tidegate/ratelimit/limiter.hpp>
#include <tidegate/store/keyed_hash.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

namespace tidegate::store {

/// What one policy is asked to let a request spend.
struct charge {
  ratelimit::policy const* policy = nullptr;
  std::uint32_t policy_id = 0;  ///< the same number for the same policy, also after a reload
  std::string_view partition;   ///< the partition key, any bytes
  std::int64_t cost = 1;
  bool enforced = true;  ///< false: a shadow policy, which counts and never refuses
};

/// What became of it.
struct charged {
  ratelimit::decision decision;
  /// The table was full: this partition was counted together with all others that found no room.
  bool shared = false;
};

/// The buckets of every partition under every policy, for any number of threads.
///
/// Spending is all or nothing over the charges of one request. Buckets that say nothing any more are
/// reused. Memory is bounded: partitions that find no room share a bucket with others of the same policy,
/// so that no partition is ever admitted more than its quota.
class quota_table {
 public:
  static constexpr std::size_t charges_max = 16;

  struct options {
    std::size_t partitions_max = 1'000'000;
    std::array<std::uint64_t, 4> randomness{};  ///< for the hashes of keys; see `hash_seed`
  };

  explicit quota_table(options const& options);
  ~quota_table();
  quota_table(quota_table const&) = delete;
  auto operator=(quota_table const&) -> quota_table& = delete;

  /// Decides every charge at `now`; there are at most `charges_max`, no two of one policy, and `results`
  /// has room for each. True when all that are enforced admit the request: then all that admit it are
  /// charged. Else none is.
  [[nodiscard]] auto spend(std::span<charge const> charges, instant now, std::span<charged> results)
      -> bool;

  /// Corrects a charge after the fact, as `ratelimit::settle` says. `was` is what `spend` answered.
  void settle(charge const& charge, charged const& was, instant admitted_at, instant now,
              std::int64_t units);

  /// What is left of a partition, without spending.
  [[nodiscard]] auto look(charge const& charge, instant now) const -> ratelimit::service;

  /// How many buckets are kept, live or not yet reused, and how many bytes all of it takes.
  [[nodiscard]] auto size() const -> std::size_t;
  [[nodiscard]] auto memory() const -> std::size_t;

 private:
  struct slot;
  struct shard;
  struct place;
  class locked;

  [[nodiscard]] auto shard_of(key_hash const& hash) const noexcept -> shard&;
  [[nodiscard]] auto hash_of(charge const& charge) const noexcept -> key_hash;

  hash_seed seed_;
  std::size_t shards_size_;
  std::size_t slots_max_;  // of one shard
  std::unique_ptr<shard[]> shards_;
};

}  // namespace tidegate::store
