// SPDX-License-Identifier: Apache-2.0
#include "reader/wording.hpp"

#include <tidegate/base/nearest.hpp>

namespace tidegate::gateway {

auto shown(std::string_view text) -> std::string {
  return "\"" + std::string(text.substr(0, shown_octets_max)) +
         (text.size() > shown_octets_max ? "...\"" : "\"");
}

auto place_shown(yaml_place place, std::span<std::string const> files) -> std::string {
  return files[place.file] + ":" + std::to_string(place.line) + ":" + std::to_string(place.column);
}

auto line_shown(yaml_place place, yaml_place here, std::span<std::string const> files)
    -> std::string {
  return "line " + std::to_string(place.line) +
         (place.file == here.file ? "" : " of " + files[place.file]);
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
