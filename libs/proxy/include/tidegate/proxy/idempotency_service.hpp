// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/config/key_scope.hpp>
#include <tidegate/proxy/duplicate_waiters.hpp>
#include <tidegate/proxy/running_keys.hpp>
#include <tidegate/proxy/slewed_clock.hpp>
#include <tidegate/store/store_health.hpp>

namespace tidegate::gateway {

/// What all workers share about Idempotency-Keys.
struct idempotency_service {
  idempotency_service(std::unique_ptr<store::idempotency_store> in,
                      std::span<std::byte const> master, std::string content_folder,
                      std::shared_ptr<slewed_clock> by)
      : secret(master),
        folder(std::move(content_folder)),
        clock_owner(std::move(by)),
        clock(*clock_owner),
        store(std::move(in)) {}

  /// What came of a change: null when it was made.
  void note(store::store_error const* error) {
    if (error != nullptr && error->fault == store::store_fault::full) {
      is_full.store(true, std::memory_order_relaxed);
    } else if (error == nullptr || error->fault != store::store_fault::stopped) {
      health.note(error);
    }
  }

  idempotency::secret secret;
  std::string folder;                         ///< for content that is too large for memory
  std::shared_ptr<slewed_clock> clock_owner;  ///< the store has it too
  slewed_clock& clock;
  duplicate_waiters waiters;
  store::store_health health{
      {"the store of idempotency keys fails ({}): requests with keys are handled as "
       "on-store-failure says",
       "the store of idempotency keys works again"}};
  /// Whether it has no room for new keys by its own bound. It works all the same: strangers can
  /// fill it, and must not have the gateway taken for one that fails.
  std::atomic<bool> is_full{false};
  running_keys running;
  seen_hosts hosts;
  /// Goes first: its last answers use the others.
  std::unique_ptr<store::idempotency_store> store;
};

}  // namespace tidegate::gateway
