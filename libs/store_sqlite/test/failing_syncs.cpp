// SPDX-License-Identifier: Apache-2.0
#include "failing_syncs.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

namespace tidegate::store_sqlite {

namespace {

std::atomic<bool> syncs_fail = false;

}  // namespace

failing_syncs::failing_syncs() noexcept {
  syncs_fail = true;
}

failing_syncs::~failing_syncs() {
  syncs_fail = false;
}

}  // namespace tidegate::store_sqlite

/// SQLite is a shared library: what the program defines takes the place of the C library's.
// NOLINTNEXTLINE(readability-identifier-naming)
extern "C" auto fdatasync(int descriptor) -> int {
  if (tidegate::store_sqlite::syncs_fail) {
    errno = EIO;
    return -1;
  }
  return static_cast<int>(syscall(SYS_fdatasync, descriptor));
}
