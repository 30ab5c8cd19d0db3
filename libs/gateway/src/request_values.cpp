// SPDX-License-Identifier: Apache-2.0
#include "request_values.hpp"

#include <tidegate/http/forwarded.hpp>

namespace tidegate::gateway {

using wire::known_field;

auto lines_of(wire::message_head const& head, known_field name, std::vector<std::string_view>& room)
    -> std::span<std::string_view const> {
  room.clear();
  for (auto const& field : head.fields()) {
    if (field.known == name) {
      room.push_back(field.value);
    }
  }
  return room;
}

auto find_client(wire::request_head const& request, client_address const& from,
                 http::cidr_set const& trusted_proxies, std::vector<std::string_view>& room)
    -> http::ip_address {
  if (trusted_proxies.contains(from.peer)) {
    if (request.has(known_field::forwarded)) {
      return http::client_by_forwarded(from.peer, lines_of(request, known_field::forwarded, room),
                                       trusted_proxies);
    }
    if (request.has(known_field::x_forwarded_for)) {
      return http::client_by_x_forwarded_for(
          from.peer, lines_of(request, known_field::x_forwarded_for, room), trusted_proxies);
    }
  }
  return from.peer;
}

}  // namespace tidegate::gateway
