// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/result.hpp>
#include <tidegate/config/config.hpp>
#include <tidegate/engine/activation.hpp>
#include <tidegate/engine/loop.hpp>
#include <tidegate/gateway/event_log.hpp>
#include <tidegate/scim/model.hpp>
#include <tidegate/store/directory.hpp>
#include <tidegate/store/idempotency_store.hpp>
#include <tidegate/store/quota_store.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace tidegate::gateway {

/// Where the records of idempotency keys are, and the secret that keys are hidden by.
struct idempotency_parts {
  std::unique_ptr<store::idempotency_store> store;
  std::array<std::byte, 32> secret{};
};

/// Opens them as a configuration says. `clock` is the one that the times of records are from, for any thread. An error
/// is one line for people.
using open_idempotency = std::function<result<idempotency_parts, std::string>(
    config const&, std::function<idempotency::wall_time()> clock)>;

/// Where the resources of SCIM are, and the secret that cursors are sealed by.
struct directory_parts {
  std::unique_ptr<store::directory> directory;
  std::array<std::byte, 32> secret{};
};

/// Opens them as a configuration says, for the resource types of `model`. An error is one line for people.
using open_directory = std::function<result<directory_parts, std::string>(
    config const&, std::shared_ptr<scim::model const> model)>;

/// Opens the quotas that gateways share, for one thread. An error is one line for people.
using open_quotas = std::function<result<std::unique_ptr<store::quota_store>, std::string>(
    config const&, engine::loop&)>;

/// Reads the secret of a gateway, or makes it. An error is one line for people.
using open_secret = std::function<result<std::array<std::byte, 32>, std::string>(config const&)>;

/// One option that a reload changes, for people.
struct config_change {
  std::string path;
  std::optional<std::string> from;  ///< missing: it was not there
  std::optional<std::string> to;    ///< missing: it is not there any more
  bool at_start = false;            ///< it is taken over by the next start only
  auto operator==(config_change const&) const -> bool = default;
};

/// Why a configuration is not taken over.
struct reload_refusal {
  std::vector<config_fault> faults{};  ///< that it has
  std::string reason{};                ///< else: one line for people
};

using reload_outcome = result<std::vector<config_change>, reload_refusal>;

/// What opens the stores. Each is called when the first route needs its store, perhaps by a reload.
struct store_openers {
  open_idempotency idempotency;
  open_directory directory;
  open_secret secret;  ///< for cursors in front of an upstream
  open_quotas quotas;  ///< called at the start, for each thread, where `stores.quota` is no memory
  /// Where the gateway says what people should know. Null: nowhere.
  std::shared_ptr<event_log> events;
  /// Reads the configuration again. On any thread, one call at a time. Empty: nothing can be reloaded.
  std::function<result<config, std::vector<config_fault>>()> load;
  /// What this program is, for metrics.
  std::string version{};
  std::string commit{};
};

/// Reads the files with schemas that a configuration names, as `server::start` does. An error is one line for
/// people.
[[nodiscard]] auto check_schemas(config const& settings) -> result<void, std::string>;

/// Looks at what a configuration names outside of itself as `server::start` does, and changes nothing: certificates
/// and keys, the access log, the names of servers, schemas.
[[nodiscard]] auto check_files(config const& settings) -> std::vector<config_fault>;

/// A gateway that runs: its threads, listeners and quotas.
class server {
 public:
  /// Binds every address and starts the threads. `randomness` seeds what nobody outside is to foresee. An
  /// address that one of the sockets in `passed` is bound to is served through that one; a socket that no
  /// address is found for is an error. An error is one line for people.
  [[nodiscard]] static auto start(config settings, std::span<std::uint64_t const, 4> randomness,
                                  store_openers open,
                                  std::vector<engine::passed_socket> passed = {})
      -> result<std::unique_ptr<server>, std::string>;
  server(server const&) = delete;
  auto operator=(server const&) -> server& = delete;
  /// Drops what is still under way.
  ~server();

  /// The addresses that it listens on, with the ports that it got.
  [[nodiscard]] auto addresses() const -> std::vector<std::string> const&;
  [[nodiscard]] auto admin_address() const -> std::string const&;

  /// Reads the configuration again and serves by it from the next request on. Usage is kept: a changed quota applies
  /// at once. Listeners stay as they are; on an error everything does. From any thread.
  auto reload() -> reload_outcome;
  /// What `reload` would do, as far as that can be told without opening a store or a log. From any thread.
  [[nodiscard]] auto look_at_reload() -> reload_outcome;

  /// Says that it is not ready any more, and has clients that are served go elsewhere with their next request. How long
  /// to wait before `drain`, as the configuration has it.
  auto begin_drain() -> std::chrono::nanoseconds;
  /// Serves what waits to be accepted, accepts no more connections and waits for what is under way, at most `wait`. True when all was done.
  auto drain(std::chrono::milliseconds wait) -> bool;

 private:
  struct state;
  explicit server(std::unique_ptr<state> made);
  std::unique_ptr<state> state_;
};

}  // namespace tidegate::gateway
