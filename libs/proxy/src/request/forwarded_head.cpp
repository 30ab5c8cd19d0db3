// SPDX-License-Identifier: Apache-2.0
#include "request/forwarded_head.hpp"

#include "request/caller.hpp"
#include "request/request_fields.hpp"

#include <tidegate/proxy/auth_fields.hpp>
#include <tidegate/proxy/bearer.hpp>
#include <tidegate/proxy/route_edge.hpp>
#include <tidegate/wire/http1_write.hpp>

#include <algorithm>
#include <cassert>

namespace tidegate::gateway {

namespace {

using wire::known_field;

/// The fields that only we write for an upstream.
constexpr wire::field_set forwarding_fields = {known_field::x_forwarded_for,
                                               known_field::x_forwarded_proto,
                                               known_field::x_forwarded_host,
                                               known_field::forwarded,
                                               known_field::via,
                                               known_field::idempotency_attempt};

/// The lines that tell the upstream who asked. `is_trusted` is whether the peer is believed in what
/// it says about that itself.
void append_forwarding_lines(std::string& lines, request_context const& context,
                             std::string_view protocol, bool is_trusted, forwarding_texts texts) {
  auto const& request = *context.head;
  auto const& from = *context.from;
  bool const by_forwarded =
      context.active->config.client_address == client_address_field::forwarded;
  auto host = request.authority();
  if (!is_trusted && !by_forwarded && !request.has(known_field::via) &&
      request.minor_version() == 1) {  // nearly always
    if (host.empty()) {
      lines.append(from.forwarding_lines);
    } else {
      wire::append_parts(lines, "X-Forwarded-Host: ", host, "\r\n", from.forwarding_lines);
    }
    return;
  }
  std::string_view forwarded_for = from.peer_text();
  auto proto = from.scheme;
  auto& value = texts.value;
  value.clear();
  if (is_trusted) {
    auto const client = find_forwarded_client(request, from, *context.active, texts.field_lines);
    if (by_forwarded) {
      if (client.address != from.peer) {
        http::append_x_forwarded_for(value, client.address);
      }
    } else {
      for (auto const& line : lines_of(request, known_field::x_forwarded_for, texts.field_lines)) {
        value.append(value.empty() ? "" : ", ").append(line);
      }
    }
    http::append_x_forwarded_for(value, from.peer);
    forwarded_for = value;
    proto = http::x_forwarded_proto(client.proto, true, proto);
    host = http::x_forwarded_host(client.host, true, host);
  }
  if (!host.empty()) {
    wire::append_parts(lines, "X-Forwarded-Host: ", host, "\r\n");
  }
  constexpr std::string_view http_name = "HTTP/";
  wire::append_parts(lines, "X-Forwarded-For: ", forwarded_for, "\r\nX-Forwarded-Proto: ", proto,
                     "\r\nVia: ");
  if (request.has(known_field::via)) {  // each proxy adds itself at the end
    for (auto const& line : lines_of(request, known_field::via, texts.field_lines)) {
      lines.append(line).append(", ");
    }
  }
  wire::append_parts(lines, protocol.substr(http_name.size()), via_here, "\r\n");
  if (by_forwarded) {
    value.clear();
    if (is_trusted) {
      for (auto const& line : lines_of(request, known_field::forwarded, texts.field_lines)) {
        value.append(value.empty() ? "" : ", ").append(line);
      }
    }
    http::append_forwarded(value,
                           {.peer = from.peer, .host = request.authority(), .scheme = from.scheme});
    wire::append_parts(lines, "Forwarded: ", std::string_view(value), "\r\n");
  }
}

/// Whether the key of a request may be a bearer; else all of Authorization is.
[[nodiscard]] auto has_bearer_place(auth_config const& auth) -> bool {
  return std::ranges::any_of(auth.api_keys, [](key_place const& place) {
    return place.kind == key_place::place_kind::bearer;
  });
}

/// The target that the upstream sees: the rewritten path, and the query of `wanted` or of the
/// request. A path that cannot be rewritten was refused before.
[[nodiscard]] auto rewritten_target(path_rewrite const& rewrite, request_context const& context,
                                    std::string_view wanted, std::string& room)
    -> std::string_view {
  room.clear();
  [[maybe_unused]] bool const is_made = rewrite.append(room, context.path);
  assert(is_made);
  auto const query = wanted.empty() ? context.head->query()
                                    : wanted.substr(std::min(wanted.find('?'), wanted.size()));
  return room.append(query);
}

/// What `auth` of the route adds and takes away.
void apply_auth(wire::request_forwarding& how, std::string& lines, request_context const& context,
                std::string& room) {
  auto const& route = context.route_settings();
  auto const& auth = *route.auth;
  auto const& request = *context.head;
  how.drop |= auth.dropped;
  how.drop_names = auth.dropped_names;
  if (auth.drops_authorization ||
      (auth.drops_bearer_keys && context.token == nullptr &&
       (!bearer_token_of(request).empty() || !has_bearer_place(*route.settings->auth)))) {
    how.drop.insert(known_field::authorization);
  }
  for (auto const& each : auth.passed) {
    if (auto const value = value_of_caller(each.source, context); !value.empty()) {
      wire::append_parts(lines, std::string_view(each.field), ": ", value, "\r\n");
    }
  }
  auto const target = how.target.empty() ? request.target() : how.target;
  auto const query = target.substr(std::min(target.find('?'), target.size()));
  if (query.empty() || !has_parameter_of(query.substr(1), auth.parameters)) {
    return;
  }
  if (how.target.empty()) {
    room.assign(request.path()).append(request.query());
  } else if (how.target.data() != room.data()) {
    room.assign(how.target);
  }
  remove_parameters(room, auth.parameters);
  how.target = room;
}

}  // namespace

void append_forwarded_head(std::string& out, request_context const& context,
                           std::string_view protocol, forwarding const& wanted,
                           forwarding_texts texts) {
  auto const& request = *context.head;
  auto& lines = texts.lines;
  lines.clear();
  append_forwarding_lines(lines, context, protocol, is_trusted_peer(*context.active, *context.from),
                          texts);
  wire::request_forwarding how;
  how.drop = wanted.drop | forwarding_fields;
  auto const* const edge = context.route_settings().edge.get();
  auto const* const auth = context.route_settings().auth.get();
  if (edge != nullptr) [[unlikely]] {
    how.drop |= edge->request.dropped();
    how.drop_names = edge->request.dropped_names();
    how.host = edge->request.host();
  }
  if (edge != nullptr && edge->rewrite) [[unlikely]] {
    how.target = rewritten_target(*edge->rewrite, context, wanted.target, texts.value);
  } else if (!wanted.target.empty()) {
    how.target = wanted.target;
  } else if (context.path.data() != request.path().data()) {  // not as it came
    texts.value.assign(context.path).append(request.query());
    how.target = texts.value;
  }
  if (auth != nullptr) {
    apply_auth(how, lines, context, texts.value);
  }
  if (edge != nullptr) [[unlikely]] {
    edge->request.apply(lines, wanted.drop);  // the last word is the operator's
  }
  if (wanted.upgrade) {
    how.drop |= {known_field::te, known_field::expect};
    lines.append("Connection: upgrade\r\nUpgrade: websocket\r\n");
    if (!wanted.websocket_key.empty()) {
      wire::append_field(lines, "Sec-WebSocket-Key", wanted.websocket_key);
    }
  }
  how.other_names = context.route_settings().other_names;
  how.field_lines = lines;
  how.body = wanted.body.value_or(request.body());
  wire::append_request_head(out, request, how);
}

void put_base_path(std::string& head, std::string_view path, std::size_t& octets) {
  auto const at = head.find(' ') + 1;
  if (at < head.size() && head[at] == '/') {  // not `*`
    head.replace(at, octets, path);
    octets = path.size();
  }
}

}  // namespace tidegate::gateway
