// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <string_view>

namespace tidegate::store_postgres {

/// A statement that is always the same, prepared on every connection under its number.
struct fixed_statement {
  std::string_view text;
};

struct fixed_statements {
  fixed_statement begin_read{"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"};
  // Every statement sees what was committed before it began: with the lock of the tenant that is
  // one state.
  fixed_statement begin_write{"BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"};
  fixed_statement commit{"COMMIT"};
  fixed_statement rollback{"ROLLBACK"};
  fixed_statement lock_tenant{
      "SELECT pg_advisory_xact_lock_shared($1::bigint), pg_advisory_xact_lock($2::bigint)"};
  fixed_statement wait_for_tenant{"SELECT pg_advisory_xact_lock($1::bigint)"};
  fixed_statement mark_write{
      "INSERT INTO directory_writer (name, number, used)"
      " VALUES ($1::bytea, $2::bigint, now())"
      " ON CONFLICT (name) DO UPDATE SET number = excluded.number, used = excluded.used"};
  // It writes, so that its commit waits for all that the commit it looks for should have waited
  // for.
  fixed_statement find_write{
      "UPDATE directory_writer SET used = now()"
      " WHERE name = $1::bytea AND number = $2::bigint RETURNING number"};
  fixed_statement savepoint{"SAVEPOINT change"};
  fixed_statement release{"RELEASE SAVEPOINT change"};
  fixed_statement undo{"ROLLBACK TO SAVEPOINT change"};
  fixed_statement begin_look{"SAVEPOINT look"};
  fixed_statement end_look{"ROLLBACK TO SAVEPOINT look"};
  fixed_statement release_look{"RELEASE SAVEPOINT look"};
  fixed_statement generation{"SELECT generation FROM directory_state"};
  fixed_statement parts{"SELECT type, id, last_rid, count FROM part WHERE tenant = $1::bytea"};
  fixed_statement make_part{
      "INSERT INTO part (tenant, type, last_rid, count)"
      " VALUES ($1::bytea, $2::bytea, 0, 0) RETURNING id"};
  fixed_statement update_part{
      "UPDATE part SET last_rid = $2::bigint, count = $3::bigint WHERE id = $1::bigint"};
  fixed_statement update_blocks{
      "INSERT INTO block (id, count)"
      " SELECT * FROM unnest($1::bigint[], $2::bigint[])"
      " ON CONFLICT (id) DO UPDATE SET count = block.count + excluded.count"};
  fixed_statement part_type{"SELECT type FROM part WHERE id = $1::bigint"};
  fixed_statement find_by_key{
      "SELECT r.rid, r.id, r.version, r.in_groups, r.text"
      " FROM entry AS e JOIN resource AS r ON r.rid = e.rid"
      " WHERE e.index_id = $1::bigint AND e.key = $2::bytea"};
  fixed_statement find_by_rid{
      "SELECT rid, id, in_groups, text FROM resource WHERE rid = $1::bigint"};
  fixed_statement find_by_rids{
      "SELECT rid, id, in_groups, text FROM resource WHERE rid = ANY ($1::bigint[])"};
  fixed_statement insert_resource{
      "WITH added AS (INSERT INTO entry (index_id, key, rid)"
      " SELECT u.index_id, u.key, $1::bigint"
      " FROM unnest($4::bigint[], $5::bytea[]) AS u (index_id, key))"
      " INSERT INTO resource (rid, id, version, in_groups, text)"
      " VALUES ($1::bigint, $2::bytea, 1, false, $3::bytea)"};
  fixed_statement update_resource{
      "WITH gone AS (DELETE FROM entry AS e"
      " USING unnest($3::bigint[], $4::bytea[]) AS u (index_id, key)"
      " WHERE e.index_id = u.index_id AND e.key = u.key AND e.rid = $1::bigint),"
      " added AS (INSERT INTO entry (index_id, key, rid)"
      " SELECT u.index_id, u.key, $1::bigint"
      " FROM unnest($5::bigint[], $6::bytea[]) AS u (index_id, key))"
      " UPDATE resource SET version = version + 1, text = $2::bytea WHERE rid = $1::bigint"};
  fixed_statement remove_resource{
      "WITH gone AS (DELETE FROM entry AS e"
      " USING unnest($2::bigint[], $3::bytea[]) AS u (index_id, key)"
      " WHERE e.index_id = u.index_id AND e.key = u.key AND e.rid = $1::bigint),"
      " members AS (DELETE FROM member WHERE group_rid = $1::bigint),"
      " memberships AS (DELETE FROM member WHERE member_rid = $1::bigint)"
      " DELETE FROM resource WHERE rid = $1::bigint"};
  fixed_statement members_of{
      "SELECT seq, member_rid, member_id, display FROM member"
      " WHERE group_rid = $1::bigint AND seq > $2::bigint ORDER BY seq LIMIT $3::bigint"};
  fixed_statement all_members{"SELECT member_rid, seq FROM member WHERE group_rid = $1::bigint"};
  fixed_statement groups_of{
      "SELECT r.rid, r.id, r.text FROM member AS m JOIN resource AS r"
      " ON r.rid = m.group_rid WHERE m.member_rid = $1::bigint ORDER BY m.group_rid"};
  fixed_statement is_member{
      "SELECT (SELECT seq FROM member WHERE member_rid = $2::bigint AND group_rid = "
      "$1::bigint),"
      " (SELECT max(seq) FROM member WHERE group_rid = $1::bigint)"};
  fixed_statement insert_members{
      "INSERT INTO member (group_rid, seq, member_rid, member_id, display)"
      " SELECT $1::bigint, u.seq, u.rid, r.id, u.display"
      " FROM unnest($2::bigint[], $3::bigint[], $4::bytea[]) AS u (rid, seq, display)"
      " LEFT JOIN resource AS r ON r.rid = u.rid"};  // a member that does not exist is an error
  fixed_statement mark_in_groups{
      "UPDATE resource AS r SET in_groups = true FROM unnest($1::bigint[]) AS u (rid)"
      " WHERE r.rid = u.rid AND NOT r.in_groups"};
  fixed_statement update_member{
      "UPDATE member SET display = $3::bytea WHERE group_rid = $1::bigint AND seq = "
      "$2::bigint"};
  fixed_statement remove_member{
      "DELETE FROM member WHERE group_rid = $1::bigint AND seq = $2::bigint"};
  fixed_statement remove_members{"DELETE FROM member WHERE group_rid = $1::bigint"};
  fixed_statement rids_up{
      "SELECT rid, id, in_groups, text FROM resource"
      " WHERE rid >= $1::bigint AND rid <= $2::bigint"
      " ORDER BY rid LIMIT $3::bigint OFFSET $4::bigint"};
  fixed_statement rids_down{
      "SELECT rid, id, in_groups, text FROM resource"
      " WHERE rid >= $1::bigint AND rid <= $2::bigint"
      " ORDER BY rid DESC LIMIT $3::bigint OFFSET $4::bigint"};
  fixed_statement keys_up{
      "SELECT rid, key FROM entry WHERE index_id = $1::bigint"
      " AND (key, rid) >= ($2::bytea, $3::bigint) AND rid <= $4::bigint"
      " ORDER BY key, rid LIMIT $5::bigint OFFSET $6::bigint"};
  fixed_statement keys_down{
      "SELECT rid, key FROM entry WHERE index_id = $1::bigint"
      " AND (key, rid) <= ($2::bytea, $3::bigint) AND rid <= $4::bigint"
      " ORDER BY key DESC, rid DESC LIMIT $5::bigint OFFSET $6::bigint"};
  fixed_statement sorted_up{
      "SELECT r.rid, r.id, r.in_groups, r.text, e.key"
      " FROM entry AS e JOIN resource AS r ON r.rid = e.rid"
      " WHERE e.index_id = $1::bigint AND (e.key, e.rid) >= ($2::bytea, $3::bigint)"
      " ORDER BY e.key, e.rid LIMIT $4::bigint"};
  fixed_statement sorted_down{
      "SELECT r.rid, r.id, r.in_groups, r.text, e.key"
      " FROM entry AS e JOIN resource AS r ON r.rid = e.rid"
      " WHERE e.index_id = $1::bigint AND (e.key, e.rid) <= ($2::bytea, $3::bigint)"
      " ORDER BY e.key DESC, e.rid DESC LIMIT $4::bigint"};
  fixed_statement equal_up{
      "SELECT r.rid, r.id, r.in_groups, r.text"
      " FROM entry AS e JOIN resource AS r ON r.rid = e.rid"
      " WHERE e.index_id = $1::bigint AND e.key = $2::bytea"
      " AND e.rid >= $3::bigint AND e.rid <= $4::bigint ORDER BY e.rid LIMIT $5::bigint"};
  fixed_statement equal_down{
      "SELECT r.rid, r.id, r.in_groups, r.text"
      " FROM entry AS e JOIN resource AS r ON r.rid = e.rid"
      " WHERE e.index_id = $1::bigint AND e.key = $2::bytea"
      " AND e.rid >= $3::bigint AND e.rid <= $4::bigint ORDER BY e.rid DESC LIMIT "
      "$5::bigint"};
  fixed_statement count_rids{
      "SELECT count(*) FROM resource WHERE rid >= $1::bigint AND rid <= $2::bigint"};
  fixed_statement count_equal{
      "SELECT count(*) FROM entry"
      " WHERE index_id = $1::bigint AND key = $2::bytea AND rid <= $3::bigint"};
  fixed_statement blocks_up{
      "SELECT id, count FROM block WHERE id >= $1::bigint AND id <= $2::bigint ORDER BY id"};
  fixed_statement blocks_down{
      "SELECT id, count FROM block WHERE id >= $1::bigint AND id <= $2::bigint"
      " ORDER BY id DESC"};
};
inline constexpr fixed_statements sql;

/// Their texts, by their numbers.
[[nodiscard]] inline auto statement_texts() noexcept {
  return std::bit_cast<std::array<std::string_view, sizeof sql / sizeof(fixed_statement)>>(sql);
}

/// The number of one of `sql`.
[[nodiscard]] inline auto number_of(fixed_statement const& which) noexcept -> std::size_t {
  auto const octets =
      reinterpret_cast<std::byte const*>(&which) - reinterpret_cast<std::byte const*>(&sql);
  return static_cast<std::size_t>(octets) / sizeof which;
}

}  // namespace tidegate::store_postgres
