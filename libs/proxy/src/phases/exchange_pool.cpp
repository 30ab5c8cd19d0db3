// SPDX-License-Identifier: Apache-2.0
#include "phases/exchange_pool.hpp"

#include <new>

namespace tidegate::gateway {

exchange_pool::exchange_pool(worker& on) : worker_(on) {
  free_.reserve(exchanges_max);
  on.exchanges = this;
}

void exchange_pool::keep_detached(std::unique_ptr<exchange> done) {
  auto* const name = done.get();
  try {
    detached_.emplace(name, std::move(done));
  } catch (std::bad_alloc const&) {
    (void)done.release();  // lost: it is still being used
    return;
  }
  worker_.shared.connections.detached.fetch_add(1, std::memory_order_relaxed);
}

void exchange_pool::reclaim(exchange& done) {
  auto found = detached_.extract(&done);
  if (!found) {
    return;
  }
  recycle(std::move(found.mapped()));
  auto& shared = worker_.shared;
  if (shared.connections.detached.fetch_sub(1, std::memory_order_relaxed) == 1) {
    shared.drain.last_has_gone();
  }
}

}  // namespace tidegate::gateway
