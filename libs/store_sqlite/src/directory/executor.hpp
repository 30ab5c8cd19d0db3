// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/store_sqlite/directory.hpp>

#include "directory/file_lock.hpp"
#include "directory/log_checkpoint.hpp"
#include "directory/session.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace tidegate::store_sqlite {

/// The threads of a directory, and the queues before them: one that writes, some that read, and one
/// that moves what was written from the log into the file.
class directory_executor final : public store::directory {
 public:
  directory_executor(directory_options options, file_lock lock,
                     std::unique_ptr<directory_session> writer, connection checkpointer,
                     std::vector<std::unique_ptr<directory_session>> readers,
                     std::vector<std::unique_ptr<directory_session>> readers_here);
  ~directory_executor() override;

  void read(std::string_view tenant, read_transaction transaction) override;
  [[nodiscard]] auto read_here(std::string_view tenant,
                               std::function<void(store::directory_reader&)> const& transaction)
      -> bool override;
  void write(std::string_view tenant, write_transaction transaction, write_answer answer) override;

  /// How often writes were made durable, and how many they were.
  struct counts {
    std::uint64_t transactions = 0;
    std::uint64_t writes = 0;
  };
  [[nodiscard]] auto counted() const noexcept -> counts;

 private:
  struct read_job {
    std::string tenant;
    read_transaction transaction;
  };
  struct write_job {
    std::string tenant;
    write_transaction transaction;
    write_answer answer;
    outcome<void> made;
    bool may_be_in_log = false;  // by a commit that failed
  };
  template <class Job>
  struct job_queue {
    std::mutex mutex;
    std::condition_variable added;
    std::deque<Job> jobs;
    bool is_stopping = false;

    void stop() {
      {
        std::lock_guard const lock(mutex);
        is_stopping = true;
      }
      added.notify_all();
    }
  };
  /// What came of a group. Where it was not committed, all of it was rolled back.
  struct group_outcome {
    bool is_committed = false;
    bool is_of_all = false;  ///< it could not begin, which is the same for each of them
    /// Where it was committed, how many jobs are in it. Else the job that kept it from being
    /// committed; behind all of them: the commit.
    std::size_t stopped_at = 0;
    outcome<void> made{};
  };

  void run_reads(directory_session& session);
  void run_writes();
  /// Makes all of them durable, together where that is possible.
  void make(std::span<write_job> jobs);
  [[nodiscard]] auto commit_group(std::span<write_job> jobs) -> group_outcome;
  void overwrite_failed_commit();
  /// Closes all connections and opens them again, after a sync of the file has failed.
  void reopen_file();
  [[nodiscard]] auto reopen_all() -> outcome<void>;

  directory_options options_;
  file_lock lock_;
  std::unique_ptr<directory_session> writer_;
  std::vector<std::unique_ptr<directory_session>> readers_;
  std::unique_ptr<log_checkpoint> checkpoint_;  // null while the file is closed
  std::shared_mutex
      file_mutex_;  // shared: a session reads; exclusive: it is closed and opened again
  bool commit_has_failed_ = false;  // and its pages may be in the log
  std::atomic<std::uint64_t> transactions_ = 0;
  std::atomic<std::uint64_t> written_ = 0;  // jobs

  job_queue<read_job> reads_;
  std::vector<std::unique_ptr<directory_session>> readers_here_;  // that are free, last used last
  std::atomic<std::chrono::steady_clock::time_point> here_again_{};  // when a read may wait again
  job_queue<write_job> writes_;
  std::vector<std::thread> read_threads_;
  std::thread write_thread_;
};

}  // namespace tidegate::store_sqlite
