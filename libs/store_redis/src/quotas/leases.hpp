// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "protocol/callback_timer.hpp"
#include "quotas/lease_table.hpp"
#include "quotas/write_queue.hpp"

#include <tidegate/base/instant.hpp>
#include <tidegate/engine/loop.hpp>
#include <tidegate/ratelimit/limiter.hpp>
#include <tidegate/store/quota_store.hpp>
#include <tidegate/store_redis/quota_store.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

namespace tidegate::store_redis {

/// What the store answered when it was asked for more of a lease.
struct lease_grant {
  std::int64_t at = 0;  ///< by the store's clock
  std::int64_t units = 0;
  std::chrono::microseconds lasts{};
  ratelimit::verdict verdict;
};

/// Takes units ahead, spends them here and releases what is not needed. What that means for the
/// store goes into the write queue.
class leases {
 public:
  leases(engine::loop& on, quota_store_options const& options, write_queue& queue);

  [[nodiscard]] auto find(store::key_hash const& id) const noexcept -> lease* {
    return table_.find(id);
  }
  /// The lease that a cost can be spent of now.
  [[nodiscard]] auto find_usable(store::key_hash const& id, std::int64_t cost, instant now)
      -> lease*;
  /// The lease of a charge that is leased or of concurrent requests, made if there is none; null
  /// for want of room.
  [[nodiscard]] auto find_or_add(store::key_hash const& id, store::shared_charge const& charge,
                                 instant now) -> lease*;

  void spend(lease& from, std::int64_t cost, instant now);
  /// Asks for more when little is left.
  void refill(lease& low, instant now);
  void take_grant(lease& asked, lease_grant const& grant, instant sent);
  /// Asking for more gave no answer.
  void take_failure(lease& asked, instant sent);
  /// How many units to ask for.
  [[nodiscard]] auto wanted(lease& low, instant now) const -> std::int64_t;
  [[nodiscard]] auto takers() const noexcept -> std::size_t { return takers_; }
  void set_takers(std::size_t takers) noexcept { takers_ = takers; }

  /// Corrects what was spent of a lease. Returns the units that the store has to correct.
  [[nodiscard]] auto settle(lease& spent, instant admitted_at, instant now, std::int64_t units)
      -> std::int64_t;
  /// Has the store correct what a partition has spent, by its clock at `admitted_at`.
  void settle_in_store(store::key_hash const& id, std::string key, ratelimit::policy const& policy,
                       std::int64_t units, std::int64_t admitted_at);

  void release_all();
  /// What the store has counted is gone, and so are units that were taken of it.
  void forget(store::key_hash const& id);
  /// Reports to the store what concurrent requests hold.
  void report_held();

 private:
  void release(lease& from, std::int64_t units);
  void release_idle();
  void end_slice(lease& ended);

  engine::loop& loop_;
  quota_store_options const& options_;
  write_queue& queue_;
  lease_table table_;
  callback_timer idle_timer_;
  std::size_t takers_;  // quota stores that share what remains
};

}  // namespace tidegate::store_redis
