// SPDX-License-Identifier: Apache-2.0
//
// What a route does at the border between clients and upstreams: pages of other origins, networks,
// paths, and answers of the gateway itself. read_field_rules.cpp has the rules for headers.
#include <tidegate/base/ascii.hpp>
#include "reader/edge_scalars.hpp"
#include "reader/parts.hpp"

#include <algorithm>
#include <array>

namespace tidegate::gateway {

namespace {

constexpr std::size_t names_max = 256;  // of origins, methods and headers
constexpr std::size_t networks_max = 1000;
constexpr std::size_t body_octets_max = 64 * 1024;

void refuse_too_many(option_reader& in, section const& from, std::string_view key,
                     std::size_t count, std::size_t max) {
  if (count > max) {
    in.fault(from.place_of(key),
             std::string(key) + ": too many" + expected("at most " + std::to_string(max)));
  }
}

void refuse_empty_list(option_reader& in, section const& from, std::string_view key,
                       std::string_view what) {
  if (from.has_empty_list(key)) {
    in.fault(from.place_of(key), std::string(key) + ": empty list" + expected(what));
  }
}

// ---- cors ----

void read_origins(option_reader& in, section const& from, cors_config& made) {
  auto const* const given = from.find("origins");
  if (given == nullptr) {
    return;
  }
  made.any_origin = given->value->kind == yaml_kind::scalar && given->value->text == "*";
  refuse_empty_list(in, from, "origins", "at least one origin, or \"*\"");
  auto const& rule = from.rule("origins");
  for (auto const* const item : in.items_at(from, "origins")) {
    if (item->kind == yaml_kind::null) {
      in.fault(item->place, "origins: empty" + expected("an origin; the origin null in quotes"));
    } else if (item->text == "*" && !made.any_origin) {
      in.fault(item->place, "origins: \"*\" is not allowed in a list" +
                                expected("origins: \"*\" for every origin, or a list of origins"));
    } else if (auto origin = in.take_node(rule, *item, read_origin)) {
      if (std::ranges::find(made.origins, *origin) != made.origins.end()) {
        in.fault(item->place, "origins: duplicate " + shown(*origin));
      }
      made.origins.push_back(*std::move(origin));
    }
  }
  refuse_too_many(in, from, "origins", made.origins.size(), names_max);
  if (made.any_origin && made.credentials) {
    in.fault(from.place_of("credentials"),
             "credentials: not with origins: \"*\", which would let every page use them" +
                 expected("a list of origins"));
  }
}

/// A name twice means nothing, and is most likely a slip.
void check_names(option_reader& in, section const& from, std::string_view key,
                 std::vector<std::string> const& names) {
  refuse_too_many(in, from, key, names.size(), names_max);
  std::vector<std::string_view> seen;
  for (auto const& name : names) {
    if (std::ranges::any_of(seen,
                            [&](auto const& other) { return equal_ignoring_case(other, name); })) {
      in.fault(from.place_of(key), std::string(key) + ": duplicate " + shown(name));
      return;
    }
    seen.push_back(name);
  }
}

void read_cors(option_reader& in, section const& from, request_match const& match,
               cors_config& made) {
  read_origins(in, from, made);
  refuse_empty_list(in, from, "methods", "at least one method, or no \"methods\" for the default");
  refuse_empty_list(in, from, "headers", "at least one header, or no \"headers\" for the default");
  if (std::ranges::find(made.methods, "*") != made.methods.end()) {
    in.fault(from.place_of("methods"), "methods: \"*\" is not allowed here; name each method");
  }
  check_names(in, from, "methods", made.methods);
  check_names(in, from, "headers", made.headers);
  check_names(in, from, "expose", made.expose);
  for (auto const& method : made.methods) {
    if (!match.methods.empty() && std::ranges::find(match.methods, method) == match.methods.end()) {
      in.warn(from.place_of("methods"), "methods: the match of the route does not have " +
                                            shown(method) + ", so no page can use it here");
    }
  }
  if (made.max_age % std::chrono::seconds(1) != std::chrono::nanoseconds(0)) {
    in.fault(from.place_of("max-age"), "max-age: must be whole seconds" + expected("e.g. 10m"));
  }
}

// ---- networks ----

void check_networks(option_reader& in, section const& from, route_config const& route) {
  refuse_empty_list(in, from, "allow", "at least one network, or no \"allow\" for all addresses");
  refuse_empty_list(in, from, "deny", "at least one network, or no \"deny\" for none");
  refuse_too_many(in, from, "allow", route.allow.size(), networks_max);
  refuse_too_many(in, from, "deny", route.deny.size(), networks_max);
  for (auto const& allowed : route.allow) {
    auto const denied = std::ranges::find_if(route.deny, [&](http::cidr const& network) {
      return network.prefix_length <= allowed.prefix_length && network.contains(allowed.address);
    });
    if (denied != route.deny.end()) {
      in.warn(from.place_of("allow"), "allow: " + shown(to_string(allowed)) +
                                          " lets nothing in: \"deny\" has " +
                                          shown(to_string(*denied)));
    }
  }
}

// ---- paths ----

/// Whether a path begins with the segments of `prefix`, whatever its wildcards stand for.
auto begins_with(std::string_view pattern, std::string_view prefix) -> bool {
  return pattern.starts_with(prefix) &&
         (pattern.size() == prefix.size() || pattern[prefix.size()] == '/');
}

void read_rewrite(option_reader& in, section const& from, std::string_view pattern,
                  rewrite_config& made) {
  made.strip_prefix = in.take(from, "strip-prefix", read_prefix).value_or("");
  made.add_prefix = in.take(from, "add-prefix", read_prefix).value_or("");
  auto const path = in.take(from, "path", read_scalar);
  bool const has_prefix = from.has("strip-prefix") || from.has("add-prefix");
  if (from.has("path") && has_prefix) {
    in.fault(from.find("path")->key->place,
             "path: cannot be combined with \"strip-prefix\" and \"add-prefix\"");
  } else if (!from.has("path") && !has_prefix) {
    in.fault(from.place, "rewrite: empty" + expected("strip-prefix, add-prefix or path"));
  }
  if (!made.strip_prefix.empty() && !begins_with(pattern, made.strip_prefix)) {
    in.fault(from.place_of("strip-prefix"), "strip-prefix: the path of the match, " +
                                                shown(pattern) + ", does not begin with " +
                                                shown(made.strip_prefix));
  }
  if (path) {
    if (auto const checked = check_path_template(*path, captures_of(pattern)); !checked) {
      in.fault(from.place_of("path"), "path: " + shown(*path) + ": " + checked.error() +
                                          expected(allowed_values(from.rule("path"))));
    }
    made.path = *path;
  }
}

// ---- answers ----

void read_redirect(option_reader& in, section const& from, std::string_view pattern,
                   redirect_config& made) {
  constexpr auto statuses = std::to_array<int>({301, 302, 303, 307, 308});
  if (auto const status = in.take(from, "status", read_choice)) {
    auto const words = split_words(from.rule("status").words);
    made.status =
        statuses[static_cast<std::size_t>(std::ranges::find(words, *status) - words.begin())];
  }
  made.to = in.take(from, "to", read_scalar).value_or("");
  if (made.to.empty()) {
    if (from.has("to") && from.find("to")->value->kind == yaml_kind::scalar) {
      in.fault(from.place_of("to"), "to: empty" + expected(allowed_values(from.rule("to"))));
    }
  } else if (auto const checked = check_redirect_target(made.to, captures_of(pattern)); !checked) {
    in.fault(from.place_of("to"), "to: " + shown(made.to) + ": " + checked.error() +
                                      expected(allowed_values(from.rule("to"))));
  }
}

void read_respond(option_reader& in, section const& from, respond_config& made) {
  made.status = static_cast<int>(in.take_or_default(from, "status", read_integer));
  made.body = in.take(from, "body", read_scalar).value_or("");
  made.content_type = in.take(from, "content-type", read_header_value).value_or("");
  if (made.body.size() > body_octets_max) {
    in.fault(from.place_of("body"), "body: too large" + expected("at most 64KiB"));
  }
  bool const has_none = made.status == 204 || made.status == 205 || made.status == 304;
  for (auto const* const key : {"body", "content-type"}) {
    if (has_none && from.has(key)) {
      in.fault(from.find(key)->key->place, std::string(key) + ": a response with status " +
                                               std::to_string(made.status) + " has no body");
    }
  }
  if (made.content_type.empty() && !made.body.empty()) {
    made.content_type = "text/plain; charset=utf-8";
  }
}

/// Options that mean nothing without an upstream.
void refuse_without_upstream(option_reader& in, section const& from, route_config const& route) {
  auto const refuse = [&](std::string_view key, std::string_view reason) {
    if (auto const* const given = from.find(key)) {
      in.fault(given->key->place, std::string(key) + ": " + std::string(reason));
    }
  };
  if (route.service == route_service::upstream) {
    return;
  }
  for (auto const* const key : {"rewrite", "request", "timeout"}) {
    refuse(key, "only for a route with \"upstream\"");
  }
  if (route.redirect || route.respond) {
    refuse("idempotency", "not beside \"redirect\" and \"respond\", which may be repeated anyway");
  }
}

}  // namespace

void read_edge(option_reader& in, section const& from, route_config& route) {
  if (route.cors) {
    read_cors(in, from.under("cors"), route.match, *route.cors);
  }
  read_field_rules(in, from, route);
  if (route.rewrite) {
    read_rewrite(in, from.under("rewrite"), route.match.path, *route.rewrite);
  }
  if (route.redirect) {
    read_redirect(in, from.under("redirect"), route.match.path, *route.redirect);
  }
  if (route.respond) {
    read_respond(in, from.under("respond"), *route.respond);
  }
  check_networks(in, from, route);
  refuse_without_upstream(in, from, route);
}

}  // namespace tidegate::gateway
