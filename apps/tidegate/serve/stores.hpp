// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/result.hpp>
#include <tidegate/config/config.hpp>
#include <tidegate/gateway/server.hpp>

#include <memory>
#include <string>

namespace tidegate::app {

/// What opens the stores that a configuration names. What people should know of it is said in
/// `events`.
[[nodiscard]] auto store_openers(std::shared_ptr<gateway::event_log> events)
    -> gateway::store_openers;

/// What is wrong with an option.
struct state_fault {
  std::string option;
  std::string message;
};

/// Whether the folder of data, the secrets and the files of stores are as opening the stores needs
/// them, where a route needs any. Changes nothing.
[[nodiscard]] auto check_state(gateway::config const& settings) -> result<void, state_fault>;

/// Reads the URLs of the stores as opening them does, and connects to none. An error is one
/// line for people.
[[nodiscard]] auto check_stores(gateway::config const& settings) -> result<void, std::string>;

}  // namespace tidegate::app
