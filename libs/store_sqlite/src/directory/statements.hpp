// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace tidegate::store_sqlite {

/// A statement that is always the same, known by its address in `sql`.
struct fixed_statement {
  std::string_view text;
};

// CROSS JOIN is how SQLite is told which table comes first. `show` is the function of
// directory_rows that SQLite calls with each row, and that says when to stop: a row that comes out
// of a statement costs a third more.
struct fixed_statements {
  fixed_statement begin{"BEGIN"};
  fixed_statement end{"COMMIT"};
  fixed_statement find_part{"SELECT id, last_rid, count FROM part WHERE tenant = ? AND type = ?"};
  fixed_statement part_size{"SELECT last_rid, count FROM part WHERE id = ?"};
  fixed_statement update_part{"UPDATE part SET last_rid = ?, count = ? WHERE id = ?"};
  fixed_statement update_block{
      "INSERT INTO block (id, count) VALUES (?, ?)"
      " ON CONFLICT DO UPDATE SET count = count + excluded.count"};
  fixed_statement part_type{"SELECT type FROM part WHERE id = ?"};
  fixed_statement find_by_key{
      "SELECT r.rid, r.id, r.version, r.in_groups, r.text"
      " FROM entry AS e CROSS JOIN resource AS r ON r.rid = e.rid"
      " WHERE e.index_id = ? AND e.key = ?"};
  fixed_statement find_by_rid{"SELECT rid, id, in_groups, text FROM resource WHERE rid = ?"};
  fixed_statement id_by_rid{"SELECT id, in_groups FROM resource WHERE rid = ?"};
  fixed_statement insert_resource{
      "INSERT INTO resource (rid, id, version, in_groups, text) VALUES (?, ?, 1, 0, ?)"};
  fixed_statement update_resource{
      "UPDATE resource SET version = version + 1, text = ?2 WHERE rid = ?1"};
  fixed_statement remove_resource{"DELETE FROM resource WHERE rid = ?"};
  fixed_statement mark_in_groups{"UPDATE resource SET in_groups = 1 WHERE rid = ?"};
  fixed_statement insert_entry{"INSERT INTO entry (index_id, key, rid) VALUES (?, ?, ?)"};
  fixed_statement remove_entry{"DELETE FROM entry WHERE index_id = ? AND key = ? AND rid = ?"};
  fixed_statement members_of{
      "SELECT member_rid, member_id, display FROM member WHERE group_rid = ? ORDER BY seq"};
  fixed_statement groups_of{
      "SELECT r.rid, r.id, r.text FROM member AS m CROSS JOIN resource AS r"
      " ON r.rid = m.group_rid WHERE m.member_rid = ? ORDER BY m.group_rid"};
  fixed_statement is_member{"SELECT seq FROM member WHERE member_rid = ? AND group_rid = ?"};
  fixed_statement last_member{"SELECT max(seq) FROM member WHERE group_rid = ?"};
  fixed_statement insert_member{
      "INSERT INTO member (group_rid, seq, member_rid, member_id, display)"
      " VALUES (?, ?, ?, ?, ?)"};
  fixed_statement update_member{"UPDATE member SET display = ?3 WHERE group_rid = ?1 AND seq = ?2"};
  fixed_statement remove_member{"DELETE FROM member WHERE group_rid = ? AND seq = ?"};
  fixed_statement remove_members{"DELETE FROM member WHERE group_rid = ?"};
  fixed_statement remove_memberships{"DELETE FROM member WHERE member_rid = ?"};
  fixed_statement rids_up{
      "SELECT 1 FROM resource WHERE rid >= ? AND rid <= ?"
      " AND show(rid, id, in_groups, text) ORDER BY rid"};
  fixed_statement rids_down{
      "SELECT 1 FROM resource WHERE rid >= ? AND rid <= ?"
      " AND show(rid, id, in_groups, text) ORDER BY rid DESC"};
  fixed_statement skip_rids_up{
      "SELECT rid FROM resource WHERE rid >= ? AND rid <= ? ORDER BY rid LIMIT 1 OFFSET ?"};
  fixed_statement skip_rids_down{
      "SELECT rid FROM resource WHERE rid >= ? AND rid <= ?"
      " ORDER BY rid DESC LIMIT 1 OFFSET ?"};
  fixed_statement keys_up{
      "SELECT rid, key FROM entry WHERE index_id = ? AND (key, rid) >= (?, ?)"
      " AND rid <= ? ORDER BY key, rid LIMIT -1 OFFSET ?"};
  fixed_statement keys_down{
      "SELECT rid, key FROM entry WHERE index_id = ? AND (key, rid) <= (?, ?)"
      " AND rid <= ? ORDER BY key DESC, rid DESC LIMIT -1 OFFSET ?"};
  fixed_statement all_keys_up{
      "SELECT rid, key FROM entry WHERE index_id = ? ORDER BY key, rid LIMIT 1 OFFSET ?"};
  fixed_statement all_keys_down{
      "SELECT rid, key FROM entry WHERE index_id = ?"
      " ORDER BY key DESC, rid DESC LIMIT 1 OFFSET ?"};
  fixed_statement sorted_up{
      "SELECT 1 FROM entry AS e CROSS JOIN resource AS r ON r.rid = e.rid"
      " WHERE e.index_id = ? AND e.key > ?"
      " AND show(r.rid, r.id, r.in_groups, r.text, e.key) ORDER BY e.key, e.rid"};
  fixed_statement sorted_down{
      "SELECT 1 FROM entry AS e CROSS JOIN resource AS r ON r.rid = e.rid"
      " WHERE e.index_id = ? AND e.key < ?"
      " AND show(r.rid, r.id, r.in_groups, r.text, e.key)"
      " ORDER BY e.key DESC, e.rid DESC"};
  fixed_statement equal_up{
      "SELECT 1 FROM entry AS e CROSS JOIN resource AS r ON r.rid = e.rid"
      " WHERE e.index_id = ? AND e.key = ? AND e.rid >= ? AND e.rid <= ?"
      " AND show(r.rid, r.id, r.in_groups, r.text) ORDER BY e.rid"};
  fixed_statement equal_down{
      "SELECT 1 FROM entry AS e CROSS JOIN resource AS r ON r.rid = e.rid"
      " WHERE e.index_id = ? AND e.key = ? AND e.rid >= ? AND e.rid <= ?"
      " AND show(r.rid, r.id, r.in_groups, r.text) ORDER BY e.rid DESC"};
  fixed_statement count_rids{"SELECT count(*) FROM resource WHERE rid >= ? AND rid <= ?"};
  fixed_statement count_equal{
      "SELECT count(*) FROM entry WHERE index_id = ? AND key = ? AND rid <= ?"};
  fixed_statement blocks_up{"SELECT id, count FROM block WHERE id >= ? AND id <= ? ORDER BY id"};
  fixed_statement blocks_down{
      "SELECT id, count FROM block WHERE id >= ? AND id <= ? ORDER BY id DESC"};
};
inline constexpr fixed_statements sql;

}  // namespace tidegate::store_sqlite
