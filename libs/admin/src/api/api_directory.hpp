// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/proxy/control.hpp>
#include <tidegate/scim_server/service.hpp>
#include "http.hpp"

#include <tidegate/engine/loop.hpp>

#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace tidegate::gateway {

/// The admin API for the directory, as far as `console.directory` lets it:
///
///     GET    /api/v1/directory                          routes with `service: scim`, their tenants and types
///     GET    /api/v1/directory/ROUTE/TENANT/Users?...   a list, with the parameters of SCIM
///     GET    /api/v1/directory/ROUTE/TENANT/Users/ID    one resource
///     PATCH  /api/v1/directory/ROUTE/TENANT/Users/ID    changes it (RFC 7644, section 3.5.2)
///     DELETE /api/v1/directory/ROUTE/TENANT/Users/ID    deletes it
///
/// ROUTE and TENANT are names with their "/" encoded. What SCIM says is said by the service itself, to a
/// principal that no token has: cursors of clients mean nothing here, and these mean nothing to clients.
///
/// `reply` is called once, on the thread of `on`, perhaps before this returns; never when the gateway ends
/// before. The directory is asked on its own threads. `scim` may be null where no route of `settings`
/// is one of SCIM.
void answer_directory(engine::loop& on, active_config const& active, scim_service* scim,
                      admin_request const& request,
                      std::move_only_function<void(admin_answer)> reply);

/// What a PATCH is about, for the log: ` (replace active false)`. No value is told but true and false.
[[nodiscard]] auto patch_in_words(std::string_view content) -> std::string;

}  // namespace tidegate::gateway
