// SPDX-License-Identifier: Apache-2.0
#include <tidegate/store/quota_table.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cassert>
#include <cstring>
#include <limits>
#include <mutex>
#include <new>
#include <thread>
#include <utility>
#include <vector>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace tidegate::store {

namespace {

using ratelimit::bucket;

// Other states are kept in the place of a bucket.
static_assert(sizeof(bucket) == quota_table::state_octets_max);
static_assert(std::is_trivially_copyable_v<bucket>);

void pause() noexcept {
#if defined(__SSE2__)
  _mm_pause();
#endif
}

/// Held for a few dozen nanoseconds at a time, so waiting for it is done on the spot.
class spin_lock {
 public:
  void lock() noexcept {
    if (locked_.exchange(true, std::memory_order_acquire)) [[unlikely]] {
      wait();
    }
  }
  void unlock() noexcept { locked_.store(false, std::memory_order_release); }

 private:
  // Out of line, so that the usual way through `lock` stays short.
  [[gnu::noinline]] void wait() noexcept {
    int tries = 0;
    do {
      while (locked_.load(std::memory_order_relaxed)) {
        if (++tries > 100) {
          std::this_thread::yield();  // whoever holds it was put aside by the scheduler
        } else {
          pause();
        }
      }
    } while (locked_.exchange(true, std::memory_order_acquire));
  }

  std::atomic<bool> locked_{false};
};

}  // namespace

/// One bucket with whose it is: a line of the cache.
struct alignas(64) quota_table::slot {
  key_hash hash{};
  bucket state;
  std::int64_t expires = never_used;  // the bucket may be forgotten from then on

  static constexpr std::int64_t never_used = std::numeric_limits<std::int64_t>::min();

  /// After the bucket has changed.
  void renew(ratelimit::policy const& p) noexcept {
    expires = ratelimit::expires(p, state).time_since_epoch().count();
  }
  [[nodiscard]] auto is_empty() const noexcept -> bool { return expires == never_used; }
  [[nodiscard]] auto is_expired(std::int64_t now) const noexcept -> bool { return expires <= now; }
};

/// A part of the table with its own lock. Slots are found by probing from the hash on; a slot whose
/// bucket has expired stays until it is reused or the shard is rebuilt.
// NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding): the lock is to have a line of its own
struct alignas(64) quota_table::shard {
  /// What the keys of a domain share when they find no room here.
  struct shared_state {
    std::uint32_t domain;
    bucket state;
    std::int64_t expires;  // for `update`; a bucket knows by itself
  };

  // For looking ahead without the lock: what is read then may be stale, and only warms the cache. On a
  // line of its own, which every core keeps, while the one of the lock goes from core to core.
  std::atomic<slot const*> hint{nullptr};
  std::atomic<std::uint32_t> hint_size{0};
  alignas(64) mutable spin_lock lock;
  std::uint32_t slots_size = 0;
  std::uint32_t taken = 0;  // slots that are not empty
  std::unique_ptr<slot[]> slots;
  std::vector<shared_state> shared;

  [[nodiscard]] static auto home(key_hash const& hash, std::uint32_t size) noexcept -> std::size_t {
    return static_cast<std::size_t>((hash.low & 0xffff'ffff) * size >> 32);
  }
  [[nodiscard]] auto after(std::size_t i) const noexcept -> std::size_t {
    return i + 1 == slots_size ? 0 : i + 1;
  }
  void prefetch(key_hash const& hash) const noexcept {
    __builtin_prefetch(&lock,
                       1);  // it may be with another core, and taking it waits for what is before
    if (auto const* const first = hint.load(std::memory_order_relaxed)) {
      __builtin_prefetch(first + home(hash, hint_size.load(std::memory_order_relaxed)), 1);
    }
  }

  /// The slot of a key, or null.
  [[nodiscard]] auto find(key_hash const& hash) const noexcept -> slot* {
    if (slots_size == 0) {
      return nullptr;
    }
    for (auto i = home(hash, slots_size);; i = after(i)) {
      if (slots[i].hash == hash) {  // no key has the hash of an empty slot, in practice
        return &slots[i];
      }
      if (slots[i].is_empty()) {
        return nullptr;
      }
    }
  }

  /// A slot for a key that has none: an expired one on its way, or an empty one.
  [[nodiscard]] auto claim(key_hash const& hash, std::int64_t now) noexcept -> slot& {
    auto i = home(hash, slots_size);
    while (!slots[i].is_empty() && !slots[i].is_expired(now)) {
      i = after(i);
    }
    if (slots[i].is_empty()) {
      ++taken;
    }
    slots[i].hash = hash;
    return slots[i];
  }

  /// Three quarters at most are taken, so that a search soon comes to an empty slot.
  [[nodiscard]] static auto fits(std::size_t keys, std::size_t size) noexcept -> bool {
    return keys * 4 <= size * 3;
  }

  static constexpr std::size_t slots_min = 32;

  /// Sees to room for `more` keys; false when the shard is as large as it may be and all is live.
  [[nodiscard]] auto make_room(std::size_t more, std::int64_t now, std::size_t slots_max) -> bool {
    if (fits(taken + more, slots_size)) {
      return true;
    }
    std::size_t live = 0;
    for (std::size_t i = 0; i < slots_size; ++i) {
      if (!slots[i].is_empty() && !slots[i].is_expired(now)) {
        ++live;
      }
    }
    // Grow by a quarter when it would soon be full again, else only clear out.
    std::size_t wanted = slots_size;
    if (!fits(live + live / 8 + more, wanted)) {
      wanted =
          std::min(std::max({wanted + wanted / 4, (live + more) * 3 / 2, slots_min}), slots_max);
    }
    if (!fits(live + more, wanted)) {
      return false;
    }
    rebuild(wanted, now);
    return true;
  }

  void rebuild(std::size_t size, std::int64_t now) {
    auto fresh = std::make_unique<slot[]>(size);
    auto const old_size = std::exchange(slots_size, static_cast<std::uint32_t>(size));
    auto const old = std::exchange(slots, std::move(fresh));
    hint.store(slots.get(), std::memory_order_relaxed);
    hint_size.store(slots_size, std::memory_order_relaxed);
    taken = 0;
    for (std::size_t i = 0; i < old_size; ++i) {
      if (!old[i].is_empty() && !old[i].is_expired(now)) {
        claim(old[i].hash, slot::never_used) = old[i];
      }
    }
  }

  [[nodiscard]] auto shared_for(std::uint32_t domain) -> shared_state& {
    for (auto& s : shared) {
      if (s.domain == domain) {
        return s;
      }
    }
    return shared.emplace_back(shared_state{domain, {}, slot::never_used});
  }
};

/// Where the bucket of one charge is, while its shard is locked.
struct quota_table::place {
  key_hash hash;
  shard* in;
  slot* at;     // null for a partition that has no bucket yet
  bucket next;  // the bucket once all are charged
};

/// The shards of several places, locked in the order of their addresses so that no two requests wait
/// for each other.
class quota_table::locked {
 public:
  explicit locked(std::span<place const> places) {
    for (auto const& place : places) {
      insert(place.in);
    }
    for (std::size_t i = 0; i < size_; ++i) {
      shards_[i]->lock.lock();
    }
  }
  ~locked() {
    for (std::size_t i = size_; i > 0; --i) {
      shards_[i - 1]->lock.unlock();
    }
  }
  locked(locked const&) = delete;
  auto operator=(locked const&) -> locked& = delete;

 private:
  void insert(shard* in) noexcept {
    auto at = size_;
    while (at > 0 && shards_[at - 1] > in) {
      --at;
    }
    if (at > 0 && shards_[at - 1] == in) {
      return;
    }
    for (auto i = size_++; i > at; --i) {
      shards_[i] = shards_[i - 1];
    }
    shards_[at] = in;
  }

  std::array<shard*, charges_max> shards_;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  std::size_t size_ = 0;
};

quota_table::quota_table(options const& options) : seed_(options.randomness) {
  // About a thousand partitions a shard: rebuilding one is short, and threads rarely meet.
  auto const partitions = std::max<std::size_t>(options.partitions_max, 1);
  shards_size_ = std::clamp<std::size_t>(std::bit_ceil(partitions / 1024), 1, 65536);
  // A shard may get more than its share; that much room keeps even the fullest one below its bound.
  auto const share = partitions / shards_size_ + 1;
  slots_max_ = (share + share / 8 + 4 * charges_max) * 4 / 3 + 1;
  shards_ = std::make_unique<shard[]>(shards_size_);
}

quota_table::~quota_table() = default;

auto quota_table::shard_of(key_hash const& hash) const noexcept -> shard& {
  return shards_[hash.high & (shards_size_ - 1)];
}

auto quota_table::spend(std::span<charge const> charges, instant now, std::span<charged> results)
    -> bool {
  assert(charges.size() <= charges_max && results.size() >= charges.size());
  if (charges.size() == 1) {
    // What most requests need: one policy, and a partition that has been here before.
    auto const& charge = charges[0];
    auto const hash = hash_of(charge);
    auto& in = shard_of(hash);
    in.prefetch(hash);
    std::lock_guard const lock(in.lock);
    if (auto* const found = in.find(hash)) {
      // Made where it is to be: copying it there would take as long as deciding.
      auto const& result = *::new (&results[0]) charged{
          ratelimit::spend(*charge.policy, found->state, now, charge.cost), false};
      if (result.decision.admitted) {
        found->renew(*charge.policy);
      }
      return result.decision.admitted || !charge.enforced;
    }
  }
  return spend_several(charges, now, results);
}

auto quota_table::spend_several(std::span<charge const> charges, instant now,
                                std::span<charged> results) -> bool {
  auto const count = charges.size();
  std::array<place, charges_max> places;  // NOLINT: only the first `count` are used
  for (std::size_t i = 0; i < count; ++i) {
    places[i].hash = hash_of(charges[i]);
    places[i].in = &shard_of(places[i].hash);
    places[i].in->prefetch(places[i].hash);
  }
  auto const at = now.time_since_epoch().count();
  locked const lock(std::span<place const>(places.data(), count));

  bool admitted = true;
  bool some_new = false;
  for (std::size_t i = 0; i < count; ++i) {
    auto& place = places[i];
    place.at = place.in->find(place.hash);
    some_new = some_new || place.at == nullptr;
    bool const shared = place.at == nullptr && !place.in->make_room(count, at, slots_max_);
    place.next = place.at != nullptr ? place.at->state
                 : shared            ? place.in->shared_for(charges[i].policy_id).state
                                     : bucket{};
    ::new (&results[i])
        charged{ratelimit::spend(*charges[i].policy, place.next, now, charges[i].cost), shared};
    admitted = admitted && (results[i].decision.admitted || !charges[i].enforced);
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (!results[i].decision.admitted) {
      continue;
    }
    auto& place = places[i];
    if (some_new) {  // making room for another charge may have moved this one's slot
      place.at = place.in->find(place.hash);
    }
    if (!admitted) {
      // Not charged after all: say what is left as it stands.
      auto const state = results[i].shared     ? place.in->shared_for(charges[i].policy_id).state
                         : place.at != nullptr ? place.at->state
                                               : bucket{};
      results[i].decision.left = ratelimit::look(*charges[i].policy, state, now);
    } else if (results[i].shared) {
      place.in->shared_for(charges[i].policy_id).state = place.next;
    } else {
      auto& slot = place.at == nullptr ? place.in->claim(place.hash, at) : *place.at;
      slot.state = place.next;
      slot.renew(*charges[i].policy);
    }
  }
  return admitted;
}

void quota_table::settle(charge const& charge, charged const& was, instant admitted_at, instant now,
                         std::int64_t units) {
  auto const hash = hash_of(charge);
  auto& in = shard_of(hash);
  std::lock_guard const lock(in.lock);
  auto* found = was.shared ? nullptr : in.find(hash);
  if (found == nullptr && !was.shared) {
    if (units <= 0) {
      return;  // there is nothing left to give back
    }
    if (in.make_room(1, now.time_since_epoch().count(), slots_max_)) {
      found = &in.claim(hash, now.time_since_epoch().count());
      found->state = {};
    }
  }
  auto& state = found == nullptr ? in.shared_for(charge.policy_id).state : found->state;
  state = ratelimit::settle(*charge.policy, state, admitted_at, now, units);
  if (found != nullptr) {
    found->renew(*charge.policy);
  }
}

auto quota_table::look(charge const& charge, instant now) const -> ratelimit::service {
  auto const hash = hash_of(charge);
  auto& in = shard_of(hash);
  std::lock_guard const lock(in.lock);
  auto const* const found = in.find(hash);
  return ratelimit::look(*charge.policy, found == nullptr ? bucket{} : found->state, now);
}

auto quota_table::update_octets(std::uint32_t domain, std::string_view key, instant now,
                                change_octets change, void* context) -> bool {
  auto const hash = hash_key(seed_, domain, key);
  auto const at = now.time_since_epoch().count();
  // What comes back must not look like a slot that was never used.
  auto const changed = [&](bucket& state) {
    return std::max(change(context, &state).time_since_epoch().count(), slot::never_used + 1);
  };
  auto& in = shard_of(hash);
  std::lock_guard const lock(in.lock);
  auto* const found = in.find(hash);
  if (found == nullptr && !in.make_room(1, at, slots_max_)) {
    auto& shared = in.shared_for(domain);
    if (shared.expires <= at) {
      shared.state = {};
    }
    shared.expires = changed(shared.state);
    return false;
  }
  auto state = found == nullptr || found->is_expired(at) ? bucket{} : found->state;
  auto const expires = changed(state);
  auto& slot = found == nullptr ? in.claim(hash, at) : *found;
  slot.state = state;
  slot.expires = expires;
  return true;
}

void quota_table::peek_octets(std::uint32_t domain, std::string_view key, instant now, void* octets,
                              std::size_t size) const {
  auto const hash = hash_key(seed_, domain, key);
  auto& in = shard_of(hash);
  std::lock_guard const lock(in.lock);
  auto const* const found = in.find(hash);
  if (found != nullptr && !found->is_expired(now.time_since_epoch().count())) {
    std::memcpy(octets, &found->state, size);
  }
}

auto quota_table::size() const -> std::size_t {
  std::size_t sum = 0;
  for (std::size_t i = 0; i < shards_size_; ++i) {
    std::lock_guard const lock(shards_[i].lock);
    sum += shards_[i].taken;
  }
  return sum;
}

auto quota_table::memory() const -> std::size_t {
  std::size_t sum = sizeof *this + shards_size_ * sizeof(shard);
  for (std::size_t i = 0; i < shards_size_; ++i) {
    std::lock_guard const lock(shards_[i].lock);
    sum += shards_[i].slots_size * sizeof(slot);
  }
  return sum;
}

}  // namespace tidegate::store
