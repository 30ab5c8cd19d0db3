// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/ratelimit/spent_log.hpp>
#include <tidegate/store_quota/quota_table.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace tidegate::TIDEGATE_ABI::store {

using ratelimit::bucket;

// Other states are kept in the place of a bucket.
static_assert(sizeof(bucket) == quota_table::state_octets_max);
static_assert(std::is_trivially_copyable_v<bucket>);

inline void pause() noexcept {
#if defined(__SSE2__)
  _mm_pause();
#endif
}

/// Held for a few dozen nanoseconds at a time, so waiting for it is done on the spot. Unlocked when
/// its one octet is zero.
struct spin_lock {
  bool locked;

  void lock() noexcept {
    if (std::atomic_ref(locked).exchange(true, std::memory_order_acquire)) [[unlikely]] {
      wait();
    }
  }
  [[nodiscard]] auto try_lock() noexcept -> bool {
    return !std::atomic_ref(locked).exchange(true, std::memory_order_acquire);
  }
  void unlock() noexcept { std::atomic_ref(locked).store(false, std::memory_order_release); }

 private:
  // Out of line, so that the usual way through `lock` stays short.
  [[gnu::noinline]] void wait() noexcept {
    std::atomic_ref const state(locked);
    int tries = 0;
    do {
      while (state.load(std::memory_order_relaxed)) {
        if (++tries > 100) {
          std::this_thread::yield();  // the scheduler has suspended its holder
        } else {
          pause();
        }
      }
    } while (state.exchange(true, std::memory_order_acquire));
  }
};

inline constexpr std::size_t page_octets = 4096;

/// What the times of `algorithm::log` take, and may take, in the whole table.
struct quota_table::log_memory {
  std::size_t octets_max;
  std::atomic<std::size_t> octets{0};
  std::atomic<bool> is_short{false};  // it was asked for more than there is
  // Where to go on looking for what has expired, for one thread at a time.
  spin_lock sweep{};
  std::size_t sweep_shard = 0;
  std::size_t sweep_slot = 0;

  [[nodiscard]] auto reserve(std::size_t more) noexcept -> bool {
    if (octets.fetch_add(more, std::memory_order_relaxed) + more <= octets_max) {
      return true;
    }
    release(more);
    is_short.store(true, std::memory_order_relaxed);
    return false;
  }
  void release(std::size_t less) noexcept { octets.fetch_sub(less, std::memory_order_relaxed); }
};

/// One bucket with whose it is: a line of the cache, which has the lock too, so that a decision
/// waits for one line. All zeros when it was never used, for so does its memory begin.
struct alignas(64) quota_table::slot {
  std::uint64_t
      hash_low;  // both change with this lock and the shard's; a search reads them without
  std::uint64_t hash_high;
  bucket state;
  std::int64_t expires;       // the bucket may be forgotten from then on
  ratelimit::spent_log* log;  // the times instead of the bucket, once there are two; owned
  spin_lock lock;

  [[nodiscard]] auto hash() noexcept -> key_hash {
    return {std::atomic_ref(hash_low).load(std::memory_order_relaxed),
            std::atomic_ref(hash_high).load(std::memory_order_relaxed)};
  }
  void set_hash(key_hash const& hash) noexcept {
    std::atomic_ref(hash_low).store(hash.low, std::memory_order_relaxed);
    std::atomic_ref(hash_high).store(hash.high, std::memory_order_relaxed);
  }
  [[nodiscard]] auto is_expired(std::int64_t now) const noexcept -> bool { return expires <= now; }

  /// After the bucket has changed.
  void renew(ratelimit::policy const& p) noexcept {
    expires = (log != nullptr ? log->expires(p) : ratelimit::expires(p, state))
                  .time_since_epoch()
                  .count();
  }

  // ---- of a policy that counts times: the bucket has one of them, the log several ----

  [[nodiscard]] auto may_have_log(ratelimit::policy const& p) const noexcept -> bool {
    return log != nullptr || p.algorithm() == ratelimit::algorithm::log;
  }
  /// Whether the policy counts times. If not, those that an earlier one has left are given up.
  [[nodiscard]] auto uses_log(ratelimit::policy const& p, log_memory& memory) noexcept -> bool;
  /// `add_to_log` spends what was admitted.
  [[nodiscard]] auto decide_by_log(ratelimit::policy const& p, instant now,
                                   std::int64_t cost) const noexcept -> ratelimit::verdict;
  /// Without room for another time, what was spent before counts as spent later.
  void add_to_log(ratelimit::policy const& p, instant now, std::int64_t units,
                  log_memory& memory) noexcept;
  void drop_log(log_memory& memory) noexcept;
  [[nodiscard]] auto look(ratelimit::policy const& p, instant now) const noexcept
      -> ratelimit::service {
    return log != nullptr && counts_times(p) ? log->look(p, now) : ratelimit::look(p, state, now);
  }
  [[nodiscard]] static auto counts_times(ratelimit::policy const& p) noexcept -> bool {
    return p.algorithm() == ratelimit::algorithm::log &&
           p.unit() != ratelimit::quota_unit::concurrent_requests;
  }
};

/// A slot with its lock, or none.
class quota_table::held_slot {
 public:
  held_slot() = default;
  explicit held_slot(slot& s) noexcept : slot_(&s) { s.lock.lock(); }
  ~held_slot() { release(); }
  held_slot(held_slot&& other) noexcept : slot_(std::exchange(other.slot_, nullptr)) {}
  auto operator=(held_slot&& other) noexcept -> held_slot& {
    std::swap(slot_, other.slot_);
    return *this;
  }

  [[nodiscard]] explicit operator bool() const noexcept { return slot_ != nullptr; }
  auto operator->() const noexcept -> slot* { return slot_; }
  auto operator*() const noexcept -> slot& { return *slot_; }

  void release() noexcept {
    if (slot_ != nullptr) {
      std::exchange(slot_, nullptr)->lock.unlock();
    }
  }

 private:
  slot* slot_ = nullptr;
};

/// A part of the table. Its lock is for which key has which slot; what a slot says of its key is
/// under the lock of the slot, which is taken after the shard's or alone. Slots are found by
/// probing from the hash on; one whose bucket has expired stays until it is reused or the shard is
/// rebuilt.
// NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding): the lock is to have a line of its own
struct alignas(64) quota_table::shard {
  /// What the keys of a domain share when they find no room here.
  struct shared_state {
    std::uint32_t domain;
    bucket state;
    std::int64_t expires;  // for `update`; a bucket knows by itself
  };

  // What a search needs. It seldom changes, so every core keeps its line, while the one of the lock
  // goes from core to core.
  slot* slots = nullptr;
  log_memory* logs = nullptr;
  std::atomic<std::uint32_t> slots_size{0};
  alignas(64) mutable spin_lock lock{};
  std::uint32_t taken = 0;  // slots that are not empty
  std::vector<shared_state> shared;

  static constexpr key_hash empty{};  // no key has this hash, in practice

  [[nodiscard]] auto size() const noexcept -> std::size_t {
    return slots_size.load(std::memory_order_relaxed);
  }
  [[nodiscard]] static auto home(key_hash const& hash, std::size_t size) noexcept -> std::size_t {
    return (hash.low & 0xffff'ffff) * size >> 32;
  }
  [[nodiscard]] static auto after(std::size_t i, std::size_t size) noexcept -> std::size_t {
    return i + 1 == size ? 0 : i + 1;
  }
  void prefetch(key_hash const& hash) const noexcept {
    __builtin_prefetch(&lock, 1);  // it may be with another core
    __builtin_prefetch(slots + home(hash, size()), 1);
  }

  /// The slot of a key, or null. Sure with the lock; without it, what is found or not may have
  /// changed.
  [[nodiscard]] auto find(key_hash const& hash) const noexcept -> slot* {
    auto const slots_now = size();
    auto i = home(hash, slots_now);
    for (std::size_t probes = 0; probes < slots_now; ++probes, i = after(i, slots_now)) {
      auto const found = slots[i].hash();
      if (found == hash) {
        return &slots[i];
      }
      if (found == empty) {
        break;
      }
    }
    return nullptr;
  }

  /// The slot of a key, locked. Without the lock of the shard it may be missed, never mistaken.
  [[nodiscard]] auto find_locked(key_hash const& hash) const noexcept -> held_slot {
    if (auto* const found = find(hash)) {
      held_slot held(*found);
      if (found->hash() == hash) {
        return held;
      }
    }
    return {};
  }

  /// A slot for a key that has none: an expired one on its way, or an empty one.
  [[nodiscard]] auto claim(key_hash const& hash, std::int64_t now) noexcept -> held_slot {
    for (auto i = home(hash, size());; i = after(i, size())) {
      held_slot held(slots[i]);
      bool const is_empty = held->hash() == empty;
      if (is_empty || held->is_expired(now)) {
        taken += is_empty ? 1U : 0U;
        held->drop_log(*logs);
        held->set_hash(hash);
        return held;
      }
    }
  }

  /// Three quarters at most are taken, so that a search soon comes to an empty slot.
  [[nodiscard]] static auto fits(std::size_t keys, std::size_t size) noexcept -> bool {
    return keys * 4 <= size * 3;
  }

  /// Sees to room for `more` keys; false when the shard is as large as it may be and all is live.
  [[nodiscard]] auto make_room(std::size_t more, std::int64_t now, std::size_t slots_max) -> bool {
    if (fits(taken + more, size())) {
      return true;
    }
    std::size_t live = 0;
    for (std::size_t i = 0; i < size(); ++i) {
      held_slot const held(slots[i]);
      if (is_live(*held, now)) {
        ++live;
      }
    }
    // Grow by an eighth, in whole pages, when it would soon be full again, else only clear out.
    auto wanted = size();
    if (!fits(live + live / 8 + more, wanted)) {
      constexpr auto page = page_octets / sizeof(slot);
      wanted =
          std::min((std::max(wanted * 9 / 8, (live + more) * 4 / 3) / page + 1) * page, slots_max);
    }
    if (!fits(live + more, wanted)) {
      return false;
    }
    rebuild(wanted, now);
    return true;
  }

  /// Who looks for a key meanwhile misses it, and then waits for the lock of the shard.
  void rebuild(std::size_t wanted, std::int64_t now) {
    struct kept {
      key_hash hash;
      bucket state;
      std::int64_t expires;
      ratelimit::spent_log* log;
    };
    std::vector<kept> live;
    live.reserve(taken);
    for (std::size_t i = 0; i < size(); ++i) {
      held_slot const held(slots[i]);
      if (is_live(*held, now)) {
        live.push_back(
            {held->hash(), held->state, held->expires, std::exchange(held->log, nullptr)});
      }
      held->drop_log(*logs);
      held->set_hash(empty);
    }
    slots_size.store(static_cast<std::uint32_t>(wanted), std::memory_order_relaxed);
    taken = 0;
    for (auto const& k : live) {
      auto const held = claim(k.hash, never);
      held->state = k.state;
      held->expires = k.expires;
      held->log = k.log;
    }
  }

  /// What the keys of the domain share; it was added before.
  [[nodiscard]] auto shared_for(std::uint32_t domain) noexcept -> shared_state& {
    return *std::ranges::find(shared, domain, &shared_state::domain);
  }
  auto add_shared(std::uint32_t domain) -> shared_state& {
    auto const at = std::ranges::find(shared, domain, &shared_state::domain);
    return at != shared.end() ? *at : shared.emplace_back(shared_state{domain, {}, never});
  }

 private:
  static constexpr auto never = std::numeric_limits<std::int64_t>::min();

  [[nodiscard]] static auto is_live(slot& s, std::int64_t now) noexcept -> bool {
    return s.hash() != empty && !s.is_expired(now);
  }
};

}  // namespace tidegate::TIDEGATE_ABI::store
