// SPDX-License-Identifier: Apache-2.0
#include <tidegate/client/scim_position.hpp>

#include <tidegate/json/value.hpp>

#include <utility>

namespace tidegate::TIDEGATE_ABI::client {

using scim::pagination_method;

auto to_json(scim_position const& position) -> std::string {
  json::object out;
  if (position.method) {
    out.append("method", *position.method == pagination_method::cursor ? "cursor" : "index");
  }
  out.append("cursor", position.cursor);
  out.append("start_index", static_cast<std::int64_t>(position.start_index));
  if (position.count) {
    out.append("count", static_cast<std::int64_t>(*position.count));
  }
  out.append("by_id", position.by_id);
  out.append("descending", position.descending);
  out.append("backward", position.backward);
  out.append("beyond", position.beyond);
  out.append("edge", position.edge);
  auto const& in_order = position.ids_in_order;
  out.append("ids_in_order", in_order ? json::value(std::int64_t(*in_order)) : json::value());
  if (position.total_results) {
    out.append("total_results", static_cast<std::int64_t>(*position.total_results));
  }
  out.append("shrunk", position.shrunk);
  return to_string(json::value(std::move(out)));
}

auto scim_position_of(json::value const& value) -> std::optional<scim_position> {
  auto const start_index = number_of(value, "start_index");
  if (!start_index) {
    return std::nullopt;
  }
  scim_position position{.cursor = std::string(text_of(value, "cursor")),
                         .start_index = *start_index,
                         .by_id = is_true(value, "by_id"),
                         .descending = is_true(value, "descending"),
                         .backward = is_true(value, "backward"),
                         .beyond = std::string(text_of(value, "beyond")),
                         .edge = std::string(text_of(value, "edge")),
                         .ids_in_order = number_of(value, "ids_in_order"),
                         .total_results = number_of(value, "total_results"),
                         .shrunk = is_true(value, "shrunk")};
  if (auto const method = text_of(value, "method"); !method.empty()) {
    position.method = method == "cursor" ? pagination_method::cursor : pagination_method::index;
  }
  if (auto const count = number_of(value, "count")) {
    position.count = static_cast<std::uint32_t>(*count);
  }
  return position;
}

}  // namespace tidegate::TIDEGATE_ABI::client
