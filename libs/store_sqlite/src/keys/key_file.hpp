// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/result.hpp>
#include <tidegate/idempotency/lookup.hpp>
#include <tidegate/store/idempotency_store.hpp>

#include "connection.hpp"
#include "keys/commit_mark.hpp"

#include <sys/types.h>

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tidegate::store_sqlite {

/// The file and the few statements that are made on it. For one thread.
///
/// Each row carries a checksum over its lookup key and its content. The number of commits and of
/// rows is in the file, and the former beside it too: what is damaged, shortened, replaced or of
/// another secret is refused with a clear error and never taken for an empty store. Both numbers
/// go with the row that a transaction writes last, so that they cost no page of their own; only a
/// transaction that writes none, or removes one last, writes them to a table.
class key_file {
 public:
  /// `secret_digest` is what the store is made with for good; empty: nothing is compared. What is
  /// in the file has to be read by `load` before anything else is done.
  [[nodiscard]] static auto open(std::string const& file, std::size_t file_octets_max,
                                 std::string_view secret_digest) -> outcome<key_file>;

  /// An error when the file, its log or its mark was deleted or replaced since it was opened, or
  /// one of the first two is shorter than it was: neither ever shrinks by itself.
  [[nodiscard]] auto begin() -> outcome<void>;
  [[nodiscard]] auto commit() -> outcome<void>;
  /// Also where SQLite has rolled back by itself.
  void rollback() noexcept;
  /// True after a commit that failed, until one succeeds. What it wrote may be in the log, whole,
  /// and would be found there after a crash: a commit of anything writes over it.
  [[nodiscard]] auto has_failed_commit() const noexcept -> bool { return commit_failed_; }

  /// Whether there was no file before.
  [[nodiscard]] auto is_new() const noexcept -> bool { return is_new_; }

  /// The row of a new record.
  [[nodiscard]] auto insert(idempotency::lookup_key const& key, std::string_view record,
                            std::optional<std::string> const& response) -> outcome<std::int64_t>;
  [[nodiscard]] auto update(std::int64_t row, idempotency::lookup_key const& key,
                            std::string_view record, std::optional<std::string> const& response)
      -> outcome<void>;
  [[nodiscard]] auto remove(std::int64_t row) -> outcome<void>;
  [[nodiscard]] auto response(std::int64_t row, idempotency::lookup_key const& key)
      -> outcome<std::optional<std::string>>;

  struct stored_row {
    std::int64_t row;
    std::string_view key;
    std::string_view record;
    std::uint32_t response_octets = 0;  ///< as it is stored
  };
  /// Calls `each` with every row, in the order of arrival, until it returns an error. It is one,
  /// too, when rows or commits are missing.
  [[nodiscard]] auto load(std::function<outcome<void>(stored_row const&)> const& each)
      -> outcome<void>;

 private:
  /// How many commits there are with the one that wrote it, and rows after it; `written` counts
  /// what that commit wrote.
  struct row_mark {
    std::uint64_t commits = 0;
    std::uint32_t written = 0;
    std::uint32_t rows = 0;
    friend auto operator<=>(row_mark const&, row_mark const&) = default;
  };
  struct marked_record {
    std::string_view record;
    row_mark mark;
  };

  [[nodiscard]] auto prepare_tables(std::string_view secret_digest) -> outcome<void>;
  [[nodiscard]] auto check_secret(std::string_view secret_digest) -> outcome<void>;
  [[nodiscard]] auto read_state() -> outcome<void>;
  [[nodiscard]] auto scan(std::function<outcome<void>(stored_row const&)> const& each)
      -> outcome<void>;
  [[nodiscard]] auto check_commits() const -> outcome<void>;
  [[nodiscard]] auto prepare_statements() -> outcome<void>;
  /// A record with the mark of the open transaction and its checksum.
  [[nodiscard]] auto marked(std::string_view lookup, std::string_view record) -> std::string;
  [[nodiscard]] static auto unmarked(std::string_view lookup, std::string_view octets)
      -> std::optional<marked_record>;
  [[nodiscard]] auto damaged(std::string const& what) const -> store::store_error;

  /// Which file a name stands for, and how long that is.
  struct seen_file {
    dev_t device{};
    ino_t inode{};
    off_t octets = 0;
  };
  [[nodiscard]] static auto look_at(std::string const& name) -> std::optional<seen_file>;
  /// A file that has to stay what it was.
  struct watched_file {
    std::string name;
    seen_file was{};  // the longest that it was
    bool grows = false;
  };
  void note_sizes();

  connection connection_;
  std::size_t file_octets_max_ = 0;
  commit_mark mark_;
  std::optional<commit_mark::content> found_mark_;  // beside the file, when it was opened
  commit_mark::content state_;                      // as it is committed
  std::int64_t rows_ = 0;                           // as it is committed
  std::int64_t rows_added_ = 0;  // by the open transaction, less those it removed
  std::uint32_t written_ = 0;    // rows, by the open transaction
  bool is_marked_ = false;       // by the row that the open transaction has written last
  bool commit_failed_ = false;
  bool is_new_ = false;
  std::vector<watched_file> files_;
  statement begin_;
  statement commit_;
  statement count_;
  statement insert_;
  statement update_;
  statement remove_;
  statement response_;
};

}  // namespace tidegate::store_sqlite
