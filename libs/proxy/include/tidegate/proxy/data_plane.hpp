// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/engine/listening.hpp>
#include <tidegate/proxy/control.hpp>
#include <tidegate/proxy/store_openers.hpp>

namespace tidegate::gateway {

/// The threads that serve clients, with their listeners, quotas and stores. An error of its
/// functions is one line for people. Not for several threads at a time, but for what says so.
class data_plane {
 public:
  /// Opens the stores and makes the workers, which do not run yet. `randomness` seeds what must
  /// not be foreseen from outside.
  [[nodiscard]] static auto make(config settings, std::span<std::uint64_t const, 4> randomness,
                                 std::shared_ptr<event_log> events, store_openers open)
      -> result<std::unique_ptr<data_plane>, std::string>;
  data_plane(data_plane const&) = delete;
  auto operator=(data_plane const&) -> data_plane& = delete;
  /// Drops what is still under way.
  ~data_plane();

  /// Binds the addresses of `listen`, by sockets out of `passed` where they are bound to them.
  [[nodiscard]] auto listen(std::vector<engine::passed_socket>& passed)
      -> result<void, std::string>;
  /// The addresses that it listens on, with the ports that it got.
  [[nodiscard]] auto addresses() const -> std::vector<std::string> const&;
  /// Starts the threads.
  void start();
  /// Ends the threads. What is under way stays until `this` goes.
  void stop();

  /// The configuration in force.
  [[nodiscard]] auto active() const -> std::shared_ptr<active_config const> const&;
  /// What `apply` would say, as far as that can be told without opening a store or a log.
  [[nodiscard]] auto preview(config next) const -> result<void, std::string>;
  /// Serves by `next` from the next request on. Usage is kept; on an error everything stays.
  [[nodiscard]] auto apply(config next) -> result<void, std::string>;

  /// Which stores are open, so that a change of their options has to wait for a start.
  [[nodiscard]] auto has_keys() const -> bool;
  [[nodiscard]] auto has_directory() const -> bool;
  [[nodiscard]] auto has_bridge() const -> bool;
  /// Whether the directory of `next` is the one that is open, if one is.
  [[nodiscard]] auto has_same_directory(config const& next) const -> bool;

  /// What the admin address sees, on its thread `on`.
  [[nodiscard]] auto make_control(engine::loop& on) -> result<control, std::string>;
  /// Has a control on the thread of `on` follow the configuration in force. From the thread that
  /// applied it.
  void update(control& seen, engine::loop& on, std::function<void()> then) const;

  /// Says that it is not ready any more. From any thread.
  void begin_drain();
  /// Serves what waits to be accepted, accepts no more connections, and waits for what is under
  /// way, at most `wait`. True when all was done.
  auto drain(std::chrono::milliseconds wait) -> bool;

 private:
  struct state;
  explicit data_plane(std::unique_ptr<state> made);
  std::unique_ptr<state> state_;
};

/// Reads the files with schemas that a configuration names. An error is one line for people.
[[nodiscard]] auto check_schemas(config const& settings) -> result<void, std::string>;

}  // namespace tidegate::gateway
