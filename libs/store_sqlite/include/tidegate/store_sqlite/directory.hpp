// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/result.hpp>
#include <tidegate/scim/model.hpp>
#include <tidegate/store/directory.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

/// The resources of a SCIM service in a file of SQLite, for one process.
namespace tidegate::store_sqlite {

struct directory_options {
  std::string file;
  std::size_t readers = 2;       ///< threads that read, 1 or more
  std::size_t readers_here = 1;  ///< how many threads of others may read at once, by `read_here`
  /// Of the file; 0: as much as the disk has. What is above it is a full disk.
  std::size_t file_octets_max = 0;
  std::size_t reads_max = 16'384;   ///< how many reads may wait for a thread
  std::size_t writes_max = 65'536;  ///< how many writes may wait for the disk
  /// About how long the journal gets, and with it what a start after a crash has to do again.
  std::uint64_t journal_octets_max = std::uint64_t{128} << 20;
  /// Memory for the pages that writing needs; 0: by the memory there is.
  std::uint64_t page_octets = 0;
  /// When nobody has written for so long, the pages that were needed for it are given back.
  std::chrono::milliseconds pages_kept = std::chrono::minutes{10};
};

/// Durable: a write is answered when it is on the disk. Writes that come while the disk is busy become durable together; where
/// that fails, each is tried alone, so that an error is the error of that write. One thread writes, others read, each read in a
/// transaction of its own. While there are readers about, neither waits for the other (WAL, synchronous FULL). When nobody has read for a
/// while, writes are answered when they are in `FILE.journal`, and the next reader waits until they are in the file as well.
///
/// Where too many wait, or the directory is being closed, `work` of a read and `answer` of a write get the error before
/// the call returns, and `work` of a write is not called.
class directory final : public store::directory {
 public:
  /// Opens the file or makes a new one, and does what the journal beside it has and the file has not. No other process may have it open; `FILE.lock` beside it keeps them
  /// away. Every type that work names is one of `model`. Indexes that the file has not, or that mean something else in `model`,
  /// are built before this returns, and those that `model` has not any more are dropped.
  [[nodiscard]] static auto open(directory_options options,
                                 std::shared_ptr<scim::model const> model)
      -> result<std::unique_ptr<directory>, store::store_error>;

  /// Does what was asked for, answers it, then closes the file.
  ~directory() override;

  void read(std::string_view tenant, read_work work) override;
  /// False when as many read as may; while something that was answered is not in the file; and for a while after a read had to wait
  /// long for the disk: a hundred times as long.
  [[nodiscard]] auto read_here(std::string_view tenant,
                               std::function<void(store::directory_reader&)> const& work)
      -> bool override;
  void write(std::string_view tenant, write_work work, write_answer answer) override;

  /// How often writes were made durable, in the file or in the journal, and how many they were: with many
  /// clients it is many at once.
  struct counts {
    std::uint64_t transactions = 0;
    std::uint64_t writes = 0;
  };
  [[nodiscard]] auto counted() const -> counts;

 private:
  class threads;
  explicit directory(std::unique_ptr<threads> threads);

  std::unique_ptr<threads> threads_;
};

}  // namespace tidegate::store_sqlite
