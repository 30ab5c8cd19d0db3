// SPDX-License-Identifier: Apache-2.0
#include "page_memory.hpp"

#include <sqlite3.h>
#include <sys/mman.h>

#include <array>
#include <cstdint>
#include <mutex>
#include <utility>

namespace tidegate::store_sqlite {

namespace {

/// A page of 4 KiB with what SQLite keeps of it. An odd number of lines of the processor's caches: the beginnings of pages,
/// which are looked at most, do not all fall into the same few.
constexpr int slot_octets = 4416;
constexpr int slot_octets_min = 4097;
/// What the processor finds at once, and what goes back to the system at once.
constexpr std::size_t chunk_octets = std::size_t{2} << 20;
/// More than a writer and its readers have. Only what is used is memory.
constexpr std::size_t chunks_max = 512;

struct free_slot {
  free_slot* next;
};

struct chunk {
  free_slot* free = nullptr;  // that were used before
  std::uint32_t used = 0;
  std::uint32_t fresh = 0;  // those from here on were never used
};

constexpr std::uint32_t slots = chunk_octets / slot_octets;

class range {
 public:
  [[nodiscard]] auto reserve() noexcept -> bool {
    constexpr auto octets = (chunks_max + 1) * chunk_octets;
    auto* const got = ::mmap(nullptr, octets, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (got == MAP_FAILED) {
      return false;
    }
    auto const at = reinterpret_cast<std::uintptr_t>(got);
    begin_ = static_cast<std::byte*>(got) + (chunk_octets - at % chunk_octets) % chunk_octets;
    // Where the system has no large pages, small ones do.
    static_cast<void>(::madvise(begin_, chunks_max * chunk_octets, MADV_HUGEPAGE));
    return true;
  }

  [[nodiscard]] auto has(void const* slot) const noexcept -> bool {
    auto const at = reinterpret_cast<std::uintptr_t>(slot);
    auto const begin = reinterpret_cast<std::uintptr_t>(begin_);
    return at >= begin && at < begin + chunks_max * chunk_octets;
  }

  /// Null when all are taken.
  [[nodiscard]] auto take() noexcept -> void* {
    std::lock_guard const lock(mutex_);
    // The first ones first, so that the last ones can be given back.
    while (first_ < chunks_max && chunks_[first_].used == slots) {
      ++first_;
    }
    if (first_ == chunks_max) {
      return nullptr;
    }
    auto& it = chunks_[first_];
    ++it.used;
    if (it.free != nullptr) {
      return std::exchange(it.free, it.free->next);
    }
    return begin_ + first_ * chunk_octets + std::size_t{it.fresh++} * slot_octets;
  }

  void give_back(void* slot) noexcept {
    auto const number =
        static_cast<std::size_t>(static_cast<std::byte*>(slot) - begin_) / chunk_octets;
    std::lock_guard const lock(mutex_);
    auto& it = chunks_[number];
    it.free = new (slot) free_slot{it.free};
    first_ = number < first_ ? number : first_;
    if (--it.used == 0) {
      it = {};
      static_cast<void>(::madvise(begin_ + number * chunk_octets, chunk_octets, MADV_DONTNEED));
    }
  }

  [[nodiscard]] auto octets() noexcept -> std::size_t {
    std::lock_guard const lock(mutex_);
    std::size_t sum = 0;
    for (auto const& it : chunks_) {
      sum += it.used > 0 ? chunk_octets : 0;
    }
    return sum;
  }

 private:
  std::byte* begin_ = nullptr;
  std::mutex mutex_;
  std::array<chunk, chunks_max> chunks_;
  std::size_t first_ = 0;  // none before it has a free slot
};

/// Lives as long as the process: SQLite may give memory back at its very end.
[[nodiscard]] auto pages() noexcept -> range& {
  alignas(range) static std::byte memory[sizeof(range)];
  static auto* const made = new (memory) range;
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
  return memory != nullptr && pages().has(memory) ? slot_octets : usual.xSize(memory);
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
    __builtin_memcpy(moved, memory, slot_octets);
    pages().give_back(memory);
  }
  return moved;
}

}  // namespace

void use_page_memory() noexcept {
  if (sqlite3_config(SQLITE_CONFIG_GETMALLOC, &usual) != SQLITE_OK || !pages().reserve()) {
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
