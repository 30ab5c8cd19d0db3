// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace tidegate::store_sqlite {

/// The statements that are always the same.
enum class sql : std::uint8_t {
  begin,
  end,
  find_part,
  part_size,
  update_part,
  update_block,
  part_type,
  find_by_key,
  find_by_rid,
  id_by_rid,
  insert_resource,
  update_resource,
  remove_resource,
  mark_in_groups,
  insert_entry,
  remove_entry,
  members_of,
  groups_of,
  is_member,
  last_member,
  insert_member,
  update_member,
  remove_member,
  remove_members,
  remove_memberships,
  rids_up,
  rids_down,
  skip_rids_up,
  skip_rids_down,
  keys_up,
  keys_down,
  all_keys_up,
  all_keys_down,
  sorted_up,
  sorted_down,
  equal_up,
  equal_down,
  count_rids,
  count_equal,
  blocks_up,
  blocks_down,
  how_many,
};

[[nodiscard]] auto statement_text(sql which) noexcept -> std::string_view;

}  // namespace tidegate::store_sqlite
