// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/store_postgres/directory.hpp>

#include "directory/session.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

namespace tidegate::store_postgres {

/// The threads of a directory, each with a connection, and the queues before them.
///
/// A tenant's writes are with one thread at a time: they would wait for each other on the server
/// anyway, and those that wait here share the next commit. Neither reads nor writes may have
/// all threads.
class directory_executor final : public store::directory {
 public:
  directory_executor(directory_options options, server_settings settings,
                     std::shared_ptr<scim::model const> model,
                     std::unique_ptr<directory_session> first);
  ~directory_executor() override;

  void read(std::string_view tenant, read_transaction transaction) override;
  void write(std::string_view tenant, write_transaction transaction, write_answer answer) override;

  /// How many transactions were committed, and how many writes they made.
  struct counts {
    std::uint64_t transactions = 0;
    std::uint64_t writes = 0;
  };
  [[nodiscard]] auto counted() const noexcept -> counts;

 private:
  using steady = std::chrono::steady_clock;
  /// What a thread has.
  struct session_slot {
    std::unique_ptr<directory_session> session;
    write_mark mark;  // of its last transaction that wrote
  };
  /// Why a group failed. In doubt: it may have been made all the same.
  struct write_failure {
    store::store_error error;
    bool is_in_doubt = false;
  };
  struct read_job {
    std::string tenant;
    read_transaction transaction;
  };
  struct write_job {
    write_transaction transaction;
    write_answer answer;
    outcome<void> made;
  };

  void run(session_slot slot);
  void make_read(session_slot& slot, read_job job);
  void make_writes(session_slot& slot, std::string const& tenant, std::span<write_job> jobs);
  /// Commits all of them together. An error is one of the group, and nothing was made,
  /// unless it is in doubt.
  [[nodiscard]] auto commit_group(session_slot& slot, std::string const& tenant,
                                  std::span<write_job> jobs) -> result<void, write_failure>;
  [[nodiscard]] auto make_once(session_slot& slot, std::string const& tenant,
                               std::span<write_job> jobs) -> outcome<void>;
  /// Whether a transaction whose commit is in doubt was made. Asks until the server says so, or for
  /// as long as a statement may take.
  [[nodiscard]] auto was_committed(session_slot& slot, std::string const& tenant) -> outcome<bool>;
  /// Connects where there is no connection that works. While the server is down, only now and then.
  [[nodiscard]] auto connect(session_slot& slot) -> outcome<void>;
  [[nodiscard]] auto stopped_or_full(bool is_full, char const* what) const -> store::store_error;

  directory_options options_;
  server_settings settings_;
  std::shared_ptr<scim::model const> model_;
  std::atomic<std::uint64_t> transactions_ = 0;
  std::atomic<std::uint64_t> writes_ = 0;

  std::mutex down_mutex_;
  int failures_ = 0;  // to connect, in a row
  steady::time_point down_until_{};
  store::store_error down_error_{};

  std::mutex mutex_;
  std::condition_variable queued_;
  std::condition_variable stop_;
  std::deque<read_job> reads_;
  std::unordered_map<std::string, std::deque<write_job>> tenants_;  // whose writes wait or are made
  std::deque<std::string> ready_;  // tenants whose writes may be made
  std::size_t writes_waiting_ = 0;
  std::size_t reading_ = 0;  // threads
  std::size_t writing_ = 0;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace tidegate::store_postgres
