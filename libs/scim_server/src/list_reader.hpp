// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/scim_server/call.hpp>

#include <tidegate/scim/list_request.hpp>
#include <tidegate/scim/list_response.hpp>
#include <tidegate/scim/walk.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tidegate::gateway {

/// The resources of one type in a list.
struct list_part {
  resource_view view;
  std::optional<scim::filter> where;
};

/// What a request asks for, resolved.
struct list_plan {
  std::shared_ptr<scim_call const> call;
  scim::list_request asked;
  /// In the order of the list; with several, a sort key is the number of one.
  std::vector<list_part> parts;
  std::string canonical_filter;
  std::optional<scim::cursor> from;
  std::uint32_t count = 0;
  std::optional<std::size_t> sort_index;
  /// With one index only, that of an attribute which the directory has none for.
  std::optional<scim::model_type> sorted_by;

  [[nodiscard]] auto is_walk() const -> bool {
    return asked.method == scim::pagination_method::cursor;
  }
  [[nodiscard]] auto binding() const -> scim::cursor_binding {
    return {.tenant = call->request.tenant,
            .principal = call->request.principal,
            .endpoint = call->target.type != nullptr
                            ? std::string_view(call->target.type->definition.type().endpoint)
                            : "/",
            .filter = canonical_filter,
            .sort_by = asked.sort_by,
            .descending = asked.descending,
            .attributes = asked.attributes,
            .excluded_attributes = asked.excluded_attributes};
  }
};

/// Whether a filter is one for the value of one resource.
[[nodiscard]] auto asks_for_one(scim::filter const& where, scim::model_type const& type) -> bool;

/// A loop does not read more by itself.
inline constexpr std::uint32_t quick_rows_max = 100;

/// Reads the list, in one state of the directory. Nothing when it takes more than a quick read may.
[[nodiscard]] auto read_list(list_plan const& plan, store::directory_reader& from,
                             read_effort effort) -> std::optional<result<scim_answer, scim::error>>;

}  // namespace tidegate::gateway
