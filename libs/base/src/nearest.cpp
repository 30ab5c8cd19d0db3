// SPDX-License-Identifier: Apache-2.0
#include <tidegate/base/nearest.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <numeric>

namespace tidegate::TIDEGATE_ABI {

namespace {

constexpr std::size_t word_octets_max = 64;

/// How many characters must be changed, added or removed to make one text of the other
/// (Levenshtein). Both have at most `word_octets_max`.
auto distance(std::string_view a, std::string_view b) -> std::size_t {
  std::array<std::size_t, word_octets_max + 1> row{};
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (char const next : a) {
    auto diagonal = row[0]++;
    for (std::size_t j = 0; j < b.size(); ++j) {
      auto const changed = diagonal + (next != b[j] ? 1U : 0U);
      diagonal = row[j + 1];
      row[j + 1] = std::min({changed, row[j] + 1, diagonal + 1});
    }
  }
  return row[b.size()];
}

}  // namespace

auto nearest(std::string_view text, std::span<std::string_view const> candidates)
    -> std::string_view {
  std::string_view found;
  if (text.size() > word_octets_max) {
    return found;
  }
  auto below = std::min(text.size() / 2, std::size_t{3}) + 1;
  for (auto const candidate : candidates) {
    if (candidate.size() > word_octets_max) {
      continue;
    }
    if (auto const away = distance(text, candidate); away < below) {
      below = away;
      found = candidate;
    }
  }
  return found;
}

}  // namespace tidegate::TIDEGATE_ABI
