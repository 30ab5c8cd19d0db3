// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tidegate::store_sqlite {

/// Says of most keys that nobody has them, without a look at the table of entries: in a large one that is several waits for memory, and
/// nearly every new resource has keys that nobody has. A Bloom filter, for those indexes that are asked about.
///
/// Such an index is learned once, piece by piece, when there is time. What is added to it since it was first asked about has to be told by
/// whoever adds it. A key that is taken out, or was never kept, stays: that makes for more answers of "perhaps", and for nothing else.
class key_filter {
 public:
  /// With four octets for a key, one answer in a few hundred is "perhaps" for no reason.
  explicit key_filter(std::size_t octets);

  /// An index that nothing is in yet.
  void begin(std::int64_t index_id);
  /// False: no resource has the key. An index that is not known is to be learned from now on.
  [[nodiscard]] auto may_have(std::int64_t index_id, std::string_view key) -> bool;
  void add(std::int64_t index_id, std::string_view key) noexcept {
    if (state_of(index_id) != state::unknown) {
      put(index_id, key);
    }
  }

  /// An index that is to be learned, from this entry on.
  struct lesson {
    std::int64_t index_id = 0;
    std::string key;
    std::int64_t rid = 0;
  };
  /// The next one; null when there is none.
  [[nodiscard]] auto next() noexcept -> lesson* {
    return lessons_.empty() ? nullptr : &lessons_.back();
  }
  /// All that `next` was of has been added.
  void learned() noexcept { end_lesson(state::known); }
  /// It could not be read: it begins anew when somebody asks.
  void give_up() noexcept { end_lesson(state::unknown); }

 private:
  enum class state : std::uint8_t { unknown, asked, known };
  /// Of indexes with larger numbers nothing is known.
  static constexpr std::size_t index_ids_max = 65'536;

  [[nodiscard]] auto state_of(std::int64_t index_id) const noexcept -> state {
    auto const at = static_cast<std::size_t>(index_id);
    return at < states_.size() ? states_[at] : state::unknown;
  }
  /// False: its number is too large.
  auto set(std::int64_t index_id, state now) -> bool;
  void put(std::int64_t index_id, std::string_view key) noexcept;
  void end_lesson(state now) noexcept;

  std::size_t word_count_;
  std::vector<std::uint64_t> words_;  // so many, or none before they are needed
  std::vector<state> states_;         // by the number of the index
  std::vector<lesson> lessons_;
};

}  // namespace tidegate::store_sqlite
