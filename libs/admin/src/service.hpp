// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "access.hpp"
#include "api_config.hpp"
#include "api_partitions.hpp"
#include "api_try.hpp"
#include "store_probe.hpp"

#include <tidegate/admin/server.hpp>
#include <tidegate/engine/loop.hpp>
#include <tidegate/proxy/control.hpp>

#include <memory>
#include <string>
#include <unordered_map>

namespace tidegate::gateway {

class admin_connection;

/// The admin address: the console, /metrics, /healthz, /readyz and /api/v1, one request for each connection.
class admin_service final : public engine::watched {
 public:
  /// `reloader` and `about` outlive it.
  admin_service(control of, engine::descriptor socket, admin_config const& settings,
                config_reloader& reloader, program_facts const& about);
  ~admin_service() override;

  /// What it sees of the data plane.
  [[nodiscard]] auto seen() noexcept -> control& { return control_; }
  /// The configuration that it sees is another one. On the thread of the loop.
  void follow_config();

 private:
  friend class admin_connection;
  void ready(engine::readiness what) override;
  [[nodiscard]] auto close_one_that_asks_nothing() -> bool;
  void note_out_of_memory() noexcept;

  control control_;
  engine::descriptor socket_;
  admin_access access_;
  config_reloader& reloader_;
  program_facts const& about_;
  partition_api partitions_;
  try_api tries_;
  store_probe stores_;
  std::uint64_t accepted_ = 0;
  std::uint64_t out_of_memory_ = 0;  // times
  std::size_t streams_ = 0;          // consoles that are told the figures
  std::string figures_;              // what they were last told
  instant figures_at_{};
  std::unordered_map<admin_connection*, std::unique_ptr<admin_connection>> open_;
};

}  // namespace tidegate::gateway
