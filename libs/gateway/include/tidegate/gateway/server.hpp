// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/admin/server.hpp>
#include <tidegate/base/result.hpp>
#include <tidegate/config/config.hpp>
#include <tidegate/config/reload.hpp>
#include <tidegate/engine/listening.hpp>
#include <tidegate/proxy/event_log.hpp>
#include <tidegate/proxy/store_openers.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace tidegate::gateway {

class data_plane;

/// What a server is made with besides its configuration.
struct server_options {
  store_openers stores;
  /// Where the gateway says what operators should know. Null: nowhere.
  std::shared_ptr<event_log> events;
  /// Reads the configuration again. On any thread, one call at a time. Empty: nothing can be
  /// reloaded.
  std::function<result<config, std::vector<config_fault>>()> load;
  /// What this program is, for metrics.
  std::string version{};
  std::string commit{};
};

/// Checks what a configuration names outside of itself as `server::start` does, and changes
/// nothing: certificates and keys, the access log, schemas.
[[nodiscard]] auto check_files(config const& settings) -> std::vector<config_fault>;

/// Names of servers that have no address now: a warning, since the gateway starts, and looks them
/// up again. Waits for the answers.
[[nodiscard]] auto warn_of_names(config const& settings) -> std::vector<config_fault>;

/// A gateway that runs: the data plane, and the admin address on a thread of its own.
class server {
 public:
  /// Binds every address and starts the threads. `randomness` seeds what must not be foreseen from
  /// outside. An address that one of the sockets in `passed` is bound to is served through that
  /// one; a socket that no address is found for is an error. An error is one line for people.
  [[nodiscard]] static auto start(config settings, std::span<std::uint64_t const, 4> randomness,
                                  server_options options,
                                  std::vector<engine::passed_socket> passed = {})
      -> result<std::unique_ptr<server>, std::string>;
  server(server const&) = delete;
  auto operator=(server const&) -> server& = delete;
  /// Drops what is still under way.
  ~server();

  /// The addresses that it listens on, with the ports that it got.
  [[nodiscard]] auto addresses() const -> std::vector<std::string> const&;
  [[nodiscard]] auto admin_address() const -> std::string const& { return admin_address_; }

  /// Reads the configuration again and serves by it from the next request on. Usage is kept: a
  /// changed quota applies at once. Listeners stay as they are; on an error everything does. From
  /// any thread.
  auto reload() -> reload_outcome;

  /// How long to wait before `drain`, and in it.
  struct drain_times {
    std::chrono::nanoseconds delay{0};
    std::chrono::nanoseconds timeout{0};
  };
  /// Says that it is not ready any more, and has clients go elsewhere with their next request. How
  /// long to wait, as the configuration has it.
  auto begin_drain() -> drain_times;
  /// Serves what waits to be accepted, accepts no more connections, and waits for what is under
  /// way, at most `wait`. True when all was done.
  auto drain(std::chrono::milliseconds wait) -> bool;

 private:
  explicit server(server_options options);
  [[nodiscard]] auto start_admin(std::vector<engine::passed_socket>& passed)
      -> result<void, std::string>;
  [[nodiscard]] auto current() const -> config const&;
  /// Why a configuration cannot be applied while this runs, if there is a reason.
  [[nodiscard]] auto refusal_of(config const& next) const -> result<void, std::string>;
  [[nodiscard]] auto load() const -> result<config, reload_refusal>;
  /// What `reload` would do, as far as that can be told without opening a store or a log.
  [[nodiscard]] auto preview_reload() -> reload_outcome;
  [[nodiscard]] auto apply(config next) -> result<void, std::string>;
  void log_outcome(reload_outcome const& outcome);

  server_options options_;
  program_facts about_;
  std::mutex reload_mutex_;  // guards `data_` against two reloads at a time
  std::unique_ptr<data_plane> data_;
  // The admin address, on a thread of its own.
  std::unique_ptr<engine::loop> admin_loop_;
  std::thread admin_thread_;
  std::string admin_address_;
  std::string admin_configured_;  // as the configuration had it at the start
  std::unique_ptr<config_reloader> reloader_;
  std::unique_ptr<admin_server> admin_;
};

}  // namespace tidegate::gateway
