// SPDX-License-Identifier: Apache-2.0
#include "directory/session.hpp"

#include "directory/rows.hpp"

#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>

namespace tidegate::store_sqlite {

using scim::index_entry;
using scim::model_type;
using store::directory_member;
using store::directory_resource;
using store::store_error;
using store::store_fault;

namespace {

/// Calls `each` with a statement at the rid, id, version, in_groups and text of every resource that
/// has the key, until it returns false.
template <class Each>
auto each_with_key(connection& file, statement_cache& statements, std::int64_t index_id,
                   std::string_view key, Each const& each) -> outcome<void> {
  TIDEGATE_TRY(auto const asked, statements.borrow(sql.find_by_key, index_id, key));
  for (;;) {
    TIDEGATE_TRY(bool const there, file.step(asked.get()));
    if (!there || !each(asked.get())) {
      return {};
    }
  }
}

/// `which` adds or removes an entry.
auto change_entries(statement_cache& statements, fixed_statement const& which,
                    directory_part const& part, std::int64_t rid,
                    std::span<index_entry const> entries) -> outcome<void> {
  for (auto const& entry : entries) {
    auto const& ids = entry.sorts ? part.sort_ids : part.index_ids;
    TIDEGATE_TRY_VOID(statements.run(which, ids[entry.index], entry.key, rid));
  }
  return {};
}

}  // namespace

directory_session::directory_session(connection connection,
                                     std::shared_ptr<scim::model const> model)
    : session(std::move(model)),
      connection_(std::move(connection)),
      statements_(connection_),
      parts_(connection_, statements_, this->model()) {
  add_functions();
}

void directory_session::add_functions() noexcept {
  // What fails for lack of memory is seen when a statement with it is prepared.
  sqlite3_create_function_v2(connection_.get(), "show", -1, SQLITE_UTF8 | SQLITE_DIRECTONLY, this,
                             directory_rows::show_row, nullptr, nullptr, nullptr);
}

void directory_session::close() noexcept {
  statements_.clear();
  parts_.clear();
  connection_ = connection();
}

void directory_session::reopen(connection connection) {
  connection_ = std::move(connection);
  add_functions();
}

// ---- transactions ----

auto directory_session::begin_read(std::string_view tenant) -> outcome<void> {
  parts_.trim();
  statements_.trim();
  forget_failure();
  parts_.enter(tenant);
  return statements_.run(sql.begin);
}

void directory_session::end_read() noexcept {
  if (!statements_.run(sql.end)) {
    connection_.rollback();
  }
}

auto directory_session::begin_write() -> outcome<void> {
  parts_.trim();
  statements_.trim();
  writing_ = true;
  return connection_.begin();
}

void directory_session::begin_transaction(std::string_view tenant) {
  forget_failure();
  parts_.enter(tenant);
  has_written_ = false;
}

auto directory_session::put_sizes() -> outcome<void> {
  for (auto const* const part : changed_parts_) {
    TIDEGATE_TRY_VOID(
        statements_.run(sql.update_part, part->size.last_rid, part->size.count, part->id));
  }
  for (auto const& [block, change] : blocks_) {
    TIDEGATE_TRY_VOID(statements_.run(sql.update_block, block, change));
  }
  changed_parts_.clear();
  blocks_.clear();
  return {};
}

auto directory_session::commit() -> outcome<void> {
  TIDEGATE_TRY_VOID(put_sizes());
  return statements_.run(sql.end);
}

void directory_session::rollback() noexcept {
  connection_.rollback();
  changed_parts_.clear();
  blocks_.clear();
  parts_.clear();  // they may say what was undone
}

// ---- parts ----

auto directory_session::part_to_change(model_type const& type) -> outcome<directory_part*> {
  TIDEGATE_TRY(auto* const part, parts_.find_or_make(type));
  has_written_ = true;
  if (std::ranges::find(changed_parts_, part) == changed_parts_.end()) {
    changed_parts_.push_back(part);
  }
  return part;
}

auto directory_session::size_of(directory_part const& part) -> outcome<part_size> {
  return writing_ ? outcome<part_size>(part.size) : parts_.stored_size(part);
}

// ---- reading ----

auto directory_session::find_in_type(model_type const& type, std::string_view id)
    -> outcome<std::optional<directory_resource>> {
  TIDEGATE_TRY(auto const* const part, parts_.find(type));
  if (part == nullptr) {
    return std::nullopt;
  }
  auto const number = id_index(type);
  auto const key = index_key(*type.indexes[number].path.leaf(), json::value(id));
  std::optional<directory_resource> found;
  TIDEGATE_TRY_VOID(
      each_with_key(connection_, statements_, part->index_ids[number], key, [&](sqlite3_stmt* row) {
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

auto directory_session::find_unique(model_type const& type, std::size_t index, std::string_view key,
                                    std::string_view except_id)
    -> outcome<std::optional<std::string>> {
  return tracking_failure([&]() -> outcome<std::optional<std::string>> {
    TIDEGATE_TRY(auto const* const part, parts_.find(type));
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
    TIDEGATE_TRY_VOID(each_with_key(connection_, statements_, part->index_ids[index], key, look));
    if (!other && part->sort_ids[index] != part->index_ids[index]) {
      TIDEGATE_TRY_VOID(each_with_key(connection_, statements_, part->sort_ids[index], key, look));
    }
    return other;
  });
}

auto directory_session::newest(model_type const& type) -> outcome<std::uint64_t> {
  return tracking_failure([&]() -> outcome<std::uint64_t> {
    TIDEGATE_TRY(auto const* const part, parts_.find(type));
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
  return tracking_failure([&]() -> outcome<void> {
    TIDEGATE_TRY(auto const asked, statements_.borrow(sql.members_of, signed_of(group_rid)));
    for (;;) {
      TIDEGATE_TRY(bool const there, connection_.step(asked.get()));
      if (!there) {
        return {};
      }
      auto const rid = sqlite3_column_int64(asked.get(), 0);
      TIDEGATE_TRY(auto const type, parts_.type_name(rid));
      if (!each({unsigned_of(rid), std::string(blob(asked.get(), 1)), std::string(type),
                 std::string(blob(asked.get(), 2))})) {
        return {};
      }
    }
  });
}

auto directory_session::groups_of(std::uint64_t rid) -> outcome<std::vector<directory_member>> {
  return tracking_failure([&]() -> outcome<std::vector<directory_member>> {
    TIDEGATE_TRY(auto const asked, statements_.borrow(sql.groups_of, signed_of(rid)));
    std::vector<directory_member> all;
    for (;;) {
      TIDEGATE_TRY(bool const there, connection_.step(asked.get()));
      if (!there) {
        return all;
      }
      auto const group = sqlite3_column_int64(asked.get(), 0);
      TIDEGATE_TRY(auto const type, parts_.type_name(group));
      TIDEGATE_TRY(auto member, read_group(connection_.file(), group, blob(asked.get(), 1), type,
                                           blob(asked.get(), 2)));
      all.push_back(std::move(member));
    }
  });
}

// ---- writing ----

auto directory_session::read_entries(model_type const& type, std::int64_t rid)
    -> outcome<std::vector<index_entry>> {
  TIDEGATE_TRY(auto const asked, statements_.borrow(sql.find_by_rid, rid));
  TIDEGATE_TRY(bool const there, connection_.step(asked.get()));
  if (!there) {
    return failure(store_error{store_fault::damaged,
                               connection_.file() + ": has no resource " + std::to_string(rid)});
  }
  TIDEGATE_TRY(auto const resource, parse_stored(connection_.file(), rid, blob(asked.get(), 3)));
  return index_entries(type, resource);
}

auto directory_session::insert(model_type const& type, std::string_view id, std::string_view text,
                               std::span<index_entry const> entries) -> outcome<std::uint64_t> {
  return tracking_failure([&]() -> outcome<std::uint64_t> {
    TIDEGATE_TRY(auto* const part, part_to_change(type));
    if (part->size.last_rid >= rid_end(part->id)) {
      return failure(store_error{store_fault::full, connection_.file() + ": has no rid left"});
    }
    auto const rid = ++part->size.last_rid;
    ++part->size.count;
    ++blocks_[block_of(rid)];
    TIDEGATE_TRY_VOID(statements_.run(sql.insert_resource, rid, id, text));
    TIDEGATE_TRY_VOID(change_entries(statements_, sql.insert_entry, *part, rid, entries));
    return unsigned_of(rid);
  });
}

auto directory_session::update(model_type const& type, std::uint64_t rid, std::string_view text,
                               std::span<index_entry const> entries) -> outcome<void> {
  return tracking_failure([&]() -> outcome<void> {
    TIDEGATE_TRY(auto* const part, part_to_change(type));
    TIDEGATE_TRY(auto const old_entries, read_entries(type, signed_of(rid)));
    // What stays is left alone. Both are in order.
    auto const in_order = [](index_entry const& a, index_entry const& b) {
      return std::tie(a.index, a.key, a.sorts) < std::tie(b.index, b.key, b.sorts);
    };
    std::vector<index_entry> gone;
    std::vector<index_entry> added;
    std::ranges::set_difference(old_entries, entries, std::back_inserter(gone), in_order);
    std::ranges::set_difference(entries, old_entries, std::back_inserter(added), in_order);
    TIDEGATE_TRY_VOID(change_entries(statements_, sql.remove_entry, *part, signed_of(rid), gone));
    TIDEGATE_TRY_VOID(change_entries(statements_, sql.insert_entry, *part, signed_of(rid), added));
    return statements_.run(sql.update_resource, signed_of(rid), text);
  });
}

auto directory_session::remove(model_type const& type, std::uint64_t rid) -> outcome<void> {
  return tracking_failure([&]() -> outcome<void> {
    TIDEGATE_TRY(auto* const part, part_to_change(type));
    TIDEGATE_TRY(auto const entries, read_entries(type, signed_of(rid)));
    TIDEGATE_TRY_VOID(
        change_entries(statements_, sql.remove_entry, *part, signed_of(rid), entries));
    TIDEGATE_TRY_VOID(statements_.run(sql.remove_members, signed_of(rid)));
    TIDEGATE_TRY_VOID(statements_.run(sql.remove_memberships, signed_of(rid)));
    TIDEGATE_TRY_VOID(statements_.run(sql.remove_resource, signed_of(rid)));
    --part->size.count;
    --blocks_[block_of(signed_of(rid))];
    return {};
  });
}

auto directory_session::add_member(std::uint64_t group_rid, std::uint64_t member_rid,
                                   std::string_view display) -> outcome<bool> {
  return tracking_failure([&]() -> outcome<bool> {
    has_written_ = true;
    auto const group = signed_of(group_rid);
    auto const member = signed_of(member_rid);
    {
      TIDEGATE_TRY(auto const asked, statements_.borrow(sql.is_member, member, group));
      TIDEGATE_TRY(bool const there, connection_.step(asked.get()));
      if (there) {
        TIDEGATE_TRY_VOID(statements_.run(sql.update_member, group,
                                          sqlite3_column_int64(asked.get(), 0), display));
        return false;
      }
    }
    TIDEGATE_TRY(auto const last, statements_.borrow(sql.last_member, group));
    TIDEGATE_TRY_VOID(connection_.step(last.get()));
    auto const seq = sqlite3_column_int64(last.get(), 0) + 1;
    TIDEGATE_TRY(auto const found, statements_.borrow(sql.id_by_rid, member));
    TIDEGATE_TRY(bool const there, connection_.step(found.get()));
    if (!there) {
      return failure(store_error{store_fault::damaged, connection_.file() + ": has no resource " +
                                                           std::to_string(member)});
    }
    auto const id = std::string(blob(found.get(), 0));
    bool const marked = sqlite3_column_int(found.get(), 1) != 0;
    TIDEGATE_TRY_VOID(
        statements_.run(sql.insert_member, group, seq, member, std::string_view(id), display));
    if (!marked) {
      TIDEGATE_TRY_VOID(statements_.run(sql.mark_in_groups, member));
    }
    return true;
  });
}

auto directory_session::remove_member(std::uint64_t group_rid, std::uint64_t member_rid)
    -> outcome<bool> {
  return tracking_failure([&]() -> outcome<bool> {
    std::int64_t seq = 0;
    {
      TIDEGATE_TRY(auto const asked,
                   statements_.borrow(sql.is_member, signed_of(member_rid), signed_of(group_rid)));
      TIDEGATE_TRY(bool const there, connection_.step(asked.get()));
      if (!there) {
        return false;
      }
      seq = sqlite3_column_int64(asked.get(), 0);
    }
    has_written_ = true;
    TIDEGATE_TRY_VOID(statements_.run(sql.remove_member, signed_of(group_rid), seq));
    return true;
  });
}

auto directory_session::remove_members(std::uint64_t group_rid) -> outcome<void> {
  return tracking_failure([&]() -> outcome<void> {
    has_written_ = true;
    return statements_.run(sql.remove_members, signed_of(group_rid));
  });
}

}  // namespace tidegate::store_sqlite
