// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "worker.hpp"

#include <tidegate/engine/loop.hpp>

#include <memory>
#include <string>
#include <unordered_map>

namespace tidegate::gateway {

class admin_connection;

/// The admin address: /metrics, /healthz, /readyz and /api/v1, one request for each connection.
class admin_service final : public engine::watched {
 public:
  /// `on` is the loop of `first`, by whose settings it answers.
  admin_service(engine::loop& on, engine::descriptor socket, shared_state& shared,
                worker const& first);
  ~admin_service() override;

  /// From now on there are keys to ask about. On the thread of the loop.
  void use(std::shared_ptr<idempotency_state> keys) { keys_ = std::move(keys); }

 private:
  friend class admin_connection;
  void ready(engine::readiness what) override;

  engine::loop& loop_;
  engine::descriptor socket_;
  shared_state& shared_;
  worker const& first_;
  std::shared_ptr<idempotency_state> keys_;
  std::size_t streams_ = 0;  // consoles that are told the figures
  std::string figures_;      // what they were last told
  instant figures_at_{};
  std::unordered_map<admin_connection*, std::unique_ptr<admin_connection>> open_;
};

}  // namespace tidegate::gateway
