// SPDX-License-Identifier: Apache-2.0
#include "directory/group_members.hpp"

#include <algorithm>

namespace tidegate::store_postgres {

namespace {

/// So many members are looked for one by one before all of a group are read.
constexpr int asked_max = 8;

}  // namespace

auto group_members::find(directory_channel& to, std::int64_t group, std::int64_t member)
    -> outcome<std::optional<std::int64_t>> {
  if (group_ != group) {
    *this = {};
    group_ = group;
  }
  if (!is_loaded_) {
    if (++asked_ > asked_max) {
      TIDEGATE_TRY_VOID(load(to));
    } else {
      TIDEGATE_TRY(auto const found, to.ask(sql.is_member, parameters(group, member)));
      last_place_ = found.number(0, 1);
      if (!found.is_null(0, 0)) {
        places_[member] = found.number(0, 0);
      }
    }
  }
  auto const at = places_.find(member);
  return at != places_.end() ? std::optional(at->second) : std::nullopt;
}

auto group_members::load(directory_channel& to) -> outcome<void> {
  TIDEGATE_TRY(auto const found, to.ask(sql.all_members, parameters(group_)));
  for (int i = 0; i < found.size(); ++i) {
    places_.emplace(found.number(i, 0), found.number(i, 1));
    last_place_ = std::max(last_place_, found.number(i, 1));
  }
  is_loaded_ = true;
  return {};
}

auto group_members::add(directory_channel& to, std::int64_t member, std::string_view display)
    -> outcome<void> {
  places_.emplace(member, ++last_place_);
  return to.write_member(group_, member, last_place_, display);
}

}  // namespace tidegate::store_postgres
