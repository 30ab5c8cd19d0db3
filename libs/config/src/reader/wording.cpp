// SPDX-License-Identifier: Apache-2.0
#include "reader/wording.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>

namespace tidegate::gateway {

namespace {

/// How many characters must be changed, added or removed to make one text of the other
/// (Levenshtein).
auto distance(std::string_view a, std::string_view b) -> std::size_t {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (char const next : a) {
    auto diagonal = row[0]++;
    for (std::size_t j = 0; j < b.size(); ++j) {
      auto const changed = diagonal + (next != b[j]);
      diagonal = row[j + 1];
      row[j + 1] = std::min({changed, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

}  // namespace

auto shown(std::string_view text) -> std::string {
  constexpr std::size_t shown_max = 60;
  return "\"" + std::string(text.substr(0, shown_max)) + (text.size() > shown_max ? "...\"" : "\"");
}

auto expected(std::string_view text) -> std::string {
  return " (expected " + std::string(text) + ")";
}

auto did_you_mean(std::string_view text, std::vector<std::string_view> const& candidates)
    -> std::string {
  constexpr std::size_t text_max = 64;
  auto best = std::min(text.size() / 2, std::size_t{3}) + 1;
  std::string_view meant;
  for (auto const candidate : candidates) {
    if (text.size() > text_max || candidate.size() > text_max) {
      continue;
    }
    if (auto const away = distance(text, candidate); away < best) {
      best = away;
      meant = candidate;
    }
  }
  return meant.empty() ? "" : "; did you mean " + shown(meant) + "?";
}

auto joined(std::vector<std::string_view> const& words, std::string_view separator) -> std::string {
  std::string out;
  for (auto const word : words) {
    out += out.empty() ? "" : separator;
    out += word;
  }
  return out;
}

}  // namespace tidegate::gateway
