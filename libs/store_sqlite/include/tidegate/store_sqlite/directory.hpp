// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/result.hpp>
#include <tidegate/scim/model.hpp>
#include <tidegate/store/directory.hpp>

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
  /// Memory for pages of the file that writing needs.
  std::size_t cache_octets = std::size_t{64} << 20;
  /// What the log may have (`FILE-wal`); a single write may make it longer.
  std::uint64_t log_octets_max = std::uint64_t{232} << 20;
};

/// Opens the file or makes a new one. No other process may have it open; `FILE.lock` beside it
/// keeps them away. What a version before left in `FILE.journal` is carried over. Every type that
/// transactions name is one of `model`. Indexes that the file has not, or that mean something else
/// in `model`, are built before this returns, and those that `model` has not any more are dropped.
///
/// Durable: a write is answered when it is on the disk. Writes that come while the disk is busy
/// become durable together; where that fails, each is tried alone, so that an error is the error of
/// that write. One thread writes, others read, each read in a transaction of its own, and neither
/// waits for the other: plain SQLite with its log (WAL, synchronous FULL), and no layer of ours
/// below it.
///
/// Where too many wait, or the directory is being closed, `transaction` of a read and `answer` of a
/// write get the error before the call returns, and `transaction` of a write is not called.
///
/// `read_here` returns false when as many read as may, and for a while after a read had to wait
/// long for the disk: a hundred times as long. The destructor does what was asked for, answers it,
/// then closes the file.
[[nodiscard]] auto open_directory(directory_options options,
                                  std::shared_ptr<scim::model const> model)
    -> result<std::unique_ptr<store::directory>, store::store_error>;

}  // namespace tidegate::store_sqlite
