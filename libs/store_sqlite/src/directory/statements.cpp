// SPDX-License-Identifier: Apache-2.0
#include "directory/statements.hpp"

#include <tidegate/store_directory/statement_table.hpp>

#include <cstddef>

namespace tidegate::store_sqlite {
namespace {

// CROSS JOIN is how SQLite is told which table comes first. `show` is the function of
// directory_rows that SQLite calls with each row, and that says when to stop: a row that comes out
// of a statement costs a third more.
constexpr auto statements = store_directory::statement_table<sql>({
    {sql::begin, "BEGIN"},
    {sql::end, "COMMIT"},
    {sql::find_part, "SELECT id, last_rid, count FROM part WHERE tenant = ? AND type = ?"},
    {sql::part_size, "SELECT last_rid, count FROM part WHERE id = ?"},
    {sql::update_part, "UPDATE part SET last_rid = ?, count = ? WHERE id = ?"},
    {sql::update_block,
     "INSERT INTO block (id, count) VALUES (?, ?)"
     " ON CONFLICT DO UPDATE SET count = count + excluded.count"},
    {sql::part_type, "SELECT type FROM part WHERE id = ?"},
    {sql::find_by_key,
     "SELECT r.rid, r.id, r.version, r.in_groups, r.text"
     " FROM entry AS e CROSS JOIN resource AS r ON r.rid = e.rid"
     " WHERE e.index_id = ? AND e.key = ?"},
    {sql::find_by_rid, "SELECT rid, id, in_groups, text FROM resource WHERE rid = ?"},
    {sql::id_by_rid, "SELECT id, in_groups FROM resource WHERE rid = ?"},
    {sql::insert_resource,
     "INSERT INTO resource (rid, id, version, in_groups, text) VALUES (?, ?, 1, 0, ?)"},
    {sql::update_resource, "UPDATE resource SET version = version + 1, text = ?2 WHERE rid = ?1"},
    {sql::remove_resource, "DELETE FROM resource WHERE rid = ?"},
    {sql::mark_in_groups, "UPDATE resource SET in_groups = 1 WHERE rid = ?"},
    {sql::insert_entry, "INSERT INTO entry (index_id, key, rid) VALUES (?, ?, ?)"},
    {sql::remove_entry, "DELETE FROM entry WHERE index_id = ? AND key = ? AND rid = ?"},
    {sql::members_of,
     "SELECT member_rid, member_id, display FROM member WHERE group_rid = ? ORDER BY seq"},
    {sql::groups_of,
     "SELECT r.rid, r.id, r.text FROM member AS m CROSS JOIN resource AS r"
     " ON r.rid = m.group_rid WHERE m.member_rid = ? ORDER BY m.group_rid"},
    {sql::is_member, "SELECT seq FROM member WHERE member_rid = ? AND group_rid = ?"},
    {sql::last_member, "SELECT max(seq) FROM member WHERE group_rid = ?"},
    {sql::insert_member,
     "INSERT INTO member (group_rid, seq, member_rid, member_id, display)"
     " VALUES (?, ?, ?, ?, ?)"},
    {sql::update_member, "UPDATE member SET display = ?3 WHERE group_rid = ?1 AND seq = ?2"},
    {sql::remove_member, "DELETE FROM member WHERE group_rid = ? AND seq = ?"},
    {sql::remove_members, "DELETE FROM member WHERE group_rid = ?"},
    {sql::remove_memberships, "DELETE FROM member WHERE member_rid = ?"},
    {sql::rids_up,
     "SELECT 1 FROM resource WHERE rid >= ? AND rid <= ?"
     " AND show(rid, id, in_groups, text) ORDER BY rid"},
    {sql::rids_down,
     "SELECT 1 FROM resource WHERE rid >= ? AND rid <= ?"
     " AND show(rid, id, in_groups, text) ORDER BY rid DESC"},
    {sql::skip_rids_up,
     "SELECT rid FROM resource WHERE rid >= ? AND rid <= ? ORDER BY rid LIMIT 1 OFFSET ?"},
    {sql::skip_rids_down,
     "SELECT rid FROM resource WHERE rid >= ? AND rid <= ?"
     " ORDER BY rid DESC LIMIT 1 OFFSET ?"},
    {sql::keys_up,
     "SELECT rid, key FROM entry WHERE index_id = ? AND (key, rid) >= (?, ?)"
     " AND rid <= ? ORDER BY key, rid LIMIT -1 OFFSET ?"},
    {sql::keys_down,
     "SELECT rid, key FROM entry WHERE index_id = ? AND (key, rid) <= (?, ?)"
     " AND rid <= ? ORDER BY key DESC, rid DESC LIMIT -1 OFFSET ?"},
    {sql::all_keys_up,
     "SELECT rid, key FROM entry WHERE index_id = ? ORDER BY key, rid LIMIT 1 OFFSET ?"},
    {sql::all_keys_down,
     "SELECT rid, key FROM entry WHERE index_id = ?"
     " ORDER BY key DESC, rid DESC LIMIT 1 OFFSET ?"},
    {sql::sorted_up,
     "SELECT 1 FROM entry AS e CROSS JOIN resource AS r ON r.rid = e.rid"
     " WHERE e.index_id = ? AND e.key > ?"
     " AND show(r.rid, r.id, r.in_groups, r.text, e.key) ORDER BY e.key, e.rid"},
    {sql::sorted_down,
     "SELECT 1 FROM entry AS e CROSS JOIN resource AS r ON r.rid = e.rid"
     " WHERE e.index_id = ? AND e.key < ?"
     " AND show(r.rid, r.id, r.in_groups, r.text, e.key)"
     " ORDER BY e.key DESC, e.rid DESC"},
    {sql::equal_up,
     "SELECT 1 FROM entry AS e CROSS JOIN resource AS r ON r.rid = e.rid"
     " WHERE e.index_id = ? AND e.key = ? AND e.rid >= ? AND e.rid <= ?"
     " AND show(r.rid, r.id, r.in_groups, r.text) ORDER BY e.rid"},
    {sql::equal_down,
     "SELECT 1 FROM entry AS e CROSS JOIN resource AS r ON r.rid = e.rid"
     " WHERE e.index_id = ? AND e.key = ? AND e.rid >= ? AND e.rid <= ?"
     " AND show(r.rid, r.id, r.in_groups, r.text) ORDER BY e.rid DESC"},
    {sql::count_rids, "SELECT count(*) FROM resource WHERE rid >= ? AND rid <= ?"},
    {sql::count_equal, "SELECT count(*) FROM entry WHERE index_id = ? AND key = ? AND rid <= ?"},
    {sql::blocks_up, "SELECT id, count FROM block WHERE id >= ? AND id <= ? ORDER BY id"},
    {sql::blocks_down, "SELECT id, count FROM block WHERE id >= ? AND id <= ? ORDER BY id DESC"},
});

static_assert(statements.size() == static_cast<std::size_t>(sql::how_many));

}  // namespace

auto statement_text(sql which) noexcept -> std::string_view {
  return statements[static_cast<std::size_t>(which)];
}

}  // namespace tidegate::store_sqlite
