// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/instant.hpp>
#include <tidegate/ratelimit/limiter.hpp>
#include <tidegate/store_quota/keyed_hash.hpp>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>
#include <type_traits>

namespace tidegate::TIDEGATE_ABI::store {

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
  ratelimit::verdict decision;
  /// The table was full: this partition was counted together with all others that found no room.
  bool shared = false;
};

/// The buckets of every partition under every policy, for any number of threads.
///
/// Spending is all or nothing over the charges of one request. Buckets that say nothing any more
/// are reused. Memory is bounded: partitions that find no room share a bucket with others of the
/// same policy, so that no partition is ever admitted more than its quota. The times of
/// `algorithm::log` may take 64 bytes for each of `partitions_max`, as its buckets do; when that is
/// used up, units count as spent later than they were, so that a partition may be admitted less.
class quota_table {
 public:
  /// How many policies a request may have.
  static constexpr std::size_t charges_max = 16;

  /// How large the table may get.
  struct options {
    std::size_t partitions_max = 1'000'000;
    std::array<std::uint64_t, 4> randomness{};  ///< for the hashes of keys; see `hash_seed`
  };

  explicit quota_table(options const& options);
  ~quota_table();
  quota_table(quota_table const&) = delete;
  auto operator=(quota_table const&) -> quota_table& = delete;

  /// Decides every charge at `now`; there are at most `charges_max`, no two of one policy, and
  /// `results` has room for each. True when all that are enforced admit the request: then all that
  /// admit it are charged. Else none is.
  [[nodiscard]] auto spend(std::span<charge const> charges, instant now, std::span<charged> results)
      -> bool;

  /// Corrects a charge after the fact, as `ratelimit::settle` says. `was` is what `spend` answered.
  void settle(charge const& charge, charged const& was, instant admitted_at, instant now,
              std::int64_t units);

  /// What is left of a partition, without spending.
  [[nodiscard]] auto look(charge const& charge, instant now) const -> ratelimit::service;

  /// Forgets what a partition has spent, or the state of a key: it is as new. False when there was
  /// nothing of its own; what it shares with others for want of room stays.
  auto forget(std::uint32_t domain, std::string_view key) -> bool;

  /// Takes back what a partition has spent beyond its policy, as `ratelimit::forgiven` says.
  void forgive(charge const& charge, instant now);

  /// How large a state of `update` may be.
  static constexpr std::size_t state_octets_max = 24;

  /// Changes another small state than a bucket that is kept for `key`: `fn(State&)` does it while
  /// no other thread sees the state, and returns the instant from which on it may be forgotten. It
  /// must be short.
  ///
  /// A key without a state, or with one that may be forgotten, begins with zeros in every octet.
  /// `domain` tells apart what states are of; no policy has that number. True when the state was
  /// the key's own. False when the table was full: then `fn` was given the state that the keys of
  /// the domain share when they find no room, so that it says of no single key what it did.
  template <class State, class F>
  auto update(std::uint32_t domain, std::string_view key, instant now, F fn) -> bool {
    static_assert(std::is_trivially_copyable_v<State> && sizeof(State) <= state_octets_max);
    auto change = [&fn](void* octets) -> instant {
      State state{};
      std::memcpy(&state, octets, sizeof state);
      instant const forget = fn(state);
      std::memcpy(octets, &state, sizeof state);
      return forget;
    };
    return update_octets(
        domain, key, now,
        [](void* context, void* octets) {
          return (*static_cast<decltype(change)*>(context))(octets);
        },
        &change);
  }

  /// The state of a key's own, or zeros; what keys share is not looked at.
  template <class State>
  [[nodiscard]] auto peek(std::uint32_t domain, std::string_view key, instant now) const -> State {
    static_assert(std::is_trivially_copyable_v<State> && sizeof(State) <= state_octets_max);
    std::array<std::byte, sizeof(State)> octets{};
    peek_octets(domain, key, now, octets.data(), octets.size());
    return std::bit_cast<State>(octets);
  }

  /// How many buckets and states are kept, live or not yet reused, and how many bytes all of it
  /// takes.
  [[nodiscard]] auto size() const -> std::size_t;
  [[nodiscard]] auto memory() const -> std::size_t;

 private:
  struct log_memory;
  struct slot;
  class held_slot;
  class slot_memory;
  struct shard;
  struct place;
  class locked;
  using change_octets = instant (*)(void* context, void* octets);

  [[nodiscard]] inline auto shard_of(key_hash const& hash) const noexcept -> shard&;
  [[nodiscard, gnu::always_inline]] auto hash_of(charge const& charge) const noexcept -> key_hash {
    return hash_key(seed_, charge.policy_id, charge.partition);
  }
  [[nodiscard]] auto spend_several(std::span<charge const> charges, instant now,
                                   std::span<charged> results) -> bool;
  void sweep_logs(instant now);
  auto update_octets(std::uint32_t domain, std::string_view key, instant now, change_octets change,
                     void* context) -> bool;
  void peek_octets(std::uint32_t domain, std::string_view key, instant now, void* octets,
                   std::size_t size) const;

  hash_seed seed_;
  std::size_t shards_size_;
  std::size_t slots_max_;  // of one shard
  std::unique_ptr<log_memory> logs_;
  std::unique_ptr<slot_memory> slots_;
  std::unique_ptr<shard[]> shards_;
};

}  // namespace tidegate::TIDEGATE_ABI::store
