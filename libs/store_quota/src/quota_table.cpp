// SPDX-License-Identifier: Apache-2.0
#include <tidegate/store_quota/quota_table.hpp>
#include "quota_shard.hpp"

#include <cassert>
#include <limits>
#include <mutex>
#include <new>
#include <utility>

#include <sys/mman.h>

namespace tidegate::TIDEGATE_ABI::store {

/// Where the bucket of one charge is, while its shard is locked.
struct quota_table::place {
  key_hash hash;
  shard* in;
  bool is_shared;  // for want of room
  bool has_log;    // its own slot counts times
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
  logs_ = std::make_unique<log_memory>(partitions * sizeof(slot));
  slots_ = std::make_unique<slot_memory>(shards_size_ * slots_max_);
  shards_ = std::make_unique<shard[]>(shards_size_);
  for (std::size_t i = 0; i < shards_size_; ++i) {
    shards_[i].slots = slots_->slots() + i * slots_max_;
    shards_[i].logs = logs_.get();
  }
}

quota_table::~quota_table() {
  for (std::size_t i = 0; i < shards_size_ && logs_->octets.load() > 0; ++i) {
    for (std::size_t at = 0; at < shards_[i].size(); ++at) {
      shards_[i].slots[at].drop_log(*logs_);
    }
  }
}

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
    if (auto found = in.find_locked(hash)) {
      if (found->may_have_log(*charge.policy) && found->uses_log(*charge.policy, *logs_))
          [[unlikely]] {
        results[0] = {found->decide_by_log(*charge.policy, now, charge.cost), false};
        bool const admitted = results[0].decision.admitted;
        if (admitted) {
          found->add_to_log(*charge.policy, now, charge.cost, *logs_);
          found->renew(*charge.policy);
        }
        found.release();
        sweep_logs(now);
        return admitted || !charge.enforced;
      }
      // Made where it is to be: copying it there would take as long as deciding.
      auto const& result = *::new (&results[0]) charged{
          ratelimit::spend(*charge.policy, found->state, now, charge.cost), false};
      if (result.decision.admitted) {
        found->renew(*charge.policy);
      }
      return result.decision.admitted || !charge.enforced;
    }
  }
  bool const admitted = spend_several(charges, now, results);
  sweep_logs(now);
  return admitted;
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
    place.has_log = place.own != nullptr && place.own->may_have_log(*charges[i].policy) &&
                    place.own->uses_log(*charges[i].policy, *logs_);
    ::new (&results[i]) charged{
        place.has_log ? place.own->decide_by_log(*charges[i].policy, now, charges[i].cost)
                      : ratelimit::spend(*charges[i].policy, place.next, now, charges[i].cost),
        place.is_shared};
    admitted = admitted && (results[i].decision.admitted || !charges[i].enforced);
  }
  for (std::size_t i = 0; i < count; ++i) {
    auto& place = places[i];
    if (results[i].decision.admitted && !admitted) {
      // Not charged after all: say what is left as it stands.
      results[i].decision.left =
          place.own != nullptr
              ? place.own->look(*charges[i].policy, now)
              : ratelimit::look(*charges[i].policy,
                                place.state != nullptr ? *place.state : bucket{}, now);
    } else if (results[i].decision.admitted && place.state != nullptr) {
      if (place.has_log) {
        place.own->add_to_log(*charges[i].policy, now, charges[i].cost, *logs_);
      } else {
        *place.state = place.next;
      }
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
  if (found && found->may_have_log(*charge.policy) && found->uses_log(*charge.policy, *logs_)) {
    if (units > 0) {
      found->add_to_log(*charge.policy, now, units, *logs_);
      found->renew(*charge.policy);
      return;
    }
    if (found->log != nullptr) {
      found->log->release(*charge.policy, admitted_at, now, -units);
      found->renew(*charge.policy);
      return;
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
  return found ? found->look(*charge.policy, now) : ratelimit::look(*charge.policy, {}, now);
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
  bool const said_something =
      found->state != bucket{} || (found->log != nullptr && !found->log->is_empty());
  found->drop_log(*logs_);
  found->state = {};
  found->expires = std::numeric_limits<std::int64_t>::min();
  return said_something;
}

void quota_table::forgive(charge const& charge, instant now) {
  auto const hash = hash_of(charge);
  auto& in = shard_of(hash);
  std::lock_guard const lock(in.lock);
  if (auto const found = in.find_locked(hash); found && found->log == nullptr) {
    found->state = ratelimit::forgiven(*charge.policy, found->state, now);
    found->renew(*charge.policy);
  }
}

/// When logs have no more memory: takes back that of some that have expired, the next time from
/// where it has stopped.
void quota_table::sweep_logs(instant now) {
  if (!logs_->is_short.load(std::memory_order_relaxed) || !logs_->sweep.try_lock()) {
    return;
  }
  logs_->is_short.store(false, std::memory_order_relaxed);
  auto& at = logs_->sweep_slot;
  for (int visited = 0; visited < 512; ++visited) {
    auto const& in = shards_[logs_->sweep_shard % shards_size_];
    if (at >= in.size()) {
      ++logs_->sweep_shard;
      at = 0;
      continue;
    }
    held_slot const held(in.slots[at++]);
    if (held->is_expired(now.time_since_epoch().count())) {
      held->drop_log(*logs_);
    }
  }
  logs_->sweep.unlock();
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
  return sum + logs_->octets.load(std::memory_order_relaxed);
}

}  // namespace tidegate::TIDEGATE_ABI::store
