// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/store_directory/scan.hpp>

#include "directory/session.hpp"

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tidegate::store_sqlite {

/// The query for the rids for which a condition holds, whose placeholders begin with 3. Where it is
/// not that of the condition itself, the first and the second are the lowest and the highest rid.
[[nodiscard]] auto rids_query(scim::filter_sql const& condition) -> std::string;

/// The rows of a part, for one scan or count of a session.
class directory_rows final : public row_source {
 public:
  directory_rows(directory_session& session, directory_part const& part)
      : session_(session), statements_(session.statements_), part_(part) {}

  [[nodiscard]] auto read(row_range const& range, row_visitor& to) -> outcome<void> override;
  [[nodiscard]] auto count(row_range const& range, std::function<bool()> const& spent)
      -> outcome<std::optional<std::uint64_t>> override;
  [[nodiscard]] auto find_rids(scim::filter_sql const& condition, std::size_t rids_max)
      -> outcome<std::optional<std::vector<std::int64_t>>> override;
  [[nodiscard]] auto count_matches(scim::filter_sql const& condition, std::int64_t rid_max,
                                   std::function<bool()> const& spent)
      -> outcome<std::optional<std::uint64_t>> override;
  [[nodiscard]] auto read_blocks(std::int64_t first, std::int64_t last, bool up,
                                 std::function<bool(std::int64_t, std::int64_t)> const& each)
      -> outcome<void> override;
  [[nodiscard]] auto size() -> outcome<part_size> override { return session_.size_of(part_); }

  /// The function `show` of SQL: of rid, id, in_groups, text and perhaps the key. True: it was the
  /// last.
  static void show_row(sqlite3_context* context, int count, sqlite3_value** values) noexcept;

 private:
  [[nodiscard]] auto read_by_rid(row_range range) -> outcome<void>;
  [[nodiscard]] auto read_by_key(row_range range) -> outcome<void>;
  [[nodiscard]] auto read_equal(row_range const& range) -> outcome<next>;
  [[nodiscard]] auto read_among(row_range const& range) -> outcome<void>;
  /// Runs a statement that calls `show` with its rows.
  [[nodiscard]] auto run(sqlite3_stmt* statement) -> outcome<next>;
  [[nodiscard]] auto look_up(std::int64_t rid, std::string_view key) -> outcome<next>;
  /// Moves the start of `range` behind the rows that it skips.
  [[nodiscard]] auto skip_rids(row_range& range) -> outcome<void>;
  [[nodiscard]] auto skip_keys(row_range& range) -> outcome<void>;
  /// At most `rids_max` rids; nothing when there are more or `stop` says so.
  [[nodiscard]] auto find_rids_until(scim::filter_sql const& condition, std::size_t rids_max,
                                     std::function<bool()> const& stop)
      -> outcome<std::optional<std::vector<std::int64_t>>>;

  directory_session& session_;
  statement_cache& statements_;
  directory_part const& part_;
  row_visitor* visitor_ = nullptr;
  std::string_view equal_key_;  // of rows that come without one
  outcome<void> shown_;         // what `show` gave, where SQLite called it
  std::exception_ptr thrown_;
};

}  // namespace tidegate::store_sqlite
