// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "connection.hpp"

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

namespace tidegate::store_sqlite {

/// Moves what is in SQLite's log (`FILE-wal`) into the file, on a thread and a connection of its
/// own, and keeps the log short.
///
/// Copying does not stop the writer. But a log begins again from its start only when all of it is
/// in the file and no reader needs it, which never happens by itself while writes go on. So when
/// the log is long and little of it is left to be copied, the writer copies the rest itself.
class log_checkpoint {
 public:
  /// `octets_max` is what the log may have: no transaction is begun above it.
  log_checkpoint(connection own, connection& writer, std::uint64_t octets_max);
  ~log_checkpoint();
  log_checkpoint(log_checkpoint const&) = delete;
  auto operator=(log_checkpoint const&) -> log_checkpoint& = delete;

  /// By the writer, between two transactions. An error when the log is as long as it may be:
  /// readers need it, or the disk does not take what is in it.
  [[nodiscard]] auto make_room() -> outcome<void>;
  /// By the writer, when nothing has been written for a moment.
  void note_idle();
  /// Whether a sync of the file has failed. Then the log is kept until all connections were closed
  /// and opened again, after which SQLite copies it from its start.
  [[nodiscard]] auto has_failed() const noexcept -> bool { return has_failed_; }
  /// By the writer: commits that wrote something.
  [[nodiscard]] auto commits() const noexcept -> std::uint64_t { return commits_; }
  /// Ends the thread. Nothing is copied any more.
  void stop() noexcept;

 private:
  void run();
  void copy();
  void sync_file();
  [[nodiscard]] auto wants_sync() const noexcept -> bool;
  [[nodiscard]] auto is_long() const noexcept -> bool { return pages_ >= pages_max_ / 4 * 3; }
  void note(int code) noexcept;
  [[nodiscard]] auto restart_log(int readers_wait) -> bool;

  connection own_;
  connection& writer_;
  int pages_max_;
  std::atomic<int> pages_ = 0;   // in the log, after the last commit
  std::atomic<int> copied_ = 0;  // of these
  std::atomic<int> synced_ = 0;  // of those that are copied
  std::atomic<bool> has_failed_ = false;
  std::atomic<bool> is_whole_ = true;  // the log is in the file, and nothing was committed since
  std::atomic<std::uint64_t> commits_ = 0;
  int tried_at_ = 0;  // so many pages there were when the log was to begin again

  std::mutex own_mutex_;  // held while pages are copied
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_asked_ = false;
  bool is_stopping_ = false;
  std::thread thread_;
};

}  // namespace tidegate::store_sqlite
