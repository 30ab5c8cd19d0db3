// SPDX-License-Identifier: Apache-2.0
//
// `routes[].auth`: what lets a request in, and what its upstream is told of it.
#include <tidegate/base/ascii.hpp>
#include "reader/auth/auth_scalars.hpp"
#include "reader/edge_scalars.hpp"
#include "reader/parts.hpp"

#include <algorithm>

namespace tidegate::gateway {

namespace {

constexpr std::size_t places_max = 16;
constexpr std::size_t passed_max = 64;

void read_bearer_tokens(option_reader& in, section const& from, route_config const& route,
                        auth_config& auth) {
  auth.tokens =
      read_tokens(in, from, "bearer-tokens",
                  "empty list: every request would be refused (expected at least one token)");
  if (route.service == route_service::scim) {
    return;
  }
  for (auto const* const item : in.items_at(from, "bearer-tokens")) {
    for (auto const& [key, value] : item->members) {
      if (key->text == "tenant") {
        in.fault(key->place, "tenant: only for \"service: scim\"");
      }
    }
  }
}

/// Why a header cannot have a key; empty if it can.
auto reason_against_place(key_place const& place, std::vector<key_place> const& others)
    -> std::string {
  using enum key_place::place_kind;
  if (std::ranges::find(others, place) != others.end()) {
    return "duplicate " + shown(to_string(place));
  }
  if (place.kind != header) {
    return place.kind == bearer &&
                   std::ranges::find(others, key_place{header, "authorization"}) != others.end()
               ? "\"bearer\" and \"header:authorization\" cannot be combined"
               : "";
  }
  if (place.name == "authorization") {
    return std::ranges::find(others, key_place{bearer, ""}) != others.end()
               ? "\"bearer\" and \"header:authorization\" cannot be combined"
               : "";
  }
  if (place.name == "cookie") {
    return "\"header:cookie\" has all cookies in one";
  }
  auto const reason = reason_against_header(place.name);
  return reason.empty() ? "" : shown(to_string(place)) + ": " + reason;
}

void read_api_keys(option_reader& in, section const& from, config const& made,
                   route_config const& route, auth_config& auth) {
  auto const* const given = from.find("api-keys");
  if (given == nullptr) {
    return;
  }
  if (route.service == route_service::scim) {
    in.fault(given->key->place, "api-keys: not for \"service: scim\", whose clients have tokens" +
                                    expected("bearer-tokens"));
  } else if (!made.consumers.given) {
    in.fault(given->key->place, "api-keys: needs \"consumers\" at the top of the file");
  }
  auto const inside = in.open_at(from, "api-keys");
  if (inside.has_empty_list("in")) {
    in.fault(inside.place_of("in"), "in: empty list" + expected("at least one place"));
  }
  auto const& rule = inside.rule("in");
  for (auto const* const item : in.items_at(inside, "in")) {
    auto place = in.take_node(rule, *item, read_key_place);
    if (!place) {
      continue;
    }
    if (auto const reason = reason_against_place(*place, auth.api_keys); !reason.empty()) {
      in.fault(item->place, "in: " + reason);
    } else if (auth.api_keys.size() == places_max) {
      in.fault(item->place,
               "in: too many places" + expected("at most " + std::to_string(places_max)));
      break;
    } else {
      auth.api_keys.push_back(*std::move(place));
    }
  }
}

auto read_passed_source(option_reader& in, yaml_node const& key)
    -> std::optional<ratelimit::partition_source> {
  auto source = ratelimit::parse_partition_source(key.text);
  if (source && needs_principal(source->kind)) {
    return *std::move(source);
  }
  bool const is_claim = key.text.starts_with("claim:");
  in.fault(key.place, "pass: " + shown(key.text) +
                          (is_claim ? " is not available in this version" : " cannot be passed") +
                          expected("principal, plan or attribute:NAME"));
  return std::nullopt;
}

void read_pass(option_reader& in, section const& from, route_config const& route,
               auth_config& auth) {
  auto const& rule = from.rule("pass");
  for (auto const& member : in.named_at(from, "pass")) {
    auto source = read_passed_source(in, *member.key);
    if (in.has_no_value(member)) {
      continue;
    }
    auto field = in.take_node(rule, *member.value, read_header_name);
    if (!source || !field) {
      continue;
    }
    auto const is_it = [&](passed_field const& other) {
      return equal_ignoring_case(other.field, *field);
    };
    auto reason = reason_against_header(*field);
    if (equal_ignoring_case(*field, "authorization") || equal_ignoring_case(*field, "cookie")) {
      reason = "servers take it for a credential";
    }
    if (!reason.empty()) {
      in.fault(member.value->place, "pass: " + shown(*field) + ": " + reason);
    } else if (std::ranges::any_of(auth.pass, is_it)) {
      in.fault(member.value->place, "pass: duplicate " + shown(*field));
    } else if (auth.pass.size() == passed_max) {
      in.fault(member.value->place,
               "pass: too many headers" + expected("at most " + std::to_string(passed_max)));
      return;
    } else {
      auth.pass.push_back({*std::move(source), *std::move(field)});
    }
  }
  if (auto const* const given = from.find("pass");
      given != nullptr && route.service != route_service::upstream) {
    in.fault(given->key->place, "pass: only for a route with \"upstream\"");
  }
}

}  // namespace

auto read_auth(option_reader& in, section const& from, config const& made,
               route_config const& route) -> auth_config {
  auth_config auth;
  if (from.node != nullptr && !from.has("bearer-tokens") && !from.has("api-keys")) {
    in.fault(from.place,
             "\"bearer-tokens\" or \"api-keys\" is missing" + expected("at least one of them"));
  }
  in.fill(from, auth);
  read_bearer_tokens(in, from, route, auth);
  read_api_keys(in, from, made, route, auth);
  auth.forward_credentials = in.take(from, "forward-credentials", read_boolean);
  read_pass(in, from, route, auth);
  if (auth.optional && route.service == route_service::scim) {
    in.fault(from.find("optional")->key->place, "optional: not for \"service: scim\"");
  }
  return auth;
}

}  // namespace tidegate::gateway
