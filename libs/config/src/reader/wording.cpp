// SPDX-License-Identifier: Apache-2.0
#include "reader/wording.hpp"

#include <tidegate/base/nearest.hpp>

#include <cstddef>

namespace tidegate::gateway {

auto shown(std::string_view text) -> std::string {
  constexpr std::size_t shown_max = 60;
  return "\"" + std::string(text.substr(0, shown_max)) + (text.size() > shown_max ? "...\"" : "\"");
}

auto expected(std::string_view text) -> std::string {
  return " (expected " + std::string(text) + ")";
}

auto did_you_mean(std::string_view text, std::vector<std::string_view> const& candidates)
    -> std::string {
  auto const meant = nearest(text, candidates);
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
