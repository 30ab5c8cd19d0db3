// SPDX-License-Identifier: Apache-2.0
#include <tidegate/config/log_level.hpp>

#include <algorithm>
#include <array>
#include <cstddef>

namespace tidegate::gateway {

namespace {

constexpr std::array<std::string_view, 4> level_names = {"error", "warning", "info", "debug"};

}  // namespace

auto name_of(log_level level) noexcept -> std::string_view {
  return level_names[static_cast<std::size_t>(level)];
}

auto log_level_named(std::string_view name) noexcept -> std::optional<log_level> {
  auto const* const found = std::ranges::find(level_names, name);
  return found == level_names.end()
             ? std::nullopt
             : std::optional(static_cast<log_level>(found - level_names.begin()));
}

}  // namespace tidegate::gateway
