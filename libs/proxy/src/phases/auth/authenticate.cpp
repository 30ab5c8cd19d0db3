// SPDX-License-Identifier: Apache-2.0
#include "phases/auth/authenticate.hpp"

#include <tidegate/http/query.hpp>
#include <tidegate/proxy/bearer.hpp>
#include <tidegate/proxy/consumers.hpp>

#include <algorithm>
#include <optional>

namespace tidegate::gateway {

namespace {

using wire::known_field;
using enum key_place::place_kind;

/// The value of a field that may be there once; nothing when it is there more often.
[[nodiscard]] auto only_line(wire::request_head const& request, std::string_view name,
                             known_field known) -> std::optional<std::string_view> {
  std::string_view value;
  bool is_first = true;
  if (!request.has(known)) {
    return value;
  }
  for (auto const& field : request.fields()) {
    if (field.known == known &&
        (known != known_field::other || equal_ignoring_case(field.name, name))) {
      if (!is_first) {
        return std::nullopt;
      }
      value = field.value;
      is_first = false;
    }
  }
  return value;
}

[[nodiscard]] auto query_of(wire::request_head const& request) -> std::string_view {
  return request.query().substr(std::min<std::size_t>(1, request.query().size()));
}

[[nodiscard]] auto is_bearer(key_place const& place) -> bool {
  return place.kind == bearer;
}

/// What has a credential more than once, for people; empty when nothing has.
[[nodiscard]] auto find_repeated(wire::request_head const& request, auth_config const& auth)
    -> std::string {
  if ((!auth.tokens.empty() || std::ranges::any_of(auth.api_keys, is_bearer)) &&
      !only_line(request, "authorization", known_field::authorization)) {
    return "header:authorization";
  }
  for (auto const& place : auth.api_keys) {
    bool const is_repeated =
        place.kind == header
            ? !only_line(request, place.name, wire::find_known_field(place.name))
            : place.kind == query && http::is_repeated_in_query(query_of(request), place.name);
    if (is_repeated) {
      return to_string(place);
    }
  }
  return {};
}

/// The key that stands there; empty when there is none.
[[nodiscard]] auto key_at(key_place const& place, wire::request_head const& request,
                          std::string& room) -> std::string_view {
  switch (place.kind) {
    case header:
      return only_line(request, place.name, wire::find_known_field(place.name)).value_or("");
    case query: return http::query_value(query_of(request), place.name, room).value_or("");
    case bearer: break;
  }
  return bearer_token_of(request);
}

void take_key(request_context& context, std::shared_ptr<consumer_index const> const& consumers,
              std::string_view key) {
  auto const* const found = consumers->find_by_key(sha256::of(key));
  context.consumer = {consumers, found};  // lives as long as all of them
  context.credential = found != nullptr ? shown_credential::right : shown_credential::wrong;
}

}  // namespace

auto authenticate(request_context& context, std::shared_ptr<consumer_index const> const& consumers,
                  reply_texts texts, std::string& room) -> step {
  auto const& auth = *context.route_settings().settings->auth;
  auto const& request = *context.head;
  if (auto const repeated = find_repeated(request, auth); !repeated.empty()) [[unlikely]] {
    auto const detail = "The request has " + repeated +
                        " more than once, and servers do not agree on which one counts.";
    context.reply = problem_reply(texts, "credential-repeated", 400, "Bad Request", detail);
    return step::answered;
  }
  if (!auth.tokens.empty()) {
    if (auto const given = bearer_token_of(request); !given.empty()) {
      context.token = find_token(auth.tokens, given);
      if (context.token != nullptr) {
        context.credential = shown_credential::right;
        context.consumer = {consumers, consumers->find_by_name(context.token->name)};
      } else if (std::ranges::any_of(auth.api_keys, is_bearer)) {
        take_key(context, consumers, given);
      } else {
        context.credential = shown_credential::wrong;
      }
      return step::next;
    }
  }
  for (auto const& place : auth.api_keys) {
    if (auto const key = key_at(place, request, room); !key.empty()) {
      take_key(context, consumers, key);
      return step::next;
    }
  }
  context.credential = auth.optional ? shown_credential::anonymous : shown_credential::none;
  return step::next;
}

}  // namespace tidegate::gateway
