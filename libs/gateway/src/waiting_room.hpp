// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/engine/loop.hpp>
#include <tidegate/idempotency/lookup.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace tidegate::gateway {

class keyed_request;

/// Who waits for the answer to another request with the same key, on any thread.
class waiting_room {
 public:
  /// How many requests of one scope may wait, for whatever keys.
  static constexpr std::size_t scope_max = 1024;

  /// How many wait for a key; without end when its scope has no place left.
  [[nodiscard]] auto count(idempotency::lookup_key const& key) const -> std::size_t;
  /// How many wait in all.
  [[nodiscard]] auto size() const -> std::size_t;
  void enter(idempotency::lookup_key const& key, engine::loop& on,
             std::weak_ptr<keyed_request> who);
  void leave(idempotency::lookup_key const& key, keyed_request const& who);
  /// Has everybody who waits for the key look again, each on its own thread.
  void wake(idempotency::lookup_key const& key);

 private:
  void leave_scope(idempotency::lookup_key const& key, std::size_t guests);

  struct guest {
    engine::loop* loop;
    std::weak_ptr<keyed_request> who;
    keyed_request const* name;
  };
  mutable std::mutex mutex_;
  std::unordered_map<idempotency::lookup_key, std::vector<guest>, idempotency::lookup_key_hash>
      guests_;
  std::unordered_map<std::uint64_t, std::size_t> of_scope_;
};

}  // namespace tidegate::gateway
