// SPDX-License-Identifier: Apache-2.0
#include <tidegate/store_quota/quota_table.hpp>

#include <algorithm>
#include <atomic>
#include <cassert>
#include <limits>
#include <mutex>
#include <new>
#include <thread>
#include <utility>
#include <vector>

#include <sys/mman.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace tidegate::TIDEGATE_ABI::store {

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

/// Held for a few dozen nanoseconds at a time, so waiting for it is done on the spot. Unlocked when
/// its one octet is zero.
struct spin_lock {
  bool locked;

  void lock() noexcept {
    if (std::atomic_ref(locked).exchange(true, std::memory_order_acquire)) [[unlikely]] {
      wait();
    }
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

constexpr std::size_t page_octets = 4096;

}  // namespace

/// One bucket with whose it is: a line of the cache, which has the lock too, so that a decision
/// waits for one line. All zeros when it was never used, for so does its memory begin.
struct alignas(64) quota_table::slot {
  std::uint64_t
      hash_low;  // both change with this lock and the shard's; a search reads them without
  std::uint64_t hash_high;
  bucket state;
  std::int64_t expires;  // the bucket may be forgotten from then on
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
    expires = ratelimit::expires(p, state).time_since_epoch().count();
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
    };
    std::vector<kept> live;
    live.reserve(taken);
    for (std::size_t i = 0; i < size(); ++i) {
      held_slot const held(slots[i]);
      if (is_live(*held, now)) {
        live.push_back({held->hash(), held->state, held->expires});
      }
      held->set_hash(empty);
    }
    slots_size.store(static_cast<std::uint32_t>(wanted), std::memory_order_relaxed);
    taken = 0;
    for (auto const& k : live) {
      auto const held = claim(k.hash, never);
      held->state = k.state;
      held->expires = k.expires;
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

/// Where the bucket of one charge is, while its shard is locked.
struct quota_table::place {
  key_hash hash;
  shard* in;
  bool is_shared;  // for want of room
  slot* own;       // locked; null when the partition has none
  bucket* state;   // its own or what it shares; null when it is yet to get a slot
  bucket next;     // the bucket once all are charged
};

/// The shards of several places, locked in the order of their addresses so that no two requests
/// wait for each other.
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

/// The memory of all slots, of which the system gives a page when it is first written to.
class quota_table::slot_memory {
 public:
  explicit slot_memory(std::size_t slots) : octets_(slots * sizeof(slot)) {
    memory_ = ::mmap(nullptr, octets_, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory_ == MAP_FAILED) {
      throw std::bad_alloc();
    }
    // A shard that is nearly empty must not take two megabytes.
    static_cast<void>(::madvise(memory_, octets_, MADV_NOHUGEPAGE));
  }
  ~slot_memory() { ::munmap(memory_, octets_); }
  slot_memory(slot_memory const&) = delete;
  auto operator=(slot_memory const&) -> slot_memory& = delete;

  [[nodiscard]] auto slots() const noexcept -> slot* { return static_cast<slot*>(memory_); }

 private:
  std::size_t octets_;
  void* memory_;
};

quota_table::quota_table(options const& options) : seed_(options.randomness) {
  // Up to eight thousand partitions a shard: rebuilding one takes less than a millisecond, threads
  // rarely meet, and a few thousand partitions lie on a few hundred pages.
  auto const partitions = std::max<std::size_t>(options.partitions_max, 1);
  shards_size_ = std::clamp<std::size_t>(std::bit_ceil(partitions / 8192), 1, 65536);
  // A shard may get more than its share; that much room keeps even the fullest one below its bound.
  // Every shard begins on a page.
  constexpr auto page = page_octets / sizeof(slot);
  auto const share = partitions / shards_size_ + 1;
  slots_max_ = (share + share / 8 + 4 * charges_max) * 4 / 3 + 1;
  slots_max_ = (slots_max_ + page - 1) / page * page;
  slots_ = std::make_unique<slot_memory>(shards_size_ * slots_max_);
  shards_ = std::make_unique<shard[]>(shards_size_);
  for (std::size_t i = 0; i < shards_size_; ++i) {
    shards_[i].slots = slots_->slots() + i * slots_max_;
  }
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
    if (auto const found = in.find_locked(hash)) {
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

  // Room is made for all that are new before a slot is held, since every slot of a shard may move
  // for it.
  for (std::size_t i = 0; i < count; ++i) {
    auto& place = places[i];
    place.is_shared =
        place.in->find(place.hash) == nullptr && !place.in->make_room(count, at, slots_max_);
    if (place.is_shared) {
      place.in->add_shared(charges[i].policy_id);
    }
  }
  bool admitted = true;
  for (std::size_t i = 0; i < count; ++i) {
    auto& place = places[i];
    place.own = place.is_shared ? nullptr : place.in->find(place.hash);
    if (place.own != nullptr) {
      place.own->lock.lock();
    }
    place.state = place.own != nullptr ? &place.own->state
                  : place.is_shared    ? &place.in->shared_for(charges[i].policy_id).state
                                       : nullptr;
    place.next = place.state != nullptr ? *place.state : bucket{};
    ::new (&results[i]) charged{
        ratelimit::spend(*charges[i].policy, place.next, now, charges[i].cost), place.is_shared};
    admitted = admitted && (results[i].decision.admitted || !charges[i].enforced);
  }
  for (std::size_t i = 0; i < count; ++i) {
    auto& place = places[i];
    if (results[i].decision.admitted && !admitted) {
      // Not charged after all: say what is left as it stands.
      results[i].decision.left = ratelimit::look(
          *charges[i].policy, place.state != nullptr ? *place.state : bucket{}, now);
    } else if (results[i].decision.admitted && place.state != nullptr) {
      *place.state = place.next;
      if (place.own != nullptr) {
        place.own->renew(*charges[i].policy);
      }
    }
    if (place.own != nullptr) {
      place.own->lock.unlock();
    }
  }
  // New slots come last, when none is held that could be in the way. No other thread has seen
  // these partitions: that takes the lock of the shard.
  for (std::size_t i = 0; admitted && i < count; ++i) {
    auto& place = places[i];
    if (results[i].decision.admitted && place.state == nullptr) {
      auto const slot = place.in->claim(place.hash, at);
      slot->state = place.next;
      slot->renew(*charges[i].policy);
    }
  }
  return admitted;
}

void quota_table::settle(charge const& charge, charged const& was, instant admitted_at, instant now,
                         std::int64_t units) {
  auto const hash = hash_of(charge);
  auto& in = shard_of(hash);
  std::lock_guard const lock(in.lock);
  auto found = was.shared ? held_slot() : in.find_locked(hash);
  if (!found && !was.shared) {
    if (units <= 0) {
      return;  // there is nothing left to release
    }
    if (in.make_room(1, now.time_since_epoch().count(), slots_max_)) {
      found = in.claim(hash, now.time_since_epoch().count());
      found->state = {};
    }
  }
  auto& state = found ? found->state : in.add_shared(charge.policy_id).state;
  state = ratelimit::settle(*charge.policy, state, admitted_at, now, units);
  if (found) {
    found->renew(*charge.policy);
  }
}

auto quota_table::look(charge const& charge, instant now) const -> ratelimit::service {
  auto const hash = hash_of(charge);
  auto& in = shard_of(hash);
  std::lock_guard const lock(in.lock);
  auto const found = in.find_locked(hash);
  return ratelimit::look(*charge.policy, found ? found->state : bucket{}, now);
}

auto quota_table::forget(std::uint32_t domain, std::string_view key) -> bool {
  auto const hash = hash_key(seed_, domain, key);
  auto& in = shard_of(hash);
  std::lock_guard const lock(in.lock);
  auto const found = in.find_locked(hash);
  if (!found) {
    return false;
  }
  // The slot stays on the way of others, and is reused like any that has expired.
  bool const said_something = found->state != bucket{};
  found->state = {};
  found->expires = std::numeric_limits<std::int64_t>::min();
  return said_something;
}

void quota_table::forgive(charge const& charge, instant now) {
  auto const hash = hash_of(charge);
  auto& in = shard_of(hash);
  std::lock_guard const lock(in.lock);
  if (auto const found = in.find_locked(hash)) {
    found->state = ratelimit::forgiven(*charge.policy, found->state, now);
    found->renew(*charge.policy);
  }
}

auto quota_table::update_octets(std::uint32_t domain, std::string_view key, instant now,
                                change_octets change, void* context) -> bool {
  auto const hash = hash_key(seed_, domain, key);
  auto const at = now.time_since_epoch().count();
  auto const changed = [&](bucket& state) {
    return change(context, &state).time_since_epoch().count();
  };
  auto& in = shard_of(hash);
  std::lock_guard const lock(in.lock);
  auto found = in.find_locked(hash);
  if (!found && !in.make_room(1, at, slots_max_)) {
    auto& shared = in.add_shared(domain);
    if (shared.expires <= at) {
      shared.state = {};
    }
    shared.expires = changed(shared.state);
    return false;
  }
  auto state = !found || found->is_expired(at) ? bucket{} : found->state;
  auto const expires = changed(state);
  if (!found) {
    found = in.claim(hash, at);
  }
  found->state = state;
  found->expires = expires;
  return true;
}

void quota_table::peek_octets(std::uint32_t domain, std::string_view key, instant now, void* octets,
                              std::size_t size) const {
  auto const hash = hash_key(seed_, domain, key);
  auto& in = shard_of(hash);
  std::lock_guard const lock(in.lock);
  auto const found = in.find_locked(hash);
  if (found && !found->is_expired(now.time_since_epoch().count())) {
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
    sum += shards_[i].size() * sizeof(slot);  // whole pages
  }
  return sum;
}

}  // namespace tidegate::TIDEGATE_ABI::store
