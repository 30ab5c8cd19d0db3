// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

namespace tidegate::wire {

/// Blocks of memory for nghttp2, which takes several small ones for each stream. The streams of a turn begin
/// together and end together, more of them than the caches of malloc have room for.
class block_pool {
 public:
  block_pool() = default;
  block_pool(block_pool const&) = delete;
  auto operator=(block_pool const&) -> block_pool& = delete;
  ~block_pool() {
    for (auto const& shelf : shelves_) {
      for (auto* each = shelf.first; each != nullptr;) {
        std::free(std::exchange(each, each->next));  // NOLINT
      }
    }
  }

  /// That of this thread. A block may go back to that of another one.
  [[nodiscard]] static auto of_thread() noexcept -> block_pool& {
    static thread_local block_pool pool;
    return pool;
  }

  /// Null when there is no memory.
  [[nodiscard]] auto take(std::size_t size) noexcept -> void* {
    auto const number = std::max<std::size_t>(1, (size + grain - 1) / grain);
    if (number < shelves && shelves_[number].first != nullptr) {
      auto& shelf = shelves_[number];
      auto* const block = shelf.first;
      shelf.first = block->next;
      --shelf.count;
      return static_cast<head*>(block) + 1;
    }
    auto* const block = static_cast<head*>(std::malloc(sizeof(head) + number * grain));  // NOLINT
    if (block == nullptr) {
      return nullptr;
    }
    block->number = number;
    return block + 1;
  }

  void give_back(void* taken) noexcept {
    if (taken == nullptr) {
      return;
    }
    auto* const block = static_cast<head*>(taken) - 1;
    if (block->number < shelves && shelves_[block->number].count < kept_max) {
      auto& shelf = shelves_[block->number];
      shelf.first = new (block) free_block{{block->number}, shelf.first};
      ++shelf.count;
    } else {
      std::free(block);  // NOLINT
    }
  }

  [[nodiscard]] auto resize(void* taken, std::size_t size) noexcept -> void* {
    auto* const out = take(size);
    if (out != nullptr && taken != nullptr) {
      auto const had = (static_cast<head*>(taken) - 1)->number * grain;
      std::memcpy(out, taken, had < size ? had : size);
      give_back(taken);
    }
    return out;
  }

 private:
  // Blocks are aligned like a pointer, which is enough for what nghttp2 keeps in them.
  struct head {
    std::size_t number = 0;  // of grains
  };
  /// A block that is kept.
  struct free_block : head {
    free_block* next = nullptr;
  };
  struct shelf {
    free_block* first = nullptr;
    std::size_t count = 0;
  };

  static constexpr std::size_t grain = 8;
  static constexpr std::size_t shelves = 65;  // blocks up to 512 octets
#ifdef __SANITIZE_ADDRESS__
  static constexpr std::size_t kept_max = 0;  // so that a block that is used too late is noticed
#else
  static constexpr std::size_t kept_max = 256;
#endif

  std::array<shelf, shelves> shelves_{};
};

}  // namespace tidegate::wire
