// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

namespace tidegate::store_sqlite {

/// Memory for pages of a file: slots of one size in a range of its own, in large pages of the processor where the system has
/// them. What is free goes back to the system in such pieces. For several threads.
class page_slots {
 public:
  /// A page of 4 KiB with what SQLite keeps of it. An odd number of lines of the processor's caches: the beginnings of pages,
  /// which are looked at most, do not all fall into the same few.
  static constexpr std::size_t slot_octets = 4416;
  /// What the processor finds at once, and what goes back to the system at once.
  static constexpr std::size_t chunk_octets = std::size_t{2} << 20;
  static constexpr std::size_t slots = chunk_octets / slot_octets;

  page_slots() = default;
  ~page_slots();
  page_slots(page_slots const&) = delete;
  auto operator=(page_slots const&) -> page_slots& = delete;

  /// Once: takes a range of so many chunks, of which only what is used is memory. False: there is none, and nothing to take.
  [[nodiscard]] auto reserve(std::size_t chunks) -> bool;
  /// Null when all are taken.
  [[nodiscard]] auto take() noexcept -> void*;
  void give_back(void* slot) noexcept;
  [[nodiscard]] auto has(void const* memory) const noexcept -> bool;
  /// How many octets are in chunks that are used.
  [[nodiscard]] auto octets() noexcept -> std::size_t;

 private:
  struct free_slot {
    free_slot* next;
  };
  struct chunk {
    free_slot* free = nullptr;  // that were used before
    std::uint32_t used = 0;
    std::uint32_t fresh = 0;  // those from here on were never used
  };

  void* range_ = nullptr;       // what the system gave, which begins anywhere
  std::byte* begin_ = nullptr;  // of the first chunk
  std::mutex mutex_;
  std::vector<chunk> chunks_;
  std::size_t first_ = 0;  // none before it has a free slot
};

/// Makes SQLite take the memory of its pages from slots, and all else from where it did. A writer that has a hundred thousand
/// pages in memory and meets another one with each key spends a twentieth of its time on finding them otherwise, and on
/// asking the system for each.
///
/// To be called before SQLite is used for the first time. Where it is too late, or there is no room for the range,
/// SQLite stays as it is.
void use_page_memory();

/// How many octets SQLite has of that.
[[nodiscard]] auto page_memory_octets() noexcept -> std::size_t;

}  // namespace tidegate::store_sqlite
