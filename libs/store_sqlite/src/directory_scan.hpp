// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "directory_session.hpp"
#include "row_texts.hpp"

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tidegate::store_sqlite {

/// The query for the rids for which a condition holds, whose placeholders begin with 3. Where it is not that of the
/// condition itself, the first and the second are the lowest and the highest rid.
[[nodiscard]] auto rids_query(scim::filter_sql const& condition) -> std::string;

/// One scan or count of a session.
///
/// There are three ways through resources. In order: along the table or the index that sorts, asking `matches` where there
/// is a filter. By candidates: where indexes answer the filter with not too many rids, those are looked at. By one key:
/// where the filter is `eq` on an index and the order is that of creation, the entries with that key are in this order.
class directory_scan {
 public:
  directory_scan(directory_session& session, directory_part const& part,
                 store::directory_query const& query);

  [[nodiscard]] auto rows() -> outcome<scim::scan_answer<store::directory_row>>;
  [[nodiscard]] auto count() -> outcome<store::directory_count>;

  /// The function `look_at` of SQL: of rid, id, in_groups, text and perhaps the key. True: it was the last.
  static void look_at_row(sqlite3_context* context, int count, sqlite3_value** values) noexcept;

 private:
  /// A resource where it stands in the file; good until the next one.
  struct row_view {
    std::int64_t rid;
    std::string_view key;  // of the order; empty in the order of creation
    std::string_view id;
    bool in_groups;
    std::string_view text;
  };
  enum class next : std::uint8_t { go_on, stop };

  [[nodiscard]] auto compile() -> outcome<void>;
  [[nodiscard]] auto walk_rids() -> outcome<void>;
  [[nodiscard]] auto walk_keys() -> outcome<void>;
  [[nodiscard]] auto walk_equal(std::string_view key) -> outcome<void>;
  [[nodiscard]] auto walk_candidates(std::vector<std::int64_t> const& candidates) -> outcome<void>;
  [[nodiscard]] auto walk_sorted_candidates(std::vector<std::int64_t> const& candidates)
      -> outcome<void>;
  [[nodiscard]] auto walk_keys_of(std::vector<std::int64_t> const& candidates) -> outcome<void>;
  [[nodiscard]] auto walk_key(std::int64_t index_id, std::string_view key, std::int64_t rid_min,
                              std::int64_t rid_max) -> outcome<next>;
  /// Runs a statement that shows its rows to `look_at`.
  [[nodiscard]] auto walk(sqlite3_stmt* statement) -> outcome<next>;
  [[nodiscard]] auto look_at(row_view const& row) -> outcome<next>;
  [[nodiscard]] auto look_up(std::int64_t rid, std::string_view key) -> outcome<next>;
  [[nodiscard]] auto passed(std::int64_t rid, std::string_view key) -> next;
  [[nodiscard]] auto is_match(row_view const& row) -> outcome<bool>;
  [[nodiscard]] auto complete(scim::json& resource, std::int64_t rid) -> outcome<void>;

  [[nodiscard]] auto rids_of_condition(std::size_t rids_max, std::move_only_function<bool()> stop)
      -> outcome<std::optional<std::vector<std::int64_t>>>;
  /// The rids for which the condition holds, in order; nothing when there are too many.
  [[nodiscard]] auto candidates() -> outcome<std::optional<std::vector<std::int64_t>>>;
  /// The key that the filter asks for, when it asks for one key of an index and nothing else.
  [[nodiscard]] auto equal_key() const -> std::optional<std::string>;
  [[nodiscard]] auto skip_blocks() -> outcome<void>;
  [[nodiscard]] auto skip_rids() -> outcome<void>;
  [[nodiscard]] auto skip_keys() -> outcome<void>;
  [[nodiscard]] auto count_all() -> outcome<std::uint64_t>;
  [[nodiscard]] auto count_condition() -> outcome<std::optional<std::uint64_t>>;
  void bind_condition(sqlite3_stmt* statement);

  directory_session& session_;
  directory_part const& part_;
  store::directory_query const& query_;
  scim::filter_sql condition_;
  bool needs_members_ = false;
  bool needs_groups_ = false;

  bool up_ = true;  // which way through the index
  std::int64_t rid_min_ = 0;
  std::int64_t rid_max_ = 0;
  std::string key_from_;  // of a sorted order, with `rid_from_`; both are part of the scan
  std::int64_t rid_from_ = 0;
  std::uint64_t skip_ = 0;

  std::string_view key_of_all_;  // that `look_at` is told of, where SQLite does not tell
  outcome<void> looked_;         // of `look_at`, where SQLite asked
  std::exception_ptr thrown_;
  bool counting_ = false;
  std::uint64_t matched_ = 0;
  std::uint32_t passed_ = 0;  // that did not match
  scim::scan_answer<store::directory_row> answer_;
  std::uint32_t given_ = 0;           // rows, in the answer or to `each`
  std::shared_ptr<row_texts> texts_;  // of the rows of the answer
};

}  // namespace tidegate::store_sqlite
