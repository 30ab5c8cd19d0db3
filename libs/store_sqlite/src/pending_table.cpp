// SPDX-License-Identifier: Apache-2.0
#include "pending_table.hpp"

#include <cstddef>
#include <new>

namespace tidegate::store_sqlite {

namespace {

using changes = std::vector<pending_entries::change>;

// SQLite knows tables and cursors by their bases, which are pointers to the first member.
struct table {
  sqlite3_vtab base;
  changes const* from;
};
struct cursor {
  sqlite3_vtab_cursor base;
  changes const* from;
  std::size_t at;

  void skip_removed() noexcept {
    while (at < from->size() && !(*from)[at].adds) {
      ++at;
    }
  }
};

[[nodiscard]] auto cursor_of(sqlite3_vtab_cursor* base) noexcept -> cursor& {
  return *reinterpret_cast<cursor*>(base);
}

auto connect(sqlite3* connection, void* from, int /*count*/, char const* const* /*arguments*/,
             sqlite3_vtab** made, char** /*error*/) noexcept -> int {
  int const code = sqlite3_declare_vtab(
      connection, "CREATE TABLE pending (index_id INTEGER, key BLOB, rid INTEGER)");
  if (code != SQLITE_OK) {
    return code;
  }
  auto* const it = new (std::nothrow) table{{}, static_cast<changes const*>(from)};
  if (it == nullptr) {
    return SQLITE_NOMEM;
  }
  *made = &it->base;
  return SQLITE_OK;
}

auto disconnect(sqlite3_vtab* base) noexcept -> int {
  delete reinterpret_cast<table*>(base);
  return SQLITE_OK;
}

auto plan(sqlite3_vtab* /*base*/, sqlite3_index_info* info) noexcept -> int {
  info->estimatedCost = 1;
  return SQLITE_OK;
}

auto open(sqlite3_vtab* base, sqlite3_vtab_cursor** made) noexcept -> int {
  auto* const it = new (std::nothrow) cursor{{}, reinterpret_cast<table*>(base)->from, 0};
  if (it == nullptr) {
    return SQLITE_NOMEM;
  }
  *made = &it->base;
  return SQLITE_OK;
}

auto close(sqlite3_vtab_cursor* base) noexcept -> int {
  delete &cursor_of(base);
  return SQLITE_OK;
}

auto begin(sqlite3_vtab_cursor* base, int /*number*/, char const* /*text*/, int /*count*/,
           sqlite3_value** /*values*/) noexcept -> int {
  cursor_of(base).at = 0;
  cursor_of(base).skip_removed();
  return SQLITE_OK;
}

auto next(sqlite3_vtab_cursor* base) noexcept -> int {
  ++cursor_of(base).at;
  cursor_of(base).skip_removed();
  return SQLITE_OK;
}

auto is_over(sqlite3_vtab_cursor* base) noexcept -> int {
  auto const& it = cursor_of(base);
  return it.at < it.from->size() ? 0 : 1;
}

auto column(sqlite3_vtab_cursor* base, sqlite3_context* to, int number) noexcept -> int {
  auto const& it = cursor_of(base);
  auto const& row = (*it.from)[it.at].what;
  if (number == 0) {
    sqlite3_result_int64(to, row.index_id);
  } else if (number == 1) {
    sqlite3_result_blob64(to, row.key.empty() ? "" : row.key.data(), row.key.size(), SQLITE_STATIC);
  } else {
    sqlite3_result_int64(to, row.rid);
  }
  return SQLITE_OK;
}

auto row_number(sqlite3_vtab_cursor* base, sqlite3_int64* number) noexcept -> int {
  *number = static_cast<sqlite3_int64>(cursor_of(base).at);
  return SQLITE_OK;
}

constexpr auto module = [] {
  sqlite3_module made{};  // without xCreate: it is there, and nobody makes another one
  made.xConnect = connect;
  made.xBestIndex = plan;
  made.xDisconnect = disconnect;
  made.xOpen = open;
  made.xClose = close;
  made.xFilter = begin;
  made.xNext = next;
  made.xEof = is_over;
  made.xColumn = column;
  made.xRowid = row_number;
  return made;
}();

}  // namespace

void add_pending_table(sqlite3* connection, changes const* changes) {
  // What fails for lack of memory is seen when a statement with it is prepared.
  sqlite3_create_module_v2(connection, "pending", &module,
                           const_cast<void*>(static_cast<void const*>(changes)), nullptr);
}

}  // namespace tidegate::store_sqlite
