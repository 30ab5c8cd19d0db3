// SPDX-License-Identifier: Apache-2.0
#include "directory_session.hpp"

#include "directory_scan.hpp"
#include "pending_table.hpp"
#include "write_vfs.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

namespace tidegate::store_sqlite {

using scim::index_entry;
using scim::model_type;
using store::directory_member;
using store::directory_resource;
using store::store_error;
using store::store_fault;

namespace {

/// How many tenants and statements of filters a session remembers.
constexpr std::size_t tenants_max = 4096;
constexpr std::size_t filter_statements_max = 128;
/// How many entries are read at a time to learn what keys there are: a millisecond or two.
constexpr int learned_at_once = 4096;
/// With so few entries that wait, a commit takes no longer than without.
constexpr std::size_t pending_little = 8192;
/// How many counts of blocks wait in memory.
constexpr std::size_t blocks_max = 65'536;

[[nodiscard]] auto signed_of(std::uint64_t rid) noexcept -> std::int64_t {
  return static_cast<std::int64_t>(rid);
}
[[nodiscard]] auto unsigned_of(std::int64_t rid) noexcept -> std::uint64_t {
  return static_cast<std::uint64_t>(rid);
}

}  // namespace

// CROSS JOIN is how SQLite is told which table comes first. `look_at` is the function of directory_scan that SQLite asks of
// each row, and that says when to stop: a row that comes out of a statement costs a third more.
auto statement_text(sql which) noexcept -> std::string_view {
  switch (which) {
    case sql::begin: return "BEGIN";
    case sql::end: return "COMMIT";
    case sql::savepoint: return "SAVEPOINT work";
    case sql::release: return "RELEASE work";
    case sql::undo: return "ROLLBACK TO work";
    case sql::look: return "SAVEPOINT look";
    case sql::look_undo: return "ROLLBACK TO look";
    case sql::look_over: return "RELEASE look";
    case sql::find_part:
      return "SELECT id, last_rid, count FROM part WHERE tenant = ? AND type = ?";
    case sql::part_size: return "SELECT last_rid, count FROM part WHERE id = ?";
    case sql::update_part: return "UPDATE part SET last_rid = ?, count = ? WHERE id = ?";
    case sql::update_journal: return "UPDATE journal SET applied = ? WHERE rowid = 1";
    case sql::update_block:
      return "INSERT INTO block (id, count) VALUES (?, ?)"
             " ON CONFLICT DO UPDATE SET count = count + excluded.count";
    case sql::part_type: return "SELECT type FROM part WHERE id = ?";
    case sql::find_by_key:
      return "SELECT r.rid, r.id, r.version, r.in_groups, r.text"
             " FROM entry AS e CROSS JOIN resource AS r ON r.rid = e.rid"
             " WHERE e.index_id = ? AND e.key = ?";
    case sql::find_by_rid: return "SELECT rid, id, in_groups, text FROM resource WHERE rid = ?";
    case sql::find_resource:
      return "SELECT rid, id, version, in_groups, text FROM resource WHERE rid = ?";
    case sql::id_by_rid: return "SELECT id, in_groups FROM resource WHERE rid = ?";
    case sql::insert_resource:
      return "INSERT INTO resource (rid, id, version, in_groups, text) VALUES (?, ?, 1, 0, ?)";
    case sql::update_resource:
      return "UPDATE resource SET version = version + 1, text = ?2 WHERE rid = ?1";
    case sql::remove_resource: return "DELETE FROM resource WHERE rid = ?";
    case sql::mark_in_groups: return "UPDATE resource SET in_groups = 1 WHERE rid = ?";
    case sql::insert_entries:
      // FAIL: it leaves what it has done before an error, which is undone with the transaction. To undo it by itself, SQLite
      // would copy every page before it changes.
      return "INSERT OR FAIL INTO entry (index_id, key, rid) SELECT index_id, key, rid FROM "
             "pending";
    case sql::remove_entry: return "DELETE FROM entry WHERE index_id = ? AND key = ? AND rid = ?";
    case sql::members_of:
      return "SELECT member_rid, member_id, display FROM member WHERE group_rid = ? ORDER BY seq";
    case sql::groups_of:
      return "SELECT r.rid, r.id, r.text FROM member AS m CROSS JOIN resource AS r"
             " ON r.rid = m.group_rid WHERE m.member_rid = ? ORDER BY m.group_rid";
    case sql::is_member: return "SELECT seq FROM member WHERE member_rid = ? AND group_rid = ?";
    case sql::last_member: return "SELECT max(seq) FROM member WHERE group_rid = ?";
    case sql::insert_member:
      return "INSERT INTO member (group_rid, seq, member_rid, member_id, display)"
             " VALUES (?, ?, ?, ?, ?)";
    case sql::update_member:
      return "UPDATE member SET display = ?3 WHERE group_rid = ?1 AND seq = ?2";
    case sql::remove_member: return "DELETE FROM member WHERE group_rid = ? AND seq = ?";
    case sql::remove_members: return "DELETE FROM member WHERE group_rid = ?";
    case sql::remove_memberships: return "DELETE FROM member WHERE member_rid = ?";
    case sql::rids_up:
      return "SELECT 1 FROM resource WHERE rid >= ? AND rid <= ?"
             " AND look_at(rid, id, in_groups, text) ORDER BY rid";
    case sql::rids_down:
      return "SELECT 1 FROM resource WHERE rid >= ? AND rid <= ?"
             " AND look_at(rid, id, in_groups, text) ORDER BY rid DESC";
    case sql::skip_rids_up:
      return "SELECT rid FROM resource WHERE rid >= ? AND rid <= ? ORDER BY rid LIMIT 1 OFFSET ?";
    case sql::skip_rids_down:
      return "SELECT rid FROM resource WHERE rid >= ? AND rid <= ?"
             " ORDER BY rid DESC LIMIT 1 OFFSET ?";
    case sql::keys_up:
      return "SELECT rid, key FROM entry WHERE index_id = ? AND (key, rid) >= (?, ?)"
             " AND rid <= ? ORDER BY key, rid LIMIT -1 OFFSET ?";
    case sql::keys_down:
      return "SELECT rid, key FROM entry WHERE index_id = ? AND (key, rid) <= (?, ?)"
             " AND rid <= ? ORDER BY key DESC, rid DESC LIMIT -1 OFFSET ?";
    case sql::all_keys_up:
      return "SELECT rid, key FROM entry WHERE index_id = ? ORDER BY key, rid LIMIT 1 OFFSET ?";
    case sql::all_keys_down:
      return "SELECT rid, key FROM entry WHERE index_id = ?"
             " ORDER BY key DESC, rid DESC LIMIT 1 OFFSET ?";
    case sql::sorted_up:
      return "SELECT 1 FROM entry AS e CROSS JOIN resource AS r ON r.rid = e.rid"
             " WHERE e.index_id = ? AND e.key > ?"
             " AND look_at(r.rid, r.id, r.in_groups, r.text, e.key) ORDER BY e.key, e.rid";
    case sql::sorted_down:
      return "SELECT 1 FROM entry AS e CROSS JOIN resource AS r ON r.rid = e.rid"
             " WHERE e.index_id = ? AND e.key < ?"
             " AND look_at(r.rid, r.id, r.in_groups, r.text, e.key)"
             " ORDER BY e.key DESC, e.rid DESC";
    case sql::equal_up:
      return "SELECT 1 FROM entry AS e CROSS JOIN resource AS r ON r.rid = e.rid"
             " WHERE e.index_id = ? AND e.key = ? AND e.rid >= ? AND e.rid <= ?"
             " AND look_at(r.rid, r.id, r.in_groups, r.text) ORDER BY e.rid";
    case sql::equal_down:
      return "SELECT 1 FROM entry AS e CROSS JOIN resource AS r ON r.rid = e.rid"
             " WHERE e.index_id = ? AND e.key = ? AND e.rid >= ? AND e.rid <= ?"
             " AND look_at(r.rid, r.id, r.in_groups, r.text) ORDER BY e.rid DESC";
    case sql::count_rids: return "SELECT count(*) FROM resource WHERE rid >= ? AND rid <= ?";
    case sql::count_equal:
      return "SELECT count(*) FROM entry WHERE index_id = ? AND key = ? AND rid <= ?";
    case sql::blocks_up: return "SELECT id, count FROM block WHERE id >= ? AND id <= ? ORDER BY id";
    case sql::blocks_down:
      return "SELECT id, count FROM block WHERE id >= ? AND id <= ? ORDER BY id DESC";
    case sql::how_many: break;
  }
  return {};
}

directory_session::directory_session(connection connection,
                                     std::shared_ptr<scim::model const> model,
                                     std::size_t pending_max, std::size_t filter_octets)
    : connection_(std::move(connection)),
      model_(std::move(model)),
      pending_max_(pending_max),
      filter_(filter_octets) {
  for (auto const& type : model_->types()) {
    auto const found = std::find_if(type.indexes.begin(), type.indexes.end(),
                                    [](auto const& index) { return index.name == "id"; });
    id_indexes_.push_back(static_cast<std::size_t>(found - type.indexes.begin()));
  }
  // What fails for lack of memory is seen when a statement with it is prepared.
  add_pending_table(connection_.get(), &put_now_);
  sqlite3_create_function_v2(connection_.get(), "look_at", -1, SQLITE_UTF8 | SQLITE_DIRECTONLY,
                             this, directory_scan::look_at_row, nullptr, nullptr, nullptr);
}

// ---- statements ----

auto directory_session::borrow(sql which) -> outcome<borrowed_statement> {
  auto& home = statements_[static_cast<std::size_t>(which)];
  if (home.empty()) {
    TIDEGATE_TRY(auto made, connection_.prepare(statement_text(which)));
    return borrowed_statement(std::move(made), home);
  }
  auto taken = std::move(home.back());
  home.pop_back();
  return borrowed_statement(std::move(taken), home);
}

auto directory_session::borrow(std::string const& text) -> outcome<borrowed_statement> {
  auto& home = filter_statements_[text];
  if (home.empty()) {
    TIDEGATE_TRY(auto made, connection_.prepare(text));
    return borrowed_statement(std::move(made), home);
  }
  auto taken = std::move(home.back());
  home.pop_back();
  return borrowed_statement(std::move(taken), home);
}

// ---- transactions ----

void directory_session::enter(std::string_view tenant) {
  failed_.reset();
  auto [at, is_new] = tenants_.try_emplace(std::string(tenant));
  if (is_new) {
    at->second.tenant = tenant;
    at->second.parts.resize(model_->types().size());
  }
  tenant_ = &at->second;
}

auto directory_session::begin_read(std::string_view tenant) -> outcome<void> {
  if (tenants_.size() >= tenants_max) {
    tenants_.clear();
  }
  if (filter_statements_.size() >= filter_statements_max) {
    filter_statements_.clear();
  }
  enter(tenant);
  return run(sql::begin);
}

void directory_session::end_read() noexcept {
  if (!run(sql::end)) {
    connection_.rollback();
  }
}

auto directory_session::begin_write() -> outcome<void> {
  if (tenants_.size() >= tenants_max) {
    tenants_.clear();
  }
  if (filter_statements_.size() >= filter_statements_max) {
    filter_statements_.clear();
  }
  writing_ = true;
  return connection_.begin();
}

void directory_session::begin_work(std::string_view tenant) {
  enter(tenant);
  written_before_ = written_.size();
}

auto directory_session::write_ahead() -> outcome<void> {
  if (!savepoint_) {
    TIDEGATE_TRY_VOID(run(sql::savepoint));
    savepoint_ = true;
  }
  return {};
}

auto directory_session::keep_work() -> outcome<void> {
  if (savepoint_) {
    TIDEGATE_TRY_VOID(run(sql::release));
    savepoint_ = false;
  }
  inserted_ = 0;
  for (auto const& change : work_parts_) {
    if (std::find(parts_.begin(), parts_.end(), change.part) == parts_.end()) {
      parts_.push_back(change.part);
    }
  }
  for (auto const& [block, change] : work_blocks_) {
    blocks_[block] += change;
  }
  pending_.keep();
  work_parts_.clear();
  work_made_.clear();
  work_blocks_.clear();
  return {};
}

auto directory_session::undo_work() -> outcome<void> {
  for (auto const& change : work_parts_) {
    change.part->size = change.before;
  }
  for (auto* const made : work_made_) {
    made->reset();
  }
  if (!work_made_.empty()) {
    type_names_.clear();  // whose numbers another type may get
  }
  pending_.undo();
  written_.resize(written_before_);
  work_parts_.clear();
  work_made_.clear();
  work_blocks_.clear();
  if (savepoint_) {
    savepoint_ = false;
    TIDEGATE_TRY_VOID(run(sql::undo));
    TIDEGATE_TRY_VOID(run(sql::release));
  }
  if (auto const rid = std::exchange(inserted_, 0); rid != 0) {
    TIDEGATE_TRY_VOID(run(sql::remove_resource, rid));
  }
  return {};
}

auto directory_session::put_entries(pending_entries const& pending) -> outcome<void> {
  put_now_ = pending.in_order();
  for (auto const& [what, adds] : put_now_) {
    if (!adds) {
      TIDEGATE_TRY_VOID(run(sql::remove_entry, what.index_id, what.key, what.rid));
    }
  }
  auto made = put_now_.empty() ? outcome<void>() : run(sql::insert_entries);
  put_now_ = {};
  return made;
}

auto directory_session::put_all_entries() -> outcome<void> {
  for (auto const& of_index : pending_) {
    TIDEGATE_TRY_VOID(put_entries(of_index));
  }
  return {};
}

auto directory_session::put_sizes() -> outcome<void> {
  for (auto const* const part : parts_) {
    TIDEGATE_TRY_VOID(run(sql::update_part, part->size.last_rid, part->size.count, part->id));
  }
  for (auto const& [block, change] : blocks_) {
    TIDEGATE_TRY_VOID(run(sql::update_block, block, change));
  }
  return {};
}

auto directory_session::relieve() -> outcome<void> {
  while (pending_.size() > std::max(pending_max_, pending_little)) {
    TIDEGATE_TRY_VOID(relieve_a_step());
  }
  return {};
}

auto directory_session::relieve_a_step() -> outcome<void> {
  if (is_relieved()) {
    return {};
  }
  auto& of_index = pending_.largest();
  TIDEGATE_TRY_VOID(put_entries(of_index));
  of_index.clear();
  return {};
}

void directory_session::give_back_memory() noexcept {
  pending_.release();
  sqlite3_db_release_memory(connection_.get());
}

auto directory_session::is_relieved() const noexcept -> bool {
  return pending_.size() <= pending_little;
}

void directory_session::learn() {
  auto* const lesson = filter_.next();
  if (lesson == nullptr) {
    return;
  }
  auto const made = [&]() -> outcome<bool> {
    TIDEGATE_TRY(auto const asked, borrow(sql::keys_up));
    bind_value(asked.get(), 1, lesson->index_id);
    bind_value(asked.get(), 2, lesson->key);
    bind_value(asked.get(), 3, lesson->rid);
    bind_value(asked.get(), 4, std::numeric_limits<std::int64_t>::max());
    bind_value(asked.get(), 5, std::int64_t{0});
    for (int i = 0;; ++i) {
      TIDEGATE_TRY(bool const there, connection_.step(asked.get()));
      if (!there) {
        return true;
      }
      filter_.add(lesson->index_id, blob(asked.get(), 1));
      if (i == learned_at_once) {
        auto const rid = sqlite3_column_int64(asked.get(), 0);
        auto key = std::string(blob(asked.get(), 1));
        sqlite3_reset(asked.get());  // it is bound to what is replaced
        lesson->key = std::move(key);
        lesson->rid = rid;
        return false;
      }
    }
  }();
  if (!made) {
    filter_.give_up();
  } else if (*made) {
    filter_.learned();
  }
}

void directory_session::set_spills(bool may) noexcept {
  // It can only fail for want of memory, and then it stays as it is.
  static_cast<void>(connection_.execute(may ? "PRAGMA cache_spill=ON" : "PRAGMA cache_spill=OFF"));
}

auto directory_session::is_large() noexcept -> bool {
  int spilled = 0;
  int highest = 0;
  sqlite3_db_status(connection_.get(), SQLITE_DBSTATUS_CACHE_SPILL, &spilled, &highest, 1);
  return spilled > 0 || blocks_.size() >= blocks_max || tenants_.size() >= tenants_max;
}

auto directory_session::commit(std::uint64_t journaled) -> outcome<void> {
  TIDEGATE_TRY_VOID(put_all_entries());
  TIDEGATE_TRY_VOID(put_sizes());
  if (journaled != journaled_) {
    TIDEGATE_TRY_VOID(run(sql::update_journal, signed_of(journaled)));
  }
  TIDEGATE_TRY_VOID(run(sql::end));
  journaled_ = journaled;
  parts_.clear();
  blocks_.clear();
  pending_.clear();
  return {};
}

void directory_session::rollback() noexcept {
  connection_.rollback();
  forget_lost_log(connection_.get());
  savepoint_ = false;
  inserted_ = 0;
  work_parts_.clear();
  work_made_.clear();
  work_blocks_.clear();
  parts_.clear();
  blocks_.clear();
  pending_.clear();
  written_.clear();
  tenants_.clear();  // it may say what was undone
  type_names_.clear();
  tenant_ = nullptr;
}

// ---- parts ----

auto directory_session::type_number(model_type const& type) const noexcept -> std::size_t {
  return static_cast<std::size_t>(&type - model_->types().data());
}

auto directory_session::find_part(model_type const& type) -> outcome<directory_part const*> {
  auto& part = tenant_->parts[type_number(type)];
  if (part) {
    return &*part;
  }
  TIDEGATE_TRY(auto const asked, borrow(sql::find_part));
  bind_value(asked.get(), 1, tenant_->tenant);
  bind_value(asked.get(), 2, type.definition.type().name);
  TIDEGATE_TRY(bool const there, connection_.step(asked.get()));
  if (!there) {
    return nullptr;
  }
  part_size const size{sqlite3_column_int64(asked.get(), 1), sqlite3_column_int64(asked.get(), 2)};
  TIDEGATE_TRY(part, load_part(connection_, sqlite3_column_int64(asked.get(), 0), size, type));
  return &*part;
}

auto directory_session::part_to_change(model_type const& type) -> outcome<directory_part*> {
  auto& part = tenant_->parts[type_number(type)];
  TIDEGATE_TRY(auto const* const there, find_part(type));
  if (there == nullptr) {
    TIDEGATE_TRY(part, make_part(connection_, tenant_->tenant, type));
    work_made_.push_back(&part);
    for (std::size_t i = 0; i < type.indexes.size(); ++i) {
      // Nobody asks whether an id is unique.
      if (type.indexes[i].unique && i != id_indexes_[type_number(type)]) {
        filter_.begin(part->index_ids[i]);
        filter_.begin(part->sort_ids[i]);
      }
    }
  }
  if (std::none_of(work_parts_.begin(), work_parts_.end(),
                   [&](part_change const& change) { return change.part == &*part; })) {
    work_parts_.push_back({&*part, part->size});
  }
  return &*part;
}

auto directory_session::id_index_ids() -> outcome<std::vector<std::int64_t>> {
  std::vector<std::int64_t> ids;
  for (auto const& type : model_->types()) {
    TIDEGATE_TRY(auto const* const part, find_part(type));
    if (part != nullptr) {
      ids.push_back(part->index_ids[id_indexes_[type_number(type)]]);
    }
  }
  return ids;
}

auto directory_session::size_of(directory_part const& part) -> outcome<part_size> {
  if (writing_) {
    return part.size;
  }
  TIDEGATE_TRY(auto const asked, borrow(sql::part_size));
  bind_value(asked.get(), 1, part.id);
  TIDEGATE_TRY(bool const there, connection_.step(asked.get()));
  if (!there) {
    return part_size{};
  }
  return part_size{sqlite3_column_int64(asked.get(), 0), sqlite3_column_int64(asked.get(), 1)};
}

auto directory_session::type_name(std::int64_t rid) -> outcome<std::string_view> {
  auto const part = part_of(rid);
  auto const known = type_names_.find(part);
  if (known != type_names_.end()) {
    return known->second;
  }
  TIDEGATE_TRY(auto const asked, borrow(sql::part_type));
  bind_value(asked.get(), 1, part);
  TIDEGATE_TRY(bool const there, connection_.step(asked.get()));
  if (!there) {
    return failure(store_error{store_fault::damaged,
                               connection_.file() + ": has no part " + std::to_string(part)});
  }
  if (type_names_.size() >= tenants_max) {
    type_names_.clear();
  }
  return type_names_.emplace(part, blob(asked.get(), 0)).first->second;
}

// ---- reading ----

template <class Each>
auto directory_session::each_with_key(std::int64_t index_id, std::string_view key, Each const& each)
    -> outcome<void> {
  for (auto const rid : pending_.of(index_id).added(index_id, key)) {
    TIDEGATE_TRY(auto const asked, borrow(sql::find_resource));
    bind_value(asked.get(), 1, rid);
    TIDEGATE_TRY(bool const there, connection_.step(asked.get()));
    if (there && !each(asked.get())) {
      return {};
    }
  }
  TIDEGATE_TRY(auto const asked, borrow(sql::find_by_key));
  bind_value(asked.get(), 1, index_id);
  bind_value(asked.get(), 2, key);
  for (;;) {
    TIDEGATE_TRY(bool const there, connection_.step(asked.get()));
    if (!there) {
      return {};
    }
    bool const gone =
        pending_.of(index_id).is_removed({index_id, key, sqlite3_column_int64(asked.get(), 0)});
    if (!gone && !each(asked.get())) {
      return {};
    }
  }
}

auto directory_session::find_in_type(model_type const& type, std::string_view id)
    -> outcome<std::optional<directory_resource>> {
  TIDEGATE_TRY(auto const* const part, find_part(type));
  if (part == nullptr) {
    return std::nullopt;
  }
  auto const number = id_indexes_[type_number(type)];
  auto const key = index_key(*type.indexes[number].path.leaf(), scim::json(id));
  std::optional<directory_resource> found;
  TIDEGATE_TRY_VOID(each_with_key(part->index_ids[number], key, [&](sqlite3_stmt* row) {
    // Long ones have the same key when they begin alike.
    if (blob(row, 1) == id) {
      found.emplace(unsigned_of(sqlite3_column_int64(row, 0)), std::string(id),
                    unsigned_of(sqlite3_column_int64(row, 2)), std::string(blob(row, 4)),
                    sqlite3_column_int(row, 3) != 0);
    }
    return !found;
  }));
  return found;
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
    TIDEGATE_TRY(auto const* const part, find_part(type));
    if (part == nullptr) {
      return std::nullopt;
    }
    std::optional<std::string> other;
    auto const look = [&](sqlite3_stmt* row) {
      if (blob(row, 1) != except_id) {
        other = blob(row, 1);
      }
      return !other;
    };
    auto const look_at = [&](std::int64_t index_id) -> outcome<void> {
      if (writing_ && !filter_.may_have(index_id, key)) {
        return {};
      }
      return each_with_key(index_id, key, look);
    };
    TIDEGATE_TRY_VOID(look_at(part->index_ids[index]));
    if (!other && part->sort_ids[index] != part->index_ids[index]) {
      TIDEGATE_TRY_VOID(look_at(part->sort_ids[index]));
    }
    return other;
  });
}

auto directory_session::newest(model_type const& type) -> outcome<std::uint64_t> {
  return noting([&]() -> outcome<std::uint64_t> {
    TIDEGATE_TRY(auto const* const part, find_part(type));
    if (part == nullptr) {
      return 0;
    }
    TIDEGATE_TRY(auto const size, size_of(*part));
    return unsigned_of(size.last_rid);
  });
}

auto directory_session::members(std::uint64_t group_rid,
                                std::function<bool(directory_member const&)> const& each)
    -> outcome<void> {
  return noting([&]() -> outcome<void> {
    TIDEGATE_TRY(auto const asked, borrow(sql::members_of));
    bind_value(asked.get(), 1, signed_of(group_rid));
    for (;;) {
      TIDEGATE_TRY(bool const there, connection_.step(asked.get()));
      if (!there) {
        return {};
      }
      auto const rid = sqlite3_column_int64(asked.get(), 0);
      TIDEGATE_TRY(auto const type, type_name(rid));
      if (!each({unsigned_of(rid), std::string(blob(asked.get(), 1)), std::string(type),
                 std::string(blob(asked.get(), 2))})) {
        return {};
      }
    }
  });
}

auto directory_session::groups_of(std::uint64_t rid) -> outcome<std::vector<directory_member>> {
  return noting([&]() -> outcome<std::vector<directory_member>> {
    TIDEGATE_TRY(auto const asked, borrow(sql::groups_of));
    bind_value(asked.get(), 1, signed_of(rid));
    std::vector<directory_member> all;
    for (;;) {
      TIDEGATE_TRY(bool const there, connection_.step(asked.get()));
      if (!there) {
        return all;
      }
      auto const group = sqlite3_column_int64(asked.get(), 0);
      TIDEGATE_TRY(auto const type, type_name(group));
      TIDEGATE_TRY(auto const resource, parse_stored(connection_, group, blob(asked.get(), 2)));
      auto const* const name = resource.find("displayName");
      auto const* const display = name != nullptr ? name->if_string() : nullptr;
      all.push_back({unsigned_of(group), std::string(blob(asked.get(), 1)), std::string(type),
                     display != nullptr ? *display : std::string()});
    }
  });
}

// ---- writing ----

auto directory_session::read_entries(model_type const& type, std::int64_t rid)
    -> outcome<std::vector<index_entry>> {
  TIDEGATE_TRY(auto const asked, borrow(sql::find_by_rid));
  bind_value(asked.get(), 1, rid);
  TIDEGATE_TRY(bool const there, connection_.step(asked.get()));
  if (!there) {
    return failure(store_error{store_fault::damaged,
                               connection_.file() + ": has no resource " + std::to_string(rid)});
  }
  TIDEGATE_TRY(auto const resource, parse_stored(connection_, rid, blob(asked.get(), 3)));
  return index_entries(type, resource);
}

auto directory_session::stored_entries(directory_part const& part, std::int64_t rid,
                                       std::span<index_entry const> entries)
    -> std::vector<pending_entries::row> {
  std::vector<pending_entries::row> rows;
  rows.reserve(entries.size());
  for (auto const& entry : entries) {
    rows.push_back({(entry.sorts ? part.sort_ids : part.index_ids)[entry.index], entry.key, rid});
  }
  return rows;
}

auto directory_session::insert(model_type const& type, std::string_view id, std::string_view text,
                               std::span<index_entry const> entries) -> outcome<std::uint64_t> {
  return noting([&]() -> outcome<std::uint64_t> {
    // The first thing that a work writes can be taken out by itself, which costs most works a savepoint less: a tenth
    // of all that an insert takes.
    TIDEGATE_TRY(auto const* const there, find_part(type));
    bool const is_first = there != nullptr && !savepoint_ && inserted_ == 0;
    if (!is_first) {
      TIDEGATE_TRY_VOID(write_ahead());
    }
    TIDEGATE_TRY(auto* const part, part_to_change(type));
    if (part->size.last_rid >= rid_base(part->id) + sequence_max) {
      return failure(store_error{store_fault::full, connection_.file() + ": has no rid left"});
    }
    auto const rid = ++part->size.last_rid;
    ++part->size.count;
    work_blocks_.emplace_back(block_of(rid), 1);
    TIDEGATE_TRY_VOID(run(sql::insert_resource, rid, id, text));
    if (is_first) {
      inserted_ = rid;
    }
    for (auto const& row : stored_entries(*part, rid, entries)) {
      pending_.of(row.index_id).add_new(row);
      filter_.add(row.index_id, row.key);
    }
    write_redo(written_, {.done = redo::what::insert,
                          .rid = unsigned_of(rid),
                          .tenant = tenant_->tenant,
                          .type = type.definition.type().name,
                          .id = id,
                          .text = text});
    return unsigned_of(rid);
  });
}

auto directory_session::update(model_type const& type, std::uint64_t rid, std::string_view text,
                               std::span<index_entry const> entries) -> outcome<void> {
  return noting([&]() -> outcome<void> {
    TIDEGATE_TRY_VOID(write_ahead());
    TIDEGATE_TRY(auto* const part, part_to_change(type));
    TIDEGATE_TRY(auto const old_entries, read_entries(type, signed_of(rid)));
    // What stays is taken out and added, which comes to nothing.
    for (auto const& row : stored_entries(*part, signed_of(rid), old_entries)) {
      pending_.of(row.index_id).remove(row);
    }
    for (auto const& row : stored_entries(*part, signed_of(rid), entries)) {
      pending_.of(row.index_id).add(row);
      filter_.add(row.index_id, row.key);
    }
    TIDEGATE_TRY_VOID(run(sql::update_resource, signed_of(rid), text));
    write_redo(written_, {.done = redo::what::update,
                          .rid = rid,
                          .tenant = tenant_->tenant,
                          .type = type.definition.type().name,
                          .text = text});
    return {};
  });
}

auto directory_session::remove(model_type const& type, std::uint64_t rid) -> outcome<void> {
  return noting([&]() -> outcome<void> {
    TIDEGATE_TRY_VOID(write_ahead());
    TIDEGATE_TRY(auto* const part, part_to_change(type));
    TIDEGATE_TRY(auto const entries, read_entries(type, signed_of(rid)));
    for (auto const& row : stored_entries(*part, signed_of(rid), entries)) {
      pending_.of(row.index_id).remove(row);
    }
    TIDEGATE_TRY_VOID(run(sql::remove_members, signed_of(rid)));
    TIDEGATE_TRY_VOID(run(sql::remove_memberships, signed_of(rid)));
    TIDEGATE_TRY_VOID(run(sql::remove_resource, signed_of(rid)));
    --part->size.count;
    work_blocks_.emplace_back(block_of(signed_of(rid)), -1);
    write_redo(written_, {.done = redo::what::remove,
                          .rid = rid,
                          .tenant = tenant_->tenant,
                          .type = type.definition.type().name});
    return {};
  });
}

auto directory_session::add_member(std::uint64_t group_rid, std::uint64_t member_rid,
                                   std::string_view display) -> outcome<bool> {
  return noting([&]() -> outcome<bool> {
    TIDEGATE_TRY_VOID(write_ahead());
    // Where it fails, the work is undone with all it has written.
    write_redo(written_, {.done = redo::what::add_member,
                          .rid = group_rid,
                          .member = member_rid,
                          .tenant = tenant_->tenant,
                          .text = display});
    auto const group = signed_of(group_rid);
    auto const member = signed_of(member_rid);
    {
      TIDEGATE_TRY(auto const asked, borrow(sql::is_member));
      bind_value(asked.get(), 1, member);
      bind_value(asked.get(), 2, group);
      TIDEGATE_TRY(bool const there, connection_.step(asked.get()));
      if (there) {
        TIDEGATE_TRY_VOID(
            run(sql::update_member, group, sqlite3_column_int64(asked.get(), 0), display));
        return false;
      }
    }
    TIDEGATE_TRY(auto const last, borrow(sql::last_member));
    bind_value(last.get(), 1, group);
    TIDEGATE_TRY_VOID(connection_.step(last.get()));
    auto const seq = sqlite3_column_int64(last.get(), 0) + 1;
    TIDEGATE_TRY(auto const found, borrow(sql::id_by_rid));
    bind_value(found.get(), 1, member);
    TIDEGATE_TRY(bool const there, connection_.step(found.get()));
    if (!there) {
      return failure(store_error{store_fault::damaged, connection_.file() + ": has no resource " +
                                                           std::to_string(member)});
    }
    auto const id = std::string(blob(found.get(), 0));
    bool const marked = sqlite3_column_int(found.get(), 1) != 0;
    TIDEGATE_TRY_VOID(run(sql::insert_member, group, seq, member, std::string_view(id), display));
    if (!marked) {
      TIDEGATE_TRY_VOID(run(sql::mark_in_groups, member));
    }
    return true;
  });
}

auto directory_session::remove_member(std::uint64_t group_rid, std::uint64_t member_rid)
    -> outcome<bool> {
  return noting([&]() -> outcome<bool> {
    TIDEGATE_TRY_VOID(write_ahead());
    std::int64_t seq = 0;
    {
      TIDEGATE_TRY(auto const asked, borrow(sql::is_member));
      bind_value(asked.get(), 1, signed_of(member_rid));
      bind_value(asked.get(), 2, signed_of(group_rid));
      TIDEGATE_TRY(bool const there, connection_.step(asked.get()));
      if (!there) {
        return false;
      }
      seq = sqlite3_column_int64(asked.get(), 0);
    }
    TIDEGATE_TRY_VOID(run(sql::remove_member, signed_of(group_rid), seq));
    write_redo(written_, {.done = redo::what::remove_member,
                          .rid = group_rid,
                          .member = member_rid,
                          .tenant = tenant_->tenant});
    return true;
  });
}

auto directory_session::remove_members(std::uint64_t group_rid) -> outcome<void> {
  return noting([&]() -> outcome<void> {
    TIDEGATE_TRY_VOID(write_ahead());
    write_redo(written_,
               {.done = redo::what::remove_members, .rid = group_rid, .tenant = tenant_->tenant});
    return run(sql::remove_members, signed_of(group_rid));
  });
}

// ---- what is done again ----

auto directory_session::repeat(std::string_view group) -> outcome<void> {
  while (!group.empty()) {
    auto const one = read_redo(group);
    if (!one) {
      return failure(store_error{store_fault::damaged,
                                 connection_.file() + ".journal: has what no directory writes"});
    }
    begin_work(one->tenant);
    TIDEGATE_TRY_VOID(repeat_one(*one));
    TIDEGATE_TRY_VOID(keep_work());
    forget_written();
  }
  return relieve();
}

auto directory_session::repeat_one(redo const& one) -> outcome<void> {
  switch (one.done) {
    case redo::what::insert: {
      TIDEGATE_TRY(auto const* const type, find_type(one.type));
      TIDEGATE_TRY(auto const resource, parse_stored(connection_, signed_of(one.rid), one.text));
      TIDEGATE_TRY(auto const rid, insert(*type, one.id, one.text, index_entries(*type, resource)));
      if (rid != one.rid) {
        return failure(store_error{store_fault::damaged,
                                   connection_.file() + ": is not what its journal is of"});
      }
      return {};
    }
    case redo::what::update: {
      TIDEGATE_TRY(auto const* const type, find_type(one.type));
      TIDEGATE_TRY(auto const resource, parse_stored(connection_, signed_of(one.rid), one.text));
      return update(*type, one.rid, one.text, index_entries(*type, resource));
    }
    case redo::what::remove: {
      TIDEGATE_TRY(auto const* const type, find_type(one.type));
      return remove(*type, one.rid);
    }
    case redo::what::add_member:
      TIDEGATE_TRY_VOID(add_member(one.rid, one.member, one.text));
      return {};
    case redo::what::remove_member:
      TIDEGATE_TRY_VOID(remove_member(one.rid, one.member));
      return {};
    case redo::what::remove_members: return remove_members(one.rid);
  }
  return {};
}

auto directory_session::find_type(std::string_view name) const -> outcome<model_type const*> {
  auto const* const type = model_->find(name);
  if (type == nullptr) {
    return failure(store_error{store_fault::unavailable,
                               connection_.file() + ".journal: has changes to resources of " +
                                   std::string(name) + ", which is no type any more"});
  }
  return type;
}

}  // namespace tidegate::store_sqlite
