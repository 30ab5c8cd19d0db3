// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/scim/filter_sql.hpp>
#include <tidegate/store/directory.hpp>
#include <tidegate/store_directory/session.hpp>

#include "connection.hpp"
#include "directory/part_cache.hpp"
#include "directory/schema.hpp"
#include "directory/statement_cache.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace tidegate::store_sqlite {

class directory_rows;

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

  void add_functions() noexcept;
  [[nodiscard]] auto size_of(directory_part const& part) -> outcome<part_size>;
  [[nodiscard]] auto find_in_type(scim::model_type const& type, std::string_view id)
      -> outcome<std::optional<store::directory_resource>> override;
  [[nodiscard]] auto with_part(store::directory_query const& query, part_use use)
      -> outcome<void> override;

  /// The part, which is made where there is none. What it was like is forgotten by `rollback`.
  [[nodiscard]] auto part_to_change(scim::model_type const& type) -> outcome<directory_part*>;
  [[nodiscard]] auto read_entries(scim::model_type const& type, std::int64_t rid)
      -> outcome<std::vector<scim::index_entry>>;
  /// Writes counts that are kept until the commit.
  [[nodiscard]] auto put_sizes() -> outcome<void>;

  connection connection_;
  statement_cache statements_;
  part_cache parts_;
  directory_rows* rows_ = nullptr;  // of the scan that SQLite runs

  // ---- of one that writes ----
  bool writing_ = false;
  bool has_written_ = false;
  std::vector<directory_part const*> changed_parts_;       // since sizes were put
  std::unordered_map<std::int64_t, std::int64_t> blocks_;  // which, and by how much
};

}  // namespace tidegate::store_sqlite
