// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "exchange.hpp"

#include <tidegate/http/forwarded.hpp>
#include <tidegate/http/ip_address.hpp>
#include <tidegate/wire/http1_head.hpp>

#include <span>
#include <string_view>
#include <vector>

namespace tidegate::gateway {

/// All lines of a field, in `room`.
auto lines_of(wire::message_head const& head, wire::known_field name,
              std::vector<std::string_view>& room) -> std::span<std::string_view const>;

/// Whether what the peer says of those before it is believed.
[[nodiscard]] auto is_trusted_peer(runtime const& settings, client_address const& from) -> bool;

/// The client as far as the proxies before us are believed, and how it asked them.
[[nodiscard]] auto find_forwarded_client(wire::request_head const& request,
                                         client_address const& from, runtime const& settings,
                                         std::vector<std::string_view>& room)
    -> http::forwarded_client;

/// Its address.
[[nodiscard]] inline auto find_client(wire::request_head const& request, client_address const& from,
                                      runtime const& settings, std::vector<std::string_view>& room)
    -> http::ip_address {
  return find_forwarded_client(request, from, settings, room).address;
}

}  // namespace tidegate::gateway
