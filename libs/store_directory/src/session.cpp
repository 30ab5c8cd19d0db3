// SPDX-License-Identifier: Apache-2.0
#include <tidegate/store_directory/session.hpp>

namespace tidegate::store_directory {

auto session::find(scim::model_type const& type, std::string_view id)
    -> outcome<std::optional<store::directory_resource>> {
  return tracking_failure([&] { return find_in_type(type, id); });
}

auto session::find_any(std::string_view id) -> outcome<std::optional<any_resource>> {
  return tracking_failure([&]() -> outcome<std::optional<any_resource>> {
    for (auto const& type : model_->types()) {
      TIDEGATE_TRY(auto found, find_in_type(type, id));
      if (found) {
        return any_resource{type.definition.type().name, *std::move(found)};
      }
    }
    return std::nullopt;
  });
}

auto session::scan(store::directory_query const& query)
    -> outcome<scim::scan_answer<store::directory_row>> {
  return tracking_failure([&]() -> outcome<scim::scan_answer<store::directory_row>> {
    scim::scan_answer<store::directory_row> found;
    TIDEGATE_TRY_VOID(
        with_part(query, [&](row_source& rows, scanned_part const& part) -> outcome<void> {
          TIDEGATE_TRY(found, scan_rows(rows, *this, part, query));
          return {};
        }));
    return found;
  });
}

auto session::count(store::directory_query const& query) -> outcome<store::directory_count> {
  return tracking_failure([&]() -> outcome<store::directory_count> {
    store::directory_count found{0};
    TIDEGATE_TRY_VOID(
        with_part(query, [&](row_source& rows, scanned_part const& part) -> outcome<void> {
          TIDEGATE_TRY(found, count_rows(rows, *this, part, query));
          return {};
        }));
    return found;
  });
}

}  // namespace tidegate::store_directory
