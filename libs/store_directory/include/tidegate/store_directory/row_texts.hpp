// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

namespace tidegate::store_directory {

/// Texts of many rows in a few pieces of memory: one allocation for each would cost as much as
/// reading them.
class row_texts {
 public:
  /// A copy that stays where it is.
  [[nodiscard]] auto keep(std::string_view text) -> std::string_view {
    if (text.size() > left_) {
      auto const size = std::max(text.size(), piece_octets_);
      pieces_.push_back(std::make_unique_for_overwrite<char[]>(size));
      at_ = pieces_.back().get();
      left_ = size;
      piece_octets_ = std::min(2 * piece_octets_, piece_octets_max);
    }
    auto* const begin = at_;
    if (!text.empty()) {
      std::memcpy(begin, text.data(), text.size());
    }
    at_ += text.size();
    left_ -= text.size();
    return {begin, text.size()};
  }

 private:
  static constexpr std::size_t piece_octets_max = 64 * 1024;

  std::vector<std::unique_ptr<char[]>> pieces_;
  char* at_ = nullptr;
  std::size_t left_ = 0;
  std::size_t piece_octets_ = 2 * 1024;
};

}  // namespace tidegate::store_directory
