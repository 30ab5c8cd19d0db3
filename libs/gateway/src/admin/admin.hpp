// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "admin/admin_access.hpp"
#include "admin/admin_config.hpp"
#include "admin/admin_partitions.hpp"
#include "admin/admin_try.hpp"
#include "admin/control.hpp"
#include "admin/store_watch.hpp"

#include <tidegate/engine/loop.hpp>

#include <memory>
#include <string>
#include <unordered_map>

namespace tidegate::gateway {

class admin_connection;

/// The admin address: the console, /metrics, /healthz, /readyz and /api/v1, one request for each connection.
class admin_service final : public engine::watched {
 public:
  /// `desk` outlives it.
  admin_service(control of, engine::descriptor socket, admin_config const& settings,
                config_desk& desk);
  ~admin_service() override;

  /// Answers by these from now on. On the thread of the loop.
  void use(std::shared_ptr<runtime const> settings, std::shared_ptr<idempotency_state> keys,
           scim_service* scim);

 private:
  friend class admin_connection;
  void ready(engine::readiness what) override;
  [[nodiscard]] auto close_one_that_asks_nothing() -> bool;
  void note_out_of_memory() noexcept;

  control control_;
  engine::descriptor socket_;
  admin_access access_;
  config_desk& desk_;
  partition_desk partitions_;
  try_desk tries_;
  store_watch stores_;
  std::uint64_t accepted_ = 0;
  std::uint64_t out_of_memory_ = 0;  // times
  std::size_t streams_ = 0;          // consoles that are told the figures
  std::string figures_;              // what they were last told
  instant figures_at_{};
  std::unordered_map<admin_connection*, std::unique_ptr<admin_connection>> open_;
};

}  // namespace tidegate::gateway
