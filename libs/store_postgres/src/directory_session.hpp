// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/scim/filter_sql.hpp>
#include <tidegate/store/directory.hpp>

#include "connection.hpp"
#include "directory_schema.hpp"

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
#include <utility>
#include <vector>

namespace tidegate::store_postgres {

/// The statements that are always the same, prepared on every connection.
enum class sql : std::uint8_t {
  begin_read,
  begin_write,
  commit,
  rollback,
  lock_tenant,
  wait_for_tenant,
  mark_write,
  find_write,
  savepoint,
  release,
  undo,
  begin_look,
  end_look,
  release_look,
  generation,
  parts,
  make_part,
  update_part,
  update_blocks,
  part_type,
  find_by_key,
  find_by_rid,
  find_by_rids,
  insert_resource,
  update_resource,
  remove_resource,
  members_of,
  all_members,
  groups_of,
  is_member,
  insert_members,
  mark_in_groups,
  update_member,
  remove_member,
  remove_members,
  rids_up,
  rids_down,
  keys_up,
  keys_down,
  sorted_up,
  sorted_down,
  equal_up,
  equal_down,
  count_rids,
  count_equal,
  blocks_up,
  blocks_down,
  how_many,
};

[[nodiscard]] auto statement_text(sql which) noexcept -> std::string_view;

/// By what a transaction that writes is found again when its commit was sent and the answer did not come.
///
/// It has a row of its writer, which it sets to its number. Whether it was committed is asked under the lock of the
/// tenant, which the transaction has until its end: so it is not under way any more, and what the row says is final, also
/// on a server that took over.
struct write_mark {
  std::string writer;  ///< of no other
  std::int64_t number = 0;
};

/// A connection to the server of a directory, and the work that is done on it. For one thread.
///
/// A transaction that reads is for one work: `begin_read`, `end_read`. One that writes is for several of the same tenant:
/// `begin_write`, then for each `begin_work` and `keep_work` or `undo_work`, then `commit`; after an error of these,
/// `rollback`. What is written is sent at once, and its errors come with the next thing that is asked.
class directory_session final : public store::directory_writer {
 public:
  /// Connects and prepares the statements.
  [[nodiscard]] static auto open(server_settings const& settings, std::chrono::milliseconds timeout,
                                 std::shared_ptr<scim::model const> model)
      -> outcome<std::unique_ptr<directory_session>>;

  [[nodiscard]] auto begin_read(std::string_view tenant) -> outcome<void>;
  void end_read();

  [[nodiscard]] auto begin_write(std::string_view tenant) -> outcome<void>;
  /// With a savepoint, where others share the transaction.
  void begin_work(bool is_alone);
  [[nodiscard]] auto keep_work() -> outcome<void>;
  [[nodiscard]] auto undo_work() -> outcome<void>;
  [[nodiscard]] auto commit(write_mark const& mark) -> outcome<void>;
  void rollback();
  /// Whether a commit was sent, and the answer was neither that it was made nor that it was rolled back.
  [[nodiscard]] auto is_in_doubt() const noexcept -> bool { return in_doubt_; }
  /// Whether the transaction with this mark was committed, as durably as any other. It has ended when this says no. Not within a
  /// transaction.
  [[nodiscard]] auto was_committed(std::string_view tenant, write_mark const& mark)
      -> outcome<bool>;
  /// Whether nothing was made and the same may go well another time.
  [[nodiscard]] auto may_try_again() const noexcept -> bool;
  [[nodiscard]] auto is_broken() const noexcept -> bool { return server_.is_broken(); }
  /// What has failed in this work.
  [[nodiscard]] auto failed() const noexcept -> std::optional<store::store_error> const& {
    return failed_;
  }

  // ---- directory_reader ----
  [[nodiscard]] auto find(scim::model_type const& type, std::string_view id)
      -> outcome<std::optional<store::directory_resource>> override;
  [[nodiscard]] auto find_any(std::string_view id) -> outcome<std::optional<any_resource>> override;
  [[nodiscard]] auto find_unique(scim::model_type const& type, std::size_t index,
                                 std::string_view key, std::string_view except_id)
      -> outcome<std::optional<std::string>> override;
  [[nodiscard]] auto scan(store::directory_query const& query)
      -> outcome<scim::scan_answer<store::directory_row>> override;
  [[nodiscard]] auto count(store::directory_query const& query)
      -> outcome<store::directory_count> override;
  [[nodiscard]] auto counts_cheaply(store::directory_query const& query) -> bool override;
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
  friend class directory_scan;

  directory_session(connection server, std::shared_ptr<scim::model const> model);

  /// A row of `entry`, but for its rid.
  struct stored_entry {
    std::int64_t index_id;
    std::string_view key;
    auto operator<=>(stored_entry const&) const = default;
  };
  /// The members of a group whose members are changed one after the other: known from one look, and those that are
  /// added are collected.
  struct open_group {
    std::int64_t rid = 0;
    int asked = 0;  // how many were looked for one by one
    bool is_loaded = false;
    std::unordered_map<std::int64_t, std::int64_t> places;  // `seq` of members
    std::int64_t last_place = 0;
    std::vector<std::int64_t> added;
    std::vector<std::int64_t> added_places;
    std::vector<std::string> added_displays;
  };

  [[nodiscard]] auto ask(sql which, parameters const& values = parameters()) -> outcome<rows>;
  [[nodiscard]] auto ask(std::string const& text, parameters const& values) -> outcome<rows>;
  [[nodiscard]] auto send(sql which, parameters const& values = parameters()) -> outcome<void>;
  /// Before anything is written in a work.
  [[nodiscard]] auto write(sql which, parameters const& values) -> outcome<void>;
  /// Remembers an error of `body`, so that the work is not kept.
  template <class Body>
  [[nodiscard]] auto noting(Body&& body) -> decltype(body()) {
    auto made = body();
    if (!made && !failed_) {
      failed_ = made.error();
    }
    return made;
  }

  [[nodiscard]] auto begin(std::string_view tenant) -> outcome<void>;
  [[nodiscard]] auto type_number(scim::model_type const& type) const noexcept -> std::size_t;
  /// Nothing when the tenant has none of the type.
  [[nodiscard]] auto find_part(scim::model_type const& type) const noexcept
      -> directory_part const*;
  [[nodiscard]] auto part_to_change(scim::model_type const& type) -> outcome<directory_part*>;
  [[nodiscard]] auto index_ids(scim::model_type const& type, directory_part const& part) const
      -> std::vector<std::int64_t>;
  [[nodiscard]] auto index_id(scim::model_type const& type, directory_part const& part,
                              std::size_t index) const -> std::int64_t;
  [[nodiscard]] auto sort_id(scim::model_type const& type, directory_part const& part,
                             std::size_t index) const -> std::int64_t;
  /// Those of the indexes of `id` of everything the tenant has.
  [[nodiscard]] auto id_index_ids() const -> std::vector<std::int64_t>;
  [[nodiscard]] auto type_name(std::int64_t rid) -> outcome<std::string_view>;
  [[nodiscard]] auto find_in_type(scim::model_type const& type, std::string_view id)
      -> outcome<std::optional<store::directory_resource>>;

  void remember_text(std::int64_t rid, std::string_view text);
  [[nodiscard]] auto read_entries(scim::model_type const& type, std::int64_t rid)
      -> outcome<std::vector<scim::index_entry>>;
  [[nodiscard]] auto stored_entries(scim::model_type const& type, directory_part const& part,
                                    std::span<scim::index_entry const> entries) const
      -> std::vector<stored_entry>;
  [[nodiscard]] auto load_group(std::int64_t group) -> outcome<void>;
  [[nodiscard]] auto send_added() -> outcome<void>;

  connection server_;
  std::shared_ptr<scim::model const> model_;
  std::vector<std::size_t> id_indexes_;  // of each type, the number of its index of `id`
  directory_indexes indexes_;
  std::unordered_map<std::int64_t, std::string> type_names_;  // of parts

  // ---- of the transaction ----
  std::string tenant_;
  std::vector<std::optional<directory_part>> parts_;        // by the number of the type
  std::vector<std::optional<directory_part>> parts_begun_;  // as the transaction found them
  std::optional<store::store_error> failed_;
  bool in_doubt_ = false;

  // ---- of one that writes ----
  bool writing_ = false;
  bool is_alone_ = false;   // the work has the transaction for itself
  bool savepoint_ = false;  // this work has written
  std::vector<std::optional<directory_part>> parts_before_;  // this work
  std::map<std::int64_t, std::int64_t> blocks_;              // changes by works that are kept
  std::map<std::int64_t, std::int64_t> work_blocks_;         // by this one
  std::unordered_map<std::int64_t, std::string> texts_;      // of a few resources
  open_group group_;
};

}  // namespace tidegate::store_postgres
