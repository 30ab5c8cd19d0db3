// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "connection.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace tidegate::store_sqlite {

/// How many commits a store has had, in a small file beside it: `FILE.commits`.
///
/// SQLite takes a log that ends early, or is missing, for one of which less was written, and an
/// empty file for a new database. Both would be silent losses here: keys that were used would run
/// again. So the database counts its commits, and the number is kept here as well, after each
/// commit and without a sync. It is never ahead of what is durable in the database, since it is
/// written later; a database with fewer commits than its mark has lost some. After a loss of power
/// the mark may be behind, which is harmless.
class commit_mark {
 public:
  struct content {
    std::string store;  ///< the sixteen octets that name the database
    std::uint64_t commits = 0;
  };

  /// Where the mark of `file` is.
  [[nodiscard]] static auto name_of(std::string const& file) -> std::string;
  /// What the mark of `file` says; nothing when there is none.
  [[nodiscard]] static auto read(std::string const& file) -> outcome<std::optional<content>>;
  /// Makes the mark of `file`, durably, or takes the one that is there.
  [[nodiscard]] static auto open(std::string const& file, content const& is)
      -> outcome<commit_mark>;

  commit_mark() = default;
  commit_mark(commit_mark&& other) noexcept;
  auto operator=(commit_mark&& other) noexcept -> commit_mark&;
  ~commit_mark();

  /// What cannot be written is written by the next call: until then the mark notices less.
  void write(content const& is) noexcept;

 private:
  int descriptor_ = -1;
};

}  // namespace tidegate::store_sqlite
