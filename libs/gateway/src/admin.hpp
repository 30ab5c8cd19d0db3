// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "worker.hpp"

#include <tidegate/engine/loop.hpp>

namespace tidegate::gateway {

/// The admin address: /metrics, /healthz and /readyz, one request for each connection.
class admin_service final : public engine::watched {
 public:
  admin_service(engine::loop& on, engine::descriptor socket, shared_state& shared);

 private:
  void ready(engine::readiness what) override;

  engine::loop& loop_;
  engine::descriptor socket_;
  shared_state& shared_;
};

}  // namespace tidegate::gateway
