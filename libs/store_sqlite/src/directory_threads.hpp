// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/store_sqlite/directory.hpp>

#include "directory_journal.hpp"
#include "directory_session.hpp"
#include "file_lock.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace tidegate::store_sqlite {

/// The threads of a directory, and the queues before them.
///
/// While there are readers about, each group of writes is a transaction that is on the disk before it is answered, so that readers
/// wait for nobody. When none has come for a while, a group is only added to the journal before it is answered, and one
/// transaction takes many: pages of indexes are written once for thousands of writes. The next reader waits until that is
/// committed, which is done without waiting for the disk: what a loss of power takes away is in the journal.
class directory::threads {
 public:
  /// `journaled` is the number of the last group of the journal that is in the file.
  threads(directory_options options, file_lock lock, directory_journal journal,
          std::uint64_t journaled, std::unique_ptr<directory_session> writer,
          std::vector<std::unique_ptr<directory_session>> readers,
          std::vector<std::unique_ptr<directory_session>> readers_here);
  ~threads();
  threads(threads const&) = delete;
  auto operator=(threads const&) -> threads& = delete;

  void read(std::string_view tenant, read_work work);
  [[nodiscard]] auto read_here(std::string_view tenant,
                               std::function<void(store::directory_reader&)> const& work) -> bool;
  void write(std::string_view tenant, write_work work, write_answer answer);
  [[nodiscard]] auto counted() const noexcept -> counts;

 private:
  struct read_job {
    std::string tenant;
    read_work work;
  };
  struct write_job {
    std::string tenant;
    write_work work;
    write_answer answer;
    outcome<void> made;
    bool undone = false;  // it was made, and nothing of it is to be kept
  };

  void run_reads(directory_session& session);
  void run_writes();
  void make(std::vector<write_job>& jobs);
  /// All of them, to be durable at once. An error is one of all of them, and nothing was made.
  [[nodiscard]] auto transact(std::span<write_job> jobs) -> outcome<void>;
  [[nodiscard]] auto make_all(std::span<write_job> jobs) -> outcome<void>;
  [[nodiscard]] auto make_one(write_job& job) -> outcome<void>;
  /// Whether the next group may go to the journal alone.
  [[nodiscard]] auto may_wait() -> bool;
  /// Whether there are answered writes that are not committed.
  [[nodiscard]] auto is_behind() const noexcept -> bool { return journaled_ != committed_; }
  [[nodiscard]] auto is_unsettled() const noexcept -> bool {
    return is_behind() || writer_->file().in_transaction();
  }
  [[nodiscard]] auto commit(bool synced) -> outcome<void>;
  /// Commits what was answered, so that readers see it.
  [[nodiscard]] auto settle(bool synced) -> outcome<void>;
  /// After a rollback: does again what is in the journal only.
  [[nodiscard]] auto catch_up() -> outcome<void>;
  /// Lets readers go on that wait for what was answered.
  void show();
  void refuse_held(store::store_error const& error);
  void bound();
  void checkpoint(bool idle);

  directory_options options_;
  file_lock lock_;
  std::uint64_t room_needed_;  // on the disk, for what is answered before it is in the file
  directory_journal journal_;
  std::uint64_t journaled_;  // the number of the last group of the journal
  std::uint64_t committed_;  // that of the last one that is in the file
  std::size_t waiting_ = 0;  // writes in the transaction that is open
  std::chrono::steady_clock::time_point caught_up_next_{};  // after it failed
  store::store_error caught_up_error_{};
  std::unique_ptr<directory_session> writer_;
  std::vector<std::unique_ptr<directory_session>> readers_;
  static constexpr int wal_pages_max = 16'384;
  int wal_pages_ = 0;  // after the last commit
  int checkpoint_at_ = wal_pages_max;
  bool has_pages_ = true;         // in memory, since somebody wrote or it was opened
  std::size_t relief_steps_ = 0;  // since the transaction is full
  std::atomic<std::uint64_t> transactions_ = 0;
  std::atomic<std::uint64_t> writes_ = 0;

  std::mutex read_mutex_;
  std::condition_variable read_queued_;
  std::deque<read_job> reads_;
  std::deque<read_job> held_reads_;  // until what was answered is committed
  std::vector<std::unique_ptr<directory_session>> readers_here_;  // that are free, last used last
  bool holding_reads_ = false;
  bool closing_reads_ = false;
  std::atomic<std::chrono::steady_clock::time_point> last_read_{};
  std::atomic<std::chrono::steady_clock::time_point> here_again_{};  // when a read may wait again
  std::mutex write_mutex_;
  std::condition_variable write_queued_;
  std::deque<write_job> writes_queue_;
  bool stopping_reads_ = false;
  bool stopping_writes_ = false;
  bool has_held_ = false;
  std::vector<std::thread> read_threads_;
  std::thread write_thread_;
};

}  // namespace tidegate::store_sqlite
