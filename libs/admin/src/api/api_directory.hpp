// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/proxy/control.hpp>
#include <tidegate/scim_server/service.hpp>
#include "http.hpp"

#include <tidegate/engine/loop.hpp>

#include <functional>
#include <string>
#include <string_view>

namespace tidegate::gateway {

/// The admin API for the directory, as far as `console.directory` allows it. Below
/// `/api/v1/directory`:
///
///     GET                           routes with `service: scim`, their tenants and types
///     GET    /ROUTE/TENANT/Users    a list, with the parameters of SCIM
///     GET    /ROUTE/TENANT/Users/ID a resource
///     PATCH  /ROUTE/TENANT/Users/ID changes it (RFC 7644, section 3.5.2)
///     DELETE /ROUTE/TENANT/Users/ID deletes it
///
/// ROUTE and TENANT are names with their "/" encoded. The SCIM service answers, for a principal
/// that no token has: cursors of clients are not valid here, nor these for clients.
///
/// `reply` is called once, on the thread of `on`, perhaps before this returns; never when the
/// gateway ends before. The directory reads and writes on its own threads. `scim` may be null where
/// no route of `active` has a SCIM service.
void answer_directory(engine::loop& on, active_config const& active, scim_service* scim,
                      admin_request const& request, admin_reply reply);

/// What a PATCH is about, for the log: ` (replace active false)`. It has no values but true and
/// false.
[[nodiscard]] auto patch_in_words(std::string_view content) -> std::string;

}  // namespace tidegate::gateway
