// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "request/request_context.hpp"

#include <tidegate/http/forwarded.hpp>

namespace tidegate::gateway {

/// All lines of a field, in `room`.
auto lines_of(wire::message_head const& head, wire::known_field name,
              std::vector<std::string_view>& room) -> std::span<std::string_view const>;

/// All lines of the field Accept as one.
[[nodiscard]] auto accepted_types(wire::request_head const& request) -> std::string;

/// Whether what the peer says of those before it is believed.
[[nodiscard]] auto is_trusted_peer(active_config const& active, client_address const& from) -> bool;

/// The client as far as the proxies before us are believed, and how it asked them.
[[nodiscard]] auto find_forwarded_client(wire::request_head const& request,
                                         client_address const& from, active_config const& active,
                                         std::vector<std::string_view>& room)
    -> http::forwarded_client;

/// Its address.
[[nodiscard]] inline auto find_client(wire::request_head const& request, client_address const& from,
                                      active_config const& active,
                                      std::vector<std::string_view>& room) -> http::ip_address {
  return find_forwarded_client(request, from, active, room).address;
}

/// Whether the client uses https, of this connection or of that to a trusted proxy before us.
[[nodiscard]] auto is_secure(wire::request_head const& request, client_address const& from,
                             active_config const& active, std::vector<std::string_view>& room)
    -> bool;

/// Room for values that are not in the request as they are wanted.
struct value_scratch {
  std::vector<std::string_view>& lines;
  std::string text{};
  /// The last source of which the request has several values; null when it has none.
  ratelimit::partition_source const* repeated = nullptr;
};

/// The value of a source of a partition, or of the scope of keys. `field` is the field of a source
/// that is one. It lives as long as the request and until `room` is used again.
[[nodiscard]] auto value_of(ratelimit::partition_source const& source, wire::known_field field,
                            request_context const& context, value_scratch& room)
    -> std::string_view;

}  // namespace tidegate::gateway
