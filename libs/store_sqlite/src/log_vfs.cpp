// SPDX-License-Identifier: Apache-2.0
#include "log_vfs.hpp"

#include "connection.hpp"

#include <cstddef>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>

namespace tidegate::store_sqlite {

namespace {

/// The layer below takes less than 128 KiB at once.
constexpr int piece_octets = 120 * 1024;

/// The log as SQLite sees it. The file that it stands for lies behind it in the same memory.
struct log_file {
  sqlite3_file base;
  std::byte* piece;      // what was written and is not with the system yet
  int size;              // octets of it
  sqlite3_int64 offset;  // where it begins in the file
  bool sync_waits;
  bool is_synced;  // all that was written, by us or by whoever had it open before
  bool has_failed;
};

[[nodiscard]] constexpr auto rounded(std::size_t size) noexcept -> std::size_t {
  return (size + alignof(std::max_align_t) - 1) / alignof(std::max_align_t) *
         alignof(std::max_align_t);
}

[[nodiscard]] auto log_of(sqlite3_file* file) noexcept -> log_file* {
  return reinterpret_cast<log_file*>(file);
}
[[nodiscard]] auto real(sqlite3_file* file) noexcept -> sqlite3_file* {
  return reinterpret_cast<sqlite3_file*>(reinterpret_cast<std::byte*>(file) +
                                         rounded(sizeof(log_file)));
}

/// Where it fails, the piece is gone: the transaction that it is of fails, and the next one writes over its
/// place.
[[nodiscard]] auto flush(sqlite3_file* file) noexcept -> int {
  auto* const log = log_of(file);
  if (log->size == 0) {
    return SQLITE_OK;
  }
  auto const size = log->size;
  log->size = 0;
  return real(file)->pMethods->xWrite(real(file), log->piece, size, log->offset);
}

/// Calls `ask` of the real file when it has everything.
template <class Ask>
[[nodiscard]] auto flushed(sqlite3_file* file, Ask ask) noexcept -> int {
  int const code = flush(file);
  return code != SQLITE_OK ? code : ask(real(file));
}

auto write_log(sqlite3_file* file, void const* octets, int size, sqlite3_int64 offset) noexcept
    -> int {
  auto* const log = log_of(file);
  log->is_synced = false;
  bool const fits = log->offset + log->size == offset && log->size + size <= piece_octets;
  if (log->size > 0 && !fits) {
    if (int const code = flush(file); code != SQLITE_OK) {
      return code;
    }
  }
  if (size > piece_octets) {
    return real(file)->pMethods->xWrite(real(file), octets, size, offset);
  }
  if (log->size == 0) {
    log->offset = offset;
  }
  std::memcpy(log->piece + log->size, octets, static_cast<std::size_t>(size));
  log->size += size;
  return SQLITE_OK;
}

auto sync_log(sqlite3_file* file, int flags) noexcept -> int {
  auto* const log = log_of(file);
  bool const waits = log->sync_waits || log->offset == 0;
  return flushed(file, [&](auto* f) {
    if (!waits) {
      return SQLITE_OK;
    }
    int const code = log->has_failed ? SQLITE_IOERR_FSYNC : f->pMethods->xSync(f, flags);
    log->is_synced = code == SQLITE_OK;
    log->has_failed = code != SQLITE_OK;
    return code;
  });
}

auto close_log(sqlite3_file* file) noexcept -> int {
  int const code = flush(file);
  delete[] log_of(file)->piece;
  int const closed = real(file)->pMethods->xClose(real(file));
  return code != SQLITE_OK ? code : closed;
}

/// The log is not mapped, so the first version of the methods is enough.
constexpr sqlite3_io_methods log_methods = {
    .iVersion = 1,
    .xClose = close_log,
    .xRead =
        [](sqlite3_file* file, void* octets, int size, sqlite3_int64 offset) {
          return flushed(file,
                         [&](auto* f) { return f->pMethods->xRead(f, octets, size, offset); });
        },
    .xWrite = write_log,
    .xTruncate =
        [](sqlite3_file* file, sqlite3_int64 size) {
          return flushed(file, [&](auto* f) { return f->pMethods->xTruncate(f, size); });
        },
    .xSync = sync_log,
    .xFileSize =
        [](sqlite3_file* file, sqlite3_int64* size) {
          return flushed(file, [&](auto* f) { return f->pMethods->xFileSize(f, size); });
        },
    .xLock = [](sqlite3_file* file,
                int kind) { return real(file)->pMethods->xLock(real(file), kind); },
    .xUnlock = [](sqlite3_file* file,
                  int kind) { return real(file)->pMethods->xUnlock(real(file), kind); },
    .xCheckReservedLock =
        [](sqlite3_file* file, int* out) {
          return real(file)->pMethods->xCheckReservedLock(real(file), out);
        },
    .xFileControl =
        [](sqlite3_file* file, int what, void* argument) {
          return flushed(file,
                         [&](auto* f) { return f->pMethods->xFileControl(f, what, argument); });
        },
    .xSectorSize = [](sqlite3_file* file) { return real(file)->pMethods->xSectorSize(real(file)); },
    .xDeviceCharacteristics =
        [](sqlite3_file* file) { return real(file)->pMethods->xDeviceCharacteristics(real(file)); },
    .xShmMap = nullptr,
    .xShmLock = nullptr,
    .xShmBarrier = nullptr,
    .xShmUnmap = nullptr,
    .xFetch = nullptr,
    .xUnfetch = nullptr,
};

sqlite3_vfs* original = nullptr;

auto open_file(sqlite3_vfs* /*vfs*/, char const* name, sqlite3_file* file, int flags,
               int* out_flags) noexcept -> int {
  if ((flags & SQLITE_OPEN_WAL) == 0) {
    return original->xOpen(original, name, file, flags, out_flags);
  }
  file->pMethods = nullptr;  // nothing to close as yet
  std::unique_ptr<std::byte[]> piece(new (std::nothrow) std::byte[piece_octets]);
  if (!piece) {
    return SQLITE_NOMEM;
  }
  int const code = original->xOpen(original, name, real(file), flags, out_flags);
  if (code != SQLITE_OK) {
    if (real(file)->pMethods != nullptr) {
      real(file)->pMethods->xClose(real(file));
    }
    return code;
  }
  auto* const log = log_of(file);
  log->piece = piece.release();
  log->size = 0;
  log->offset = 0;
  log->sync_waits = true;
  log->is_synced = false;
  log->has_failed = false;
  log->base.pMethods = &log_methods;
  return SQLITE_OK;
}

}  // namespace

auto log_vfs_name() -> char const* {
  static constexpr char const* name = "tidegate_log";
  static std::once_flag once;
  static sqlite3_vfs made{};
  std::call_once(once, [] {
    configure_sqlite();
    original = sqlite3_vfs_find(nullptr);
    made = *original;
    made.zName = name;
    made.pNext = nullptr;
    made.szOsFile += static_cast<int>(rounded(sizeof(log_file)));
    made.xOpen = open_file;
    sqlite3_vfs_register(&made, 0);
  });
  return name;
}

namespace {

/// Null before it is opened.
[[nodiscard]] auto log_of(sqlite3* connection) noexcept -> sqlite3_file* {
  sqlite3_file* file = nullptr;
  sqlite3_file_control(connection, nullptr, SQLITE_FCNTL_JOURNAL_POINTER,
                       static_cast<void*>(&file));
  return file != nullptr && file->pMethods == &log_methods ? file : nullptr;
}

}  // namespace

void set_log_syncs(sqlite3* connection, bool waits) noexcept {
  if (auto* const file = log_of(connection)) {
    log_of(file)->sync_waits = waits;
  }
}

auto sync_whole_log(sqlite3* connection) noexcept -> bool {
  auto* const file = log_of(connection);
  return file != nullptr &&
         (log_of(file)->is_synced || sync_log(file, SQLITE_SYNC_NORMAL) == SQLITE_OK);
}

auto has_failed_to_sync(sqlite3* connection) noexcept -> bool {
  auto* const file = log_of(connection);
  return file != nullptr && log_of(file)->has_failed;
}

}  // namespace tidegate::store_sqlite
