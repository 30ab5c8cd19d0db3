// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "request/request_context.hpp"

#include <tidegate/scim_server/service.hpp>

#include <memory>
#include <string_view>
#include <vector>

namespace tidegate::gateway {

/// What the SCIM service is asked, without the content. It keeps `active`, whose options it uses.
[[nodiscard]] auto scim_request_of(request_context const& context,
                                   std::shared_ptr<active_config const> const& active,
                                   std::vector<std::string_view>& room) -> scim_request;

}  // namespace tidegate::gateway
