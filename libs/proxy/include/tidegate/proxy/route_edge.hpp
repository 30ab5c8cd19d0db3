// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/config/config.hpp>
#include <tidegate/http/ip_address.hpp>
#include <tidegate/proxy/cors_rules.hpp>
#include <tidegate/proxy/field_edits.hpp>
#include <tidegate/proxy/path_template.hpp>

#include <memory>
#include <optional>

namespace tidegate::gateway {

/// `allow` and `deny` of a route.
struct network_rules {
  http::cidr_set allowed;
  http::cidr_set denied;  ///< wins
  bool has_allowed = false;

  [[nodiscard]] auto admits(http::ip_address const& client) const noexcept -> bool {
    return !denied.contains(client) && (!has_allowed || allowed.contains(client));
  }
};

/// What only some routes ask for, ready for use: rules for browsers, headers, paths and networks.
/// A route that asks for none of it has none, so that its requests pay for one branch in a phase.
struct route_edge {
  std::optional<cors_rules> cors;
  std::optional<network_rules> networks;
  field_edits request;            ///< of what goes to the upstream
  field_edits response;           ///< of every response of the route, by http where it has hsts
  field_edits response_by_https;  ///< the same with Strict-Transport-Security
  bool has_hsts = false;          ///< so that it has to be known whether the client uses https
  bool has_base_path = false;     ///< a server has a path, which no request must get out of
  std::optional<path_rewrite> rewrite;
  std::optional<redirect_location> redirect;

  [[nodiscard]] auto response_to(bool is_https) const noexcept -> field_edits const& {
    return is_https ? response_by_https : response;
  }
};

/// Null when the route asks for nothing of it.
[[nodiscard]] auto make_route_edge(route_config const& settings, config const& all)
    -> std::shared_ptr<route_edge const>;

}  // namespace tidegate::gateway
