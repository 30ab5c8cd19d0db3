// SPDX-License-Identifier: Apache-2.0
#include "phases/edge/redirect.hpp"

#include "phases/edge/enter.hpp"

#include <tidegate/http/target.hpp>
#include <tidegate/proxy/route_edge.hpp>
#include <tidegate/wire/http1_write.hpp>

#include <algorithm>

namespace tidegate::gateway {

namespace {

constexpr int permanent_redirect = 308;
constexpr std::uint16_t https_port = 443;
constexpr std::string_view location = "Location: ";
constexpr std::string_view line_end = "\r\n";

/// `texts.lines` is all of Location.
[[nodiscard]] auto reply_with(int status, std::string_view reason, reply_texts texts)
    -> local_reply {
  texts.content.assign(wire::reason_phrase(status)).append("\n");
  return {.status = status,
          .reason = reason,
          .content_type = "text/plain",
          .content = texts.content,
          .field_lines = texts.lines};
}

}  // namespace

auto redirect(request_context const& context, reply_texts texts) -> local_reply {
  auto const& route = context.route_settings();
  texts.lines.assign(location);
  if (!route.edge->redirect->append(texts.lines, context.path, context.head->query())) {
    return path_refusal(texts);
  }
  texts.lines.append(line_end);
  return reply_with(route.settings->redirect->status, "redirect", texts);
}

auto https_port_of(config const& settings, std::span<bound_listener const> listeners)
    -> std::uint16_t {
  if (settings.https_port != 0) {
    return settings.https_port;
  }
  auto const listen = std::ranges::find_if(
      settings.listen, [](listener_config const& each) { return each.tls.has_value(); });
  auto const bound =
      listen == settings.listen.end()
          ? listeners.end()
          : std::ranges::find(listeners, listen->address, &bound_listener::configured);
  return bound == listeners.end() ? https_port : bound->address.port();
}

auto redirect_to_https(wire::request_head const& request, std::uint16_t port, reply_texts texts)
    -> local_reply {
  auto const host = http::parse_host(request.authority());
  if (!host) {
    return problem_reply(texts, "host-invalid", 400, "Bad Request",
                         "The request has no valid Host, which the redirect to https needs.");
  }
  // As it came: a client that follows asks for the same there. OPTIONS * has no path.
  auto const path = request.path().starts_with('/') ? request.path() : std::string_view("/");
  bool const is_ipv6 = host->kind == http::host_kind::ipv6;
  texts.lines.assign(location);
  wire::append_parts(texts.lines, "https://", std::string_view(is_ipv6 ? "[" : ""), host->name,
                     std::string_view(is_ipv6 ? "]" : ""));
  if (port != https_port) {
    wire::append_parts(texts.lines, ":", port);
  }
  wire::append_parts(texts.lines, path, request.query(), line_end);
  return reply_with(permanent_redirect, "redirect-to-https", texts);
}

}  // namespace tidegate::gateway
