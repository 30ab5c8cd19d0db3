// SPDX-License-Identifier: Apache-2.0
#include "phases/edge/cors.hpp"

#include <tidegate/wire/http1_write.hpp>

#include <algorithm>

namespace tidegate::gateway {

namespace {

using wire::known_field;

constexpr std::string_view method_name = "access-control-request-method";
constexpr std::string_view headers_name = "access-control-request-headers";

[[nodiscard]] auto is_named(wire::field_view const& field, std::string_view name) -> bool {
  return field.known == known_field::other && equal_ignoring_case(field.name, name);
}

/// The line that allows the origin of a request. One that says several has none that browsers send.
[[nodiscard]] auto origin_line_for(wire::request_head const& request, cors_rules const& rules)
    -> std::string_view {
  if (!request.has(known_field::origin)) {
    return rules.line_for_none();
  }
  wire::field_view const* origin = nullptr;
  for (auto const& field : request.fields()) {
    if (field.known == known_field::origin) {
      if (origin != nullptr) {
        return rules.line_for_none();
      }
      origin = &field;
    }
  }
  return rules.line_for(origin->value);
}

[[nodiscard]] auto refuse(reply_texts texts, std::string_view reason, std::string_view detail,
                          cors_rules const& rules) -> local_reply {
  auto reply = problem_reply(texts, reason, 403, "Forbidden", detail);
  reply.field_lines = rules.refusal_lines();
  return reply;
}

}  // namespace

auto requested_method_of(wire::request_head const& request) -> std::optional<std::string_view> {
  if (!request.has(known_field::origin)) {
    return std::nullopt;
  }
  std::optional<std::string_view> method;
  for (auto const& field : request.fields()) {
    if (is_named(field, method_name)) {
      method = method ? std::string_view() : field.value;
    }
  }
  return method;
}

auto answer_preflight(request_context& context, cors_rules const& rules, std::string_view method,
                      reply_texts texts) -> local_reply {
  auto const& request = *context.head;
  context.grpc = grpc_kind::none;  // it is not the call
  auto const origin = origin_line_for(request, rules);
  if (origin.empty()) {
    return refuse(texts, "cors-origin", "Pages of this origin may not send requests here.", rules);
  }
  if (!rules.allows_method(method)) {
    return refuse(texts, "cors-method", "Pages of other origins may not use this method here.",
                  rules);
  }
  requested_headers asked;
  for (auto const& field : request.fields()) {
    if (is_named(field, headers_name) && !rules.takes_headers(field.value, asked)) {
      return refuse(texts, "cors-header",
                    "Pages of other origins may not send one of these headers here.", rules);
    }
  }
  texts.lines.assign(origin);
  rules.append_headers_line(texts.lines, asked);
  texts.lines.append(rules.preflight_lines());
  return {
      .status = 204, .reason = "cors-preflight", .content_type = {}, .field_lines = texts.lines};
}

auto cors_lines_for(request_context const& context, cors_rules const& rules) -> cors_lines {
  auto const origin = origin_line_for(*context.head, rules);
  if (origin.empty()) {
    return {{}, rules.foreign_lines()};
  }
  return {origin, context.grpc == grpc_kind::none ? rules.allowed_lines() : rules.grpc_lines()};
}

auto has_access_control(wire::message_head const& head) -> bool {
  return head.has(known_field::other) &&
         std::ranges::any_of(head.fields(), [](wire::field_view const& field) {
           return field.known == known_field::other && is_access_control(field.name);
         });
}

void append_others_without_cors(std::string& lines, wire::response_head const& head) {
  for (auto const& field : head.fields()) {
    if (field.known == known_field::other && !is_access_control(field.name) &&
        !wire::is_of_connection(head, field)) {
      wire::append_field(lines, field.name, field.value);
    }
  }
}

}  // namespace tidegate::gateway
