// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "request/request_context.hpp"

#include <tidegate/scim_server/service.hpp>

namespace tidegate::gateway {

/// The path behind what the pattern of the route matches without its `/**`.
[[nodiscard]] auto path_below_base(request_context const& context) -> std::string_view;

/// What the SCIM service is asked, without the content. It keeps `active`, whose options it uses.
[[nodiscard]] auto scim_request_of(request_context const& context,
                                   std::shared_ptr<active_config const> const& active,
                                   std::vector<std::string_view>& room) -> scim_request;

}  // namespace tidegate::gateway
