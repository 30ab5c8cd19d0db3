// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/scim/filter_sql.hpp>
#include <tidegate/store/directory.hpp>
#include <tidegate/store_directory/session.hpp>

#include "connection.hpp"
#include "directory/channel.hpp"
#include "directory/group_members.hpp"
#include "directory/schema.hpp"
#include "directory/tenant_parts.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace tidegate::store_postgres {

/// By what a transaction that writes is found again when its commit was sent and the answer did not
/// come.
///
/// It has a row of its writer, which it sets to its number. Whether it was committed is asked under
/// the lock of the tenant, which the transaction has until its end: so it is not under way any
/// more, and what the row says is final, also on a server that took over.
struct write_mark {
  std::string writer;  ///< of no other
  std::int64_t number = 0;
};

/// The texts of a few resources. A transaction that finds a resource often changes it then, and its
/// entries are those of its text.
class text_cache {
 public:
  void put(std::int64_t rid, std::string_view text) {
    constexpr std::size_t texts_max = 64;
    if (texts_.size() >= texts_max) {
      texts_.clear();
    }
    texts_.insert_or_assign(rid, std::string(text));
  }
  [[nodiscard]] auto find(std::int64_t rid) const -> std::string const* {
    auto const found = texts_.find(rid);
    return found != texts_.end() ? &found->second : nullptr;
  }
  void erase(std::int64_t rid) { texts_.erase(rid); }
  void clear() noexcept { texts_.clear(); }

 private:
  std::unordered_map<std::int64_t, std::string> texts_;
};

/// A connection to the server of a directory, and the transactions that run on it. For one thread.
///
/// One that reads runs alone: `begin_read`, `end_read`. Those that write are a group of the same
/// tenant: `begin_write`, then for each `begin_transaction` and `keep_transaction` or
/// `undo_transaction`, then `commit`; after an error of these, `rollback`. What is written is sent
/// at once, and its errors come with the next thing that is asked.
class directory_session final : public store_directory::session {
 public:
  /// Connects and prepares the statements.
  [[nodiscard]] static auto open(server_settings const& settings, std::chrono::milliseconds timeout,
                                 std::shared_ptr<scim::model const> model)
      -> outcome<std::unique_ptr<directory_session>>;

  [[nodiscard]] auto begin_read(std::string_view tenant) -> outcome<void>;
  void end_read();

  [[nodiscard]] auto begin_write(std::string_view tenant) -> outcome<void>;
  /// With a savepoint, where others share the transaction.
  void begin_transaction(bool is_alone);
  [[nodiscard]] auto keep_transaction() -> outcome<void>;
  [[nodiscard]] auto undo_transaction() -> outcome<void>;
  [[nodiscard]] auto commit(write_mark const& mark) -> outcome<void>;
  void rollback();
  /// Whether a commit was sent, and the answer was neither that it was made nor that it was rolled
  /// back.
  [[nodiscard]] auto is_in_doubt() const noexcept -> bool { return in_doubt_; }
  /// Whether the transaction with this mark was committed, as durably as any other. It has ended
  /// when this says no. Not within a transaction.
  [[nodiscard]] auto was_committed(std::string_view tenant, write_mark const& mark)
      -> outcome<bool>;
  /// Whether nothing was made and the same may go well another time.
  [[nodiscard]] auto may_try_again() const noexcept -> bool;
  [[nodiscard]] auto is_broken() const noexcept -> bool { return channel_.server().is_broken(); }

  // ---- directory_reader ----
  [[nodiscard]] auto find_unique(scim::model_type const& type, std::size_t index,
                                 std::string_view key, std::string_view except_id)
      -> outcome<std::optional<std::string>> override;
  [[nodiscard]] auto newest(scim::model_type const& type) -> outcome<std::uint64_t> override;
  [[nodiscard]] auto members(std::uint64_t group_rid,
                             std::function<bool(store::directory_member const&)> const& each)
      -> outcome<void> override;
  [[nodiscard]] auto groups_of(std::uint64_t rid)
      -> outcome<std::vector<store::directory_member>> override;

  // ---- directory_writer ----
  [[nodiscard]] auto insert(scim::model_type const& type, std::string_view id,
                            std::string_view text, std::span<scim::index_entry const> entries)
      -> outcome<std::uint64_t> override;
  [[nodiscard]] auto update(scim::model_type const& type, std::uint64_t rid, std::string_view text,
                            std::span<scim::index_entry const> entries) -> outcome<void> override;
  [[nodiscard]] auto remove(scim::model_type const& type, std::uint64_t rid)
      -> outcome<void> override;
  [[nodiscard]] auto add_member(std::uint64_t group_rid, std::uint64_t member_rid,
                                std::string_view display) -> outcome<bool> override;
  [[nodiscard]] auto remove_member(std::uint64_t group_rid, std::uint64_t member_rid)
      -> outcome<bool> override;
  [[nodiscard]] auto remove_members(std::uint64_t group_rid) -> outcome<void> override;

 private:
  directory_session(connection server, std::shared_ptr<scim::model const> model);

  [[nodiscard]] auto begin(std::string_view tenant) -> outcome<void>;
  [[nodiscard]] auto part_to_change(scim::model_type const& type) -> outcome<directory_part*>;
  [[nodiscard]] auto type_name(std::int64_t rid) -> outcome<std::string_view>;
  [[nodiscard]] auto find_in_type(scim::model_type const& type, std::string_view id)
      -> outcome<std::optional<store::directory_resource>> override;
  [[nodiscard]] auto with_part(store::directory_query const& query, part_use use)
      -> outcome<void> override;

  [[nodiscard]] auto read_entries(scim::model_type const& type, std::int64_t rid)
      -> outcome<std::vector<scim::index_entry>>;

  directory_channel channel_;
  tenant_parts parts_;
  std::unordered_map<std::int64_t, std::string> type_names_;  // of parts

  // ---- of the transaction ----
  std::string tenant_;
  tenant_parts::part_list parts_begun_;  // as the transaction found them
  bool in_doubt_ = false;

  // ---- of one that writes ----
  bool writing_ = false;
  tenant_parts::part_list parts_before_;         // this transaction
  std::map<std::int64_t, std::int64_t> blocks_;  // changes by transactions that are kept
  std::map<std::int64_t, std::int64_t> transaction_blocks_;  // by this one
  text_cache texts_;
  group_members group_;
};

}  // namespace tidegate::store_postgres
