// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "request/request_context.hpp"

#include <tidegate/proxy/cors_rules.hpp>

/// Cross-origin requests of browsers, by the Fetch standard (CORS protocol). A preflight asks
/// whether a page of another origin may send a request. It is answered before anything is charged
/// or asked of anybody. Other requests are served as they are; lines of the answer say which pages
/// may read it.
namespace tidegate::gateway {

/// What a request is for that a browser sends in advance: the method that the page wants to use.
/// Empty where it is said more than once; nothing when the request is not a preflight.
[[nodiscard]] auto requested_method_of(wire::request_head const& request)
    -> std::optional<std::string_view>;

/// Which route a request takes.
struct found_route {
  std::optional<std::size_t> route;
  std::string_view method;    ///< by which it was found
  bool is_preflight = false;  ///< the route has `cors`, and answers it by that
};

/// `find` finds the route for a method, of the request itself or of the one that a preflight is
/// for. A preflight takes the route of that one; where it has no `cors`, the preflight is an
/// OPTIONS like any other.
template <class Find>
[[nodiscard]] auto find_route(request_context const& context, Find const& find) -> found_route {
  auto const method = context.head->method_text();
  if (!context.active->has_cors || context.method != wire::method::options) [[likely]] {
    return {find(method, false), method};
  }
  auto const wanted = requested_method_of(*context.head);
  auto const taken = wanted ? find(*wanted, true) : std::nullopt;
  auto const has_cors = [&](std::optional<std::size_t> position) {
    return position && context.active->config.routes[*position].cors.has_value();
  };
  if (has_cors(taken)) {
    return {taken, *wanted, true};
  }
  auto const plain = find(method, false);
  // A route that has `cors` must not answer for one that is not there.
  return {wanted && !taken && has_cors(plain) ? std::nullopt : plain, method};
}

/// Answers a preflight by 204, or by 403 when the page must not do what it asks for.
[[nodiscard]] auto answer_preflight(request_context& context, cors_rules const& rules,
                                    std::string_view method, reply_texts texts) -> local_reply;

/// What the answer to a request other than a preflight says to pages.
[[nodiscard]] auto cors_lines_for(request_context const& context, cors_rules const& rules)
    -> cors_lines;

/// Whether `head` has fields of the CORS protocol.
[[nodiscard]] auto has_access_control(wire::message_head const& head) -> bool;

/// Appends those fields of an upstream's response that `wire::known_field::other` stands for, but
/// not those of the CORS protocol: ours take their place.
void append_others_without_cors(std::string& lines, wire::response_head const& head);

}  // namespace tidegate::gateway
