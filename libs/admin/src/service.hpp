// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "connection.hpp"
#include "router.hpp"

#include <tidegate/admin/server.hpp>
#include <tidegate/engine/loop.hpp>
#include <tidegate/proxy/control.hpp>

#include <cstdint>
#include <memory>
#include <unordered_map>

namespace tidegate::gateway {

/// Accepts the connections to the admin address, one for each request, and bounds their number.
class admin_service final : public engine::watched {
 public:
  /// `reloader` and `about` outlive it.
  admin_service(control seen, engine::descriptor socket, admin_config const& settings,
                config_reloader& reloader, program_facts const& about);

  /// What it sees of the data plane.
  [[nodiscard]] auto seen() noexcept -> control& { return router_.seen(); }
  /// The configuration that it sees is another one. On the thread of the loop.
  void follow_config();

 private:
  void ready(engine::readiness events) override;
  /// Closes the connection that has waited longest without a request, so that clients that send
  /// nothing do not keep others out. False when there is no room all the same.
  [[nodiscard]] auto make_room() -> bool;
  void remove(admin_connection& closed);

  admin_router router_;
  engine::descriptor socket_;
  std::uint64_t accepted_ = 0;
  std::unordered_map<admin_connection*, std::unique_ptr<admin_connection>> open_;
};

}  // namespace tidegate::gateway
