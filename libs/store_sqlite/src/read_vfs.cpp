// SPDX-License-Identifier: Apache-2.0
#include "read_vfs.hpp"

#include "connection.hpp"

#include <sqlite3.h>

#include <cstddef>
#include <mutex>

namespace tidegate::store_sqlite {

namespace {

/// Of the caches of the processor.
constexpr int line_octets = 64;

sqlite3_vfs* original = nullptr;
sqlite3_io_methods const* file_methods = nullptr;  // of the original, for databases
sqlite3_io_methods read_methods{};

auto fetch_page(sqlite3_file* file, sqlite3_int64 offset, int size, void** octets) noexcept -> int {
  int const code = file_methods->xFetch(file, offset, size, octets);
  if (auto const* const page = static_cast<std::byte const*>(*octets);
      code == SQLITE_OK && page != nullptr) {
    for (int at = 0; at < size; at += line_octets) {
      __builtin_prefetch(page + at);
    }
  }
  return code;
}

auto open_file(sqlite3_vfs* /*vfs*/, char const* name, sqlite3_file* file, int flags,
               int* out_flags) noexcept -> int {
  int const code = original->xOpen(original, name, file, flags, out_flags);
  if (code != SQLITE_OK || (flags & SQLITE_OPEN_MAIN_DB) == 0) {
    return code;
  }
  static std::once_flag once;
  std::call_once(once, [&] {
    file_methods = file->pMethods;
    read_methods = *file_methods;
    read_methods.xFetch = fetch_page;
  });
  // A file that the original treats in another way is left as it is.
  if (file->pMethods == file_methods && file_methods->iVersion >= 3) {
    file->pMethods = &read_methods;
  }
  return code;
}

}  // namespace

auto read_vfs_name() -> char const* {
  static constexpr char const* name = "tidegate_read";
  static std::once_flag once;
  static sqlite3_vfs made{};
  std::call_once(once, [] {
    configure_sqlite();
    original = sqlite3_vfs_find(nullptr);
    made = *original;
    made.zName = name;
    made.pNext = nullptr;
    made.xOpen = open_file;
    sqlite3_vfs_register(&made, 0);
  });
  return name;
}

}  // namespace tidegate::store_sqlite
