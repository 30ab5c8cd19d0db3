// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "connection.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

namespace tidegate::store_sqlite {

/// What was written to a directory and may not be in its file yet: `FILE.journal` beside it.
///
/// It has groups, each with a number that is one more than that of the one before. A group is in it as a whole or not at
/// all: it has a checksum over all of it, and what follows the last one that is whole does not count. When
/// the file of the directory has everything, the journal begins anew in the same place: space that was written before is
/// synced sooner. Groups from before have another salt, and are never taken for later ones.
///
/// A group is `octets of the content | checksum | salt | identity | number | content`, in little endian. The identity is
/// that of the directory, so that the journal of one is not taken for that of another.
class directory_journal {
 public:
  /// Opens it or makes a new one. `identity` is that of the directory.
  [[nodiscard]] static auto open(std::string const& directory_file, std::uint64_t identity)
      -> outcome<directory_journal>;
  directory_journal(directory_journal&& other) noexcept;
  auto operator=(directory_journal&&) -> directory_journal& = delete;
  ~directory_journal();

  using each_group = std::function<outcome<void>(std::uint64_t number, std::string_view content)>;
  /// Calls `each` for every group, until it fails. An error, too, where it is of another directory.
  [[nodiscard]] auto read(each_group const& each) const -> outcome<void>;

  /// Adds a group. When this returns, it is on the disk. After an error it may be there or not, and the next one comes
  /// in its place.
  [[nodiscard]] auto append(std::uint64_t number, std::string_view content) -> outcome<void>;

  /// Begins anew: nothing of it is needed any more. Before the first `append` this has to be called once.
  void restart();

  /// Takes the file away: nothing of it is needed any more.
  void remove() noexcept;

  /// Whether the disk may have a group behind the last one: its number must not mean something else.
  [[nodiscard]] auto is_doubtful() const noexcept -> bool { return doubtful_; }

  /// How long it is.
  [[nodiscard]] auto size() const noexcept -> std::uint64_t { return end_; }

 private:
  directory_journal(std::string name, int descriptor, std::uint64_t identity)
      : name_(std::move(name)), descriptor_(descriptor), identity_(identity) {}
  [[nodiscard]] auto error() const -> store::store_error;

  std::string name_;
  int descriptor_;
  std::uint64_t identity_;
  std::uint64_t salt_ = 0;
  std::uint64_t end_ = 0;      // of the groups
  std::uint64_t written_ = 0;  // how far the file has been written to
  bool doubtful_ = false;
  std::string octets_;  // of the group that is added
};

}  // namespace tidegate::store_sqlite
