// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/engine/loop.hpp>
#include <tidegate/idempotency/lookup.hpp>

#include <unordered_map>

namespace tidegate::gateway {

/// A request that waits for the answer to another one with the same key.
class duplicate {
 public:
  /// The record of the key may have changed. On its own thread.
  virtual void look_again() = 0;

 protected:
  ~duplicate() = default;
};

/// Who waits for the answer to another request with the same key, on any thread.
class duplicate_waiters {
 public:
  /// How many requests of one scope may wait, for whatever keys.
  static constexpr std::size_t scope_max = 1024;

  /// How many wait for a key; without end when its scope has no place left.
  [[nodiscard]] auto count(idempotency::lookup_key const& key) const -> std::size_t;
  /// How many wait in all.
  [[nodiscard]] auto size() const -> std::size_t;
  void enter(idempotency::lookup_key const& key, engine::loop& on, std::weak_ptr<duplicate> who);
  void leave(idempotency::lookup_key const& key, duplicate const& who);
  /// Has every request that waits for the key look again, each on its own thread.
  void wake(idempotency::lookup_key const& key);

 private:
  void leave_scope(idempotency::lookup_key const& key, std::size_t waiters);

  struct waiter {
    engine::loop* loop;
    std::weak_ptr<duplicate> who;
    duplicate const* name;
  };
  mutable std::mutex mutex_;
  std::unordered_map<idempotency::lookup_key, std::vector<waiter>, idempotency::lookup_key_hash>
      waiters_;
  std::unordered_map<std::uint64_t, std::size_t> of_scope_;
};

}  // namespace tidegate::gateway
