// SPDX-License-Identifier: Apache-2.0
#include "waiting_room.hpp"

#include "keyed_request.hpp"

#include <limits>
#include <utility>

namespace tidegate::gateway {

auto waiting_room::count(idempotency::lookup_key const& key) const -> std::size_t {
  std::lock_guard const lock(mutex_);
  if (auto const scope = of_scope_.find(key.scope());
      scope != of_scope_.end() && scope->second >= scope_max) {
    return std::numeric_limits<std::size_t>::max();
  }
  auto const found = guests_.find(key);
  return found == guests_.end() ? 0 : found->second.size();
}

auto waiting_room::size() const -> std::size_t {
  std::lock_guard const lock(mutex_);
  std::size_t guests = 0;
  for (auto const& [scope, waiting] : of_scope_) {
    guests += waiting;
  }
  return guests;
}

void waiting_room::enter(idempotency::lookup_key const& key, engine::loop& on,
                         std::weak_ptr<keyed_request> who) {
  auto const* const name = who.lock().get();
  std::lock_guard const lock(mutex_);
  guests_[key].push_back({&on, std::move(who), name});
  ++of_scope_[key.scope()];
}

void waiting_room::leave(idempotency::lookup_key const& key, keyed_request const& who) {
  std::lock_guard const lock(mutex_);
  auto const found = guests_.find(key);
  if (found == guests_.end()) {
    return;
  }
  leave_scope(key,
              std::erase_if(found->second, [&](guest const& each) { return each.name == &who; }));
  if (found->second.empty()) {
    guests_.erase(found);
  }
}

/// With the lock.
void waiting_room::leave_scope(idempotency::lookup_key const& key, std::size_t guests) {
  auto const found = of_scope_.find(key.scope());
  if (found == of_scope_.end()) {
    return;
  }
  found->second -= guests;
  if (found->second == 0) {
    of_scope_.erase(found);
  }
}

void waiting_room::wake(idempotency::lookup_key const& key) {
  std::vector<guest> woken;
  {
    std::lock_guard const lock(mutex_);
    auto const found = guests_.find(key);
    if (found == guests_.end()) {
      return;
    }
    woken = std::move(found->second);
    leave_scope(key, woken.size());
    guests_.erase(found);
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
