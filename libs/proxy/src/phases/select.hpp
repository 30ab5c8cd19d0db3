// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "request/request_context.hpp"
#include "worker/worker_config.hpp"

namespace tidegate::gateway {

/// The methods that a resource may be asked for where the route does not say.
inline constexpr std::string_view usual_methods = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS";

/// What OPTIONS learns from the gateway itself.
[[nodiscard]] auto options_reply(reply_texts texts, std::string_view methods) -> local_reply;

/// Finds the route of a request, who asks, and what answers. What no route is needed for is
/// answered here, and so is a path that servers read in different ways. `path` is room for the
/// normal path, which lives as long as the head or that room does.
[[nodiscard]] auto select_route(request_context& context, worker_config const& config,
                                std::string& path, reply_texts texts) -> step;

}  // namespace tidegate::gateway
