// SPDX-License-Identifier: Apache-2.0
#include "directory/log_checkpoint.hpp"

#include <algorithm>
#include <utility>

namespace tidegate::store_sqlite {

using store::store_error;
using store::store_fault;

namespace {

/// A page and what the log has beside it.
constexpr std::uint64_t page_octets = 4096 + 24;
/// So many pages are worth a sync of the file: 8 MiB.
constexpr int copied_at_once = 2048;
/// In an idle moment fewer are.
constexpr int idle_pages = 256;
/// How little the writer copies itself, when the log has three quarters of what it may have.
constexpr int rest_pages = 1024;
/// How much of what was copied may be not synced when the log is to begin again.
constexpr int unsynced_pages = 3072;
constexpr int syncs_max = 4;
/// How long the writer waits for readers that began before, at most; the second where it cannot go
/// on.
constexpr int readers_wait_ms = 50;
constexpr int readers_wait_longest_ms = 2000;

}  // namespace

log_checkpoint::log_checkpoint(connection own, connection& writer, std::uint64_t octets_max)
    : own_(std::move(own)),
      writer_(writer),
      pages_max_(static_cast<int>(std::max<std::uint64_t>(octets_max / page_octets, 64))) {
  sqlite3_wal_hook(
      writer_.get(),
      [](void* self, sqlite3* /*connection*/, char const* /*name*/, int pages) {
        auto& to = *static_cast<log_checkpoint*>(self);
        to.pages_ = pages;
        ++to.commits_;
        to.is_whole_ = false;
        return SQLITE_OK;
      },
      this);
  thread_ = std::thread([this] { run(); });
}

log_checkpoint::~log_checkpoint() {
  stop();
  sqlite3_wal_hook(writer_.get(), nullptr, nullptr);
}

void log_checkpoint::stop() noexcept {
  {
    std::lock_guard const lock(mutex_);
    is_stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) {
    thread_.join();
  }
}

void log_checkpoint::run() {
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return is_stopping_ || is_asked_; });
      if (is_stopping_) {
        return;
      }
    }
    copy();
    // Each of these takes less than the one before, since less is copied meanwhile.
    for (int i = 0; i < syncs_max && wants_sync(); ++i) {
      sync_file();
      copy();
    }
    std::lock_guard const lock(mutex_);
    is_asked_ = false;
  }
}

/// What fails here is tried again later; the log has it all the same.
void log_checkpoint::copy() {
  std::lock_guard const lock(own_mutex_);
  // SQLite before 3.51.3 may take new pages for copied when the log begins again while it copies
  // one that is in the file as a whole already. After a failed sync nothing may be taken for
  // copied.
  if (is_whole_ || has_failed_) {
    return;
  }
  auto const commits = commits_.load();
  int in_log = 0;
  int copied = 0;
  int const code =
      sqlite3_wal_checkpoint_v2(own_.get(), nullptr, SQLITE_CHECKPOINT_PASSIVE, &in_log, &copied);
  note(code);
  if (code == SQLITE_OK && copied >= 0) {
    copied_ = copied;
    if (copied == in_log && commits == commits_) {
      is_whole_ = true;
    }
  }
}

/// SQLite syncs the file when all of the log is in it, with everything since the last time. Here
/// that is done before, while the writer goes on.
void log_checkpoint::sync_file() {
  std::lock_guard const lock(own_mutex_);
  sqlite3_file* file = nullptr;
  sqlite3_file_control(own_.get(), "main", SQLITE_FCNTL_FILE_POINTER, &file);
  bool const good = file->pMethods->xSync(file, SQLITE_SYNC_NORMAL) == SQLITE_OK;
  note(good ? SQLITE_OK : SQLITE_IOERR_FSYNC);
  synced_ = good ? copied_.load() : synced_.load();
}

/// After a failed sync the system may have dropped pages that SQLite takes for copied.
void log_checkpoint::note(int code) noexcept {
  if (code == SQLITE_IOERR_FSYNC) {
    has_failed_ = true;
  }
}

auto log_checkpoint::restart_log(int readers_wait) -> bool {
  std::lock_guard const lock(own_mutex_);
  if (has_failed_) {
    return false;
  }
  sqlite3_busy_timeout(writer_.get(), readers_wait);
  int const code = sqlite3_wal_checkpoint_v2(writer_.get(), nullptr, SQLITE_CHECKPOINT_RESTART,
                                             nullptr, nullptr);
  sqlite3_busy_timeout(writer_.get(), 0);
  note(code);
  tried_at_ = pages_;
  if (code == SQLITE_OK) {
    is_whole_ = true;
    pages_ = 0;
    copied_ = 0;
    tried_at_ = 0;
    synced_ = 0;
  }
  return code == SQLITE_OK;
}

auto log_checkpoint::wants_sync() const noexcept -> bool {
  return !has_failed_ && pages_ - synced_ > (is_long() ? unsynced_pages : pages_max_ / 8);
}

auto log_checkpoint::make_room() -> outcome<void> {
  int const pages = pages_;
  int const left = pages - copied_;
  if (left >= std::min(copied_at_once, pages_max_ / 8) || (is_long() && wants_sync())) {
    {
      std::lock_guard const lock(mutex_);
      is_asked_ = true;
    }
    changed_.notify_one();
  }
  bool const is_full = pages >= pages_max_;
  bool const is_ready = is_long() && pages - synced_ <= unsynced_pages && left <= rest_pages &&
                        pages >= tried_at_ + pages_max_ / 32;
  int const wait = is_full ? readers_wait_longest_ms : readers_wait_ms;
  if ((is_full || is_ready) && !restart_log(wait) && is_full) {
    return failure(store_error{store_fault::unavailable,
                               writer_.file() + "-wal: is as long as it may be, and readers need "
                                                "it or the disk does not take it"});
  }
  return {};
}

void log_checkpoint::note_idle() {
  if (pages_ - copied_ >= idle_pages) {
    copy();
  }
}

}  // namespace tidegate::store_sqlite
