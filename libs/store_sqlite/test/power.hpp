// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "connection.hpp"

#include <sqlite3.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <random>
#include <string>

namespace tidegate::store_sqlite {

/// What the disk has of a log for certain, kept beside it as `FILE-wal.synced`: a loss of power can
/// be tried out, which a process that is killed does not show, since the system still has what it
/// wrote.
///
/// It is the default file layer of SQLite from before the first file is opened. It does nothing
/// until it is told to.
class power {
 public:
  /// In a process that is going to lose it.
  static void watch_syncs() { is_watching() = true; }

  /// From now on the disk is full for whatever is written at this place of a database or behind it,
  /// or of its log. Negative: it is not. Of files that are opened after the first call, whatever it
  /// says.
  static void fill_file(sqlite3_int64 from) { full(false) = {true, from}; }
  static void fill_log(sqlite3_int64 from) { full(true) = {true, from}; }

  /// From now on so many of ten thousand of these fail, in files that are opened after the first
  /// call. A part of a write that fails may have been made.
  struct failures {
    int log_writes = 0;
    int log_reads = 0;
    int file_writes = 0;
    int truncations = 0;
    int syncs = 0;
  };
  static void fail(failures how_many) {
    full(false).is_asked_for = true;
    full(true).is_asked_for = true;
    failing(kind::log_write) = how_many.log_writes;
    failing(kind::log_read) = how_many.log_reads;
    failing(kind::file_write) = how_many.file_writes;
    failing(kind::truncation) = how_many.truncations;
    failing(kind::sync) = how_many.syncs;
  }

  /// What is left of a directory when the power goes. Its file is as it is: SQLite syncs it before
  /// it needs the log no more.
  static void cut_power(std::string const& file) {
    namespace fs = std::filesystem;
    fs::remove(file + "-shm");
    fs::remove(file + "-wal");
    if (fs::exists(file + "-wal.synced")) {
      fs::copy_file(file + "-wal.synced", file + "-wal");
    }
  }

 private:
  static auto is_watching() -> bool& {
    static bool watching = false;
    return watching;
  }
  struct fullness {
    bool is_asked_for = false;
    sqlite3_int64 from = -1;
  };
  static auto full(bool log) -> fullness& {
    static std::array<fullness, 2> of;
    return of[log ? 1 : 0];
  }
  enum class kind : std::uint8_t { log_write, log_read, file_write, truncation, sync };
  static auto failing(kind which) -> std::atomic<int>& {
    static std::array<std::atomic<int>, 5> of_ten_thousand{};
    return of_ten_thousand[static_cast<std::size_t>(which)];
  }
  /// Below `bound`, another one each time.
  static auto chance(int bound) -> int {
    thread_local std::mt19937 random(std::random_device{}());
    return static_cast<int>(random() % static_cast<unsigned>(bound));
  }
  static auto fails(kind which) -> bool {
    int const part = failing(which);
    return part > 0 && chance(10'000) < part;
  }
  template <bool Log>
  static void fill(sqlite3_file* file) {
    static sqlite3_io_methods const* real = nullptr;
    static sqlite3_io_methods filled{};
    real = file->pMethods;
    filled = *real;
    filled.xWrite = [](sqlite3_file* to, void const* octets, int size, sqlite3_int64 offset) {
      if (fails(Log ? kind::log_write : kind::file_write)) {
        if (int const part = chance(size); part > 0 && chance(3) > 0) {
          static_cast<void>(real->xWrite(to, octets, part, offset));
        }
        return chance(2) == 0 ? SQLITE_FULL : SQLITE_IOERR_WRITE;
      }
      auto const from = full(Log).from;
      return from >= 0 && offset + size > from ? SQLITE_FULL
                                               : real->xWrite(to, octets, size, offset);
    };
    filled.xRead = [](sqlite3_file* of, void* octets, int size, sqlite3_int64 offset) {
      return Log && fails(kind::log_read) ? SQLITE_IOERR_READ
                                          : real->xRead(of, octets, size, offset);
    };
    filled.xTruncate = [](sqlite3_file* of, sqlite3_int64 size) {
      return fails(kind::truncation) ? SQLITE_IOERR_TRUNCATE : real->xTruncate(of, size);
    };
    filled.xSync = [](sqlite3_file* of, int flags) {
      return fails(kind::sync) ? SQLITE_IOERR_FSYNC : real->xSync(of, flags);
    };
    file->pMethods = &filled;
  }
  static auto log_name() -> std::string& {
    static std::string name;
    return name;
  }
  static auto original() -> sqlite3_vfs*& {
    static sqlite3_vfs* vfs = nullptr;
    return vfs;
  }
  static auto real_methods() -> sqlite3_io_methods const*& {
    static sqlite3_io_methods const* methods = nullptr;
    return methods;
  }

  static auto open_file(sqlite3_vfs* /*vfs*/, char const* name, sqlite3_file* file, int flags,
                        int* out_flags) -> int {
    int const code = original()->xOpen(original(), name, file, flags, out_flags);
    if (code == SQLITE_OK && (flags & SQLITE_OPEN_WAL) != 0 && is_watching()) {
      static sqlite3_io_methods watched{};
      real_methods() = file->pMethods;
      watched = *file->pMethods;
      watched.xSync = sync;
      log_name() = name;
      file->pMethods = &watched;
    }
    bool const is_log = (flags & SQLITE_OPEN_WAL) != 0;
    if (code == SQLITE_OK && is_log && full(true).is_asked_for) {
      fill<true>(file);
    }
    if (code == SQLITE_OK && (flags & SQLITE_OPEN_MAIN_DB) != 0 && full(false).is_asked_for) {
      fill<false>(file);
    }
    return code;
  }

  static auto sync(sqlite3_file* file, int flags) -> int {
    int const code = real_methods()->xSync(file, flags);
    if (code == SQLITE_OK) {
      std::filesystem::copy_file(log_name(), log_name() + ".synced",
                                 std::filesystem::copy_options::overwrite_existing);
    }
    return code;
  }

  static inline bool const is_there = [] {
    static sqlite3_vfs below{};
    configure_sqlite();  // as the store would, which is second here
    original() = sqlite3_vfs_find(nullptr);
    below = *original();
    below.zName = "power";
    below.pNext = nullptr;
    below.xOpen = open_file;
    return sqlite3_vfs_register(&below, 1) == SQLITE_OK;
  }();
};

}  // namespace tidegate::store_sqlite
