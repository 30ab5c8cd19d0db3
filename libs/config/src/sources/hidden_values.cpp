// SPDX-License-Identifier: Apache-2.0
#include <tidegate/config/hidden_values.hpp>

#include <tidegate/base/ascii.hpp>
#include "options/options.hpp"
#include "reader/scalars.hpp"
#include "reader/wording.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

namespace tidegate::gateway {

namespace {

/// Of a value that may be a secret.
constexpr std::size_t secret_octets_min = 4;

auto is_word_of_options(std::string_view value) -> bool {
  return std::ranges::any_of(
      options(), [&](option const& rule) { return is_word(rule, value) || rule.key() == value; });
}

/// Where the `${...}` ends that `at` lies in, which shows a name and no value; 0 for none.
auto end_of_variable(std::string_view text, std::size_t at) -> std::size_t {
  auto const begin = text.rfind("${", at);
  auto const end = begin == std::string_view::npos ? begin : text.find('}', begin);
  return end == std::string_view::npos || end < at ? 0 : end + 1;
}

auto replaced(std::string text, std::string_view value, std::string_view written) -> std::string {
  auto const find = [&](std::size_t begin) {
    auto const same = [](char a, char b) { return to_lower(a) == to_lower(b); };
    auto const at = std::search(text.begin() + static_cast<std::ptrdiff_t>(begin), text.end(),
                                value.begin(), value.end(), same);
    return static_cast<std::size_t>(at - text.begin());
  };
  for (auto at = find(0); at < text.size();) {
    if (auto const end = end_of_variable(text, at); end != 0) {
      at = find(end);
    } else {
      text.replace(at, value.size(), written);
      at = find(at + written.size());
    }
  }
  return text;
}

}  // namespace

auto with_written(std::string text, std::string const& value, std::string const& written)
    -> std::string {
  if (value.empty()) {
    return text;
  }
  text = replaced(std::move(text), value, written);
  if (value.size() > shown_octets_max) {
    text = replaced(std::move(text), value.substr(0, shown_octets_max), written);
  }
  return text;
}

void hidden_values::add(std::string value, std::string written) {
  if (value.size() < secret_octets_min || is_word_of_options(value)) {
    return;
  }
  auto const at = std::ranges::upper_bound(values_, value.size(), std::greater<>(),
                                           [](hidden const& other) { return other.value.size(); });
  values_.insert(at, {std::move(value), std::move(written)});
}

auto hidden_values::hide(std::string message) const -> std::string {
  for (auto const& [value, written] : values_) {
    message = with_written(std::move(message), value, written);
  }
  return message;
}

}  // namespace tidegate::gateway
