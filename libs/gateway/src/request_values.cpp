// SPDX-License-Identifier: Apache-2.0
#include "request_values.hpp"

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

auto is_trusted_peer(runtime const& settings, client_address const& from) -> bool {
  return from.may_name_others && settings.trusted_proxies.contains(from.peer);
}

auto find_forwarded_client(wire::request_head const& request, client_address const& from,
                           runtime const& settings, std::vector<std::string_view>& room)
    -> http::forwarded_client {
  auto const& trusted = settings.trusted_proxies;
  if (!is_trusted_peer(settings, from)) {
    return {.address = from.peer};
  }
  // The other field is what a client may write as it likes: proxies pass it on as it came.
  if (settings.settings.client_address == client_address_field::forwarded) {
    return http::read_forwarded(from.peer, lines_of(request, known_field::forwarded, room),
                                trusted);
  }
  auto const lines = lines_of(request, known_field::x_forwarded_for, room);
  return {.address = http::client_by_x_forwarded_for(from.peer, lines, trusted),
          .proto = request.value_of(known_field::x_forwarded_proto),
          .host = request.value_of(known_field::x_forwarded_host)};
}

}  // namespace tidegate::gateway
