// SPDX-License-Identifier: Apache-2.0
#include "directory/session.hpp"

#include "server_schema.hpp"

#include <tidegate/scim/index_key.hpp>

#include <algorithm>
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

/// How many names of types a session remembers.
constexpr std::size_t type_names_max = 4096;

[[nodiscard]] auto tenant_lock(std::string_view tenant) -> std::int64_t {
  return lock_key("directory tenant " + std::string(tenant));
}

/// Whether an error of the statement COMMIT says that the transaction was rolled back. 08: a
/// connection was lost, perhaps one behind ours; 57P: the server ends; 40003: it says itself that
/// it does not know.
[[nodiscard]] auto says_rolled_back(std::string const& sqlstate) noexcept -> bool {
  return sqlstate.size() == 5 && !sqlstate.starts_with("08") && !sqlstate.starts_with("57P") &&
         sqlstate != "40003";
}

}  // namespace

directory_session::directory_session(connection server, std::shared_ptr<scim::model const> model)
    : session(std::move(model), scim::sql_dialect::postgresql), server_(std::move(server)) {}

auto directory_session::open(server_settings const& settings, std::chrono::milliseconds timeout,
                             std::shared_ptr<scim::model const> model)
    -> outcome<std::unique_ptr<directory_session>> {
  TIDEGATE_TRY(auto server, connection::open(settings, timeout, statement_texts()));
  // Every list goes along an index, at any size of the tables and whatever the server knows about
  // them.
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

/// What every group has to know before its first transaction.
auto directory_session::begin(std::string_view tenant) -> outcome<void> {
  forget_failure();
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
    TIDEGATE_TRY(indexes_, load_indexes(server_, model()));
  }
  parts_.assign(model().types().size(), std::nullopt);
  for (int i = 0; i < parts.size(); ++i) {
    if (auto const* const type = model().find(parts.octets(i, 0))) {
      parts_[type_number(*type)] =
          directory_part{parts.number(i, 1), {parts.number(i, 2), parts.number(i, 3)}};
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

void directory_session::begin_transaction(bool is_alone) {
  forget_failure();
  is_alone_ = is_alone;
  savepoint_ = false;
  parts_before_ = parts_;
  transaction_blocks_.clear();
  group_ = {};
}

auto directory_session::keep_transaction() -> outcome<void> {
  TIDEGATE_TRY_VOID(send_added());
  group_ = {};
  if (std::exchange(savepoint_, false)) {
    TIDEGATE_TRY_VOID(send(sql::release));
  }
  for (auto const& [block, change] : transaction_blocks_) {
    blocks_[block] += change;
  }
  return {};
}

auto directory_session::undo_transaction() -> outcome<void> {
  group_ = {};
  texts_.clear();
  if (std::exchange(savepoint_, false)) {
    // What went wrong in this transaction is not said again.
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
      TIDEGATE_TRY_VOID(
          send(sql::update_part, parameters(part->id, part->size.last_rid, part->size.count)));
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
    part = directory_part{id, {rid_base(id), 0}};
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

auto directory_session::ids_of(model_type const& type, directory_part const& part) const
    -> index_slots {
  index_slots ids;
  for (std::size_t i = 0; i < type.indexes.size(); ++i) {
    ids.values.push_back(index_id(type, part, i));
    ids.sorted.push_back(sort_id(type, part, i));
  }
  return ids;
}

auto directory_session::id_index_ids() const -> std::vector<std::int64_t> {
  std::vector<std::int64_t> ids;
  for (auto const& type : model().types()) {
    if (auto const* const part = find_part(type)) {
      ids.push_back(index_id(type, *part, id_index(type)));
    }
  }
  return ids;
}

auto directory_session::type_name(std::int64_t rid) -> outcome<std::string_view> {
  auto const part = part_of(rid);
  for (auto const& type : model().types()) {
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
  auto const number = id_index(type);
  auto const key = index_key(*type.indexes[number].path.leaf(), json::value(id));
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

auto directory_session::find_unique(model_type const& type, std::size_t index, std::string_view key,
                                    std::string_view except_id)
    -> outcome<std::optional<std::string>> {
  return tracking_failure([&]() -> outcome<std::optional<std::string>> {
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
  return part != nullptr ? unsigned_of(part->size.last_rid) : 0;
}

auto directory_session::members(std::uint64_t group_rid,
                                std::function<bool(directory_member const&)> const& each)
    -> outcome<void> {
  constexpr std::int64_t at_once = 1000;
  return tracking_failure([&]() -> outcome<void> {
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
  return tracking_failure([&]() -> outcome<std::vector<directory_member>> {
    TIDEGATE_TRY(auto const found, ask(sql::groups_of, parameters(signed_of(rid))));
    std::vector<directory_member> all;
    for (int i = 0; i < found.size(); ++i) {
      auto const group = found.number(i, 0);
      TIDEGATE_TRY(auto const type, type_name(group));
      TIDEGATE_TRY(auto member,
                   read_group(server_.name(), group, found.octets(i, 1), type, found.octets(i, 2)));
      all.push_back(std::move(member));
    }
    return all;
  });
}

}  // namespace tidegate::store_postgres
