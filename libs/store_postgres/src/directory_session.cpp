// SPDX-License-Identifier: Apache-2.0
#include "directory_session.hpp"

#include "schema.hpp"

#include <tidegate/scim/index_key.hpp>

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

namespace tidegate::store_postgres {

using scim::index_entry;
using scim::model_type;
using store::directory_member;
using store::directory_resource;
using store::store_error;
using store::store_fault;

namespace {

/// How many parts and texts a session remembers.
constexpr std::size_t type_names_max = 4096;
constexpr std::size_t texts_max = 64;
/// So many members are looked for one by one before all of a group are read, and so many are added at once.
constexpr int asked_max = 8;
constexpr std::size_t added_max = 1000;

constexpr auto statements_size = static_cast<std::size_t>(sql::how_many);

[[nodiscard]] auto statement_texts() -> std::array<std::string_view, statements_size> const& {
  static auto const all = [] {
    std::array<std::string_view, statements_size> texts{};
    for (std::size_t i = 0; i < statements_size; ++i) {
      texts[i] = statement_text(static_cast<sql>(i));
    }
    return texts;
  }();
  return all;
}

[[nodiscard]] auto tenant_lock(std::string_view tenant) -> std::int64_t {
  return lock_key("directory tenant " + std::string(tenant));
}

/// Whether an error of the statement COMMIT says that the transaction was rolled back. 08: a connection was lost, perhaps one
/// behind ours; 57P: the server ends; 40003: it says itself that it does not know.
[[nodiscard]] auto says_rolled_back(std::string const& sqlstate) noexcept -> bool {
  return sqlstate.size() == 5 && !sqlstate.starts_with("08") && !sqlstate.starts_with("57P") &&
         sqlstate != "40003";
}

[[nodiscard]] auto signed_of(std::uint64_t rid) noexcept -> std::int64_t {
  return static_cast<std::int64_t>(rid);
}
[[nodiscard]] auto unsigned_of(std::int64_t rid) noexcept -> std::uint64_t {
  return static_cast<std::uint64_t>(rid);
}

}  // namespace

auto statement_text(sql which) noexcept -> std::string_view {
  switch (which) {
    case sql::begin_read: return "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
    // Every statement sees what was committed before it began: with the lock of the tenant that is one state.
    case sql::begin_write: return "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE";
    case sql::commit: return "COMMIT";
    case sql::rollback: return "ROLLBACK";
    case sql::lock_tenant:
      return "SELECT pg_advisory_xact_lock_shared($1::bigint), pg_advisory_xact_lock($2::bigint)";
    case sql::wait_for_tenant: return "SELECT pg_advisory_xact_lock($1::bigint)";
    case sql::mark_write:
      return "INSERT INTO directory_writer (name, number, used)"
             " VALUES ($1::bytea, $2::bigint, now())"
             " ON CONFLICT (name) DO UPDATE SET number = excluded.number, used = excluded.used";
    // It writes, so that its commit waits for all that the commit it looks for should have waited for.
    case sql::find_write:
      return "UPDATE directory_writer SET used = now()"
             " WHERE name = $1::bytea AND number = $2::bigint RETURNING number";
    case sql::savepoint: return "SAVEPOINT work";
    case sql::release: return "RELEASE SAVEPOINT work";
    case sql::undo: return "ROLLBACK TO SAVEPOINT work";
    case sql::begin_look: return "SAVEPOINT look";
    case sql::end_look: return "ROLLBACK TO SAVEPOINT look";
    case sql::release_look: return "RELEASE SAVEPOINT look";
    case sql::generation: return "SELECT generation FROM directory_state";
    case sql::parts: return "SELECT type, id, last_rid, count FROM part WHERE tenant = $1::bytea";
    case sql::make_part:
      return "INSERT INTO part (tenant, type, last_rid, count)"
             " VALUES ($1::bytea, $2::bytea, 0, 0) RETURNING id";
    case sql::update_part:
      return "UPDATE part SET last_rid = $2::bigint, count = $3::bigint WHERE id = $1::bigint";
    case sql::update_blocks:
      return "INSERT INTO block (id, count)"
             " SELECT * FROM unnest($1::bigint[], $2::bigint[])"
             " ON CONFLICT (id) DO UPDATE SET count = block.count + excluded.count";
    case sql::part_type: return "SELECT type FROM part WHERE id = $1::bigint";
    case sql::find_by_key:
      return "SELECT r.rid, r.id, r.version, r.in_groups, r.text"
             " FROM entry AS e JOIN resource AS r ON r.rid = e.rid"
             " WHERE e.index_id = $1::bigint AND e.key = $2::bytea";
    case sql::find_by_rid:
      return "SELECT rid, id, in_groups, text FROM resource WHERE rid = $1::bigint";
    case sql::find_by_rids:
      return "SELECT rid, id, in_groups, text FROM resource WHERE rid = ANY ($1::bigint[])";
    case sql::insert_resource:
      return "WITH added AS (INSERT INTO entry (index_id, key, rid)"
             " SELECT u.index_id, u.key, $1::bigint"
             " FROM unnest($4::bigint[], $5::bytea[]) AS u (index_id, key))"
             " INSERT INTO resource (rid, id, version, in_groups, text)"
             " VALUES ($1::bigint, $2::bytea, 1, false, $3::bytea)";
    case sql::update_resource:
      return "WITH gone AS (DELETE FROM entry AS e"
             " USING unnest($3::bigint[], $4::bytea[]) AS u (index_id, key)"
             " WHERE e.index_id = u.index_id AND e.key = u.key AND e.rid = $1::bigint),"
             " added AS (INSERT INTO entry (index_id, key, rid)"
             " SELECT u.index_id, u.key, $1::bigint"
             " FROM unnest($5::bigint[], $6::bytea[]) AS u (index_id, key))"
             " UPDATE resource SET version = version + 1, text = $2::bytea WHERE rid = $1::bigint";
    case sql::remove_resource:
      return "WITH gone AS (DELETE FROM entry AS e"
             " USING unnest($2::bigint[], $3::bytea[]) AS u (index_id, key)"
             " WHERE e.index_id = u.index_id AND e.key = u.key AND e.rid = $1::bigint),"
             " members AS (DELETE FROM member WHERE group_rid = $1::bigint),"
             " memberships AS (DELETE FROM member WHERE member_rid = $1::bigint)"
             " DELETE FROM resource WHERE rid = $1::bigint";
    case sql::members_of:
      return "SELECT seq, member_rid, member_id, display FROM member"
             " WHERE group_rid = $1::bigint AND seq > $2::bigint ORDER BY seq LIMIT $3::bigint";
    case sql::all_members: return "SELECT member_rid, seq FROM member WHERE group_rid = $1::bigint";
    case sql::groups_of:
      return "SELECT r.rid, r.id, r.text FROM member AS m JOIN resource AS r"
             " ON r.rid = m.group_rid WHERE m.member_rid = $1::bigint ORDER BY m.group_rid";
    case sql::is_member:
      return "SELECT (SELECT seq FROM member WHERE member_rid = $2::bigint AND group_rid = "
             "$1::bigint),"
             " (SELECT max(seq) FROM member WHERE group_rid = $1::bigint)";
    case sql::insert_members:
      return "INSERT INTO member (group_rid, seq, member_rid, member_id, display)"
             " SELECT $1::bigint, u.seq, u.rid, r.id, u.display"
             " FROM unnest($2::bigint[], $3::bigint[], $4::bytea[]) AS u (rid, seq, display)"
             " LEFT JOIN resource AS r ON r.rid = u.rid";  // whom there is not is an error
    case sql::mark_in_groups:
      return "UPDATE resource AS r SET in_groups = true FROM unnest($1::bigint[]) AS u (rid)"
             " WHERE r.rid = u.rid AND NOT r.in_groups";
    case sql::update_member:
      return "UPDATE member SET display = $3::bytea WHERE group_rid = $1::bigint AND seq = "
             "$2::bigint";
    case sql::remove_member:
      return "DELETE FROM member WHERE group_rid = $1::bigint AND seq = $2::bigint";
    case sql::remove_members: return "DELETE FROM member WHERE group_rid = $1::bigint";
    case sql::rids_up:
      return "SELECT rid, id, in_groups, text FROM resource"
             " WHERE rid >= $1::bigint AND rid <= $2::bigint"
             " ORDER BY rid LIMIT $3::bigint OFFSET $4::bigint";
    case sql::rids_down:
      return "SELECT rid, id, in_groups, text FROM resource"
             " WHERE rid >= $1::bigint AND rid <= $2::bigint"
             " ORDER BY rid DESC LIMIT $3::bigint OFFSET $4::bigint";
    case sql::keys_up:
      return "SELECT rid, key FROM entry WHERE index_id = $1::bigint"
             " AND (key, rid) >= ($2::bytea, $3::bigint) AND rid <= $4::bigint"
             " ORDER BY key, rid LIMIT $5::bigint OFFSET $6::bigint";
    case sql::keys_down:
      return "SELECT rid, key FROM entry WHERE index_id = $1::bigint"
             " AND (key, rid) <= ($2::bytea, $3::bigint) AND rid <= $4::bigint"
             " ORDER BY key DESC, rid DESC LIMIT $5::bigint OFFSET $6::bigint";
    case sql::sorted_up:
      return "SELECT r.rid, r.id, r.in_groups, r.text, e.key"
             " FROM entry AS e JOIN resource AS r ON r.rid = e.rid"
             " WHERE e.index_id = $1::bigint AND (e.key, e.rid) >= ($2::bytea, $3::bigint)"
             " ORDER BY e.key, e.rid LIMIT $4::bigint";
    case sql::sorted_down:
      return "SELECT r.rid, r.id, r.in_groups, r.text, e.key"
             " FROM entry AS e JOIN resource AS r ON r.rid = e.rid"
             " WHERE e.index_id = $1::bigint AND (e.key, e.rid) <= ($2::bytea, $3::bigint)"
             " ORDER BY e.key DESC, e.rid DESC LIMIT $4::bigint";
    case sql::equal_up:
      return "SELECT r.rid, r.id, r.in_groups, r.text"
             " FROM entry AS e JOIN resource AS r ON r.rid = e.rid"
             " WHERE e.index_id = $1::bigint AND e.key = $2::bytea"
             " AND e.rid >= $3::bigint AND e.rid <= $4::bigint ORDER BY e.rid LIMIT $5::bigint";
    case sql::equal_down:
      return "SELECT r.rid, r.id, r.in_groups, r.text"
             " FROM entry AS e JOIN resource AS r ON r.rid = e.rid"
             " WHERE e.index_id = $1::bigint AND e.key = $2::bytea"
             " AND e.rid >= $3::bigint AND e.rid <= $4::bigint ORDER BY e.rid DESC LIMIT "
             "$5::bigint";
    case sql::count_rids:
      return "SELECT count(*) FROM resource WHERE rid >= $1::bigint AND rid <= $2::bigint";
    case sql::count_equal:
      return "SELECT count(*) FROM entry"
             " WHERE index_id = $1::bigint AND key = $2::bytea AND rid <= $3::bigint";
    case sql::blocks_up:
      return "SELECT id, count FROM block WHERE id >= $1::bigint AND id <= $2::bigint ORDER BY id";
    case sql::blocks_down:
      return "SELECT id, count FROM block WHERE id >= $1::bigint AND id <= $2::bigint"
             " ORDER BY id DESC";
    case sql::how_many: break;
  }
  return {};
}

directory_session::directory_session(connection server, std::shared_ptr<scim::model const> model)
    : server_(std::move(server)), model_(std::move(model)) {
  for (auto const& type : model_->types()) {
    auto const found = std::find_if(type.indexes.begin(), type.indexes.end(),
                                    [](auto const& index) { return index.name == "id"; });
    id_indexes_.push_back(static_cast<std::size_t>(found - type.indexes.begin()));
  }
}

auto directory_session::open(server_settings const& settings, std::chrono::milliseconds timeout,
                             std::shared_ptr<scim::model const> model)
    -> outcome<std::unique_ptr<directory_session>> {
  TIDEGATE_TRY(auto server, connection::open(settings, timeout, statement_texts()));
  // Every list goes along an index, at any size of the tables and whatever the server knows about them.
  for (auto const* const way : {"seqscan", "bitmapscan", "sort", "hashjoin", "mergejoin"}) {
    TIDEGATE_TRY_VOID(server.send("SET enable_" + std::string(way) + " TO off"));
  }
  TIDEGATE_TRY_VOID(server.finish());
  return std::unique_ptr<directory_session>(
      new directory_session(std::move(server), std::move(model)));
}

// ---- statements ----

auto directory_session::ask(sql which, parameters const& values) -> outcome<rows> {
  TIDEGATE_TRY_VOID(send_added());
  return server_.ask(static_cast<std::size_t>(which), values);
}

auto directory_session::ask(std::string const& text, parameters const& values) -> outcome<rows> {
  TIDEGATE_TRY_VOID(send_added());
  return server_.ask(text, values);
}

auto directory_session::send(sql which, parameters const& values) -> outcome<void> {
  return server_.send(static_cast<std::size_t>(which), values);
}

auto directory_session::write(sql which, parameters const& values) -> outcome<void> {
  if (!savepoint_ && !is_alone_) {
    TIDEGATE_TRY_VOID(send(sql::savepoint));
    savepoint_ = true;
  }
  TIDEGATE_TRY_VOID(send_added());
  return send(which, values);
}

// ---- transactions ----

/// What every transaction has to know before its work.
auto directory_session::begin(std::string_view tenant) -> outcome<void> {
  failed_.reset();
  in_doubt_ = false;
  server_.forget_error();
  tenant_ = tenant;
  texts_.clear();
  group_ = {};
  TIDEGATE_TRY_VOID(send(sql::generation));
  TIDEGATE_TRY_VOID(send(sql::parts, parameters(tenant)));
  TIDEGATE_TRY(auto const told, server_.finish());
  auto const& generation = told[told.size() - 2];
  auto const& parts = told.back();
  if (generation.number(0, 0) != indexes_.generation) {
    TIDEGATE_TRY(indexes_, load_indexes(server_, *model_));
  }
  parts_.assign(model_->types().size(), std::nullopt);
  for (int i = 0; i < parts.size(); ++i) {
    if (auto const* const type = model_->find(parts.octets(i, 0))) {
      parts_[type_number(*type)] = {parts.number(i, 1), parts.number(i, 2), parts.number(i, 3)};
    }
  }
  parts_begun_ = parts_;
  return {};
}

auto directory_session::begin_read(std::string_view tenant) -> outcome<void> {
  writing_ = false;
  TIDEGATE_TRY_VOID(send(sql::begin_read));
  return begin(tenant);
}

void directory_session::end_read() {
  if (send(sql::rollback)) {
    server_.leave();
  }
}

auto directory_session::begin_write(std::string_view tenant) -> outcome<void> {
  writing_ = true;
  savepoint_ = false;
  in_doubt_ = false;
  blocks_.clear();
  TIDEGATE_TRY_VOID(send(sql::begin_write));
  TIDEGATE_TRY_VOID(send(sql::lock_tenant, parameters(index_lock(), tenant_lock(tenant))));
  TIDEGATE_TRY_VOID(begin(tenant));
  if (!indexes_.are_all) {
    return failure(server_.error(store_fault::unavailable, other_indexes));
  }
  return {};
}

void directory_session::begin_work(bool is_alone) {
  failed_.reset();
  is_alone_ = is_alone;
  savepoint_ = false;
  parts_before_ = parts_;
  work_blocks_.clear();
  group_ = {};
}

auto directory_session::keep_work() -> outcome<void> {
  TIDEGATE_TRY_VOID(send_added());
  group_ = {};
  if (std::exchange(savepoint_, false)) {
    TIDEGATE_TRY_VOID(send(sql::release));
  }
  for (auto const& [block, change] : work_blocks_) {
    blocks_[block] += change;
  }
  return {};
}

auto directory_session::undo_work() -> outcome<void> {
  group_ = {};
  texts_.clear();
  if (std::exchange(savepoint_, false)) {
    // What went wrong in this work is not said again.
    auto const ended = server_.finish();
    if (!ended && server_.is_broken()) {
      return failure(ended.error());
    }
    TIDEGATE_TRY_VOID(send(sql::undo));
    TIDEGATE_TRY_VOID(send(sql::release));
  }
  if (parts_ != parts_before_) {
    parts_ = parts_before_;
    type_names_.clear();
  }
  return {};
}

auto directory_session::commit(write_mark const& mark) -> outcome<void> {
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    auto const& part = parts_[i];
    if (part && part != parts_begun_[i]) {
      TIDEGATE_TRY_VOID(send(sql::update_part, parameters(part->id, part->last_rid, part->count)));
    }
  }
  if (!blocks_.empty()) {
    std::vector<std::int64_t> ids;
    std::vector<std::int64_t> changes;
    for (auto const& [block, change] : blocks_) {
      ids.push_back(block);
      changes.push_back(change);
    }
    TIDEGATE_TRY_VOID(send(sql::update_blocks, parameters(ids, changes)));
  }
  TIDEGATE_TRY_VOID(send(sql::mark_write, parameters(mark.writer, mark.number)));
  if (server_.is_broken()) {
    return failure(server_.error(store_fault::unavailable, "the connection is lost"));
  }
  auto done = ask(sql::commit);
  if (!done) {
    in_doubt_ = server_.is_broken() || !says_rolled_back(server_.sqlstate());
    return failure(std::move(done).error());
  }
  if (std::string_view(PQcmdStatus(const_cast<PGresult*>(done->get()))) != "COMMIT") {
    return failure(server_.error(store_fault::unavailable, "the transaction was not committed"));
  }
  return {};
}

void directory_session::rollback() {
  group_ = {};
  texts_.clear();
  type_names_.clear();  // it may say what was undone
  if (server_.is_broken()) {
    return;
  }
  // What was sent and failed has to be read first: what is behind it in the same group is not run.
  std::ignore = server_.finish();
  if (send(sql::rollback)) {
    std::ignore = server_.finish();
  }
}

auto directory_session::was_committed(std::string_view tenant, write_mark const& mark)
    -> outcome<bool> {
  TIDEGATE_TRY_VOID(send(sql::begin_write));
  TIDEGATE_TRY_VOID(send(sql::wait_for_tenant, parameters(tenant_lock(tenant))));
  TIDEGATE_TRY(auto const found, ask(sql::find_write, parameters(mark.writer, mark.number)));
  if (found.size() == 0) {
    rollback();
    return false;
  }
  TIDEGATE_TRY_VOID(ask(sql::commit));
  return true;
}

auto directory_session::may_try_again() const noexcept -> bool {
  if (in_doubt_) {
    return false;
  }
  // 40001: serialization failure, 40P01: deadlock.
  return server_.is_broken() || server_.sqlstate() == "40001" || server_.sqlstate() == "40P01";
}

// ---- parts ----

auto directory_session::type_number(model_type const& type) const noexcept -> std::size_t {
  return static_cast<std::size_t>(&type - model_->types().data());
}

auto directory_session::find_part(model_type const& type) const noexcept -> directory_part const* {
  auto const& part = parts_[type_number(type)];
  return part ? &*part : nullptr;
}

auto directory_session::part_to_change(model_type const& type) -> outcome<directory_part*> {
  auto& part = parts_[type_number(type)];
  if (!part) {
    if (!is_alone_ && !savepoint_) {
      TIDEGATE_TRY_VOID(send(sql::savepoint));
      savepoint_ = true;
    }
    TIDEGATE_TRY(auto const made,
                 ask(sql::make_part, parameters(tenant_, type.definition.type().name)));
    auto const id = made.number(0, 0);
    if (id > part_max) {
      return failure(server_.error(store_fault::full, "there are too many tenants"));
    }
    part = directory_part{id, rid_base(id), 0};
  }
  return &*part;
}

auto directory_session::index_id(model_type const& type, directory_part const& part,
                                 std::size_t index) const -> std::int64_t {
  return part.id << slot_shift | indexes_.types[type_number(type)].values[index];
}

auto directory_session::sort_id(model_type const& type, directory_part const& part,
                                std::size_t index) const -> std::int64_t {
  return part.id << slot_shift | indexes_.types[type_number(type)].sorted[index];
}

auto directory_session::index_ids(model_type const& type, directory_part const& part) const
    -> std::vector<std::int64_t> {
  std::vector<std::int64_t> ids;
  for (std::size_t i = 0; i < type.indexes.size(); ++i) {
    ids.push_back(index_id(type, part, i));
  }
  return ids;
}

auto directory_session::id_index_ids() const -> std::vector<std::int64_t> {
  std::vector<std::int64_t> ids;
  for (auto const& type : model_->types()) {
    if (auto const* const part = find_part(type)) {
      ids.push_back(index_id(type, *part, id_indexes_[type_number(type)]));
    }
  }
  return ids;
}

auto directory_session::type_name(std::int64_t rid) -> outcome<std::string_view> {
  auto const part = part_of(rid);
  for (auto const& type : model_->types()) {
    auto const* const known = find_part(type);
    if (known != nullptr && known->id == part) {
      return type.definition.type().name;
    }
  }
  // Of a type that the model has not any more.
  auto const known = type_names_.find(part);
  if (known != type_names_.end()) {
    return known->second;
  }
  TIDEGATE_TRY(auto const found, ask(sql::part_type, parameters(part)));
  if (found.size() == 0) {
    return failure(server_.error(store_fault::damaged, "there is no part " + std::to_string(part)));
  }
  if (type_names_.size() >= type_names_max) {
    type_names_.clear();
  }
  return type_names_.emplace(part, found.octets(0, 0)).first->second;
}

// ---- reading ----

auto directory_session::find_in_type(model_type const& type, std::string_view id)
    -> outcome<std::optional<directory_resource>> {
  auto const* const part = find_part(type);
  if (part == nullptr) {
    return std::nullopt;
  }
  auto const number = id_indexes_[type_number(type)];
  auto const key = index_key(*type.indexes[number].path.leaf(), scim::json(id));
  TIDEGATE_TRY(auto const found,
               ask(sql::find_by_key, parameters(index_id(type, *part, number), key)));
  for (int i = 0; i < found.size(); ++i) {
    // Long ones have the same key when they begin alike.
    if (found.octets(i, 1) == id) {
      remember_text(found.number(i, 0), found.octets(i, 4));
      return directory_resource{unsigned_of(found.number(i, 0)), std::string(id),
                                unsigned_of(found.number(i, 2)), std::string(found.octets(i, 4)),
                                found.boolean(i, 3)};
    }
  }
  return std::nullopt;
}

auto directory_session::find(model_type const& type, std::string_view id)
    -> outcome<std::optional<directory_resource>> {
  return noting([&] { return find_in_type(type, id); });
}

auto directory_session::find_any(std::string_view id) -> outcome<std::optional<any_resource>> {
  return noting([&]() -> outcome<std::optional<any_resource>> {
    for (auto const& type : model_->types()) {
      TIDEGATE_TRY(auto found, find_in_type(type, id));
      if (found) {
        return any_resource{type.definition.type().name, *std::move(found)};
      }
    }
    return std::nullopt;
  });
}

auto directory_session::find_unique(model_type const& type, std::size_t index, std::string_view key,
                                    std::string_view except_id)
    -> outcome<std::optional<std::string>> {
  return noting([&]() -> outcome<std::optional<std::string>> {
    auto const* const part = find_part(type);
    if (part == nullptr) {
      return std::nullopt;
    }
    TIDEGATE_TRY(auto const found,
                 ask(sql::find_by_key, parameters(index_id(type, *part, index), key)));
    for (int i = 0; i < found.size(); ++i) {
      if (found.octets(i, 1) != except_id) {
        return std::string(found.octets(i, 1));
      }
    }
    return std::nullopt;
  });
}

auto directory_session::newest(model_type const& type) -> outcome<std::uint64_t> {
  auto const* const part = find_part(type);
  return part != nullptr ? unsigned_of(part->last_rid) : 0;
}

auto directory_session::members(std::uint64_t group_rid,
                                std::function<bool(directory_member const&)> const& each)
    -> outcome<void> {
  constexpr std::int64_t at_once = 1000;
  return noting([&]() -> outcome<void> {
    for (std::int64_t from = 0;;) {
      TIDEGATE_TRY(auto const found,
                   ask(sql::members_of, parameters(signed_of(group_rid), from, at_once)));
      for (int i = 0; i < found.size(); ++i) {
        from = found.number(i, 0);
        auto const rid = found.number(i, 1);
        TIDEGATE_TRY(auto const type, type_name(rid));
        if (!each({unsigned_of(rid), std::string(found.octets(i, 2)), std::string(type),
                   std::string(found.octets(i, 3))})) {
          return {};
        }
      }
      if (found.size() < at_once) {
        return {};
      }
    }
  });
}

auto directory_session::groups_of(std::uint64_t rid) -> outcome<std::vector<directory_member>> {
  return noting([&]() -> outcome<std::vector<directory_member>> {
    TIDEGATE_TRY(auto const found, ask(sql::groups_of, parameters(signed_of(rid))));
    std::vector<directory_member> all;
    for (int i = 0; i < found.size(); ++i) {
      auto const group = found.number(i, 0);
      TIDEGATE_TRY(auto const type, type_name(group));
      TIDEGATE_TRY(auto const resource, parse_stored(server_, group, found.octets(i, 2)));
      auto const* const name = resource.find("displayName");
      auto const* const display = name != nullptr ? name->if_string() : nullptr;
      all.push_back({unsigned_of(group), std::string(found.octets(i, 1)), std::string(type),
                     display != nullptr ? *display : std::string()});
    }
    return all;
  });
}

// ---- writing ----

/// A work that finds a resource often changes it then; its entries are those of its text.
void directory_session::remember_text(std::int64_t rid, std::string_view text) {
  if (!writing_) {
    return;
  }
  if (texts_.size() >= texts_max) {
    texts_.clear();
  }
  texts_.insert_or_assign(rid, std::string(text));
}

auto directory_session::read_entries(model_type const& type, std::int64_t rid)
    -> outcome<std::vector<index_entry>> {
  if (!texts_.contains(rid)) {
    TIDEGATE_TRY(auto const found, ask(sql::find_by_rid, parameters(rid)));
    if (found.size() == 0) {
      return failure(
          server_.error(store_fault::damaged, "there is no resource " + std::to_string(rid)));
    }
    remember_text(rid, found.octets(0, 3));
  }
  TIDEGATE_TRY(auto const resource, parse_stored(server_, rid, texts_.at(rid)));
  return index_entries(type, resource);
}

auto directory_session::stored_entries(model_type const& type, directory_part const& part,
                                       std::span<index_entry const> entries) const
    -> std::vector<stored_entry> {
  std::vector<stored_entry> all;
  all.reserve(entries.size() + type.indexes.size());
  for (auto const& entry : entries) {
    auto const id = index_id(type, part, entry.index);
    auto const sorted = sort_id(type, part, entry.index);
    all.push_back({id, entry.key});
    if (entry.sorts && sorted != id) {
      all.push_back({sorted, entry.key});
    }
  }
  std::sort(all.begin(), all.end());
  return all;
}

namespace {

/// The columns of entries.
template <class Entries>
void add_entries(parameters& values, Entries const& entries) {
  std::vector<std::int64_t> ids;
  std::vector<std::string_view> keys;
  for (auto const& entry : entries) {
    ids.push_back(entry.index_id);
    keys.push_back(entry.key);
  }
  values.add(ids);
  values.add(keys);
}

}  // namespace

auto directory_session::insert(model_type const& type, std::string_view id, std::string_view text,
                               std::span<index_entry const> entries) -> outcome<std::uint64_t> {
  return noting([&]() -> outcome<std::uint64_t> {
    TIDEGATE_TRY(auto* const part, part_to_change(type));
    if (part->last_rid >= rid_base(part->id) + sequence_max) {
      return failure(server_.error(store_fault::full, "there is no rid left"));
    }
    auto const rid = ++part->last_rid;
    ++part->count;
    ++work_blocks_[block_of(rid)];
    parameters values(rid, id, text);
    add_entries(values, stored_entries(type, *part, entries));
    TIDEGATE_TRY_VOID(write(sql::insert_resource, values));
    remember_text(rid, text);
    return unsigned_of(rid);
  });
}

auto directory_session::update(model_type const& type, std::uint64_t rid, std::string_view text,
                               std::span<index_entry const> entries) -> outcome<void> {
  return noting([&]() -> outcome<void> {
    TIDEGATE_TRY(auto* const part, part_to_change(type));
    TIDEGATE_TRY(auto const old_entries, read_entries(type, signed_of(rid)));
    auto const before = stored_entries(type, *part, old_entries);
    auto const after = stored_entries(type, *part, entries);
    std::vector<stored_entry> gone;
    std::vector<stored_entry> added;
    std::set_difference(before.begin(), before.end(), after.begin(), after.end(),
                        std::back_inserter(gone));
    std::set_difference(after.begin(), after.end(), before.begin(), before.end(),
                        std::back_inserter(added));
    parameters values(signed_of(rid), text);
    add_entries(values, gone);
    add_entries(values, added);
    TIDEGATE_TRY_VOID(write(sql::update_resource, values));
    remember_text(signed_of(rid), text);
    return {};
  });
}

auto directory_session::remove(model_type const& type, std::uint64_t rid) -> outcome<void> {
  return noting([&]() -> outcome<void> {
    TIDEGATE_TRY(auto* const part, part_to_change(type));
    TIDEGATE_TRY(auto const entries, read_entries(type, signed_of(rid)));
    parameters values(signed_of(rid));
    add_entries(values, stored_entries(type, *part, entries));
    TIDEGATE_TRY_VOID(write(sql::remove_resource, values));
    texts_.erase(signed_of(rid));
    group_ = {};
    --part->count;
    --work_blocks_[block_of(signed_of(rid))];
    return {};
  });
}

// ---- members ----

/// What is known of the members of a group. The first few are looked for one by one, then all of them are read: who adds
/// ten thousand waits for the server a few times only.
auto directory_session::load_group(std::int64_t group) -> outcome<void> {
  if (group_.rid != group) {
    TIDEGATE_TRY_VOID(send_added());
    group_ = {};
    group_.rid = group;
  }
  if (group_.is_loaded || ++group_.asked <= asked_max) {
    return {};
  }
  TIDEGATE_TRY(auto const found, ask(sql::all_members, parameters(group)));
  for (int i = 0; i < found.size(); ++i) {
    group_.places.emplace(found.number(i, 0), found.number(i, 1));
    group_.last_place = std::max(group_.last_place, found.number(i, 1));
  }
  group_.is_loaded = true;
  return {};
}

auto directory_session::send_added() -> outcome<void> {
  if (group_.added.empty()) {
    return {};
  }
  auto const rids = std::exchange(group_.added, {});
  auto const places = std::exchange(group_.added_places, {});
  auto const displays = std::exchange(group_.added_displays, {});
  TIDEGATE_TRY_VOID(write(sql::insert_members, parameters(group_.rid, rids, places,
                                                          std::vector<std::string_view>(
                                                              displays.begin(), displays.end()))));
  return write(sql::mark_in_groups, parameters(rids));
}

auto directory_session::add_member(std::uint64_t group_rid, std::uint64_t member_rid,
                                   std::string_view display) -> outcome<bool> {
  return noting([&]() -> outcome<bool> {
    auto const group = signed_of(group_rid);
    auto const member = signed_of(member_rid);
    TIDEGATE_TRY_VOID(load_group(group));
    if (!group_.is_loaded) {
      TIDEGATE_TRY(auto const found, ask(sql::is_member, parameters(group, member)));
      group_.last_place = found.number(0, 1);
      if (!found.is_null(0, 0)) {
        group_.places[member] = found.number(0, 0);
      }
    }
    auto const at = group_.places.find(member);
    if (at != group_.places.end()) {
      TIDEGATE_TRY_VOID(write(sql::update_member, parameters(group, at->second, display)));
      return false;
    }
    group_.places.emplace(member, ++group_.last_place);
    group_.added.push_back(member);
    group_.added_places.push_back(group_.last_place);
    group_.added_displays.emplace_back(display);
    if (group_.added.size() >= added_max) {
      TIDEGATE_TRY_VOID(send_added());
    }
    return true;
  });
}

auto directory_session::remove_member(std::uint64_t group_rid, std::uint64_t member_rid)
    -> outcome<bool> {
  return noting([&]() -> outcome<bool> {
    auto const group = signed_of(group_rid);
    auto const member = signed_of(member_rid);
    TIDEGATE_TRY_VOID(load_group(group));
    if (!group_.is_loaded) {
      TIDEGATE_TRY(auto const found, ask(sql::is_member, parameters(group, member)));
      if (!found.is_null(0, 0)) {
        group_.places[member] = found.number(0, 0);
      }
    }
    auto const at = group_.places.find(member);
    if (at == group_.places.end()) {
      return false;
    }
    TIDEGATE_TRY_VOID(write(sql::remove_member, parameters(group, at->second)));
    group_.places.erase(member);
    return true;
  });
}

auto directory_session::remove_members(std::uint64_t group_rid) -> outcome<void> {
  return noting([&]() -> outcome<void> {
    TIDEGATE_TRY_VOID(write(sql::remove_members, parameters(signed_of(group_rid))));
    group_ = {};
    return {};
  });
}

}  // namespace tidegate::store_postgres
