// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/config/config.hpp>
#include <tidegate/proxy/cors_rules.hpp>

#include <memory>
#include <optional>

namespace tidegate::gateway {

/// What only some routes ask for, ready for use: rules for browsers, headers, paths and networks.
/// A route that asks for none of it has none, so that its requests pay for one branch in a phase.
struct route_edge {
  std::optional<cors_rules> cors{};
};

/// Null when the route asks for nothing of it.
[[nodiscard]] auto make_route_edge(route_config const& settings, config const& all)
    -> std::shared_ptr<route_edge const>;

}  // namespace tidegate::gateway
