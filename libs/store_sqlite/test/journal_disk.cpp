// SPDX-License-Identifier: Apache-2.0
#include "journal_disk.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <random>

namespace tidegate::store_sqlite {

namespace {

constexpr std::size_t block_octets = 4096;
constexpr std::size_t sector_octets = 512;

std::atomic<int> writes = 0;
std::atomic<int> syncs = 0;
std::atomic<int> short_writes = 0;
std::atomic<int> direct_writes = 0;
std::atomic<bool> zeros_fail = false;
std::atomic<int> direct_count = 0;
std::atomic<int> other_count = 0;

/// Below `bound`, another one each time.
auto chance(std::size_t bound) -> std::size_t {
  thread_local std::mt19937 random(std::random_device{}());
  return random() % bound;
}

auto happens(std::atomic<int> const& part) -> bool {
  return part > 0 && static_cast<int>(chance(10'000)) < part;
}

}  // namespace

void journal_disk::fail(failures how_many) noexcept {
  writes = how_many.writes;
  syncs = how_many.syncs;
  short_writes = how_many.short_writes;
  direct_writes = how_many.direct_writes;
  zeros_fail = how_many.zeros;
}

auto journal_disk::counted() noexcept -> counts {
  return {direct_count.exchange(0), other_count.exchange(0)};
}

// NOLINTBEGIN(bugprone-reserved-identifier, readability-identifier-naming): the names that the linker gives
extern "C" {
auto __real_pwrite(int file, void const* octets, std::size_t size, off_t offset) -> ssize_t;
auto __real_fdatasync(int file) -> int;

auto __wrap_pwrite(int file, void const* octets, std::size_t size, off_t offset) -> ssize_t {
  bool const is_direct = (::fcntl(file, F_GETFL) & O_DIRECT) != 0;
  ++(is_direct ? direct_count : other_count);
  auto const* const from = static_cast<char const*>(octets);
  bool const is_zeros =
      size == block_octets && std::all_of(from, from + size, [](char octet) { return octet == 0; });
  if (is_zeros && !zeros_fail) {
    return __real_pwrite(file, octets, size, offset);
  }
  auto const part = chance(size / sector_octets + 1) * sector_octets;
  if (is_direct && happens(direct_writes)) {
    errno = EINVAL;
    return -1;
  }
  if (is_zeros || happens(writes)) {
    if (part > 0 && !is_zeros) {
      static_cast<void>(__real_pwrite(file, octets, part, offset));
    }
    errno = EIO;
    return -1;
  }
  bool const is_short = part > 0 && happens(short_writes);
  return __real_pwrite(file, octets, is_short ? part : size, offset);
}

auto __wrap_fdatasync(int file) -> int {
  if (happens(syncs)) {
    errno = EIO;
    return -1;
  }
  return __real_fdatasync(file);
}
}
// NOLINTEND(bugprone-reserved-identifier, readability-identifier-naming)

}  // namespace tidegate::store_sqlite
