// SPDX-License-Identifier: Apache-2.0
#include "directory/session.hpp"

#include "server_schema.hpp"

#include <tidegate/scim/index_key.hpp>

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
    : session(std::move(model)), channel_(std::move(server)), parts_(this->model()) {}

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

// ---- transactions ----

/// What every group has to know before its first transaction.
auto directory_session::begin(std::string_view tenant) -> outcome<void> {
  forget_failure();
  in_doubt_ = false;
  channel_.server().forget_error();
  tenant_ = tenant;
  texts_.clear();
  group_ = {};
  channel_.forget_members();
  TIDEGATE_TRY_VOID(channel_.send(sql.generation));
  TIDEGATE_TRY_VOID(channel_.send(sql.parts, parameters(tenant)));
  TIDEGATE_TRY(auto const answers, channel_.server().finish());
  auto const& generation = answers[answers.size() - 2];
  auto const& parts = answers.back();
  if (generation.number(0, 0) != parts_.indexes().generation) {
    TIDEGATE_TRY(parts_.indexes(), load_indexes(channel_.server(), model()));
  }
  parts_.load(parts);
  parts_begun_ = parts_.all();
  return {};
}

auto directory_session::begin_read(std::string_view tenant) -> outcome<void> {
  writing_ = false;
  TIDEGATE_TRY_VOID(channel_.send(sql.begin_read));
  return begin(tenant);
}

void directory_session::end_read() {
  if (channel_.send(sql.rollback)) {
    channel_.server().leave();
  }
}

auto directory_session::begin_write(std::string_view tenant) -> outcome<void> {
  writing_ = true;
  in_doubt_ = false;
  blocks_.clear();
  TIDEGATE_TRY_VOID(channel_.send(sql.begin_write));
  TIDEGATE_TRY_VOID(channel_.send(sql.lock_tenant, parameters(index_lock(), tenant_lock(tenant))));
  TIDEGATE_TRY_VOID(begin(tenant));
  if (!parts_.indexes().are_all) {
    return failure(channel_.server().error(store_fault::unavailable, other_indexes));
  }
  return {};
}

void directory_session::begin_transaction(bool is_alone) {
  forget_failure();
  channel_.begin_transaction(is_alone);
  parts_before_ = parts_.all();
  transaction_blocks_.clear();
  group_ = {};
}

auto directory_session::keep_transaction() -> outcome<void> {
  group_ = {};
  TIDEGATE_TRY_VOID(channel_.keep_transaction());
  for (auto const& [block, change] : transaction_blocks_) {
    blocks_[block] += change;
  }
  return {};
}

auto directory_session::undo_transaction() -> outcome<void> {
  group_ = {};
  texts_.clear();
  TIDEGATE_TRY_VOID(channel_.undo_transaction());
  if (parts_.all() != parts_before_) {
    parts_.restore(parts_before_);
    type_names_.clear();
  }
  return {};
}

auto directory_session::commit(write_mark const& mark) -> outcome<void> {
  for (std::size_t i = 0; i < parts_begun_.size(); ++i) {
    auto const& part = parts_.all()[i];
    if (part && part != parts_begun_[i]) {
      TIDEGATE_TRY_VOID(channel_.send(sql.update_part,
                                      parameters(part->id, part->size.last_rid, part->size.count)));
    }
  }
  if (!blocks_.empty()) {
    std::vector<std::int64_t> ids;
    std::vector<std::int64_t> changes;
    for (auto const& [block, change] : blocks_) {
      ids.push_back(block);
      changes.push_back(change);
    }
    TIDEGATE_TRY_VOID(channel_.send(sql.update_blocks, parameters(ids, changes)));
  }
  TIDEGATE_TRY_VOID(channel_.send(sql.mark_write, parameters(mark.writer, mark.number)));
  if (channel_.server().is_broken()) {
    return failure(channel_.server().error(store_fault::unavailable, "the connection is lost"));
  }
  auto done = channel_.ask(sql.commit);
  if (!done) {
    in_doubt_ = channel_.server().is_broken() || !says_rolled_back(channel_.server().sqlstate());
    return failure(std::move(done).error());
  }
  if (std::string_view(PQcmdStatus(const_cast<PGresult*>(done->get()))) != "COMMIT") {
    return failure(
        channel_.server().error(store_fault::unavailable, "the transaction was not committed"));
  }
  return {};
}

void directory_session::rollback() {
  group_ = {};
  channel_.forget_members();
  texts_.clear();
  type_names_.clear();  // it may say what was undone
  if (channel_.server().is_broken()) {
    return;
  }
  // What was sent and failed has to be read first: what is behind it in the same group is not run.
  std::ignore = channel_.server().finish();
  if (channel_.send(sql.rollback)) {
    std::ignore = channel_.server().finish();
  }
}

auto directory_session::was_committed(std::string_view tenant, write_mark const& mark)
    -> outcome<bool> {
  TIDEGATE_TRY_VOID(channel_.send(sql.begin_write));
  TIDEGATE_TRY_VOID(channel_.send(sql.wait_for_tenant, parameters(tenant_lock(tenant))));
  TIDEGATE_TRY(auto const found,
               channel_.ask(sql.find_write, parameters(mark.writer, mark.number)));
  if (found.size() == 0) {
    rollback();
    return false;
  }
  TIDEGATE_TRY_VOID(channel_.ask(sql.commit));
  return true;
}

auto directory_session::may_try_again() const noexcept -> bool {
  if (in_doubt_) {
    return false;
  }
  // 40001: serialization failure, 40P01: deadlock.
  return channel_.server().is_broken() || channel_.server().sqlstate() == "40001" ||
         channel_.server().sqlstate() == "40P01";
}

// ---- parts ----

auto directory_session::part_to_change(model_type const& type) -> outcome<directory_part*> {
  auto& part = parts_.at(type);
  if (!part) {
    TIDEGATE_TRY_VOID(channel_.make_savepoint());
    TIDEGATE_TRY(auto const made,
                 channel_.ask(sql.make_part, parameters(tenant_, type.definition.type().name)));
    auto const id = made.number(0, 0);
    if (id > part_max) {
      return failure(channel_.server().error(store_fault::full, "there are too many tenants"));
    }
    part = directory_part{id, {rid_base(id), 0}};
  }
  return &*part;
}

auto directory_session::type_name(std::int64_t rid) -> outcome<std::string_view> {
  auto const part = part_of(rid);
  if (auto const* const type = parts_.type_of(part)) {
    return type->definition.type().name;
  }
  // Of a type that the model has not any more.
  auto const known = type_names_.find(part);
  if (known != type_names_.end()) {
    return known->second;
  }
  TIDEGATE_TRY(auto const found, channel_.ask(sql.part_type, parameters(part)));
  if (found.size() == 0) {
    return failure(
        channel_.server().error(store_fault::damaged, "there is no part " + std::to_string(part)));
  }
  if (type_names_.size() >= type_names_max) {
    type_names_.clear();
  }
  return type_names_.emplace(part, found.octets(0, 0)).first->second;
}

// ---- reading ----

auto directory_session::find_in_type(model_type const& type, std::string_view id)
    -> outcome<std::optional<directory_resource>> {
  auto const* const part = parts_.find(type);
  if (part == nullptr) {
    return std::nullopt;
  }
  auto const number = id_index(type);
  auto const key = index_key(*type.indexes[number].path.leaf(), json::value(id));
  TIDEGATE_TRY(
      auto const found,
      channel_.ask(sql.find_by_key, parameters(parts_.index_id(type, *part, number), key)));
  for (int i = 0; i < found.size(); ++i) {
    // Long ones have the same key when they begin alike.
    if (found.octets(i, 1) == id) {
      if (writing_) {
        texts_.put(found.number(i, 0), found.octets(i, 4));
      }
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
    auto const* const part = parts_.find(type);
    if (part == nullptr) {
      return std::nullopt;
    }
    TIDEGATE_TRY(
        auto const found,
        channel_.ask(sql.find_by_key, parameters(parts_.index_id(type, *part, index), key)));
    for (int i = 0; i < found.size(); ++i) {
      if (found.octets(i, 1) != except_id) {
        return std::string(found.octets(i, 1));
      }
    }
    return std::nullopt;
  });
}

auto directory_session::newest(model_type const& type) -> outcome<std::uint64_t> {
  auto const* const part = parts_.find(type);
  return part != nullptr ? unsigned_of(part->size.last_rid) : 0;
}

auto directory_session::members(std::uint64_t group_rid,
                                std::function<bool(directory_member const&)> const& each)
    -> outcome<void> {
  constexpr std::int64_t at_once = 1000;
  return tracking_failure([&]() -> outcome<void> {
    for (std::int64_t from = 0;;) {
      TIDEGATE_TRY(auto const found,
                   channel_.ask(sql.members_of, parameters(signed_of(group_rid), from, at_once)));
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
    TIDEGATE_TRY(auto const found, channel_.ask(sql.groups_of, parameters(signed_of(rid))));
    std::vector<directory_member> all;
    for (int i = 0; i < found.size(); ++i) {
      auto const group = found.number(i, 0);
      TIDEGATE_TRY(auto const type, type_name(group));
      TIDEGATE_TRY(auto member, read_group(channel_.server().name(), group, found.octets(i, 1),
                                           type, found.octets(i, 2)));
      all.push_back(std::move(member));
    }
    return all;
  });
}

}  // namespace tidegate::store_postgres
