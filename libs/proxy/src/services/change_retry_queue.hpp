// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/proxy/idempotency_service.hpp>

namespace tidegate::gateway {

/// Changes that a store could not make, tried again every second until it can. Each is a
/// compare-and-set, so that one which was made after all, or overtaken, does nothing.
class change_retry_queue final : private engine::timer {
 public:
  change_retry_queue(engine::loop& on, std::shared_ptr<idempotency_service> of);

  /// The oldest is given up when there are too many, and a response when they are too large.
  void add(idempotency::change change);

 private:
  void expired() override;

  engine::loop& loop_;
  std::shared_ptr<idempotency_service> state_;
  std::shared_ptr<change_retry_queue*> self_;  // empty inside once this is gone
  std::deque<idempotency::change> waiting_;
  std::size_t octets_ = 0;  // of the responses that wait
};

}  // namespace tidegate::gateway
