// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/scim/filter_sql.hpp>
#include <tidegate/store/directory.hpp>
#include <tidegate/store_directory/schema.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// How the resources of a part are listed and counted, whatever the database.
///
/// A list takes one of three ways. In order: along the table or the index that sorts, with
/// `matches` where there is a filter. By candidates: where indexes answer the filter with not too
/// many rids, those are read. By one key: where the filter is `eq` on an index and the order is
/// that of creation, the entries with that key are in this order.
namespace tidegate::store_directory {

/// A resource where it stands in what was read; good until the next one.
struct row_view {
  std::int64_t rid = 0;
  std::string_view key;  ///< of the order; empty in the order of creation
  std::string_view id;
  bool in_groups = false;
  std::string_view text;
};

enum class next : std::uint8_t { more, stop };

/// What rows are given to, in order.
class row_visitor {
 public:
  [[nodiscard]] virtual auto show(row_view const& row) -> outcome<next> = 0;
  /// For an entry whose resource was not read.
  [[nodiscard]] virtual auto pass(std::int64_t rid, std::string_view key) -> next = 0;

 protected:
  ~row_visitor() = default;
};

enum class access_path : std::uint8_t {
  by_rid,        ///< along the table, from `rid_min` to `rid_max`
  by_key,        ///< along the index, from `key` and `rid_from` on
  by_equal_key,  ///< the entries with `key`, from `rid_min` to `rid_max`
  by_key_among,  ///< `by_key`; what is not in `rids`, which are sorted, is passed unread
  by_rids,       ///< `rids`, in their order; those that are gone are left out
};

/// Behind every key of an index.
inline constexpr std::string_view last_key = "\xff";

/// Which rows are to be read.
struct row_range {
  access_path path = access_path::by_rid;
  bool up = true;  ///< by ascending keys and rids
  std::int64_t rid_min = 0;
  std::int64_t rid_max = 0;
  std::int64_t index_id = 0;
  std::string key{};  ///< empty, or `last_key` downwards: the whole index
  std::int64_t rid_from = 0;
  std::uint64_t skip = 0;  ///< rows at the start to leave out unread, `by_rid` and `by_key`
  std::span<std::int64_t const> rids{};
  std::uint32_t rows_max = 0;  ///< how many the visitor takes
  bool all_match = false;      ///< it takes each of them

  [[nodiscard]] auto is_from_start() const noexcept -> bool {
    return key == (up ? std::string_view() : last_key);
  }
};

/// What a back end can do with a part.
class row_source {
 public:
  /// Gives rows to `to` until it says stop. It may ask for other rows meanwhile.
  [[nodiscard]] virtual auto read(row_range const& range, row_visitor& to) -> outcome<void> = 0;
  /// How many there are `by_rid` or `by_equal_key`. Nothing when `spent` said so before.
  [[nodiscard]] virtual auto count(row_range const& range, std::function<bool()> const& spent)
      -> outcome<std::optional<std::uint64_t>> = 0;
  /// The rids for which a condition holds, in any order and perhaps more than once, with those of
  /// other parts; its placeholders are numbered from 3. Nothing when there are more than `rids_max`
  /// or it takes too long.
  [[nodiscard]] virtual auto find_rids(scim::filter_sql const& condition, std::size_t rids_max)
      -> outcome<std::optional<std::vector<std::int64_t>>> = 0;
  /// How many resources of the part have one of these, up to `rid_max`. Nothing as above.
  [[nodiscard]] virtual auto count_matches(scim::filter_sql const& condition, std::int64_t rid_max,
                                           std::function<bool()> const& spent)
      -> outcome<std::optional<std::uint64_t>> = 0;
  /// Calls `each(block, count)` for blocks in order until it returns false.
  [[nodiscard]] virtual auto read_blocks(
      std::int64_t first, std::int64_t last, bool up,
      std::function<bool(std::int64_t, std::int64_t)> const& each) -> outcome<void> = 0;
  [[nodiscard]] virtual auto size() -> outcome<part_size> = 0;

 protected:
  ~row_source() = default;
};

/// The part that is scanned.
struct scanned_part {
  std::int64_t id = 0;
  std::vector<std::int64_t> const& index_ids;
  /// The same where an attribute has one value.
  std::vector<std::int64_t> const& sort_ids;
  /// The value that sorts is under `sort_ids` alone; otherwise under `index_ids`, too.
  bool sorts_apart = false;
  /// Those of the indexes of `id` of everything the tenant has. Only for filters.
  std::vector<std::int64_t> id_index_ids{};
  scim::sql_dialect dialect = scim::sql_dialect::sqlite;
  bool has_blocks = true;     ///< blocks are up to date
  bool shows_at_end = false;  ///< no row is shown to the caller while others are being read
  std::string_view store;     ///< file or server, for errors
};

/// The rows of a query. Members and groups that a filter asks for come from `relations`.
[[nodiscard]] auto scan_rows(row_source& source, store::directory_relations& relations,
                             scanned_part const& part, store::directory_query const& query)
    -> outcome<scim::scan_answer<store::directory_row>>;

/// How many there are, whatever the order and the page that `query` asks for.
[[nodiscard]] auto count_rows(row_source& source, store::directory_relations& relations,
                              scanned_part const& part, store::directory_query query)
    -> outcome<store::directory_count>;

/// Leaves the rids of one part, each once and in order. Members of a group may be of other parts.
void keep_part(std::vector<std::int64_t>& rids, std::int64_t part);

/// How many rids a part of that size is asked for before its resources are read in order: to take a
/// rid costs a fortieth of what it costs to read a resource, and where there are as many as this, a
/// page of a hundred is found by reading resources in the same time.
[[nodiscard]] auto candidates_max(std::int64_t resources) noexcept -> std::size_t;

/// Whether so many candidates are read and then sorted. Few is the square root: more are soon met
/// in the index that sorts.
[[nodiscard]] constexpr auto are_few(std::size_t candidates, std::int64_t resources) noexcept
    -> bool {
  return candidates * candidates <= static_cast<std::size_t>(resources);
}

/// Where a query begins in a part, in the order of creation or in the index that sorts.
[[nodiscard]] auto range_of(store::directory_query const& query, std::int64_t part) -> row_range;

/// The key that a filter asks for when it asks for one key of an index and nothing else.
struct equal_key {
  std::size_t index = 0;  ///< of the indexes of the type
  std::string key;
};
[[nodiscard]] auto find_equal_key(scim::filter const& filter, scim::model_type const& type)
    -> std::optional<equal_key>;

}  // namespace tidegate::store_directory
