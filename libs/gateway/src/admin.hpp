// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "admin_access.hpp"
#include "admin_config.hpp"
#include "admin_partitions.hpp"
#include "admin_try.hpp"
#include "store_watch.hpp"
#include "worker.hpp"

#include <tidegate/engine/loop.hpp>

#include <memory>
#include <string>
#include <unordered_map>

namespace tidegate::gateway {

class admin_connection;

/// The admin address: the console, /metrics, /healthz, /readyz and /api/v1, one request for each connection.
class admin_service final : public engine::watched {
 public:
  /// `on` is the loop of `first`, by whose settings it answers. `desk` outlives it.
  admin_service(engine::loop& on, engine::descriptor socket, shared_state& shared,
                worker const& first, admin_config const& settings, config_desk& desk);
  ~admin_service() override;

  /// From now on there are keys to ask about. On the thread of the loop.
  void use(std::shared_ptr<idempotency_state> keys) {
    stores_.use(keys);
    keys_ = std::move(keys);
  }
  /// From now on these tokens count. On the thread of the loop.
  void use(std::span<bearer_token const> tokens) { access_.use(tokens); }

 private:
  friend class admin_connection;
  void ready(engine::readiness what) override;
  [[nodiscard]] auto close_one_that_asks_nothing() -> bool;

  engine::loop& loop_;
  engine::descriptor socket_;
  shared_state& shared_;
  worker const& first_;
  std::shared_ptr<idempotency_state> keys_;
  admin_access access_;
  config_desk& desk_;
  partition_desk partitions_;
  try_desk tries_;
  store_watch stores_;
  std::uint64_t accepted_ = 0;
  std::size_t streams_ = 0;  // consoles that are told the figures
  std::string figures_;      // what they were last told
  instant figures_at_{};
  std::unordered_map<admin_connection*, std::unique_ptr<admin_connection>> open_;
};

}  // namespace tidegate::gateway
