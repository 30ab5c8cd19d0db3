// SPDX-License-Identifier: Apache-2.0
#include <tidegate/store_sqlite/directory_backup.hpp>

#include "connection.hpp"
#include "directory/schema.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <memory>
#include <system_error>

namespace tidegate::store_sqlite {

using store::store_error;
using store::store_fault;

namespace {

/// How many pages are copied between two calls of `progress`: a few milliseconds.
constexpr int pages_at_once = 2048;

struct finish_backup {
  void operator()(sqlite3_backup* backup) const noexcept { sqlite3_backup_finish(backup); }
};

[[nodiscard]] auto sync(std::string const& name, int flags) -> bool {
  int const file = ::open(name.c_str(), flags | O_CLOEXEC);
  bool const synced = file >= 0 && ::fsync(file) == 0;
  if (file >= 0) {
    ::close(file);
  }
  return synced;
}

/// Copies all pages in one read transaction, so that writers do not make it begin again.
[[nodiscard]] auto copy_pages(connection& from, connection& to,
                              std::function<bool(std::uint64_t, std::uint64_t)> const& progress)
    -> outcome<void> {
  TIDEGATE_TRY_VOID(from.execute("BEGIN"));
  TIDEGATE_TRY_VOID(from.number("SELECT count(*) FROM sqlite_schema"));
  std::unique_ptr<sqlite3_backup, finish_backup> const backup(
      sqlite3_backup_init(to.get(), "main", from.get(), "main"));
  if (!backup) {
    return failure(to.error());
  }
  for (int code = SQLITE_OK; code != SQLITE_DONE;) {
    code = sqlite3_backup_step(backup.get(), pages_at_once);
    if (code != SQLITE_OK && code != SQLITE_DONE) {
      return failure(store_error{store_fault::unavailable,
                                 to.file() + ": " + std::string(sqlite3_errstr(code))});
    }
    auto const all = static_cast<std::uint64_t>(sqlite3_backup_pagecount(backup.get()));
    auto const left = static_cast<std::uint64_t>(sqlite3_backup_remaining(backup.get()));
    if (!progress(all - left, all)) {
      return failure(store_error{store_fault::stopped, to.file() + ": is not complete"});
    }
  }
  return {};
}

}  // namespace

auto back_up_directory(std::string const& file, std::string const& to,
                       std::function<bool(std::uint64_t, std::uint64_t)> const& progress)
    -> result<std::uint64_t, store_error> {
  namespace fs = std::filesystem;
  std::error_code fault;
  if (!fs::exists(file, fault)) {
    return failure(store_error{store_fault::unavailable, file + ": there is no such file"});
  }
  if (fs::exists(to, fault)) {
    return failure(store_error{store_fault::unavailable, to + ": is there already"});
  }
  auto const partial = to + ".partial";
  fs::remove(partial, fault);
  auto const made = [&]() -> outcome<void> {
    TIDEGATE_TRY(auto source, connection::open_existing(file));
    source.keep_log();  // it may be the last one to have the file open
    TIDEGATE_TRY_VOID(check_directory(source));
    TIDEGATE_TRY(auto const is_old,
                 source.number("SELECT count(*) FROM sqlite_schema WHERE name = 'journal'"));
    if (is_old > 0 && fs::exists(file + ".journal", fault)) {
      return failure(store_error{store_fault::unavailable,
                                 file +
                                     ": is of a version before; a gateway of this version has to "
                                     "open it once"});
    }
    TIDEGATE_TRY(auto target, connection::open_plain(partial));
    return copy_pages(source, target, progress);
  }();
  bool const synced = made && sync(partial, O_RDWR);
  if (!made || !synced || ::rename(partial.c_str(), to.c_str()) != 0) {
    auto const why = std::generic_category().message(errno);
    fs::remove(partial, fault);
    return failure(made ? store_error{store_fault::unavailable, to + ": " + why} : made.error());
  }
  auto const folder = fs::path(to).parent_path();
  static_cast<void>(sync(folder.empty() ? "." : folder.string(), O_RDONLY | O_DIRECTORY));
  return static_cast<std::uint64_t>(fs::file_size(to, fault));
}

}  // namespace tidegate::store_sqlite
