// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "http.hpp"

#include <tidegate/admin/config_reloader.hpp>
#include <tidegate/engine/loop.hpp>

#include <functional>

namespace tidegate::gateway {

/// The admin API for the configuration:
///
///     GET  /api/v1/config           every option, its value and where that comes from
///     GET  /api/v1/config/reload    what a reload would change, or why there would be none
///     POST /api/v1/config/reload    reloads, as SIGHUP does
///
/// `reply` is called once, on the thread of `on`, perhaps before this returns; never when the
/// gateway ends before.
void answer_config(engine::loop& on, config const& settings, config_reloader& reloader,
                   admin_request const& request, admin_reply reply);

}  // namespace tidegate::gateway
