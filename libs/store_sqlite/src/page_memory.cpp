// SPDX-License-Identifier: Apache-2.0
#include "page_memory.hpp"

#include <sqlite3.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

namespace tidegate::store_sqlite {

auto page_slots::reserve(std::size_t chunks) -> bool {
  chunks_.resize(chunks);
  auto* const got = ::mmap(nullptr, (chunks + 1) * chunk_octets, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (got == MAP_FAILED) {
    chunks_.clear();
    return false;
  }
  range_ = got;
  auto const over = reinterpret_cast<std::uintptr_t>(got) % chunk_octets;
  begin_ = static_cast<std::byte*>(got) + (over == 0 ? 0 : chunk_octets - over);
  // Where the system has no large pages, small ones do.
  static_cast<void>(::madvise(begin_, chunks * chunk_octets, MADV_HUGEPAGE));
  return true;
}

page_slots::~page_slots() {
  if (range_ != nullptr) {
    ::munmap(range_, (chunks_.size() + 1) * chunk_octets);
  }
}

auto page_slots::has(void const* memory) const noexcept -> bool {
  auto const at = reinterpret_cast<std::uintptr_t>(memory);
  auto const begin = reinterpret_cast<std::uintptr_t>(begin_);
  return at >= begin && at - begin < chunks_.size() * chunk_octets;
}

auto page_slots::take() noexcept -> void* {
  std::lock_guard const lock(mutex_);
  // The first ones first, so that the last ones can be given back.
  while (first_ < chunks_.size() && chunks_[first_].used == slots) {
    ++first_;
  }
  if (first_ == chunks_.size()) {
    return nullptr;
  }
  auto& from = chunks_[first_];
  ++from.used;
  if (from.free != nullptr) {
    return std::exchange(from.free, from.free->next);
  }
  return begin_ + first_ * chunk_octets + from.fresh++ * slot_octets;
}

void page_slots::give_back(void* slot) noexcept {
  auto const number =
      static_cast<std::size_t>(static_cast<std::byte*>(slot) - begin_) / chunk_octets;
  std::lock_guard const lock(mutex_);
  auto& to = chunks_[number];
  to.free = new (slot) free_slot{to.free};
  first_ = std::min(first_, number);
  if (--to.used == 0) {
    to = {};
    static_cast<void>(::madvise(begin_ + number * chunk_octets, chunk_octets, MADV_DONTNEED));
  }
}

auto page_slots::octets() noexcept -> std::size_t {
  std::lock_guard const lock(mutex_);
  auto const used = std::ranges::count_if(chunks_, [](chunk const& one) { return one.used > 0; });
  return static_cast<std::size_t>(used) * chunk_octets;
}

namespace {

/// A gigabyte: more than a writer and its readers have.
constexpr std::size_t chunks_max = 512;
constexpr int slot_octets = page_slots::slot_octets;
constexpr int slot_octets_min = 4097;

/// Never destroyed: SQLite may give memory back at the very end of the process.
[[nodiscard]] auto pages() -> page_slots& {
  static auto* const made = new page_slots;
  return *made;
}

sqlite3_mem_methods usual{};  // what SQLite had before

auto take(int octets) noexcept -> void* {
  if (octets >= slot_octets_min && octets <= slot_octets) {
    if (auto* const slot = pages().take()) {
      return slot;
    }
  }
  return usual.xMalloc(octets);
}

void give_back(void* memory) noexcept {
  if (pages().has(memory)) {
    pages().give_back(memory);
  } else {
    usual.xFree(memory);
  }
}

auto size_of(void* memory) noexcept -> int {
  return pages().has(memory) ? slot_octets : usual.xSize(memory);
}

auto resize(void* memory, int octets) noexcept -> void* {
  if (!pages().has(memory)) {
    return usual.xRealloc(memory, octets);
  }
  if (octets <= slot_octets) {
    return memory;
  }
  auto* const moved = usual.xMalloc(octets);
  if (moved != nullptr) {
    std::memcpy(moved, memory, page_slots::slot_octets);
    pages().give_back(memory);
  }
  return moved;
}

}  // namespace

void use_page_memory() {
  if (sqlite3_config(SQLITE_CONFIG_GETMALLOC, &usual) != SQLITE_OK ||
      !pages().reserve(chunks_max)) {
    return;
  }
  auto ours = usual;
  ours.xMalloc = take;
  ours.xFree = give_back;
  ours.xRealloc = resize;
  ours.xSize = size_of;
  sqlite3_config(SQLITE_CONFIG_MALLOC, &ours);
}

auto page_memory_octets() noexcept -> std::size_t {
  return pages().octets();
}

}  // namespace tidegate::store_sqlite
