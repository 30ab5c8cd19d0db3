// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/scim/filter.hpp>
#include <tidegate/scim/model.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

/// Filters as conditions of SQL over the indexes of a directory.
namespace tidegate::scim {

enum class sql_dialect : std::uint8_t { sqlite, postgresql };

/// What stands for a placeholder of the condition, in order.
using sql_value = std::variant<std::int64_t, std::string>;  ///< a string is octets: BLOB or bytea

/// A condition on the rows of `resource`, by their column `rid`.
///
/// The tables it names: `entry(index_id, key, rid)` holds the entries of indexes, and
/// `member(group_rid, member_rid)` who is a member. `index_id` of the index number `i` of the type is what the
/// caller's `index_ids[i]` says.
struct filter_sql {
  /// Empty when no index helps: every resource may match. Placeholders are `?` in SQLite and `$n` in PostgreSQL,
  /// numbered from the caller's `first_placeholder`.
  std::string condition;
  std::vector<sql_value> values;
  /// The condition says exactly what the filter says. Otherwise it lets through more, and `matches` has to be
  /// asked of each resource.
  bool exact = false;
};

/// Compiles `f`. Of an `and`, what has no index is left to `matches`; of an `or`, all operands have to have one.
[[nodiscard]] auto compile_filter(filter const& f, model_type const& type,
                                  std::vector<std::int64_t> const& index_ids, sql_dialect dialect,
                                  std::size_t first_placeholder = 1) -> filter_sql;

}  // namespace tidegate::scim
