// SPDX-License-Identifier: Apache-2.0
#include "phases/select.hpp"

#include "phases/auth/authenticate.hpp"
#include "phases/authorize.hpp"
#include "phases/describe.hpp"
#include "phases/edge/cors.hpp"
#include "phases/scim/bridge.hpp"
#include "phases/tunnel/upgrade.hpp"
#include "request/caller.hpp"

#include <tidegate/base/ascii.hpp>
#include <tidegate/http/field.hpp>
#include <tidegate/http/path_readings.hpp>
#include <tidegate/http/query.hpp>
#include <tidegate/http/target.hpp>
#include <tidegate/proxy/route_edge.hpp>

#include <algorithm>

namespace tidegate::gateway {

namespace {

constexpr std::string_view description_path = "/.well-known/tidegate";
constexpr std::string_view well_known = "/.well-known/";

/// The headers and the query of a request, for routes that ask for them.
class head_details final : public request_details {
 public:
  /// A preflight announces headers: it names those of the request that it is for, and not their
  /// values (Fetch, section 3.3.2). It takes the route that one with the right values would take.
  head_details(wire::request_head const& head, bool counts_announced)
      : head_(head), counts_announced_(counts_announced) {}

  [[nodiscard]] auto has_header(value_match const& wanted) const noexcept -> bool override {
    bool const is_there = has_line(wanted.name, [&](std::string_view value) {
      return !wanted.value || value == *wanted.value;
    });
    return is_there || (counts_announced_ && announces(wanted.name));
  }
  [[nodiscard]] auto has_parameter(value_match const& wanted) const noexcept -> bool override {
    auto query = head_.query();
    query.remove_prefix(query.empty() ? 0 : 1);  // its "?"
    return http::has_query_value(query, wanted.name, wanted.value);
  }

 private:
  template <class Meets>
  [[nodiscard]] auto has_line(std::string_view name, Meets meets) const noexcept -> bool {
    return std::ranges::any_of(head_.fields(), [&](wire::field_view const& line) {
      return equal_ignoring_case(line.name, name) && meets(line.value);
    });
  }
  [[nodiscard]] auto announces(std::string_view name) const noexcept -> bool {
    std::size_t count = 0;
    return has_line("access-control-request-headers", [&](std::string_view names) {
      while (!names.empty() && count++ < requested_headers_max) {
        if (equal_ignoring_case(http::take_element(names), name)) {
          return true;
        }
      }
      return false;
    });
  }

  wire::request_head const& head_;
  bool counts_announced_;
};

/// Whether a server could read the path as another one, whose route, cost or partition is another
/// than that of `found`.
[[nodiscard]] auto is_ambiguous(request_context const& context, found_route const& by) -> bool {
  auto const& active = *context.active;
  auto const& request = *context.head;
  auto const* const route = by.route ? &active.routes[*by.route] : nullptr;
  if (route != nullptr && route->tells_paths_apart) {
    // Escapes without need make no other partition, since its path is without them.
    std::string plain;
    http::append_plain_path(plain, context.path);
    if (http::may_be_read_otherwise(plain)) {
      return true;
    }
  }
  auto const cost = [&](std::string_view path) {
    return route == nullptr || route->limits.empty() ? 0 : route->costs.cost(by.method, path);
  };
  auto const cost_here = cost(context.path);
  head_details const details(request, by.is_preflight);
  return http::find_other_reading(context.path, [&](std::string_view reading) {
    return active.routes_by_request.find(by.method, request.authority(), reading, &details) !=
               by.route ||
           cost(reading) != cost_here;
  });
}

[[nodiscard]] auto handler_of(request_context const& context) -> handler {
  auto const& settings = *context.route_settings().settings;
  if (settings.auth && !is_authorized(context)) {
    return handler::unauthorized;
  }
  if (settings.bridge && !context.head->is_extended_connect() && bridge_subject_of(context)) {
    return handler::bridge;
  }
  switch (settings.service) {
    case route_service::echo: return handler::echo;
    case route_service::scim: return handler::scim;
    case route_service::redirect: return handler::redirect;
    case route_service::respond: return handler::respond;
    case route_service::upstream: break;
  }
  return handler::forward;
}

/// The route with the quotas of who asks.
[[nodiscard]] auto route_of_caller(request_context const& context) -> worker_route const& {
  auto const& route = *context.route;
  // A token that may only read is known.
  if (context.handler == handler::unauthorized && context.token == nullptr) {
    return route.refused ? *route.refused : route;
  }
  return route.by_plan.empty() ? route : route.of_plan(plan_of(context));
}

/// Finds out who asks, and what answers them.
[[nodiscard]] auto choose_handler(request_context& context, worker_config const& config,
                                  reply_texts texts) -> step {
  bool const has_auth = context.route_settings().settings->auth.has_value();
  if (has_auth && authenticate(context, config.consumers, texts, texts.content) != step::next)
      [[unlikely]] {
    return step::answered;
  }
  context.handler = handler_of(context);
  if (has_auth) {
    context.route = &route_of_caller(context);
  }
  return step::next;
}

/// An extended CONNECT is for a WebSocket on a route that has them; nothing else may answer it by
/// 2xx, which would open a tunnel.
[[nodiscard]] auto is_taken(request_context const& context) -> bool {
  return context.route_settings().settings->upgrades_websocket && asks_for_websocket(*context.head);
}

[[nodiscard]] auto is_too_large(request_context const& context) -> bool {
  auto const body = context.head->body();
  return body.kind == wire::body_kind::content_length &&
         body.length > context.terms.body_octets_max;
}

}  // namespace

auto options_reply(reply_texts texts, std::string_view methods) -> local_reply {
  texts.lines.assign("Allow: ").append(methods).append("\r\n");
  return {.status = 200, .field_lines = texts.lines};
}

auto select_route(request_context& context, worker_config const& config, std::string& path,
                  reply_texts texts) -> step {
  auto const& request = *context.head;
  auto const& active = *context.active;
  auto const answer = [&](local_reply const& reply) {
    context.reply = reply;
    return step::answered;
  };
  auto const normal = http::normal_path(request.path(), path);
  if (!normal) [[unlikely]] {
    if (request.path() == "*") {
      context.path = "*";
      return answer(options_reply(texts, usual_methods));
    }
    return answer(problem_reply(texts, "path-invalid", 400, "Bad Request",
                                "The path of the request is not valid."));
  }
  context.path = *normal;
  bool const is_connect = request.is_extended_connect();
  auto const refuse_connect = [&] {
    return answer(problem_reply(texts, "protocol-not-supported", 501, "Not Implemented",
                                "This gateway does not support this protocol here."));
  };
  if (is_connect && !active.upgrades_websocket) [[unlikely]] {
    return refuse_connect();
  }
  if (context.method == wire::method::trace) {
    // Its answer has all that the upstream was sent, credentials too.
    auto reply = problem_reply(texts, "method-not-allowed", 405, "Method Not Allowed",
                               "This gateway does not support TRACE.");
    texts.lines.assign("Allow: ").append(usual_methods).append("\r\n");
    reply.field_lines = texts.lines;
    return answer(reply);
  }
  auto const route_found = find_route(context, [&](std::string_view by_method, bool by_preflight) {
    head_details const details(request, by_preflight);
    return active.routes_by_request.find(by_method, request.authority(), context.path, &details);
  });
  auto const& [found, method, is_preflight] = route_found;
  if (active.config.http.refuses_ambiguous_paths && http::may_be_read_otherwise(context.path) &&
      is_ambiguous(context, route_found)) {
    return answer(
        problem_reply(texts, "path-ambiguous", 400, "Bad Request",
                      "The path of the request is ambiguous: servers differ in how they read "
                      "repeated slashes, semicolons, escaped slashes and needless escapes."));
  }
  // Problems lead to the description, so a route for all paths does not hide it.
  if (context.path == description_path && !is_connect &&
      !(found && active.config.routes[*found].match.path.starts_with(well_known))) {
    return answer(describe(context, config.active, texts));
  }
  if (!found) {
    return answer(problem_reply(texts, "no-route", 404, "Not Found",
                                "No route of this gateway matches the request."));
  }
  context.route = &config.routes[*found];
  if (auto const& max_body = context.route_settings().settings->max_body) [[unlikely]] {
    context.terms.body_octets_max = static_cast<std::uint64_t>(*max_body);
  }
  if (auto const& edge = context.route_settings().edge; edge && edge->cors) [[unlikely]] {
    if (is_preflight) {
      return answer(answer_preflight(context, *edge->cors, method, texts));
    }
    context.terms.cors = cors_lines_for(context, *edge->cors);
  }
  if (is_connect && !is_taken(context)) [[unlikely]] {
    return refuse_connect();
  }
  if (is_too_large(context)) {
    return answer(problem_reply(texts, "body-too-large", 413, "Content Too Large",
                                "The body of the request is larger than allowed."));
  }
  return choose_handler(context, config, texts);
}

}  // namespace tidegate::gateway
