// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/engine/socket.hpp>
#include <tidegate/http/ip_address.hpp>

#include <string>

/// What a socket says of the client at its other end.
namespace tidegate::gateway {

/// Whether the client connected to a loopback address.
[[nodiscard]] auto is_loopback(engine::descriptor const& socket) -> bool;

/// `127.0.0.1:4711`
[[nodiscard]] auto peer_name(engine::descriptor const& socket) -> std::string;

/// 0.0.0.0 for a client that connected to a path.
[[nodiscard]] auto peer_ip(engine::descriptor const& socket) -> http::ip_address;

}  // namespace tidegate::gateway
