// SPDX-License-Identifier: Apache-2.0
#include "connection.hpp"

#include <algorithm>

namespace tidegate::store_sqlite {

using store::store_error;
using store::store_fault;

void configure_sqlite() noexcept {
  // No part of the program asks how much memory SQLite has, and to count it takes a lock for each
  // piece. Where something else in the process has begun to use SQLite before, it stays as they
  // want it.
  static bool const is_configured = [] {
    sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
    return true;
  }();
  static_cast<void>(is_configured);
}

void bind_value(sqlite3_stmt* statement, int number, std::string_view octets) {
  // A null pointer would bind NULL, also for no octets.
  sqlite3_bind_blob64(statement, number, octets.empty() ? "" : octets.data(), octets.size(),
                      SQLITE_STATIC);
}

void bind_value(sqlite3_stmt* statement, int number, std::string const& octets) {
  bind_value(statement, number, std::string_view(octets));
}

void bind_value(sqlite3_stmt* statement, int number, std::optional<std::string> const& octets) {
  if (octets) {
    bind_value(statement, number, std::string_view(*octets));
  } else {
    sqlite3_bind_null(statement, number);
  }
}

void bind_value(sqlite3_stmt* statement, int number, std::int64_t value) {
  sqlite3_bind_int64(statement, number, value);
}

auto blob(sqlite3_stmt* statement, int column) -> std::string_view {
  auto const* const data = static_cast<char const*>(sqlite3_column_blob(statement, column));
  auto const size = static_cast<std::size_t>(sqlite3_column_bytes(statement, column));
  return data == nullptr ? std::string_view{} : std::string_view(data, size);
}

auto connection::error() const -> store_error {
  int const code = sqlite3_errcode(connection_.get()) & 0xff;
  if (code == SQLITE_BUSY || code == SQLITE_LOCKED) {
    return {store_fault::unavailable, file_ + ": in use by another process"};
  }
  bool const damaged = code == SQLITE_CORRUPT || code == SQLITE_NOTADB;
  return {damaged ? store_fault::damaged : store_fault::unavailable,
          file_ + ": " + sqlite3_errmsg(connection_.get())};
}

auto connection::execute(char const* sql) -> outcome<void> {
  if (sqlite3_exec(connection_.get(), sql, nullptr, nullptr, nullptr) != SQLITE_OK) {
    return failure(error());
  }
  return {};
}

auto connection::compile(std::string_view sql) -> outcome<statement> {
  sqlite3_stmt* made = nullptr;
  if (sqlite3_prepare_v3(connection_.get(), sql.data(), static_cast<int>(sql.size()),
                         SQLITE_PREPARE_PERSISTENT, &made, nullptr) != SQLITE_OK) {
    return failure(error());
  }
  return statement(made);
}

auto connection::step(sqlite3_stmt* statement) -> outcome<bool> {
  switch (sqlite3_step(statement)) {
    case SQLITE_ROW: return true;
    case SQLITE_DONE: return false;
    default: return failure(error());
  }
}

auto connection::number(char const* sql) -> outcome<std::int64_t> {
  TIDEGATE_TRY(auto const asked, prepare(sql));
  TIDEGATE_TRY(bool const row, step(asked.get()));
  return row ? sqlite3_column_int64(asked.get(), 0) : 0;
}

void connection::rollback() noexcept {
  if (in_transaction()) {
    sqlite3_exec(connection_.get(), "ROLLBACK", nullptr, nullptr, nullptr);
  }
}

auto connection::open_with(std::string const& file, int flags) -> outcome<connection> {
  configure_sqlite();
  connection made;
  made.file_ = file;
  sqlite3* opened = nullptr;
  int const code = sqlite3_open_v2(file.c_str(), &opened,
                                   flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, nullptr);
  made.connection_.reset(opened);
  if (code != SQLITE_OK) {
    return failure(made.error());
  }
  return made;
}

auto connection::open_existing(std::string const& file) -> outcome<connection> {
  return open_with(file, SQLITE_OPEN_READWRITE);
}

auto connection::open_plain(std::string const& file) -> outcome<connection> {
  return open_with(file, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
}

auto connection::open(std::string const& file, sharing who) -> outcome<connection> {
  TIDEGATE_TRY(auto made, open_plain(file));
  if (who == sharing::exclusive) {
    // The lock is taken by the first transaction and kept: a second process finds the file in use.
    TIDEGATE_TRY_VOID(made.execute("PRAGMA locking_mode=EXCLUSIVE"));
  }
  TIDEGATE_TRY_VOID(made.execute("PRAGMA journal_mode=WAL"));
  TIDEGATE_TRY_VOID(made.execute("PRAGMA synchronous=FULL"));
  return made;
}

auto connection::claim(std::int32_t application_id, std::int32_t schema_version,
                       std::int32_t oldest_version, std::string_view what)
    -> outcome<std::int64_t> {
  TIDEGATE_TRY(auto const id, number("PRAGMA application_id"));
  TIDEGATE_TRY(auto const version, number("PRAGMA user_version"));
  TIDEGATE_TRY(auto const tables, number("SELECT count(*) FROM sqlite_schema"));
  bool const is_new = id == 0 && version == 0 && tables == 0;
  bool const is_known =
      id == application_id && version >= oldest_version && version <= schema_version;
  if (!is_new && !is_known) {
    return failure(store_error{store_fault::damaged,
                               file_ + ": no " + std::string(what) + " of this version"});
  }
  if (version != schema_version) {
    auto const mark = "PRAGMA application_id=" + std::to_string(application_id) +
                      "; PRAGMA user_version=" + std::to_string(schema_version);
    TIDEGATE_TRY_VOID(execute(mark.c_str()));
  }
  return version;
}

void connection::keep_log() noexcept {
  sqlite3_db_config(connection_.get(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
}

auto connection::limit_file(std::size_t octets_max) -> outcome<void> {
  if (octets_max == 0) {
    return {};
  }
  TIDEGATE_TRY(auto const page, number("PRAGMA page_size"));
  auto const pages = std::max<std::size_t>(1, octets_max / static_cast<std::size_t>(page));
  return execute(("PRAGMA max_page_count=" + std::to_string(pages)).c_str());
}

}  // namespace tidegate::store_sqlite
