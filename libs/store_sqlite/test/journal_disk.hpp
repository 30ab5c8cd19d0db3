// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tidegate::store_sqlite {

/// The disk below journals of directories, which can be told to fail. The linker puts it below `pwrite` and `fdatasync` of the library.
class journal_disk {
 public:
  /// So many of ten thousand. A part of a write that fails may have been made.
  struct failures {
    int writes = 0;
    int syncs = 0;
    int short_writes = 0;   ///< which are no failure: the rest is to be written
    int direct_writes = 0;  ///< as of a disk with larger blocks
    bool zeros = false;     ///< a block of them, which takes back what failed: all or none
  };
  static void fail(failures how_many) noexcept;

  struct counts {
    int direct_writes = 0;
    int other_writes = 0;
  };
  /// Since it was asked for the last time.
  [[nodiscard]] static auto counted() noexcept -> counts;
};

}  // namespace tidegate::store_sqlite
