// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/result.hpp>
#include <tidegate/gateway/config.hpp>
#include <tidegate/gateway/server.hpp>

#include <string>

namespace tidegate::app {

/// What opens the stores that a configuration names.
[[nodiscard]] auto store_openers() -> gateway::store_openers;

/// Reads the URLs of the stores as opening them does, and asks nobody. An error is one line for people.
[[nodiscard]] auto check_stores(gateway::config const& settings) -> result<void, std::string>;

}  // namespace tidegate::app
