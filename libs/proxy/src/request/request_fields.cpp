// SPDX-License-Identifier: Apache-2.0
#include "request/request_fields.hpp"

#include "request/caller.hpp"

#include <tidegate/http/cookie.hpp>
#include <tidegate/http/path_readings.hpp>
#include <tidegate/http/query.hpp>
#include <tidegate/http/target.hpp>

namespace tidegate::gateway {

using ratelimit::partition_source_kind;
using wire::known_field;

namespace {

/// The value of a header field, its lines joined with ", " in `scratch`, and then it `is_repeated`.
[[nodiscard]] auto header_value(wire::request_head const& request, std::string_view name,
                                known_field known, std::string& scratch, bool& is_repeated)
    -> std::string_view {
  if (!request.has(known)) {
    return {};
  }
  std::string_view value;
  bool is_first = true;
  for (auto const& field : request.fields()) {
    if (field.known != known ||
        (known == known_field::other && !equal_ignoring_case(field.name, name))) {
      continue;
    }
    if (is_first) {
      value = field.value;
    } else {
      is_repeated = true;
      if (value.data() != scratch.data()) {
        scratch.assign(value);
      }
      scratch.append(", ").append(field.value);
      value = scratch;
    }
    is_first = false;
  }
  return value;
}

}  // namespace

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

auto accepted_types(wire::request_head const& request) -> std::string {
  std::string out;
  if (!request.has(known_field::accept)) {
    return out;
  }
  for (auto const& field : request.fields()) {
    if (field.known == known_field::accept) {
      out.append(out.empty() ? "" : ",").append(field.value);
    }
  }
  return out;
}

auto is_trusted_peer(active_config const& active, client_address const& from) -> bool {
  return from.may_name_others && active.trusted_proxies.contains(from.peer);
}

auto find_forwarded_client(wire::request_head const& request, client_address const& from,
                           active_config const& active, std::vector<std::string_view>& room)
    -> http::forwarded_client {
  auto const& trusted = active.trusted_proxies;
  if (!is_trusted_peer(active, from)) {
    return {.address = from.peer};
  }
  // The other field is what a client may write as it likes: proxies pass it on as it came.
  if (active.config.client_address == client_address_field::forwarded) {
    return http::read_forwarded(from.peer, lines_of(request, known_field::forwarded, room),
                                trusted);
  }
  auto const lines = lines_of(request, known_field::x_forwarded_for, room);
  return {.address = http::client_by_x_forwarded_for(from.peer, lines, trusted),
          .proto = request.value_of(known_field::x_forwarded_proto),
          .host = request.value_of(known_field::x_forwarded_host)};
}

auto is_secure(wire::request_head const& request, client_address const& from,
               active_config const& active, std::vector<std::string_view>& room) -> bool {
  bool const is_trusted = is_trusted_peer(active, from);
  auto const told = is_trusted ? find_forwarded_client(request, from, active, room).proto : "";
  return http::x_forwarded_proto(told, is_trusted, from.scheme) == "https";
}

auto value_of(ratelimit::partition_source const& source, known_field field,
              request_context const& context, value_scratch& room) -> std::string_view {
  auto const& request = *context.head;
  auto const& from = *context.from;
  auto const path = context.path;
  switch (source.kind) {
    case partition_source_kind::client_ip: {
      auto const client = find_client(request, from, *context.active, room.lines);
      if (client.is_v4() && client == from.peer) {
        return from.peer_text();
      }
      room.text.clear();
      http::append_client_key(room.text, client,
                              static_cast<unsigned>(context.active->config.client_ip.ipv6_prefix));
      return room.text;
    }
    case partition_source_kind::header: {
      bool is_repeated = false;
      auto const value = header_value(request, source.name, field, room.text, is_repeated);
      room.repeated = is_repeated ? &source : room.repeated;
      return value;
    }
    case partition_source_kind::query: {
      auto query = request.query();
      query.remove_prefix(std::min<std::size_t>(1, query.size()));
      auto const value = http::query_value(query, source.name, room.text);
      if (value && http::is_repeated_in_query(query, source.name)) {
        room.repeated = &source;
      }
      return value.value_or("");
    }
    case partition_source_kind::cookie: {
      auto const lines = lines_of(request, known_field::cookie, room.lines);
      auto const value = http::find_cookie(lines, source.name);
      if (value && http::is_repeated_cookie(lines, source.name)) {
        room.repeated = &source;
      }
      return value.value_or("");
    }
    case partition_source_kind::method: return request.method_text();
    case partition_source_kind::host:
      if (auto const host = http::parse_host(request.authority())) {
        room.text.clear();
        http::append_normal_host(room.text, *host);
        return room.text;
      }
      return "";
    case partition_source_kind::path:
      if (!path.contains('%')) {
        return path;
      }
      room.text.clear();
      http::append_plain_path(room.text, path);
      return room.text;
    case partition_source_kind::route: return context.route_settings().settings->name;
    case partition_source_kind::principal:
    case partition_source_kind::plan:
    case partition_source_kind::attribute: return value_of_caller(source, context);
  }
  return "";
}

}  // namespace tidegate::gateway
