// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/scim/filter.hpp>
#include <tidegate/scim/model.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// What indexes can say about a filter, before it is written in SQL.
namespace tidegate::TIDEGATE_ABI::scim {

enum class plan_kind : std::uint8_t {
  all_of,
  any_of,
  negation,     ///< one operand, which is exact
  keys,         ///< has one of `keys` in an index
  range,        ///< has a key in an index that is not before `from`, and before `to`
  has_member,   ///< a group: one of its members has the key `keys.front()` in the index of ids
  in_group,     ///< the same for a group that it is a member of
  any_member,   ///< a group that is not empty
  in_any_group  ///< a member of some group
};

/// How many resources an index is likely to give.
enum class plan_reach : std::uint8_t { few, some, many };

/// A set of resources that has all that match; no others, if it is exact.
struct filter_plan {
  plan_kind kind{};
  bool exact = true;
  plan_reach reach = plan_reach::many;
  /// Of `has_member` and `in_group`: something else gives a few resources, and each of them is
  /// asked.
  bool asked_each = false;
  std::vector<filter_plan> operands;
  std::size_t index = 0;  // of the type
  std::vector<std::string> keys;
  std::string from;
  std::string to;
};

/// Nothing when no index helps. `with_members`: who is a member of what can be asked.
[[nodiscard]] auto plan_filter(filter const& f, model_type const& type, bool with_members)
    -> std::optional<filter_plan>;

}  // namespace tidegate::TIDEGATE_ABI::scim
