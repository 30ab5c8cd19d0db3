// SPDX-License-Identifier: Apache-2.0
#include "key_filter.hpp"

#include <algorithm>
#include <bit>
#include <functional>

namespace tidegate::store_sqlite {

namespace {

/// Of one key, four bits of one word.
struct place {
  std::size_t word;
  std::uint64_t bits;
};

[[nodiscard]] auto place_of(std::int64_t index_id, std::string_view key,
                            std::size_t word_count) noexcept -> place {
  constexpr std::uint64_t spread = 0x9e37'79b9'7f4a'7c15;
  auto mixed = (std::hash<std::string_view>{}(key) ^ static_cast<std::uint64_t>(index_id)) * spread;
  mixed ^= mixed >> 32;
  std::uint64_t bits = 0;
  for (unsigned i = 0; i < 4; ++i) {
    bits |= std::uint64_t{1} << ((mixed >> (40 + 6 * i)) & 63U);
  }
  return {static_cast<std::size_t>(mixed) & (word_count - 1), bits};
}

}  // namespace

key_filter::key_filter(std::size_t octets)
    : word_count_(std::bit_floor(std::max(octets / sizeof(std::uint64_t), std::size_t{1}))) {}

void key_filter::begin(std::int64_t index_id) {
  static_cast<void>(set(index_id, state::known));
}

auto key_filter::may_have(std::int64_t index_id, std::string_view key) -> bool {
  auto const now = state_of(index_id);
  if (now == state::unknown && set(index_id, state::asked)) {
    lessons_.push_back({.index_id = index_id, .key = {}});
  }
  if (now != state::known) {
    return true;
  }
  auto const [word, bits] = place_of(index_id, key, word_count_);
  return (words_[word] & bits) == bits;
}

auto key_filter::set(std::int64_t index_id, state now) -> bool {
  auto const at = static_cast<std::size_t>(index_id);
  if (at >= index_ids_max) {
    return false;
  }
  words_.resize(word_count_);
  states_.resize(std::max(states_.size(), at + 1));
  states_[at] = now;
  return true;
}

void key_filter::put(std::int64_t index_id, std::string_view key) noexcept {
  auto const [word, bits] = place_of(index_id, key, word_count_);
  words_[word] |= bits;
}

void key_filter::end_lesson(state now) noexcept {
  states_[static_cast<std::size_t>(lessons_.back().index_id)] = now;
  lessons_.pop_back();
}

}  // namespace tidegate::store_sqlite
