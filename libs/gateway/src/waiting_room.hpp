// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/engine/loop.hpp>
#include <tidegate/idempotency/lookup.hpp>

#include <cstddef>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace tidegate::gateway {

class keyed_request;

/// Who waits for the answer to another request with the same key, on any thread.
class waiting_room {
 public:
  /// How many wait for a key.
  [[nodiscard]] auto count(idempotency::lookup_key const& key) const -> std::size_t;
  void enter(idempotency::lookup_key const& key, engine::loop& on,
             std::weak_ptr<keyed_request> who);
  void leave(idempotency::lookup_key const& key, keyed_request const& who);
  /// Has everybody who waits for the key look again, each on its own thread.
  void wake(idempotency::lookup_key const& key);

 private:
  struct guest {
    engine::loop* loop;
    std::weak_ptr<keyed_request> who;
    keyed_request const* name;
  };
  mutable std::mutex mutex_;
  std::unordered_map<idempotency::lookup_key, std::vector<guest>, idempotency::lookup_key_hash>
      guests_;
};

}  // namespace tidegate::gateway
