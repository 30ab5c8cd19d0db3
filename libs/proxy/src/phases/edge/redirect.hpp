// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "request/local_reply.hpp"
#include "request/request_context.hpp"

#include <tidegate/proxy/control.hpp>

namespace tidegate::gateway {

/// The answer of a route with `redirect`.
[[nodiscard]] auto redirect(request_context const& context, reply_texts texts) -> local_reply;

/// Where a client is sent that is to use https: the port of the first listener with TLS, else 443.
[[nodiscard]] auto https_port_of(config const& settings, std::span<bound_listener const> listeners)
    -> std::uint16_t;

/// The answer of a listener with `redirect-to-https`: 308 to the same host and target, at `port`.
[[nodiscard]] auto redirect_to_https(wire::request_head const& request, std::uint16_t port,
                                     reply_texts texts) -> local_reply;

}  // namespace tidegate::gateway
