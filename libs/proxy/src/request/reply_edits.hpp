// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "request/client_stream.hpp"
#include "request/request_context.hpp"

#include <tidegate/proxy/route_edge.hpp>

namespace tidegate::gateway {

/// What only some routes ask for; null for others, and where there is no route.
[[nodiscard]] inline auto edge_of(request_context const& context) -> route_edge const* {
  return context.route != nullptr ? context.route_settings().edge.get() : nullptr;
}

/// The rules of the route for responses, which stay when the exchange is over; null when there are
/// none.
[[nodiscard]] inline auto response_edits_of(request_context const& context)
    -> std::shared_ptr<field_edits const> {
  auto const* const edge = edge_of(context);
  return edge == nullptr
             ? nullptr
             : std::shared_ptr<field_edits const>(context.route_settings().edge,
                                                  &edge->response_to(context.terms.is_https));
}

/// What is not sent on of the fields of an upstream, besides `known`: of a 1xx too, to which
/// nothing is added.
[[nodiscard]] inline auto dropped_of(request_context const& context, wire::field_set known)
    -> dropped_fields {
  auto const* const edge = edge_of(context);
  if (edge == nullptr) [[likely]] {
    return {known};
  }
  auto const& edits = edge->response_to(context.terms.is_https);
  return {known | edits.dropped(), edits.dropped_names()};
}

/// Where rules say Content-Type, or remove it, a line of the head says it, or nothing does.
inline void leave_type_to(field_edits const& edits, local_reply& reply) {
  if (edits.dropped().contains(wire::known_field::content_type)) {
    reply.content_type = {};
    reply.content_head = {};
  }
}

/// Changes an answer of ours, and the lines of its head, as rules say.
inline void apply_edits(field_edits const& edits, local_reply& reply, std::string& lines) {
  leave_type_to(edits, reply);
  edits.apply(lines);
}

}  // namespace tidegate::gateway
