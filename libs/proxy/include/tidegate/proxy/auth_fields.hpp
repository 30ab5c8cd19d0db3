// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/config/config.hpp>
#include <tidegate/wire/known_field.hpp>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tidegate::gateway {

/// What `auth` of a route changes in the requests that it sends on, ready for use. Immutable.
struct auth_fields {
  wire::field_set dropped{};               ///< that have an entry
  std::vector<std::string> dropped_names;  ///< the others, in lower case, with those of rules
  std::vector<std::string> trailer_names;  ///< that are left out of trailers, in lower case
  std::vector<std::string> parameters;     ///< that are taken out of the query
  bool drops_bearer_keys = false;          ///< an API key in Authorization is
  bool drops_authorization = false;        ///< so are tokens
  std::vector<passed_field> passed;
};

/// Null for a route that changes nothing. `other_names` are those that rules of the route drop.
[[nodiscard]] auto make_auth_fields(route_config const& settings,
                                    std::vector<std::string> const& other_names)
    -> std::shared_ptr<auth_fields const>;

/// Whether a query, without its "?", has one of these parameters.
[[nodiscard]] auto has_parameter_of(std::string_view query, std::vector<std::string> const& names)
    -> bool;

/// Takes parameters of these names out of the query of a target, or of a text that begins with "?".
/// The rest stays as it is, byte for byte.
void remove_parameters(std::string& target, std::vector<std::string> const& names);

}  // namespace tidegate::gateway
