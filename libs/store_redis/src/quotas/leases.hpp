// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "protocol/callback_timer.hpp"
#include "quotas/lease_size.hpp"
#include "quotas/write_queue.hpp"

#include <tidegate/base/instant.hpp>
#include <tidegate/engine/loop.hpp>
#include <tidegate/ratelimit/limiter.hpp>
#include <tidegate/store/quota_store.hpp>
#include <tidegate/store_quota/keyed_hash.hpp>
#include <tidegate/store_redis/quota_store.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <list>
#include <string>
#include <unordered_map>
#include <utility>

namespace tidegate::store_redis {

/// What this thread has of a partition: a slice of its quota, or slots of its concurrent requests.
struct lease {
  store::key_hash id;
  std::string key;           ///< in Redis
  ratelimit::policy policy;  ///< where callers have several quotas: of the largest in use
  bool is_ahead = false;     ///< units are taken ahead; else only what requests hold is known here

  std::int64_t units = 0;       ///< that are not spent yet
  instant valid_until{};        ///< until when they may be
  std::int64_t window_end = 0;  ///< by the store's clock: of the window that they were taken in
  std::int64_t taken_at = 0;    ///< by the store's clock: in that window
  instant since{};              ///< here: later than the beginning of that window
  bool is_requested = false;    ///< the store was asked for more
  instant exhausted_until{};    ///< the store said that there is no more
  std::int64_t held = 0;        ///< slots that requests hold
  std::size_t charges = 0;      ///< that wait to be sent or answered
  std::size_t in_flight = 0;    ///< calls without an answer that may change what the store counts
  std::int64_t unsent = 0;      ///< units of settlements that wait to be sent
  bool needs_report = false;    ///< it is not sure that the store knows what is held
  std::int64_t store_remaining = 0;  ///< in the store, by its last answer
  instant reset_at{};                ///< and until when
  use_rate rate{};  // NOLINT(readability-redundant-member-init): so that it may be left out
  instant last_used{};

  [[nodiscard]] auto is_concurrent() const noexcept -> bool {
    return policy.unit() == ratelimit::quota_unit::concurrent_requests;
  }
  /// Whether nothing would be lost with it, but for units that are released.
  [[nodiscard]] auto is_idle() const noexcept -> bool {
    return held == 0 && charges == 0 && in_flight == 0 && unsent == 0 && !is_requested &&
           !needs_report;
  }
  /// What the store should know to be held, but for what is in flight.
  [[nodiscard]] auto held_in_store() const noexcept -> std::int64_t {
    return held + units - unsent;
  }
  [[nodiscard]] auto left(instant now) const noexcept -> ratelimit::service {
    return {units + store_remaining, std::max(reset_at - now, std::chrono::nanoseconds(0))};
  }
};

/// The leases of a thread, in the order of their use. They stay where they are until they are
/// erased.
class lease_table {
 public:
  [[nodiscard]] auto find(store::key_hash const& id) const noexcept -> lease* {
    auto const found = by_id_.find(id);
    return found == by_id_.end() ? nullptr : &*found->second;
  }
  [[nodiscard]] auto size() const noexcept -> std::size_t { return leases_.size(); }

  auto add(lease made) -> lease& {
    leases_.push_back(std::move(made));
    by_id_.emplace(leases_.back().id, std::prev(leases_.end()));
    return leases_.back();
  }
  void erase(lease const& gone) {
    auto const found = by_id_.find(gone.id);
    auto const at = found->second;
    by_id_.erase(found);
    leases_.erase(at);
  }
  /// Makes it the one that was used last.
  void touch(lease& used, instant now) {
    used.last_used = now;
    leases_.splice(leases_.end(), leases_, by_id_.find(used.id)->second);
  }
  /// The one that was not used for longest; there is one.
  [[nodiscard]] auto oldest() noexcept -> lease& { return leases_.front(); }

  [[nodiscard]] auto begin() noexcept { return leases_.begin(); }
  [[nodiscard]] auto end() noexcept { return leases_.end(); }

 private:
  struct hash {
    auto operator()(store::key_hash const& id) const noexcept -> std::size_t { return id.low; }
  };

  std::list<lease> leases_;
  std::unordered_map<store::key_hash, std::list<lease>::iterator, hash> by_id_;
};

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
  /// The lease that a cost can be spent of now, by one who has that quota.
  [[nodiscard]] auto find_usable(store::key_hash const& id, std::int64_t cost, std::int64_t quota,
                                 instant now) -> lease*;
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
  void use_policy(lease& of, ratelimit::policy const& policy);
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
