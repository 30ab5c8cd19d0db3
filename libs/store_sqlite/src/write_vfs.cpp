// SPDX-License-Identifier: Apache-2.0
#include "write_vfs.hpp"

#include "connection.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <utility>

namespace tidegate::store_sqlite {

namespace {

/// The layer below takes less than 128 KiB at once.
constexpr int piece_octets = 120 * 1024;
/// After so many octets the disk is told to begin.
constexpr sqlite3_int64 ahead_octets = sqlite3_int64{4} << 20;

/// What is ours of a file. It lies in the memory behind what the layer below has of it.
struct written_file {
  sqlite3_io_methods methods;      // what SQLite calls
  sqlite3_io_methods const* real;  // what it would call
  std::byte* piece;                // what was written and is not with the system yet
  int size;                        // octets of it
  sqlite3_int64 offset;            // where it begins in the file
  /// The same file once more, to tell the disk to begin: SQLite does not say which one it has. A process that closes any
  /// descriptor of a file loses its locks on it, so it is closed after that of SQLite. Negative: it could not be opened,
  /// and syncs take as long as they take.
  int descriptor;
  sqlite3_int64 begun_from;  // what the disk was not told to begin with lies between these
  sqlite3_int64 begun_to;
  sqlite3_int64 not_begun;  // octets of that
  // Of a log:
  bool sync_waits;
  bool is_synced;  // all that was written, by us or by whoever had it open before
  bool has_failed;
};

sqlite3_vfs* original = nullptr;

[[nodiscard]] auto place() noexcept -> std::size_t {
  constexpr auto aligned = alignof(written_file);
  return (static_cast<std::size_t>(original->szOsFile) + aligned - 1) / aligned * aligned;
}

[[nodiscard]] auto ours(sqlite3_file* file) noexcept -> written_file& {
  return *reinterpret_cast<written_file*>(reinterpret_cast<std::byte*>(file) + place());
}

void tell_disk(written_file& it, sqlite3_int64 offset, int size) noexcept {
  bool const is_first = it.not_begun == 0;
  it.begun_from = is_first ? offset : std::min(it.begun_from, offset);
  it.begun_to = is_first ? offset + size : std::max(it.begun_to, offset + size);
  it.not_begun += size;
  if (it.not_begun >= ahead_octets && it.descriptor >= 0) {
    // What goes wrong is heard of by the sync that follows.
    static_cast<void>(::sync_file_range(it.descriptor, it.begun_from, it.begun_to - it.begun_from,
                                        SYNC_FILE_RANGE_WRITE));
    it.not_begun = 0;
  }
}

[[nodiscard]] auto write_through(sqlite3_file* file, void const* octets, int size,
                                 sqlite3_int64 offset) noexcept -> int {
  auto& it = ours(file);
  int const code = it.real->xWrite(file, octets, size, offset);
  if (code == SQLITE_OK) {
    tell_disk(it, offset, size);
  }
  return code;
}

/// Where it fails, the piece is gone: the transaction that it is of fails, and the next one writes over its
/// place; or it is the log that is not put into the file, which begins anew.
[[nodiscard]] auto flush(sqlite3_file* file) noexcept -> int {
  auto& it = ours(file);
  if (it.size == 0) {
    return SQLITE_OK;
  }
  return write_through(file, it.piece, std::exchange(it.size, 0), it.offset);
}

/// Calls `ask` of the real file when it has everything.
template <class Ask>
[[nodiscard]] auto flushed(sqlite3_file* file, Ask ask) noexcept -> int {
  int const code = flush(file);
  return code != SQLITE_OK ? code : ask(*ours(file).real);
}

auto write_file(sqlite3_file* file, void const* octets, int size, sqlite3_int64 offset) noexcept
    -> int {
  auto& it = ours(file);
  it.is_synced = false;
  bool const fits = it.offset + it.size == offset && it.size + size <= piece_octets;
  if (it.size > 0 && !fits) {
    if (int const code = flush(file); code != SQLITE_OK) {
      return code;
    }
  }
  if (size > piece_octets) {
    return write_through(file, octets, size, offset);
  }
  if (it.size == 0) {
    it.offset = offset;
  }
  std::memcpy(it.piece + it.size, octets, static_cast<std::size_t>(size));
  it.size += size;
  return SQLITE_OK;
}

auto sync_file(sqlite3_file* file, int flags) noexcept -> int {
  return flushed(file, [&](auto const& real) {
    ours(file).not_begun = 0;
    return real.xSync(file, flags);
  });
}

auto sync_log(sqlite3_file* file, int flags) noexcept -> int {
  auto& it = ours(file);
  bool const waits = it.sync_waits || it.offset == 0;
  if (int const code = flush(file); code != SQLITE_OK || !waits) {
    return code;
  }
  int const code = it.has_failed ? SQLITE_IOERR_FSYNC : sync_file(file, flags);
  it.is_synced = code == SQLITE_OK;
  it.has_failed = code != SQLITE_OK;
  return code;
}

auto close_file(sqlite3_file* file) noexcept -> int {
  int const code = flush(file);
  auto& it = ours(file);
  delete[] it.piece;
  int const closed = it.real->xClose(file);
  if (it.descriptor >= 0) {
    ::close(it.descriptor);
  }
  return code != SQLITE_OK ? code : closed;
}

[[nodiscard]] auto methods_over(sqlite3_io_methods const& real, bool is_log) noexcept
    -> sqlite3_io_methods {
  auto made = real;
  made.xClose = close_file;
  made.xRead = [](sqlite3_file* file, void* octets, int size, sqlite3_int64 offset) {
    return flushed(file, [&](auto const& it) { return it.xRead(file, octets, size, offset); });
  };
  made.xWrite = write_file;
  made.xTruncate = [](sqlite3_file* file, sqlite3_int64 size) {
    return flushed(file, [&](auto const& it) { return it.xTruncate(file, size); });
  };
  made.xSync = is_log ? sync_log : sync_file;
  made.xFileSize = [](sqlite3_file* file, sqlite3_int64* size) {
    return flushed(file, [&](auto const& it) { return it.xFileSize(file, size); });
  };
  made.xUnlock = [](sqlite3_file* file, int kind) {
    return flushed(file, [&](auto const& it) { return it.xUnlock(file, kind); });
  };
  made.xFileControl = [](sqlite3_file* file, int what, void* argument) {
    return flushed(file, [&](auto const& it) { return it.xFileControl(file, what, argument); });
  };
  if (made.iVersion >= 3) {
    made.xFetch = [](sqlite3_file* file, sqlite3_int64 offset, int size, void** octets) {
      return flushed(file, [&](auto const& it) { return it.xFetch(file, offset, size, octets); });
    };
  }
  return made;
}

auto open_file(sqlite3_vfs* /*vfs*/, char const* name, sqlite3_file* file, int flags,
               int* out_flags) noexcept -> int {
  bool const is_log = (flags & SQLITE_OPEN_WAL) != 0;
  if (!is_log && (flags & SQLITE_OPEN_MAIN_DB) == 0) {
    return original->xOpen(original, name, file, flags, out_flags);
  }
  file->pMethods = nullptr;  // nothing to close as yet
  std::unique_ptr<std::byte[]> piece(new (std::nothrow) std::byte[piece_octets]);
  if (!piece) {
    return SQLITE_NOMEM;
  }
  int const code = original->xOpen(original, name, file, flags, out_flags);
  if (code != SQLITE_OK) {
    return code;
  }
  auto& it = *new (&ours(file)) written_file{};
  it.methods = methods_over(*file->pMethods, is_log);
  it.real = file->pMethods;
  it.piece = piece.release();
  it.descriptor = name != nullptr ? ::open(name, O_WRONLY | O_CLOEXEC) : -1;
  it.sync_waits = true;
  file->pMethods = &it.methods;
  return SQLITE_OK;
}

}  // namespace

auto write_vfs_name() -> char const* {
  static constexpr char const* name = "tidegate_write";
  static std::once_flag once;
  static sqlite3_vfs made{};
  std::call_once(once, [] {
    configure_sqlite();
    original = sqlite3_vfs_find(nullptr);
    made = *original;
    made.zName = name;
    made.pNext = nullptr;
    made.szOsFile = static_cast<int>(place() + sizeof(written_file));
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
  return file != nullptr && file->pMethods != nullptr && file->pMethods->xSync == sync_log
             ? file
             : nullptr;
}

}  // namespace

void set_log_syncs(sqlite3* connection, bool waits) noexcept {
  if (auto* const file = log_of(connection)) {
    ours(file).sync_waits = waits;
  }
}

auto sync_whole_log(sqlite3* connection) noexcept -> bool {
  auto* const file = log_of(connection);
  return file != nullptr &&
         (ours(file).is_synced || sync_log(file, SQLITE_SYNC_NORMAL) == SQLITE_OK);
}

auto has_failed_to_sync(sqlite3* connection) noexcept -> bool {
  auto* const file = log_of(connection);
  return file != nullptr && ours(file).has_failed;
}

}  // namespace tidegate::store_sqlite
