// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/scim/filter_sql.hpp>
#include <tidegate/store/directory.hpp>
#include <tidegate/store_directory/session.hpp>

#include "connection.hpp"
#include "directory/schema.hpp"
#include "directory/statements.hpp"

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

class directory_rows;

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

/// A connection to the file of a directory, and the transactions that run on it. For one thread.
///
/// One that reads runs them alone: `begin_read`, `end_read`. One that writes makes a group of them
/// durable at once: `begin_write`, then `begin_transaction` for each, then `commit`. After an
/// error, and when a transaction is not to be kept that has written something, the group goes by
/// `rollback`.
///
/// There are no savepoints: SQLite before 3.50.2 writes a log that cannot be read after a crash
/// when one is rolled back after pages went to the log.
class directory_session final : public store_directory::session {
 public:
  directory_session(connection connection, std::shared_ptr<scim::model const> model);
  directory_session(directory_session const&) = delete;  // SQLite knows where it is
  /// Between transactions: lets go of the file, and has it again. Meanwhile nothing else
  /// may be called.
  void close() noexcept;
  void reopen(connection connection);
  [[nodiscard]] auto is_open() const noexcept -> bool { return connection_.get() != nullptr; }
  auto operator=(directory_session const&) -> directory_session& = delete;

  [[nodiscard]] auto begin_read(std::string_view tenant) -> outcome<void>;
  void end_read() noexcept;

  [[nodiscard]] auto begin_write() -> outcome<void>;
  void begin_transaction(std::string_view tenant);
  [[nodiscard]] auto commit() -> outcome<void>;
  void rollback() noexcept;
  /// Whether this transaction has changed something.
  [[nodiscard]] auto has_written() const noexcept -> bool { return has_written_; }
  [[nodiscard]] auto file() noexcept -> connection& { return connection_; }

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
  friend class directory_rows;

  struct tenant_parts {
    std::string tenant;
    std::vector<std::optional<directory_part>> parts;  // by the number of the type
  };

  [[nodiscard]] auto borrow_from(std::vector<statement>& home, std::string_view text)
      -> outcome<borrowed_statement>;
  [[nodiscard]] auto borrow(sql which) -> outcome<borrowed_statement> {
    return borrow_from(statements_[static_cast<std::size_t>(which)], statement_text(which));
  }
  [[nodiscard]] auto borrow(std::string const& text) -> outcome<borrowed_statement> {
    return borrow_from(filter_statements_[text], text);
  }
  /// Runs a statement that gives no rows.
  template <class... Values>
  [[nodiscard]] auto run(sql which, Values const&... values) -> outcome<void> {
    TIDEGATE_TRY(auto const statement, borrow(which));
    int number = 0;
    (bind_value(statement.get(), ++number, values), ...);
    TIDEGATE_TRY_VOID(connection_.step(statement.get()));
    return {};
  }
  void add_functions() noexcept;
  void enter(std::string_view tenant);
  /// Nothing when the tenant has none of the type.
  [[nodiscard]] auto find_part(scim::model_type const& type) -> outcome<directory_part const*>;
  /// Calls `each` with a statement at the rid, id, version, in_groups and text of every resource
  /// that has the key, until it returns false.
  template <class Each>
  [[nodiscard]] auto each_with_key(std::int64_t index_id, std::string_view key, Each const& each)
      -> outcome<void>;
  /// Those of the indexes of `id` of everything the tenant has.
  [[nodiscard]] auto id_index_ids() -> outcome<std::vector<std::int64_t>>;
  [[nodiscard]] auto size_of(directory_part const& part) -> outcome<part_size>;
  [[nodiscard]] auto type_name(std::int64_t rid) -> outcome<std::string_view>;
  [[nodiscard]] auto find_in_type(scim::model_type const& type, std::string_view id)
      -> outcome<std::optional<store::directory_resource>> override;
  [[nodiscard]] auto with_part(store::directory_query const& query, part_use use)
      -> outcome<void> override;

  /// The part, which is made where there is none. What it was like is forgotten by `rollback`.
  [[nodiscard]] auto part_to_change(scim::model_type const& type) -> outcome<directory_part*>;
  [[nodiscard]] auto read_entries(scim::model_type const& type, std::int64_t rid)
      -> outcome<std::vector<scim::index_entry>>;
  [[nodiscard]] auto change_entries(sql which, directory_part const& part, std::int64_t rid,
                                    std::span<scim::index_entry const> entries) -> outcome<void>;
  /// Writes counts that are kept until the commit.
  [[nodiscard]] auto put_sizes() -> outcome<void>;

  connection connection_;
  std::array<std::vector<statement>, static_cast<std::size_t>(sql::how_many)> statements_;
  std::unordered_map<std::string, std::vector<statement>> filter_statements_;
  std::unordered_map<std::string, tenant_parts> tenants_;
  std::unordered_map<std::int64_t, std::string> type_names_;  // of parts
  tenant_parts* tenant_ = nullptr;                            // whose transaction it is
  directory_rows* rows_ = nullptr;                            // of the scan that SQLite runs

  // ---- of one that writes ----
  bool writing_ = false;
  bool has_written_ = false;
  std::vector<directory_part const*> parts_;               // changed since sizes were put
  std::unordered_map<std::int64_t, std::int64_t> blocks_;  // which, and by how much
};

}  // namespace tidegate::store_sqlite
