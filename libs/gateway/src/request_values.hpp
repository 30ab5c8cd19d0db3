// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "exchange.hpp"

#include <tidegate/http/ip_address.hpp>
#include <tidegate/wire/http1_head.hpp>

#include <span>
#include <string_view>
#include <vector>

namespace tidegate::gateway {

/// All lines of a field, in `room`.
auto lines_of(wire::message_head const& head, wire::known_field name,
              std::vector<std::string_view>& room) -> std::span<std::string_view const>;

/// The client as far as the proxies before us are believed.
[[nodiscard]] auto find_client(wire::request_head const& request, client_address const& from,
                               http::cidr_set const& trusted_proxies,
                               std::vector<std::string_view>& room) -> http::ip_address;

}  // namespace tidegate::gateway
