// SPDX-License-Identifier: Apache-2.0
#include <tidegate/sf/reader.hpp>

#include <algorithm>
#include <bit>

namespace tidegate::TIDEGATE_ABI::sf::detail {

void key_set::clear() noexcept {
  few_size_ = 0;
  many_.clear();
}

auto key_set::insert(std::string_view key) -> bool {
  auto const few_end = few_.begin() + static_cast<std::ptrdiff_t>(few_size_);
  if (std::find(few_.begin(), few_end, key) != few_end) {
    return false;
  }
  if (few_size_ < few_max) {
    few_[few_size_++] = key;
    return true;
  }
  return insert_into_many(key);
}

/// The others lie in sorted runs, one for each bit of their number, the longest first. Whatever
/// keys are sent, each costs a few binary searches, and is merged a few times.
auto key_set::insert_into_many(std::string_view key) -> bool {
  auto run = many_.begin();
  for (auto left = many_.size(); left != 0;) {
    auto const size = std::bit_floor(left);
    auto const end = run + static_cast<std::ptrdiff_t>(size);
    if (std::binary_search(run, end, key)) {
      return false;
    }
    run = end;
    left -= size;
  }
  many_.push_back(key);
  // As a carry goes through the bits of a number.
  for (std::size_t size = 1; (many_.size() & size) == 0; size *= 2) {
    auto const middle = many_.end() - static_cast<std::ptrdiff_t>(size);
    std::inplace_merge(middle - static_cast<std::ptrdiff_t>(size), middle, many_.end());
  }
  return true;
}

}  // namespace tidegate::TIDEGATE_ABI::sf::detail
