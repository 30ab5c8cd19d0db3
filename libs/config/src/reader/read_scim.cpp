// SPDX-License-Identifier: Apache-2.0
#include "reader/parts.hpp"

#include <utility>

namespace tidegate::gateway {

namespace {

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
             "default-method: " + shown(*first) + " is not one of \"pagination\"");
  }
  made.default_page_size =
      static_cast<std::uint32_t>(in.take_or_default(from, "default-page-size", read_integer));
  made.max_page_size =
      static_cast<std::uint32_t>(in.take_or_default(from, "max-page-size", read_integer));
  if (made.max_page_size != 0 && made.default_page_size > made.max_page_size) {
    if (auto const* const given = from.find("default-page-size")) {
      in.fault(given->value->place, "default-page-size: more than max-page-size");
    }
    made.default_page_size = made.max_page_size;
  }
  made.count_over_max_is_error = in.take(from, "count-over-max", read_choice) == "error";
  made.cursor_timeout = in.take_seconds(from, "cursor-timeout");
}

auto read_options(option_reader& in, section const& from) -> scim_config {
  scim_config scim;
  read_pagination(in, from, scim.pagination);
  for (auto const& file : in.take_list(from, "schemas", read_file)) {
    scim.schemas.push_back(in.beside_file(file));
  }
  scim.indexes = in.take_list(from, "indexes", read_name);
  scim.scan_budget = in.take_or_default(from, "scan-budget", read_duration);
  scim.max_body = in.take_or_default(from, "max-body", read_size);
  auto const bulk = in.open_at(from, "bulk");
  scim.bulk_max_operations = in.take_or_default(bulk, "max-operations", read_integer);
  scim.bulk_max_payload = in.take_or_default(bulk, "max-payload", read_size);
  scim.public_url = in.take(from, "public-url", read_reference).value_or("");
  if (scim.public_url.starts_with('/') || scim.public_url.contains('?')) {
    in.fault(from.place_of("public-url"), "public-url: invalid base " + shown(scim.public_url) +
                                              " (expected a URL without a query)");
  }
  while (scim.public_url.ends_with('/')) {
    scim.public_url.pop_back();
  }
  scim.unique_group_names = in.take_or_default(from, "unique-group-names", read_boolean);
  scim.unknown = in.take(from, "unknown-attributes", read_choice) == "refuse"
                     ? scim::unknown_attributes::refuse
                     : scim::unknown_attributes::ignore;
  return scim;
}

/// What only `service: scim` has, and only that and a bridge.
void refuse_options(option_reader& in, section const& from, bool is_bridge) {
  for (auto const* const key : {"schemas", "indexes", "scan-budget", "max-body", "bulk",
                                "public-url", "unique-group-names", "unknown-attributes"}) {
    if (auto const* const given = from.find(key)) {
      in.fault(given->key->place, std::string(key) + ": only for \"service: scim\"");
    }
  }
  for (auto const* const key : {"default-page-size", "max-page-size", "pagination",
                                "default-method", "cursor-timeout", "count-over-max"}) {
    if (auto const* const given = from.find(key); given != nullptr && !is_bridge) {
      in.fault(given->key->place,
               std::string(key) + ": only for \"service: scim\" or \"bridge: scim-cursor\"");
    }
  }
}

}  // namespace

void read_scim(option_reader& in, section const& from, config const& made, route_config& route) {
  bool const is_bridge = in.take(from, "bridge", read_choice).has_value();
  auto scim = read_options(in, from);
  if (is_bridge && route.service != route_service::upstream) {
    in.fault(from.find("bridge")->key->place, "bridge: only for a route with \"upstream\"");
  }
  if (route.service != route_service::scim) {
    refuse_options(in, from, is_bridge);
    if (is_bridge && !scim.pagination.cursor) {
      in.fault(from.place_of("pagination"), "pagination: a bridge without cursors does nothing");
    }
    if (is_bridge) {
      route.bridge = scim.pagination;
    }
    return;
  }
  if (!route.match.path.ends_with("/**")) {
    in.fault(from.place_of("match"),
             "service: scim has many paths (expected one that ends with /**)");
  }
  for (auto const& other : made.routes) {
    if (other.scim &&
        (other.scim->schemas != scim.schemas || other.scim->indexes != scim.indexes)) {
      in.fault(from.place_of("service"), "service: the route " + shown(other.name) +
                                             " has the same directory (expected the same "
                                             "\"schemas\" and \"indexes\")");
      break;
    }
  }
  route.scim = std::move(scim);
}

}  // namespace tidegate::gateway
