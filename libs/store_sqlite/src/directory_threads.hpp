// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/store_sqlite/directory.hpp>

#include "directory_session.hpp"
#include "file_lock.hpp"

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace tidegate::store_sqlite {

/// The threads of a directory, and the queues before them.
class directory::threads {
 public:
  threads(directory_options options, file_lock lock, std::unique_ptr<directory_session> writer,
          std::vector<std::unique_ptr<directory_session>> readers);
  ~threads();
  threads(threads const&) = delete;
  auto operator=(threads const&) -> threads& = delete;

  void read(std::string_view tenant, read_work work);
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
  };

  void run_reads(directory_session& session);
  void run_writes();
  void make(std::vector<write_job>& jobs);
  /// All of them in one transaction. An error is one of the transaction, and nothing was made.
  [[nodiscard]] auto transact(std::span<write_job> jobs) -> outcome<void>;
  [[nodiscard]] auto make_one(write_job& job) -> outcome<void>;
  void checkpoint(bool idle);

  directory_options options_;
  file_lock lock_;
  std::unique_ptr<directory_session> writer_;
  std::vector<std::unique_ptr<directory_session>> readers_;
  static constexpr int wal_pages_max = 16'384;
  int wal_pages_ = 0;  // after the last commit
  int checkpoint_at_ = wal_pages_max;
  std::atomic<std::uint64_t> transactions_ = 0;
  std::atomic<std::uint64_t> writes_ = 0;

  std::mutex read_mutex_;
  std::condition_variable read_queued_;
  std::deque<read_job> reads_;
  std::mutex write_mutex_;
  std::condition_variable write_queued_;
  std::deque<write_job> writes_queue_;
  bool stopping_reads_ = false;
  bool stopping_writes_ = false;
  std::vector<std::thread> read_threads_;
  std::thread write_thread_;
};

}  // namespace tidegate::store_sqlite
