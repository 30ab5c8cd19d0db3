// SPDX-License-Identifier: Apache-2.0
#include "write_vfs.hpp"

#include "connection.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
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
/// What is before each page in the log: its number, the size of the file, salt, checksum.
constexpr int frame_head_octets = 24;
constexpr int salt_at = 8;
constexpr int salt_octets = 8;

/// What is ours of a file. It lies in the memory behind what the layer below has of it.
struct written_file {
  sqlite3_io_methods methods;      // what SQLite calls
  sqlite3_io_methods const* real;  // what it would call
  bool has_failed;                 // a sync
  /// The same file once more, to tell the disk to begin: SQLite does not say which one it has. A process that closes any
  /// descriptor of a file loses its locks on it, so it is closed after that of SQLite. Negative: it could not be opened,
  /// and syncs take as long as they take.
  int descriptor;
  sqlite3_int64 begun_from;  // what the disk was not told to begin with lies between these
  sqlite3_int64 begun_to;
  sqlite3_int64 not_begun;  // octets of that
  // Of a log:
  std::byte* piece;      // what was written and is not with the system yet
  int size;              // octets of it
  sqlite3_int64 offset;  // where it begins in the file
  bool has_lost;         // a piece
  bool has_unsummed;
  sqlite3_int64 unsummed;  // where the first frame is that has no checksum
  bool sync_waits;
  bool is_synced;  // all that was written, by us or by whoever had it open before
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

auto write_through(sqlite3_file* file, void const* octets, int size, sqlite3_int64 offset) noexcept
    -> int {
  auto& it = ours(file);
  int const code = it.real->xWrite(file, octets, size, offset);
  if (code == SQLITE_OK) {
    tell_disk(it, offset, size);
  }
  return code;
}

auto sync_file(sqlite3_file* file, int flags) noexcept -> int {
  auto& it = ours(file);
  it.not_begun = 0;
  int const code = it.has_failed ? SQLITE_IOERR_FSYNC : it.real->xSync(file, flags);
  it.has_failed = code != SQLITE_OK;
  return code;
}

auto close_file(sqlite3_file* file) noexcept -> int {
  auto& it = ours(file);
  int const code = it.real->xClose(file);
  if (it.descriptor >= 0) {
    ::close(it.descriptor);
  }
  return code;
}

// ---- the log ----

/// Where it fails, the piece is gone: the transaction that it is of fails, and the next one writes over its place.
[[nodiscard]] auto flush(sqlite3_file* file) noexcept -> int {
  auto& it = ours(file);
  if (it.has_lost) {
    return SQLITE_IOERR_WRITE;
  }
  if (it.size == 0) {
    return SQLITE_OK;
  }
  int const code = write_through(file, it.piece, std::exchange(it.size, 0), it.offset);
  it.has_lost = code != SQLITE_OK;
  return code;
}

/// Calls `ask` of the real file when it has everything.
template <class Ask>
[[nodiscard]] auto flushed(sqlite3_file* file, Ask ask) noexcept -> int {
  int const code = flush(file);
  return code != SQLITE_OK ? code : ask(*ours(file).real);
}

/// A page that a transaction writes once more goes to the place it has in the log. From then on SQLite leaves salt and checksum of
/// what it appends at zero, and before the commit it puts them in, from that page on.
void note_frame(written_file& it, void const* head, sqlite3_int64 offset) noexcept {
  constexpr std::array<std::byte, salt_octets> zeros{};
  if (std::memcmp(static_cast<std::byte const*>(head) + salt_at, zeros.data(), zeros.size()) == 0) {
    it.unsummed = it.has_unsummed ? std::min(it.unsummed, offset) : offset;
    it.has_unsummed = true;
  } else if (offset <= it.unsummed) {
    it.has_unsummed = false;
  }
}

auto write_log(sqlite3_file* file, void const* octets, int size, sqlite3_int64 offset) noexcept
    -> int {
  auto& it = ours(file);
  it.is_synced = false;
  if (offset == 0) {
    it.has_unsummed = false;  // the log begins anew
  } else if (size == frame_head_octets) {
    note_frame(it, octets, offset);
  }
  bool const fits = it.offset + it.size == offset && it.size + size <= piece_octets;
  if (it.has_lost || (it.size > 0 && !fits)) {
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

auto sync_log(sqlite3_file* file, int flags) noexcept -> int {
  auto& it = ours(file);
  bool const waits = it.sync_waits || it.offset == 0;
  it.has_lost |= it.has_unsummed;
  if (int const code = flush(file); code != SQLITE_OK || !waits) {
    return code;
  }
  int const code = sync_file(file, flags);
  it.is_synced = code == SQLITE_OK;
  return code;
}

auto close_log(sqlite3_file* file) noexcept -> int {
  int const code = ours(file).has_lost ? SQLITE_OK : flush(file);
  delete[] ours(file).piece;
  int const closed = close_file(file);
  return code != SQLITE_OK ? code : closed;
}

[[nodiscard]] auto log_methods_over(sqlite3_io_methods const& real) noexcept -> sqlite3_io_methods {
  auto made = real;
  made.iVersion = 1;  // it is neither mapped nor shared
  made.xClose = close_log;
  made.xRead = [](sqlite3_file* file, void* octets, int size, sqlite3_int64 offset) {
    return flushed(file, [&](auto const& it) { return it.xRead(file, octets, size, offset); });
  };
  made.xWrite = write_log;
  made.xTruncate = [](sqlite3_file* file, sqlite3_int64 size) {
    return flushed(file, [&](auto const& it) { return it.xTruncate(file, size); });
  };
  made.xSync = sync_log;
  made.xFileSize = [](sqlite3_file* file, sqlite3_int64* size) {
    return flushed(file, [&](auto const& it) { return it.xFileSize(file, size); });
  };
  made.xFileControl = [](sqlite3_file* file, int what, void* argument) {
    return flushed(file, [&](auto const& it) { return it.xFileControl(file, what, argument); });
  };
  return made;
}

[[nodiscard]] auto file_methods_over(sqlite3_io_methods const& real) noexcept
    -> sqlite3_io_methods {
  auto made = real;
  made.xClose = close_file;
  made.xWrite = write_through;
  made.xSync = sync_file;
  return made;
}

/// Not one of the first three, to which anything may be written by those who take them for something else.
[[nodiscard]] auto open_again(char const* name) noexcept -> int {
  int const opened = name != nullptr ? ::open(name, O_WRONLY | O_CLOEXEC) : -1;
  if (opened < 0 || opened > STDERR_FILENO) {
    return opened;
  }
  int const moved = ::fcntl(opened, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  ::close(opened);
  return moved;
}

auto open_file(sqlite3_vfs* /*vfs*/, char const* name, sqlite3_file* file, int flags,
               int* out_flags) noexcept -> int {
  bool const is_log = (flags & SQLITE_OPEN_WAL) != 0;
  if (!is_log && (flags & SQLITE_OPEN_MAIN_DB) == 0) {
    return original->xOpen(original, name, file, flags, out_flags);
  }
  file->pMethods = nullptr;  // nothing to close as yet
  std::unique_ptr<std::byte[]> piece(is_log ? new (std::nothrow) std::byte[piece_octets] : nullptr);
  if (is_log && !piece) {
    return SQLITE_NOMEM;
  }
  int const code = original->xOpen(original, name, file, flags, out_flags);
  if (code != SQLITE_OK) {
    return code;
  }
  auto& it = *new (&ours(file)) written_file{};
  it.methods = is_log ? log_methods_over(*file->pMethods) : file_methods_over(*file->pMethods);
  it.real = file->pMethods;
  it.piece = piece.release();
  it.descriptor = open_again(name);
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
[[nodiscard]] auto file_of(sqlite3* connection, int which, int (*sync)(sqlite3_file*, int)) noexcept
    -> written_file* {
  sqlite3_file* file = nullptr;
  sqlite3_file_control(connection, nullptr, which, static_cast<void*>(&file));
  return file != nullptr && file->pMethods != nullptr && file->pMethods->xSync == sync ? &ours(file)
                                                                                       : nullptr;
}

[[nodiscard]] auto log_of(sqlite3* connection) noexcept -> written_file* {
  return file_of(connection, SQLITE_FCNTL_JOURNAL_POINTER, sync_log);
}

}  // namespace

void set_log_syncs(sqlite3* connection, bool waits) noexcept {
  if (auto* const log = log_of(connection)) {
    log->sync_waits = waits;
  }
}

auto sync_whole_log(sqlite3* connection) noexcept -> bool {
  sqlite3_file* file = nullptr;
  sqlite3_file_control(connection, nullptr, SQLITE_FCNTL_JOURNAL_POINTER,
                       static_cast<void*>(&file));
  auto const* const log = log_of(connection);
  return log != nullptr && (log->is_synced || sync_log(file, SQLITE_SYNC_NORMAL) == SQLITE_OK);
}

auto has_failed_to_sync(sqlite3* connection) noexcept -> bool {
  auto const* const log = log_of(connection);
  auto const* const file = file_of(connection, SQLITE_FCNTL_FILE_POINTER, sync_file);
  return (log != nullptr && log->has_failed) || (file != nullptr && file->has_failed);
}

void forget_lost_log(sqlite3* connection) noexcept {
  if (auto* const log = log_of(connection)) {
    log->has_lost = false;
    log->has_unsummed = false;
    log->size = 0;
  }
}

}  // namespace tidegate::store_sqlite
