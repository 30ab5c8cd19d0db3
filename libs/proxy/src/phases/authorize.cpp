// SPDX-License-Identifier: Apache-2.0
#include "phases/authorize.hpp"

#include "request/scim_request_of.hpp"

namespace tidegate::gateway {

namespace {

[[nodiscard]] auto is_safe(wire::method method) -> bool {
  return method == wire::method::get || method == wire::method::head ||
         method == wire::method::options || method == wire::method::trace;
}

}  // namespace

auto is_authorized(request_context const& context) -> bool {
  bool const is_scim = context.route_settings().settings->service == route_service::scim;
  // What only reads, SCIM knows better: a POST may be a search.
  if (context.token != nullptr) {
    return is_safe(context.method) || is_scim || !context.token->read_only;
  }
  if (context.consumer != nullptr || context.credential == shown_credential::anonymous) {
    return true;
  }
  // How to authenticate is told to all clients (RFC 7643, section 5).
  return is_scim && is_safe(context.method) && path_below_base(context) == "/ServiceProviderConfig";
}

auto auth_refusal_of(request_context const& context) -> auth_refusal {
  if (context.token != nullptr) {
    return {.status = 403,
            .reason = "token-read-only",
            .title = "Forbidden",
            .detail = "This token is read-only."};
  }
  auto const& auth = *context.route_settings().settings->auth;
  bool const has_keys = !auth.api_keys.empty();
  constexpr std::string_view wrong = R"(Bearer realm="tidegate", error="invalid_token")";
  constexpr std::string_view missing = R"(Bearer realm="tidegate")";
  if (context.credential == shown_credential::wrong && has_keys) {
    return {.status = 401,
            .reason = "credential-unknown",
            .title = "Unauthorized",
            .detail = "The credential of the request is not valid.",
            .challenge = wrong};
  }
  if (context.credential == shown_credential::wrong) {
    return {.status = 401,
            .reason = "token-unknown",
            .title = "Unauthorized",
            .detail = "The bearer token of the request is not valid.",
            .challenge = wrong};
  }
  if (has_keys) {
    return {.status = 401,
            .reason = "credential-missing",
            .title = "Unauthorized",
            .detail = "The request needs an API key or a token.",
            .challenge = missing};
  }
  return {.status = 401,
          .reason = "token-missing",
          .title = "Unauthorized",
          .detail = "The request needs a bearer token.",
          .challenge = missing};
}

auto refuse_unauthorized(request_context const& context, reply_texts texts) -> local_reply {
  auto const why = auth_refusal_of(context);
  auto reply = problem_reply(texts, why.reason, why.status, why.title, why.detail);
  if (!why.challenge.empty()) {
    texts.lines.assign("WWW-Authenticate: ").append(why.challenge).append("\r\n");
    reply.field_lines = texts.lines;
  }
  return reply;
}

}  // namespace tidegate::gateway
