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

/// How many tenants and statements of filters a session remembers.
constexpr std::size_t tenants_max = 4096;
constexpr std::size_t filter_statements_max = 128;

template <class Cache>
void trim(Cache& cache, std::size_t size_max) noexcept {
  if (cache.size() >= size_max) {
    cache.clear();
  }
}

}  // namespace

directory_session::directory_session(connection connection,
                                     std::shared_ptr<scim::model const> model)
    : session(std::move(model), scim::sql_dialect::sqlite), connection_(std::move(connection)) {
  add_functions();
}

void directory_session::add_functions() noexcept {
  // What fails for lack of memory is seen when a statement with it is prepared.
  sqlite3_create_function_v2(connection_.get(), "show", -1, SQLITE_UTF8 | SQLITE_DIRECTONLY, this,
                             directory_rows::show_row, nullptr, nullptr, nullptr);
}

void directory_session::close() noexcept {
  for (auto& each : statements_) {
    each.clear();
  }
  filter_statements_.clear();
  tenants_.clear();
  type_names_.clear();
  connection_ = connection();
}

void directory_session::reopen(connection connection) {
  connection_ = std::move(connection);
  add_functions();
}

// ---- statements ----

auto directory_session::borrow_from(std::vector<statement>& home, std::string_view text)
    -> outcome<borrowed_statement> {
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
  forget_failure();
  auto [at, is_new] = tenants_.try_emplace(std::string(tenant));
  if (is_new) {
    at->second.tenant = tenant;
    at->second.parts.resize(model().types().size());
  }
  tenant_ = &at->second;
}

auto directory_session::begin_read(std::string_view tenant) -> outcome<void> {
  trim(tenants_, tenants_max);
  trim(filter_statements_, filter_statements_max);
  enter(tenant);
  return run(sql::begin);
}

void directory_session::end_read() noexcept {
  if (!run(sql::end)) {
    connection_.rollback();
  }
}

auto directory_session::begin_write() -> outcome<void> {
  trim(tenants_, tenants_max);
  trim(filter_statements_, filter_statements_max);
  writing_ = true;
  return connection_.begin();
}

void directory_session::begin_transaction(std::string_view tenant) {
  enter(tenant);
  has_written_ = false;
}

auto directory_session::put_sizes() -> outcome<void> {
  for (auto const* const part : parts_) {
    TIDEGATE_TRY_VOID(run(sql::update_part, part->size.last_rid, part->size.count, part->id));
  }
  for (auto const& [block, change] : blocks_) {
    TIDEGATE_TRY_VOID(run(sql::update_block, block, change));
  }
  parts_.clear();
  blocks_.clear();
  return {};
}

auto directory_session::commit() -> outcome<void> {
  TIDEGATE_TRY_VOID(put_sizes());
  return run(sql::end);
}

void directory_session::rollback() noexcept {
  connection_.rollback();
  parts_.clear();
  blocks_.clear();
  tenants_.clear();  // it may say what was undone
  type_names_.clear();
  tenant_ = nullptr;
}

// ---- parts ----

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
  }
  has_written_ = true;
  if (std::ranges::find(parts_, &*part) == parts_.end()) {
    parts_.push_back(&*part);
  }
  return &*part;
}

auto directory_session::id_index_ids() -> outcome<std::vector<std::int64_t>> {
  std::vector<std::int64_t> ids;
  for (auto const& type : model().types()) {
    TIDEGATE_TRY(auto const* const part, find_part(type));
    if (part != nullptr) {
      ids.push_back(part->index_ids[id_index(type)]);
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
  TIDEGATE_TRY(auto const asked, borrow(sql::find_by_key));
  bind_value(asked.get(), 1, index_id);
  bind_value(asked.get(), 2, key);
  for (;;) {
    TIDEGATE_TRY(bool const there, connection_.step(asked.get()));
    if (!there) {
      return {};
    }
    if (!each(asked.get())) {
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
  auto const number = id_index(type);
  auto const key = index_key(*type.indexes[number].path.leaf(), json::value(id));
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

auto directory_session::find_unique(model_type const& type, std::size_t index, std::string_view key,
                                    std::string_view except_id)
    -> outcome<std::optional<std::string>> {
  return tracking_failure([&]() -> outcome<std::optional<std::string>> {
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
    TIDEGATE_TRY_VOID(each_with_key(part->index_ids[index], key, look));
    if (!other && part->sort_ids[index] != part->index_ids[index]) {
      TIDEGATE_TRY_VOID(each_with_key(part->sort_ids[index], key, look));
    }
    return other;
  });
}

auto directory_session::newest(model_type const& type) -> outcome<std::uint64_t> {
  return tracking_failure([&]() -> outcome<std::uint64_t> {
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
  return tracking_failure([&]() -> outcome<void> {
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
  return tracking_failure([&]() -> outcome<std::vector<directory_member>> {
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
      TIDEGATE_TRY(auto member, read_group(connection_.file(), group, blob(asked.get(), 1), type,
                                           blob(asked.get(), 2)));
      all.push_back(std::move(member));
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
  TIDEGATE_TRY(auto const resource, parse_stored(connection_.file(), rid, blob(asked.get(), 3)));
  return index_entries(type, resource);
}

auto directory_session::change_entries(sql which, directory_part const& part, std::int64_t rid,
                                       std::span<index_entry const> entries) -> outcome<void> {
  for (auto const& entry : entries) {
    auto const& ids = entry.sorts ? part.sort_ids : part.index_ids;
    TIDEGATE_TRY_VOID(run(which, ids[entry.index], entry.key, rid));
  }
  return {};
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
    TIDEGATE_TRY_VOID(run(sql::insert_resource, rid, id, text));
    TIDEGATE_TRY_VOID(change_entries(sql::insert_entry, *part, rid, entries));
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
    TIDEGATE_TRY_VOID(change_entries(sql::remove_entry, *part, signed_of(rid), gone));
    TIDEGATE_TRY_VOID(change_entries(sql::insert_entry, *part, signed_of(rid), added));
    return run(sql::update_resource, signed_of(rid), text);
  });
}

auto directory_session::remove(model_type const& type, std::uint64_t rid) -> outcome<void> {
  return tracking_failure([&]() -> outcome<void> {
    TIDEGATE_TRY(auto* const part, part_to_change(type));
    TIDEGATE_TRY(auto const entries, read_entries(type, signed_of(rid)));
    TIDEGATE_TRY_VOID(change_entries(sql::remove_entry, *part, signed_of(rid), entries));
    TIDEGATE_TRY_VOID(run(sql::remove_members, signed_of(rid)));
    TIDEGATE_TRY_VOID(run(sql::remove_memberships, signed_of(rid)));
    TIDEGATE_TRY_VOID(run(sql::remove_resource, signed_of(rid)));
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
  return tracking_failure([&]() -> outcome<bool> {
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
    has_written_ = true;
    TIDEGATE_TRY_VOID(run(sql::remove_member, signed_of(group_rid), seq));
    return true;
  });
}

auto directory_session::remove_members(std::uint64_t group_rid) -> outcome<void> {
  return tracking_failure([&]() -> outcome<void> {
    has_written_ = true;
    return run(sql::remove_members, signed_of(group_rid));
  });
}

}  // namespace tidegate::store_sqlite
