// SPDX-License-Identifier: Apache-2.0
#include "database.hpp"

#include <utility>

namespace tidegate::store_sqlite {

namespace {

constexpr std::int32_t application_id = 0x7469'6467;  // "tidg"
constexpr std::int32_t schema_version = 1;

}  // namespace

auto database::open(std::string const& file, std::size_t file_octets_max) -> outcome<database> {
  database made;
  TIDEGATE_TRY(made.connection_, connection::open(file, sharing::exclusive));
  TIDEGATE_TRY_VOID(made.begin());
  TIDEGATE_TRY(auto const version,
               made.connection_.claim(application_id, schema_version, schema_version,
                                      "store of idempotency keys"));
  if (version == 0) {
    // Without an index by lookup key: it is in memory, and keys in random order would make each transaction
    // write many pages.
    TIDEGATE_TRY_VOID(made.connection_.execute(
        "CREATE TABLE record (id INTEGER PRIMARY KEY, lookup BLOB NOT NULL,"
        " record BLOB NOT NULL, response BLOB)"));
  }
  TIDEGATE_TRY_VOID(made.commit());
  TIDEGATE_TRY_VOID(made.connection_.limit_file(file_octets_max));
  TIDEGATE_TRY(made.insert_, made.connection_.prepare(
                                 "INSERT INTO record (lookup, record, response) VALUES (?, ?, ?)"));
  TIDEGATE_TRY(made.update_,
               made.connection_.prepare("UPDATE record SET record = ?, response = ? WHERE id = ?"));
  TIDEGATE_TRY(made.remove_, made.connection_.prepare("DELETE FROM record WHERE id = ?"));
  TIDEGATE_TRY(made.response_,
               made.connection_.prepare("SELECT response FROM record WHERE id = ?"));
  return made;
}

auto database::insert(idempotency::lookup_key const& key, std::string_view record,
                      std::optional<std::string> const& response) -> outcome<std::int64_t> {
  resetting const guard(insert_.get());
  bind_value(insert_.get(), 1,
             std::string_view(reinterpret_cast<char const*>(key.octets.data()), key.octets.size()));
  bind_value(insert_.get(), 2, record);
  bind_value(insert_.get(), 3, response);
  TIDEGATE_TRY_VOID(connection_.step(insert_.get()));
  return sqlite3_last_insert_rowid(connection_.get());
}

auto database::update(std::int64_t row, std::string_view record,
                      std::optional<std::string> const& response) -> outcome<void> {
  resetting const guard(update_.get());
  bind_value(update_.get(), 1, record);
  bind_value(update_.get(), 2, response);
  bind_value(update_.get(), 3, row);
  TIDEGATE_TRY_VOID(connection_.step(update_.get()));
  return {};
}

auto database::remove(std::int64_t row) -> outcome<void> {
  resetting const guard(remove_.get());
  bind_value(remove_.get(), 1, row);
  TIDEGATE_TRY_VOID(connection_.step(remove_.get()));
  return {};
}

auto database::response(std::int64_t row) -> outcome<std::optional<std::string>> {
  resetting const guard(response_.get());
  bind_value(response_.get(), 1, row);
  TIDEGATE_TRY(bool const there, connection_.step(response_.get()));
  if (!there || sqlite3_column_type(response_.get(), 0) == SQLITE_NULL) {
    return std::nullopt;
  }
  return std::string(blob(response_.get(), 0));
}

auto database::scan(std::function<outcome<void>(stored_row const&)> const& each) -> outcome<void> {
  TIDEGATE_TRY(auto const all,
               connection_.prepare("SELECT id, lookup, record FROM record ORDER BY id"));
  for (;;) {
    TIDEGATE_TRY(bool const there, connection_.step(all.get()));
    if (!there) {
      return {};
    }
    TIDEGATE_TRY_VOID(
        each({sqlite3_column_int64(all.get(), 0), blob(all.get(), 1), blob(all.get(), 2)}));
  }
}

}  // namespace tidegate::store_sqlite
