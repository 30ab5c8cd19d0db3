// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "http.hpp"

#include <tidegate/engine/loop.hpp>
#include <tidegate/proxy/control.hpp>

#include <functional>
#include <memory>

namespace tidegate::gateway {

/// The admin API for idempotency keys:
///
///     GET    /api/v1/idempotency?scope=S&key=K    looks a key up
///     POST   /api/v1/idempotency/lookup           the same, with scope and key in the content
///     GET    /api/v1/idempotency/unknown?limit=N  unknown outcomes, the newest first
///     GET    /api/v1/idempotency/ID               the same by its id
///     POST   /api/v1/idempotency/ID/resolve       settles an unknown outcome
///     DELETE /api/v1/idempotency/ID               forgets a key
///
/// `reply` is called once, on the thread of `on`, perhaps before this returns, and never when the
/// gateway ends before the store has answered. A change that was begun is made, and wakes its
/// waiters, also when the client has left. `keys` is null while no route has keys.
void answer_idempotency(engine::loop& on, std::shared_ptr<idempotency_service> const& keys,
                        admin_request const& request, admin_reply reply);

}  // namespace tidegate::gateway
