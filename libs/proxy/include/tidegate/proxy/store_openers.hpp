// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/config/config.hpp>
#include <tidegate/engine/loop.hpp>
#include <tidegate/store/directory.hpp>

namespace tidegate::gateway {

/// Where the records of idempotency keys are, and the secret that keys are hidden by.
struct idempotency_parts {
  std::unique_ptr<store::idempotency_store> store;
  std::array<std::byte, 32> secret{};
};

/// Opens them as a configuration says. `clock` is the one that the times of records are from, for
/// any thread. An error is one line for people.
using open_idempotency = std::function<result<idempotency_parts, std::string>(
    config const&, std::function<idempotency::wall_time()> clock)>;

/// Where the resources of SCIM are, and the secret that cursors are sealed by.
struct directory_parts {
  std::unique_ptr<store::directory> directory;
  std::array<std::byte, 32> secret{};
};

/// Opens them as a configuration says, for the resource types of `model`. An error is one line for
/// people.
using open_directory = std::function<result<directory_parts, std::string>(
    config const&, std::shared_ptr<scim::model const> model)>;

/// Opens the quotas that gateways share, for one thread. An error is one line for people.
using open_quotas = std::function<result<std::unique_ptr<store::quota_store>, std::string>(
    config const&, engine::loop&)>;

/// Reads the secret of a gateway, or makes it. An error is one line for people.
using open_secret = std::function<result<std::array<std::byte, 32>, std::string>(config const&)>;

/// What opens the stores. Each is called when the first route needs its store, perhaps by a reload.
struct store_openers {
  open_idempotency idempotency;
  open_directory directory;
  open_secret secret;  ///< for cursors in front of an upstream
  /// Called at the start, for each thread, where quotas are not in memory.
  open_quotas quotas;
};

}  // namespace tidegate::gateway
