// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "quotas/lease_size.hpp"

#include <tidegate/base/instant.hpp>
#include <tidegate/ratelimit/limiter.hpp>
#include <tidegate/store/keyed_hash.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <list>
#include <string>
#include <unordered_map>
#include <utility>

namespace tidegate::store_redis {

/// What this thread has of a partition: a slice of its quota, or slots of its concurrent requests.
struct share {
  store::key_hash id;
  std::string key;  ///< in Redis
  ratelimit::policy policy;
  bool is_leased = false;

  std::int64_t units = 0;       ///< that nobody has spent yet
  instant valid_until{};        ///< until when they may be
  std::int64_t window_end = 0;  ///< by the store's clock: of the window that they were taken in
  std::int64_t taken_at = 0;    ///< by the store's clock: in that window
  instant since{};              ///< here: later than the beginning of that window
  bool is_taking = false;       ///< the store was asked for more
  instant no_more_until{};      ///< the store said that there is no more
  std::int64_t held = 0;        ///< slots that requests hold
  std::size_t asking = 0;       ///< questions that wait to be sent or answered
  std::size_t sent = 0;     ///< what was sent and not answered, and may change what is held there
  std::int64_t unsent = 0;  ///< units of settlements that wait to be sent
  bool is_unsure = false;   ///< whether the store knows what is held
  std::int64_t left_there = 0;  ///< what remained in the store when that was last heard of
  instant reset_at{};           ///< and until when
  use_rate rate{};  // NOLINT(readability-redundant-member-init): so that it may be left out
  instant last_used{};

  [[nodiscard]] auto is_concurrent() const noexcept -> bool {
    return policy.unit() == ratelimit::quota_unit::concurrent_requests;
  }
  /// Whether nothing would be lost with it, but for units that are given back.
  [[nodiscard]] auto is_idle() const noexcept -> bool {
    return held == 0 && asking == 0 && sent == 0 && unsent == 0 && !is_taking && !is_unsure;
  }
  /// What the store should know to be held, but for what is on its way.
  [[nodiscard]] auto held_there() const noexcept -> std::int64_t { return held + units - unsent; }
  [[nodiscard]] auto left(instant now) const noexcept -> ratelimit::service {
    return {units + left_there, std::max(reset_at - now, std::chrono::nanoseconds(0))};
  }
};

/// The shares of a thread, in the order of their use. They stay where they are until they are
/// erased.
class share_table {
 public:
  [[nodiscard]] auto find(store::key_hash const& id) const noexcept -> share* {
    auto const found = by_id_.find(id);
    return found == by_id_.end() ? nullptr : &*found->second;
  }
  [[nodiscard]] auto size() const noexcept -> std::size_t { return shares_.size(); }

  auto add(share made) -> share& {
    shares_.push_back(std::move(made));
    by_id_.emplace(shares_.back().id, std::prev(shares_.end()));
    return shares_.back();
  }
  void erase(share const& gone) {
    auto const found = by_id_.find(gone.id);
    auto const at = found->second;
    by_id_.erase(found);
    shares_.erase(at);
  }
  /// Makes it the one that was used last.
  void touch(share& used, instant now) {
    used.last_used = now;
    shares_.splice(shares_.end(), shares_, by_id_.find(used.id)->second);
  }
  /// The one that was not used for longest; there is one.
  [[nodiscard]] auto oldest() noexcept -> share& { return shares_.front(); }

  [[nodiscard]] auto begin() noexcept { return shares_.begin(); }
  [[nodiscard]] auto end() noexcept { return shares_.end(); }

 private:
  struct hash {
    auto operator()(store::key_hash const& id) const noexcept -> std::size_t { return id.low; }
  };

  std::list<share> shares_;
  std::unordered_map<store::key_hash, std::list<share>::iterator, hash> by_id_;
};

}  // namespace tidegate::store_redis
