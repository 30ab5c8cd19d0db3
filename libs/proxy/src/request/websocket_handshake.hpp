// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/wire/http1_head.hpp>

#include <string>
#include <string_view>

/// What the handshake of a WebSocket is over HTTP/1.1 (RFC 6455, section 4) and not over HTTP/2
/// (RFC 8441, section 5).
namespace tidegate::gateway {

/// A new value for `Sec-WebSocket-Key`; empty when the system gives no random octets.
[[nodiscard]] auto make_websocket_key() -> std::string;
/// Whether `text` is the base64 of 16 octets, as `Sec-WebSocket-Key` has to be.
[[nodiscard]] auto is_websocket_key(std::string_view text) noexcept -> bool;
/// The value of `Sec-WebSocket-Accept` in the answer to a request with `key`.
[[nodiscard]] auto websocket_accept_of(std::string_view key) -> std::string;

/// The value of the field with that name; empty when it is missing or there more than once.
[[nodiscard]] auto only_value_of(wire::message_head const& head, std::string_view name) noexcept
    -> std::string_view;
/// Takes the lines with that name out of complete lines, and returns the value of the first one.
auto take_line(std::string& lines, std::string_view name) -> std::string;

/// The 101 that HTTP/1.1 has in the place of a 2xx to an extended CONNECT; `accept` is the value of
/// its `Sec-WebSocket-Accept`.
[[nodiscard]] auto switching_head_of(wire::response_head const& head, std::string_view accept)
    -> std::string;

}  // namespace tidegate::gateway
