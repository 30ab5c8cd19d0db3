// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/result.hpp>
#include <tidegate/store/idempotency_store.hpp>

#include <sqlite3.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace tidegate::store_sqlite {

template <class T>
using outcome = result<T, store::store_error>;

/// Settings that SQLite takes only before it is used, also to look for a file layer.
void configure_sqlite() noexcept;

struct finalize_statement {
  void operator()(sqlite3_stmt* statement) const noexcept { sqlite3_finalize(statement); }
};
using statement = std::unique_ptr<sqlite3_stmt, finalize_statement>;

/// Who may have the file open.
enum class sharing : std::uint8_t {
  exclusive,   ///< this connection alone, from its first transaction on
  in_process,  ///< other connections too; the caller keeps other processes away
};

/// An open file of SQLite, in WAL mode. For one thread at a time.
class connection {
 public:
  [[nodiscard]] static auto open(std::string const& file, sharing who) -> outcome<connection>;
  /// A file that is there, as it is; and one with SQLite's own settings.
  [[nodiscard]] static auto open_existing(std::string const& file) -> outcome<connection>;
  [[nodiscard]] static auto open_plain(std::string const& file) -> outcome<connection>;

  [[nodiscard]] auto execute(char const* sql) -> outcome<void>;
  /// The number that a statement gives; 0 when it gives none.
  [[nodiscard]] auto number(char const* sql) -> outcome<std::int64_t>;
  /// With values for its first placeholders.
  template <class... Values>
  [[nodiscard]] auto prepare(std::string_view sql, Values const&... values) -> outcome<statement>;
  /// True when there is a row.
  [[nodiscard]] auto step(sqlite3_stmt* statement) -> outcome<bool>;

  [[nodiscard]] auto begin() -> outcome<void> { return execute("BEGIN IMMEDIATE"); }
  [[nodiscard]] auto commit() -> outcome<void> { return execute("COMMIT"); }
  /// Also where SQLite has rolled back by itself.
  void rollback() noexcept;
  [[nodiscard]] auto in_transaction() const noexcept -> bool {
    return sqlite3_get_autocommit(connection_.get()) == 0;
  }

  /// In a transaction: the version of the file, 0 for a new one, and marks it with
  /// `schema_version`. An error when it is of something else, or of a version before
  /// `oldest_version`.
  [[nodiscard]] auto claim(std::int32_t application_id, std::int32_t schema_version,
                           std::int32_t oldest_version, std::string_view what)
      -> outcome<std::int64_t>;

  /// What is above it is a full disk; 0: as much as there is.
  [[nodiscard]] auto limit_file(std::size_t octets_max) -> outcome<void>;

  /// When this is the last connection, its end leaves the log as it is.
  void keep_log() noexcept;

  /// What went wrong in the last call.
  [[nodiscard]] auto error() const -> store::store_error;
  [[nodiscard]] auto file() const noexcept -> std::string const& { return file_; }
  [[nodiscard]] auto get() const noexcept -> sqlite3* { return connection_.get(); }

 private:
  struct close {
    void operator()(sqlite3* connection) const noexcept { sqlite3_close(connection); }
  };

  [[nodiscard]] static auto open_with(std::string const& file, int flags) -> outcome<connection>;
  [[nodiscard]] auto compile(std::string_view sql) -> outcome<statement>;

  std::string file_;
  std::unique_ptr<sqlite3, close> connection_;
};

/// Octets as a BLOB. They are borrowed until the statement is reset. Not `bind`, where std::bind
/// fits better.
void bind_value(sqlite3_stmt* statement, int number, std::string_view octets);
void bind_value(sqlite3_stmt* statement, int number, std::string const& octets);
void bind_value(sqlite3_stmt* statement, int number, std::optional<std::string> const& octets);
void bind_value(sqlite3_stmt* statement, int number, std::int64_t value);
/// For the first placeholders.
template <class... Values>
void bind_values([[maybe_unused]] sqlite3_stmt* statement, Values const&... values) {
  [[maybe_unused]] int number = 0;
  (bind_value(statement, ++number, values), ...);
}

template <class... Values>
auto connection::prepare(std::string_view sql, Values const&... values) -> outcome<statement> {
  TIDEGATE_TRY(auto made, compile(sql));
  bind_values(made.get(), values...);
  return made;
}

/// Good until the next step.
[[nodiscard]] auto blob(sqlite3_stmt* statement, int column) -> std::string_view;

/// Makes a statement ready for its next use when its work is done, however that ends.
class resetting {
 public:
  explicit resetting(sqlite3_stmt* statement) : statement_(statement) {}
  ~resetting() {
    sqlite3_reset(statement_);
    sqlite3_clear_bindings(statement_);
  }
  resetting(resetting const&) = delete;
  auto operator=(resetting const&) -> resetting& = delete;

 private:
  sqlite3_stmt* statement_;
};

}  // namespace tidegate::store_sqlite
