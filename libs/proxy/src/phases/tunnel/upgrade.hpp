// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/wire/http1_head.hpp>

namespace tidegate::gateway {

/// Whether a request asks for a WebSocket in a way that may be sent on: GET, without content.
[[nodiscard]] auto asks_for_websocket(wire::request_head const& request) noexcept -> bool;
/// Whether a 101 says that what follows is a WebSocket, and nothing else.
[[nodiscard]] auto is_websocket(wire::response_head const& response) noexcept -> bool;

}  // namespace tidegate::gateway
