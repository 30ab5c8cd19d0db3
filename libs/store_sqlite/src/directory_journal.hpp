// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "connection.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
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
/// that of the directory, so that the journal of one is not taken for that of another. Groups begin at multiples of 4,096
/// octets: so they go to the disk past the caches of the system, where it has a way for that. A bit behind the checksum says
/// so of the next one; where it is not set, as in journals from before, that follows at once.
class directory_journal {
 public:
  enum class way { past_caches, through_caches };

  /// Opens it or makes a new one. `identity` is that of the directory. Where the system has no way past its caches, it goes
  /// through them.
  [[nodiscard]] static auto open(std::string const& directory_file, std::uint64_t identity,
                                 way to_disk = way::past_caches) -> outcome<directory_journal>;
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
  /// Memory that a disk takes blocks from, at least so much.
  [[nodiscard]] auto room_for(std::size_t octets) -> char*;
  [[nodiscard]] auto write_at(std::string_view octets, std::uint64_t offset) -> bool;
  void close_direct() noexcept;

  struct free_aligned {
    void operator()(char* memory) const noexcept;
  };

  std::string name_;
  int descriptor_;
  int direct_ = -1;  // the same file past the caches; negative: there is no such way
  std::uint64_t identity_;
  std::uint64_t salt_ = 0;
  std::uint64_t end_ = 0;      // of the groups
  std::uint64_t written_ = 0;  // how far the file has been written to
  bool doubtful_ = false;
  std::unique_ptr<char[], free_aligned> room_;  // for the group that is added
  std::size_t room_octets_ = 0;
};

}  // namespace tidegate::store_sqlite
