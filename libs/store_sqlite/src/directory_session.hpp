// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/scim/filter_sql.hpp>
#include <tidegate/store/directory.hpp>

#include "connection.hpp"
#include "directory_redo.hpp"
#include "directory_schema.hpp"
#include "key_filter.hpp"
#include "pending_entries.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace tidegate::store_sqlite {

class directory_scan;

/// The statements that are always the same.
enum class sql : std::uint8_t {
  begin,
  end,
  savepoint,
  release,
  undo,
  look,
  look_undo,
  look_over,
  find_part,
  part_size,
  update_part,
  update_journal,
  update_block,
  part_type,
  find_by_key,
  find_by_rid,
  find_resource,
  id_by_rid,
  insert_resource,
  update_resource,
  remove_resource,
  mark_in_groups,
  insert_entries,
  remove_entry,
  members_of,
  groups_of,
  is_member,
  last_member,
  insert_member,
  update_member,
  remove_member,
  remove_members,
  remove_memberships,
  rids_up,
  rids_down,
  skip_rids_up,
  skip_rids_down,
  keys_up,
  keys_down,
  all_keys_up,
  all_keys_down,
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

/// A statement on loan. It goes back to be used again; while it is away, another one is made.
class borrowed_statement {
 public:
  borrowed_statement(statement lent, std::vector<statement>& home)
      : statement_(std::move(lent)), home_(&home) {}
  borrowed_statement(borrowed_statement&&) noexcept = default;
  auto operator=(borrowed_statement&&) -> borrowed_statement& = delete;
  ~borrowed_statement() {
    if (statement_) {
      sqlite3_reset(statement_.get());
      sqlite3_clear_bindings(statement_.get());
      home_->push_back(std::move(statement_));
    }
  }
  [[nodiscard]] auto get() const noexcept -> sqlite3_stmt* { return statement_.get(); }

 private:
  statement statement_;
  std::vector<statement>* home_;
};

/// A connection to the file of a directory, and the work that is done on it. For one thread.
///
/// One that reads has a transaction for each work: `begin_read`, `end_read`. One that writes has a
/// transaction for several: `begin_write`, then for each `begin_work` and `keep_work` or `undo_work`, then
/// `commit`; after an error of these, `rollback`.
class directory_session final : public store::directory_writer {
 public:
  /// Of what one writes, so many entries of indexes at most wait in memory; and so many octets are for what keys there are.
  directory_session(connection connection, std::shared_ptr<scim::model const> model,
                    std::size_t pending_max = 0, std::size_t filter_octets = 0);
  directory_session(directory_session const&) = delete;  // SQLite knows where it is
  auto operator=(directory_session const&) -> directory_session& = delete;

  [[nodiscard]] auto begin_read(std::string_view tenant) -> outcome<void>;
  void end_read() noexcept;

  [[nodiscard]] auto begin_write() -> outcome<void>;
  void begin_work(std::string_view tenant);
  [[nodiscard]] auto keep_work() -> outcome<void>;
  [[nodiscard]] auto undo_work() -> outcome<void>;
  /// `journaled` is the number of the last group of the journal that is in it.
  [[nodiscard]] auto commit(std::uint64_t journaled) -> outcome<void>;
  void rollback() noexcept;

  /// Between works: what kept works have written since it was last forgotten, as a group for the journal.
  [[nodiscard]] auto written() const noexcept -> std::string const& { return written_; }
  void forget_written() {
    constexpr std::size_t kept_octets_max = std::size_t{1} << 20;
    written_.clear();
    if (written_.capacity() > kept_octets_max) {
      written_ = std::string();
    }
  }
  /// Does again what is in a group.
  [[nodiscard]] auto repeat(std::string_view group) -> outcome<void>;
  /// Between works: makes what waits in memory part of the transaction where it is much; or a part of it in any case, unless
  /// so little is left that it is relieved.
  [[nodiscard]] auto relieve() -> outcome<void>;
  [[nodiscard]] auto relieve_a_step() -> outcome<void>;
  [[nodiscard]] auto is_relieved() const noexcept -> bool;
  /// Between transactions: learns a part of what keys unique attributes have, so that most of those that are new need not be looked for.
  void learn();
  [[nodiscard]] auto has_to_learn() noexcept -> bool { return filter_.next() != nullptr; }
  /// Between transactions: whether pages that are too many for the memory go to the log before a commit.
  void set_spills(bool may) noexcept;
  /// Between transactions: what was needed for writing.
  void give_back_memory() noexcept;
  /// Whether it is time to commit, so that neither memory nor the commit itself takes too much.
  [[nodiscard]] auto is_large() noexcept -> bool;
  /// What has failed in this work.
  [[nodiscard]] auto failed() const noexcept -> std::optional<store::store_error> const& {
    return failed_;
  }
  [[nodiscard]] auto file() noexcept -> connection& { return connection_; }

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

  struct tenant_parts {
    std::string tenant;
    std::vector<std::optional<directory_part>> parts;  // by the number of the type
  };

  [[nodiscard]] auto borrow(sql which) -> outcome<borrowed_statement>;
  [[nodiscard]] auto borrow(std::string const& text) -> outcome<borrowed_statement>;
  /// Runs a statement that gives no rows.
  template <class... Values>
  [[nodiscard]] auto run(sql which, Values const&... values) -> outcome<void> {
    TIDEGATE_TRY(auto const statement, borrow(which));
    int number = 0;
    (bind_value(statement.get(), ++number, values), ...);
    TIDEGATE_TRY_VOID(connection_.step(statement.get()));
    return {};
  }
  /// Remembers an error of `body`, so that the work is not kept.
  template <class Body>
  [[nodiscard]] auto noting(Body&& body) -> decltype(body()) {
    if (failed_) {  // SQLite may have undone more than this work, which must not go on by itself
      return failure(*failed_);
    }
    auto made = body();
    if (!made && !failed_) {
      failed_ = made.error();
    }
    return made;
  }

  void enter(std::string_view tenant);
  [[nodiscard]] auto type_number(scim::model_type const& type) const noexcept -> std::size_t;
  /// Nothing when the tenant has none of the type.
  [[nodiscard]] auto find_part(scim::model_type const& type) -> outcome<directory_part const*>;
  /// Calls `each` with a statement at the rid, id, version, in_groups and text of every resource that has the
  /// key, until it returns false.
  template <class Each>
  [[nodiscard]] auto each_with_key(std::int64_t index_id, std::string_view key, Each const& each)
      -> outcome<void>;
  /// Those of the indexes of `id` of everything the tenant has.
  [[nodiscard]] auto id_index_ids() -> outcome<std::vector<std::int64_t>>;
  [[nodiscard]] auto size_of(directory_part const& part) -> outcome<part_size>;
  [[nodiscard]] auto type_name(std::int64_t rid) -> outcome<std::string_view>;
  [[nodiscard]] auto find_in_type(scim::model_type const& type, std::string_view id)
      -> outcome<std::optional<store::directory_resource>>;

  [[nodiscard]] auto repeat_one(redo const& one) -> outcome<void>;
  [[nodiscard]] auto find_type(std::string_view name) const -> outcome<scim::model_type const*>;
  /// Before anything is written in a work.
  [[nodiscard]] auto write_ahead() -> outcome<void>;
  /// The part, which is made where there is none; what it was like is restored if the work is undone.
  [[nodiscard]] auto part_to_change(scim::model_type const& type) -> outcome<directory_part*>;
  [[nodiscard]] auto read_entries(scim::model_type const& type, std::int64_t rid)
      -> outcome<std::vector<scim::index_entry>>;
  [[nodiscard]] static auto stored_entries(directory_part const& part, std::int64_t rid,
                                           std::span<scim::index_entry const> entries)
      -> std::vector<pending_entries::row>;
  /// Puts what is pending into the table, where it stays pending until it is cleared.
  [[nodiscard]] auto put_entries(pending_entries const& pending) -> outcome<void>;
  [[nodiscard]] auto put_all_entries() -> outcome<void>;
  [[nodiscard]] auto put_sizes() -> outcome<void>;
  /// Runs `body`, which looks at the tables, where they have all that was written.
  template <class Body>
  [[nodiscard]] auto looking(Body const& body) -> decltype(body()) {
    if (!writing_ || looking_) {
      return body();
    }
    // It is taken out again: what other works have written must not go when this one is undone.
    TIDEGATE_TRY_VOID(run(sql::look));
    looking_ = true;
    auto made = [&]() -> decltype(body()) {
      TIDEGATE_TRY_VOID(put_all_entries());
      TIDEGATE_TRY_VOID(put_sizes());
      return body();
    }();
    looking_ = false;
    auto undone = run(sql::look_undo);
    if (undone) {
      undone = run(sql::look_over);
    }
    // After an error SQLite may have no savepoint any more.
    if (made && !undone) {
      return failure(undone.error());
    }
    return made;
  }

  std::vector<pending_entries::change> put_now_;  // the table `pending` of the connection
  connection connection_;
  std::shared_ptr<scim::model const> model_;
  std::vector<std::size_t> id_indexes_;  // of each type, the number of its index of `id`

  std::array<std::vector<statement>, static_cast<std::size_t>(sql::how_many)> statements_;
  std::unordered_map<std::string, std::vector<statement>> filter_statements_;
  std::unordered_map<std::string, tenant_parts> tenants_;
  std::unordered_map<std::int64_t, std::string> type_names_;  // of parts
  tenant_parts* tenant_ = nullptr;                            // whose work it is
  std::optional<store::store_error> failed_;
  directory_scan* scan_ = nullptr;  // that rows are shown to

  // ---- of one that writes ----
  bool writing_ = false;
  bool looking_ = false;
  bool savepoint_ = false;     // this work has written what is behind one
  std::int64_t inserted_ = 0;  // and before that this resource
  struct part_change {
    directory_part* part;
    part_size before;
  };
  std::vector<part_change> work_parts_;
  std::vector<std::optional<directory_part>*> work_made_;           // parts that were not there
  std::vector<std::pair<std::int64_t, std::int64_t>> work_blocks_;  // which, and by how much
  std::vector<directory_part const*> parts_;                        // changed since the last commit
  std::unordered_map<std::int64_t, std::int64_t> blocks_;
  pending_indexes pending_;
  std::size_t pending_max_ = 0;  // entries
  key_filter filter_;
  std::uint64_t journaled_ = 0;  // as the file has it, or 0 before it is known
  std::string written_;
  std::size_t written_before_ = 0;  // by other works
};

}  // namespace tidegate::store_sqlite
