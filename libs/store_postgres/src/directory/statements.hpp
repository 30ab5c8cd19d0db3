// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace tidegate::store_postgres {

/// The statements that are always the same, prepared on every connection.
enum class sql : std::uint8_t {
  begin_read,
  begin_write,
  commit,
  rollback,
  lock_tenant,
  wait_for_tenant,
  mark_write,
  find_write,
  savepoint,
  release,
  undo,
  begin_look,
  end_look,
  release_look,
  generation,
  parts,
  make_part,
  update_part,
  update_blocks,
  part_type,
  find_by_key,
  find_by_rid,
  find_by_rids,
  insert_resource,
  update_resource,
  remove_resource,
  members_of,
  all_members,
  groups_of,
  is_member,
  insert_members,
  mark_in_groups,
  update_member,
  remove_member,
  remove_members,
  rids_up,
  rids_down,
  keys_up,
  keys_down,
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

/// By their numbers.
[[nodiscard]] auto statement_texts() noexcept -> std::span<std::string_view const>;
[[nodiscard]] auto statement_text(sql which) noexcept -> std::string_view;

}  // namespace tidegate::store_postgres
