// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/admin/config_reloader.hpp>
#include <tidegate/config/config.hpp>
#include <tidegate/engine/socket.hpp>
#include <tidegate/proxy/control.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

namespace tidegate::gateway {

class admin_service;

/// What metrics say of the program and its reloads. Written by one thread at a time.
struct program_facts {
  std::string version{};
  std::string commit{};
  std::chrono::system_clock::time_point started{std::chrono::system_clock::now()};
  std::atomic<bool> last_reload_is_good{true};
  /// The start counts.
  std::atomic<std::chrono::system_clock::time_point> last_good_reload{
      std::chrono::system_clock::now()};
  std::atomic<std::uint64_t> reload_failures{0};
};

/// The admin address: the console, /metrics, /healthz, /readyz and /api/v1.
class admin_server {
 public:
  /// `reloader` and `about` outlive it.
  admin_server(control seen, engine::descriptor socket, admin_config const& settings,
               config_reloader& reloader, program_facts const& about);
  ~admin_server();

  /// What it sees of the data plane.
  [[nodiscard]] auto seen() -> control&;
  /// The configuration that it sees is another one. On the thread of its loop.
  void follow_config();

 private:
  std::unique_ptr<admin_service> service_;
};

}  // namespace tidegate::gateway
