// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/result.hpp>
#include <tidegate/idempotency/lookup.hpp>
#include <tidegate/store/idempotency_store.hpp>

#include <sqlite3.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace tidegate::store_sqlite {

/// The file and the few statements that are made on it. For one thread.
class database {
 public:
  template <class T>
  using outcome = result<T, store::store_error>;

  [[nodiscard]] static auto open(std::string const& file, std::size_t file_octets_max)
      -> outcome<database>;

  [[nodiscard]] auto begin() -> outcome<void> { return execute("BEGIN IMMEDIATE"); }
  [[nodiscard]] auto commit() -> outcome<void> { return execute("COMMIT"); }
  /// Also where SQLite has rolled back by itself.
  void rollback() noexcept;

  /// The row of a new record.
  [[nodiscard]] auto insert(idempotency::lookup_key const& key, std::string_view record,
                            std::optional<std::string> const& response) -> outcome<std::int64_t>;
  [[nodiscard]] auto update(std::int64_t row, std::string_view record,
                            std::optional<std::string> const& response) -> outcome<void>;
  [[nodiscard]] auto remove(std::int64_t row) -> outcome<void>;
  [[nodiscard]] auto response(std::int64_t row) -> outcome<std::optional<std::string>>;

  struct stored_row {
    std::int64_t row;
    std::string_view key;
    std::string_view record;
  };
  /// Calls `each` with every row, in the order of arrival, until it returns an error.
  [[nodiscard]] auto scan(std::function<outcome<void>(stored_row const&)> const& each)
      -> outcome<void>;

 private:
  struct close {
    void operator()(sqlite3* connection) const noexcept { sqlite3_close(connection); }
  };
  struct finalize {
    void operator()(sqlite3_stmt* statement) const noexcept { sqlite3_finalize(statement); }
  };
  using statement = std::unique_ptr<sqlite3_stmt, finalize>;

  [[nodiscard]] auto execute(char const* sql) -> outcome<void>;
  [[nodiscard]] auto pragma(char const* sql) -> outcome<std::int64_t>;
  [[nodiscard]] auto prepare(char const* sql) -> outcome<statement>;
  [[nodiscard]] auto step(sqlite3_stmt* statement) -> outcome<bool>;
  [[nodiscard]] auto error() const -> store::store_error;

  std::string file_;
  std::unique_ptr<sqlite3, close> connection_;
  statement insert_;
  statement update_;
  statement remove_;
  statement response_;
};

}  // namespace tidegate::store_sqlite
