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

/// A row of a list. Its text stands in that of the list already.
struct list_row {
  scim::position at;
  std::size_t begin = 0;
  std::size_t end = 0;
};
using rows_answer = scim::scan_answer<list_row>;

/// One list, in one state of the directory.
class list_reader {
 public:
  list_reader(list_plan const& plan, store::directory_reader& from, read_effort effort)
      : plan_(plan),
        options_(*plan.call->request.options),
        from_(from),
        is_quick_(effort == read_effort::quick) {}

  /// Nothing when it takes more than a quick read may.
  auto answer() -> std::optional<result<scim_answer, scim::error>>;

 private:
  auto read() -> result<scim_answer, scim::error>;

  // ---- pages ----

  auto walk() -> result<scim_answer, scim::error>;
  auto index_page() -> result<scim_answer, scim::error>;
  auto index_rows() -> result<std::vector<list_row>, scim::error>;
  auto sorted_index_rows() -> result<std::vector<list_row>, scim::error>;

  // ---- scans ----

  auto scan(scim::scan const& wanted, std::optional<scim::error>& failed) -> rows_answer;
  /// Adds the rows of a scan to those of the list. The one behind the page, which says that there
  /// is another page, is not shown.
  void scan_part(list_part const& part, store::directory_query& query, rows_answer& into,
                 std::optional<scim::error>& failed);
  /// Whether to show a row may take longer than a quick read does.
  auto takes_long(list_part const& part, store::directory_row_view const& row) const -> bool;
  /// Shows a row, unless the page has rows and is full, or would be longer than any answer with
  /// this one. False then.
  auto show_if_it_fits(list_row& into, list_part const& part,
                           store::directory_row_view const& row, bool has_rows,
                           std::optional<scim::error>& failed) -> bool;
  /// Writes what the client gets of a row.
  void show(list_row& into, list_part const& part, store::directory_row_view const& row,
            std::optional<scim::error>& failed);
  auto show(std::span<store::directory_row const> found, std::optional<scim::error>& failed)
      -> std::vector<list_row>;
  /// Type after type.
  auto scan_types(scim::scan const& wanted, std::optional<scim::error>& failed) -> rows_answer;
  /// Without an index for it: the best rows of all, kept in a heap while every row is looked at.
  auto sorted_scan(scim::scan const& wanted, std::optional<scim::error>& failed)
      -> std::vector<store::directory_row>;
  auto sort_key_of(std::string_view text) const -> std::string;
  [[nodiscard]] auto query_of(list_part const& part, std::chrono::nanoseconds time) const
      -> store::directory_query;

  // ---- totalResults ----

  auto count_part(list_part const& part, std::chrono::nanoseconds time)
      -> result<std::uint64_t, scim::error>;
  /// In a walk it is left out where it would take too long (RFC 9865, section 2).
  auto count_all() -> result<void, scim::error>;

  // ---- the answer ----

  auto cursor_to(std::optional<scim::page_place> const& place,
                 scim::cursor_sealer::nonce const& random) const
      -> result<std::string, scim::error>;
  auto list_answer(scim::list_head head, std::span<list_row const> rows)
      -> result<scim_answer, scim::error>;
  /// Makes the text that of these rows, one after the other. That is what it is already, but for
  /// pages that go backward.
  void take_in_order(std::span<list_row const> rows);
  /// A position among several types has the number of its type as its sort key.
  auto key_of_part(list_part const& part) const -> std::string;

  list_plan const& plan_;
  scim_config const& options_;
  store::directory_reader& from_;
  std::uint64_t rid_max_ = UINT64_MAX;
  std::optional<std::uint64_t> total_;
  std::uint64_t sorted_rows_ = 0;  // that the last scan looked at
  std::string content_;            // of the rows that were shown
  std::size_t scan_begin_ = 0;     // where those of the last scan begin in it
  scim::position last_shown_;      // the place of the last row in it
  bool is_full_ = false;           // the last scan ended since the page is long enough
  bool is_quick_ = false;
  bool is_long_ = false;  // too long for a quick read
};

}  // namespace tidegate::gateway
