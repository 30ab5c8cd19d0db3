// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/scim/filter.hpp>
#include <tidegate/scim/model.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

/// Filters as conditions of SQL over the indexes of a directory.
namespace tidegate::TIDEGATE_ABI::scim {

/// The database that the SQL is for.
enum class sql_dialect : std::uint8_t { sqlite, postgresql };

/// What stands for a placeholder of the condition, in order.
using sql_value = std::variant<std::int64_t, std::string>;  ///< a string is octets: BLOB or bytea

/// A condition on the rows of `resource`, by their column `rid`.
///
/// It stands behind `WHERE`, or behind `AND`, of a query in which the table is called `resource`.
/// The tables it names: `entry(index_id, key, rid)` holds the entries of indexes, all values of
/// each resource, and `member(group_rid, member_rid)` who is a member. They are read by
/// `(index_id, key)`, by `group_rid` and by `member_rid`.
struct filter_sql {
  /// Empty when no index helps: every resource may match. Placeholders are `?n` in SQLite and `$n`
  /// in PostgreSQL, each once and in order, numbered from the caller's `first_placeholder`.
  std::string condition;
  /// The same as a query for the rids, perhaps some of them more than once, which reads nothing but
  /// indexes. Empty when it is not as simple as that. It has the same placeholders.
  std::string rids;
  std::vector<sql_value> values;
  /// The condition says exactly what the filter says. Otherwise it lets through more, and `matches`
  /// has to be asked of each resource. Never true of an empty condition.
  bool exact = false;
};

/// Compiles `f`.
///
/// Of an `and`, what has no index is left to `matches`, and where an index is likely to give a few
/// resources, so are operands that would have to read much of another one. Of an `or`, all operands
/// have to have an index. What is asked of an index is `eq`, `sw`, order, `pr` and comparison with
/// null; `ne` and `not` where the answer is exact. `co` and `ew` are left to `matches`.
///
/// `index_ids[i]` is the `index_id` of the index number `i` of the type; where `more_ids` has
/// another one, the values are in both, each in one of them. `id_index_ids` are those of the
/// indexes of `id` of all types of which resources are members, or groups: by them the id of a
/// member is found. Without them no membership is compiled. Ids have to be in lower case:
/// `members.value` and `groups.value` are not caseExact (RFC 7643, section 8.7.1), so that filters
/// ask for ids folded.
[[nodiscard]] auto compile_filter(filter const& f, model_type const& type,
                                  std::vector<std::int64_t> const& index_ids, sql_dialect dialect,
                                  std::size_t first_placeholder = 1,
                                  std::vector<std::int64_t> const& id_index_ids = {},
                                  std::vector<std::int64_t> const& more_ids = {}) -> filter_sql;

}  // namespace tidegate::TIDEGATE_ABI::scim
