// SPDX-License-Identifier: Apache-2.0
#include "reader/parts.hpp"

#include <utility>

namespace tidegate::gateway {

namespace {

/// Of pages, what `fill` has not read.
void read_pagination(option_reader& in, section const& from, scim::pagination_options& made) {
  auto const methods = in.take(from, "pagination", read_choice);
  auto const first = in.take(from, "default-method", read_choice);
  made.cursor = methods != "index";
  made.index = methods != "cursor";
  bool const by_cursor = first == "cursor" || (!made.index && !from.has("default-method"));
  made.default_method =
      by_cursor ? scim::pagination_method::cursor : scim::pagination_method::index;
  if (first && (by_cursor ? !made.cursor : !made.index)) {
    in.fault(from.place_of("default-method"),
             "default-method: " + shown(*first) + " is not allowed by \"pagination\"");
  }
  if (made.max_page_size != 0 && made.default_page_size > made.max_page_size) {
    if (auto const* const given = from.find("default-page-size")) {
      in.fault(given->value->place, "default-page-size: more than \"max-page-size\"");
    }
    made.default_page_size = made.max_page_size;
  }
}

auto read_options(option_reader& in, section const& from) -> scim_config {
  scim_config scim;
  in.fill(from, scim);
  read_pagination(in, from, scim.pagination);
  if (scim.public_url.starts_with('/') || scim.public_url.contains('?')) {
    in.fault(from.place_of("public-url"), "public-url: invalid URL " + shown(scim.public_url) +
                                              " (expected e.g. https://id.example.com)");
  }
  while (scim.public_url.ends_with('/')) {
    scim.public_url.pop_back();
  }
  return scim;
}

/// `max-body` of the route is that of its requests here too.
void take_max_body(option_reader& in, section const& from, section const& group,
                   std::int64_t max_body, scim_config& made) {
  auto const& rule = group.rule("max-body");
  if (auto const* const given = group.find("max-body")) {
    auto const place = from.find("max-body")->key->place;
    in.fault(place, "duplicate key \"max-body\"; it is already in \"scim\" in " +
                        in.line_of(given->key->place, place));
  } else if (max_body < rule.min || max_body > rule.max) {
    in.fault(from.place_of("max-body"),
             "max-body: out of range for \"service: scim\"" + expected(allowed_values(rule)));
  }
  made.max_body = max_body;
}

/// Options that the route cannot use: all without `service: scim`, but for those of pages with a
/// bridge.
void refuse_options(option_reader& in, section const& from, bool is_bridge) {
  if (!is_bridge && from.node != nullptr && from.node->members.empty()) {
    in.fault(from.place, "scim: only for \"service: scim\" or \"bridge: scim-cursor\"");
  }
  for (auto const* const rule : options_under(from.path)) {
    bool const is_allowed = rule->routes == route_kind::pages && is_bridge;
    if (auto const* const given = from.find(rule->key()); given != nullptr && !is_allowed) {
      in.fault(given->key->place,
               std::string(rule->key()) + ": only for \"service: scim\"" +
                   (rule->routes == route_kind::pages ? " or \"bridge: scim-cursor\"" : ""));
    }
  }
}

/// Routes with a directory have the same one.
void check_other_routes(option_reader& in, section const& from, config const& made,
                        scim_config const& scim) {
  for (auto const& other : made.routes) {
    if (other.scim &&
        (other.scim->schemas != scim.schemas || other.scim->indexes != scim.indexes)) {
      in.fault(from.place_of("service"), "service: the route " + shown(other.name) +
                                             " has the same directory (expected the same "
                                             "\"schemas\" and \"indexes\" in both)");
      return;
    }
  }
}

}  // namespace

void read_scim(option_reader& in, section const& from, config const& made, route_config& route) {
  bool const is_bridge = in.take(from, "bridge", read_choice).has_value();
  auto const group = in.open_at(from, "scim");
  auto scim = read_options(in, group);
  if (route.service == route_service::scim && route.max_body) {
    take_max_body(in, from, group, *route.max_body, scim);
  }
  if (is_bridge && route.service != route_service::upstream) {
    in.fault(from.find("bridge")->key->place, "bridge: only for a route with \"upstream\"");
  }
  if (route.service != route_service::scim) {
    refuse_options(in, group, is_bridge);
    if (is_bridge && !scim.pagination.cursor) {
      in.fault(group.place_of("pagination"),
               "pagination: \"index\" makes the bridge useless (expected both or cursor)");
    }
    if (is_bridge) {
      route.bridge = scim.pagination;
    }
    return;
  }
  if (!route.match.path.ends_with("/**")) {
    in.fault(from.place_of("match"),
             "match: invalid path for \"service: scim\" (expected one that ends with /**)");
  }
  check_other_routes(in, from, made, scim);
  route.scim = std::move(scim);
}

}  // namespace tidegate::gateway
