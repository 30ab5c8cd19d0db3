// SPDX-License-Identifier: Apache-2.0
#include "database.hpp"

#include <utility>

namespace tidegate::store_sqlite {

namespace {

constexpr std::int64_t application_id = 0x7469'6467;  // "tidg"
constexpr std::int64_t schema_version = 1;

void bind(sqlite3_stmt* statement, int number, std::string_view octets) {
  // A null pointer would bind NULL, also for no octets.
  sqlite3_bind_blob64(statement, number, octets.empty() ? "" : octets.data(), octets.size(),
                      SQLITE_STATIC);
}

void bind(sqlite3_stmt* statement, int number, std::optional<std::string> const& octets) {
  if (octets) {
    bind(statement, number, std::string_view(*octets));
  } else {
    sqlite3_bind_null(statement, number);
  }
}

[[nodiscard]] auto blob(sqlite3_stmt* statement, int column) -> std::string_view {
  auto const* const data = static_cast<char const*>(sqlite3_column_blob(statement, column));
  auto const size = static_cast<std::size_t>(sqlite3_column_bytes(statement, column));
  return data == nullptr ? std::string_view{} : std::string_view(data, size);
}

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

}  // namespace

auto database::error() const -> store::store_error {
  int const code = sqlite3_errcode(connection_.get()) & 0xff;
  if (code == SQLITE_BUSY || code == SQLITE_LOCKED) {
    return {store::store_fault::unavailable, file_ + ": in use by another process"};
  }
  bool const damaged = code == SQLITE_CORRUPT || code == SQLITE_NOTADB;
  return {damaged ? store::store_fault::damaged : store::store_fault::unavailable,
          file_ + ": " + sqlite3_errmsg(connection_.get())};
}

auto database::execute(char const* sql) -> outcome<void> {
  if (sqlite3_exec(connection_.get(), sql, nullptr, nullptr, nullptr) != SQLITE_OK) {
    return failure(error());
  }
  return {};
}

auto database::prepare(char const* sql) -> outcome<statement> {
  sqlite3_stmt* made = nullptr;
  if (sqlite3_prepare_v3(connection_.get(), sql, -1, SQLITE_PREPARE_PERSISTENT, &made, nullptr) !=
      SQLITE_OK) {
    return failure(error());
  }
  return statement(made);
}

/// True when there is a row.
auto database::step(sqlite3_stmt* statement) -> outcome<bool> {
  switch (sqlite3_step(statement)) {
    case SQLITE_ROW: return true;
    case SQLITE_DONE: return false;
    default: return failure(error());
  }
}

auto database::pragma(char const* sql) -> outcome<std::int64_t> {
  TIDEGATE_TRY(auto const asked, prepare(sql));
  TIDEGATE_TRY(bool const row, step(asked.get()));
  return row ? sqlite3_column_int64(asked.get(), 0) : 0;
}

auto database::open(std::string const& file, std::size_t file_octets_max) -> outcome<database> {
  database made;
  made.file_ = file;
  sqlite3* connection = nullptr;
  int const opened = sqlite3_open_v2(
      file.c_str(), &connection,
      SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE,
      nullptr);
  made.connection_.reset(connection);
  if (opened != SQLITE_OK) {
    return failure(made.error());
  }
  // The lock is taken by the first transaction and kept: a second process finds the file in use.
  TIDEGATE_TRY_VOID(made.execute("PRAGMA locking_mode=EXCLUSIVE"));
  TIDEGATE_TRY_VOID(made.execute("PRAGMA journal_mode=WAL"));
  TIDEGATE_TRY_VOID(made.execute("PRAGMA synchronous=FULL"));
  TIDEGATE_TRY_VOID(made.begin());
  TIDEGATE_TRY(auto const id, made.pragma("PRAGMA application_id"));
  TIDEGATE_TRY(auto const version, made.pragma("PRAGMA user_version"));
  TIDEGATE_TRY(auto const tables, made.pragma("SELECT count(*) FROM sqlite_schema"));
  bool const is_new = id == 0 && version == 0 && tables == 0;
  if (!is_new && (id != application_id || version != schema_version)) {
    return failure(store::store_error{store::store_fault::damaged,
                                      file + ": no store of idempotency keys of this version"});
  }
  if (is_new) {
    // Without an index by lookup key: it is in memory, and keys in random order would make each transaction
    // write many pages.
    static_assert(application_id == 1'953'064'039 && schema_version == 1);
    TIDEGATE_TRY_VOID(
        made.execute("PRAGMA application_id=1953064039; PRAGMA user_version=1;"
                     "CREATE TABLE record (id INTEGER PRIMARY KEY, lookup BLOB NOT NULL,"
                     " record BLOB NOT NULL, response BLOB)"));
  }
  TIDEGATE_TRY_VOID(made.commit());
  if (file_octets_max > 0) {
    TIDEGATE_TRY(auto const page, made.pragma("PRAGMA page_size"));
    auto const pages = std::max<std::size_t>(1, file_octets_max / static_cast<std::size_t>(page));
    TIDEGATE_TRY_VOID(made.execute(("PRAGMA max_page_count=" + std::to_string(pages)).c_str()));
  }
  TIDEGATE_TRY(made.insert_,
               made.prepare("INSERT INTO record (lookup, record, response) VALUES (?, ?, ?)"));
  TIDEGATE_TRY(made.update_,
               made.prepare("UPDATE record SET record = ?, response = ? WHERE id = ?"));
  TIDEGATE_TRY(made.remove_, made.prepare("DELETE FROM record WHERE id = ?"));
  TIDEGATE_TRY(made.response_, made.prepare("SELECT response FROM record WHERE id = ?"));
  return made;
}

void database::rollback() noexcept {
  if (sqlite3_get_autocommit(connection_.get()) == 0) {
    sqlite3_exec(connection_.get(), "ROLLBACK", nullptr, nullptr, nullptr);
  }
}

auto database::insert(idempotency::lookup_key const& key, std::string_view record,
                      std::optional<std::string> const& response) -> outcome<std::int64_t> {
  resetting const guard(insert_.get());
  bind(insert_.get(), 1,
       std::string_view(reinterpret_cast<char const*>(key.octets.data()), key.octets.size()));
  bind(insert_.get(), 2, record);
  bind(insert_.get(), 3, response);
  TIDEGATE_TRY_VOID(step(insert_.get()));
  return sqlite3_last_insert_rowid(connection_.get());
}

auto database::update(std::int64_t row, std::string_view record,
                      std::optional<std::string> const& response) -> outcome<void> {
  resetting const guard(update_.get());
  bind(update_.get(), 1, record);
  bind(update_.get(), 2, response);
  sqlite3_bind_int64(update_.get(), 3, row);
  TIDEGATE_TRY_VOID(step(update_.get()));
  return {};
}

auto database::remove(std::int64_t row) -> outcome<void> {
  resetting const guard(remove_.get());
  sqlite3_bind_int64(remove_.get(), 1, row);
  TIDEGATE_TRY_VOID(step(remove_.get()));
  return {};
}

auto database::response(std::int64_t row) -> outcome<std::optional<std::string>> {
  resetting const guard(response_.get());
  sqlite3_bind_int64(response_.get(), 1, row);
  TIDEGATE_TRY(bool const there, step(response_.get()));
  if (!there || sqlite3_column_type(response_.get(), 0) == SQLITE_NULL) {
    return std::nullopt;
  }
  return std::string(blob(response_.get(), 0));
}

auto database::scan(std::function<outcome<void>(stored_row const&)> const& each) -> outcome<void> {
  TIDEGATE_TRY(auto const all, prepare("SELECT id, lookup, record FROM record ORDER BY id"));
  for (;;) {
    TIDEGATE_TRY(bool const there, step(all.get()));
    if (!there) {
      return {};
    }
    TIDEGATE_TRY_VOID(
        each({sqlite3_column_int64(all.get(), 0), blob(all.get(), 1), blob(all.get(), 2)}));
  }
}

}  // namespace tidegate::store_sqlite
