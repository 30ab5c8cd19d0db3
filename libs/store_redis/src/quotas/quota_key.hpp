// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/ratelimit/policy.hpp>
#include <tidegate/store/quota_store.hpp>
#include <tidegate/store_quota/keyed_hash.hpp>

#include <string>

/// How charges are named, here and in Redis.
namespace tidegate::store_redis {

[[nodiscard]] inline auto is_concurrent(ratelimit::policy const& policy) noexcept -> bool {
  return policy.unit() == ratelimit::quota_unit::concurrent_requests;
}

/// A slice of gcra could be spent later than its units were there, so that is counted exactly; so
/// are logs and calendars.
[[nodiscard]] auto is_leased(store::shared_charge const& charge) noexcept -> bool;

/// The key of a bucket in Redis.
///
/// Partitions may be secrets, and of any length: keys have a digest. It is the hash tag, so that
/// what a partition has lies in one slot. What is held, spent, in a log or by the calendar is kept
/// in different ways, so a policy that changes in that has another key.
[[nodiscard]] auto key_of(store::shared_charge const& charge) -> std::string;

/// The same in this process, with the quota: where it depends on who asks, a refusal or a slice of
/// one is none of another. Concurrent requests are counted together, whatever their quota.
[[nodiscard]] auto id_of(store::hash_seed const& seed, store::charge const& charge) noexcept
    -> store::key_hash;

[[nodiscard]] auto random_seed() -> store::hash_seed;
/// Names one quota store of a gateway among all that hold slots of concurrent requests.
[[nodiscard]] auto random_holder(std::string const& gateway) -> std::string;

}  // namespace tidegate::store_redis
