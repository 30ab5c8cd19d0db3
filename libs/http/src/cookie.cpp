// SPDX-License-Identifier: Apache-2.0
#include <tidegate/http/cookie.hpp>

#include <tidegate/base/ascii.hpp>

#include <algorithm>

namespace tidegate::TIDEGATE_ABI::http {

namespace {

/// The value of the first cookie of that name in `rest`, which then begins behind it.
[[nodiscard]] auto take_cookie(std::string_view& rest, std::string_view name) noexcept
    -> std::optional<std::string_view> {
  while (!rest.empty()) {
    auto const pair = take_until(rest, ';');
    auto const equals = pair.find('=');
    if (equals != std::string_view::npos && trimmed(pair.substr(0, equals)) == name) {
      return trimmed(pair.substr(equals + 1));
    }
  }
  return std::nullopt;
}

}  // namespace

auto find_cookie(std::span<std::string_view const> lines, std::string_view name) noexcept
    -> std::optional<std::string_view> {
  for (auto rest : lines) {
    if (auto const value = take_cookie(rest, name)) {
      return value;
    }
  }
  return std::nullopt;
}

auto is_repeated_cookie(std::span<std::string_view const> lines, std::string_view name) noexcept
    -> bool {
  int found = 0;
  for (auto rest : lines) {
    while (take_cookie(rest, name)) {
      ++found;
    }
  }
  return found > 1;
}

}  // namespace tidegate::TIDEGATE_ABI::http
