// SPDX-License-Identifier: Apache-2.0
#include <tidegate/proxy/duplicate_waiters.hpp>

#include <limits>

namespace tidegate::gateway {

auto duplicate_waiters::count(idempotency::lookup_key const& key) const -> std::size_t {
  std::lock_guard const lock(mutex_);
  if (auto const scope = of_scope_.find(key.scope());
      scope != of_scope_.end() && scope->second >= scope_max) {
    return std::numeric_limits<std::size_t>::max();
  }
  auto const found = waiters_.find(key);
  return found == waiters_.end() ? 0 : found->second.size();
}

auto duplicate_waiters::size() const -> std::size_t {
  std::lock_guard const lock(mutex_);
  std::size_t waiters = 0;
  for (auto const& [scope, waiting] : of_scope_) {
    waiters += waiting;
  }
  return waiters;
}

void duplicate_waiters::enter(idempotency::lookup_key const& key, engine::loop& on,
                              std::weak_ptr<duplicate> who) {
  auto const* const name = who.lock().get();
  std::lock_guard const lock(mutex_);
  waiters_[key].push_back({&on, std::move(who), name});
  ++of_scope_[key.scope()];
}

void duplicate_waiters::leave(idempotency::lookup_key const& key, duplicate const& who) {
  std::lock_guard const lock(mutex_);
  auto const found = waiters_.find(key);
  if (found == waiters_.end()) {
    return;
  }
  leave_scope(key,
              std::erase_if(found->second, [&](waiter const& each) { return each.name == &who; }));
  if (found->second.empty()) {
    waiters_.erase(found);
  }
}

/// With the lock.
void duplicate_waiters::leave_scope(idempotency::lookup_key const& key, std::size_t waiters) {
  auto const found = of_scope_.find(key.scope());
  if (found == of_scope_.end()) {
    return;
  }
  found->second -= waiters;
  if (found->second == 0) {
    of_scope_.erase(found);
  }
}

void duplicate_waiters::wake(idempotency::lookup_key const& key) {
  std::vector<waiter> woken;
  {
    std::lock_guard const lock(mutex_);
    auto const found = waiters_.find(key);
    if (found == waiters_.end()) {
      return;
    }
    woken = std::move(found->second);
    leave_scope(key, woken.size());
    waiters_.erase(found);
  }
  for (auto& each : woken) {
    each.loop->post([who = std::move(each.who)] {
      if (auto const there = who.lock()) {
        there->look_again();
      }
    });
  }
}

}  // namespace tidegate::gateway
