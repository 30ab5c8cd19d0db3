// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "worker.hpp"

#include <tidegate/engine/loop.hpp>

#include <memory>

namespace tidegate::gateway {

/// What the admin address sees of the data plane. Of one thread, that of `loop`, where no request
/// of a client is served.
struct control {
  engine::loop& loop;
  shared_state& shared;
  /// Quotas that gateways share, over a connection of this thread; null where they are in memory.
  std::unique_ptr<store::quota_store> quotas;
  /// The last that was taken over; workers may take a moment to follow.
  std::shared_ptr<runtime const> settings;
  std::shared_ptr<idempotency_state> keys;  ///< null while no route has keys
  scim_service* scim = nullptr;             ///< null while no route is one of SCIM
};

}  // namespace tidegate::gateway
