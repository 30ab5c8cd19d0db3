// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/json/value.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

/// Members of a JSON object that have a type; another type counts as none.
namespace tidegate::client {

[[nodiscard]] inline auto text_of(json::value const& from, std::string_view name) -> std::string {
  auto const* const value = from.find(name);
  auto const* const text = value == nullptr ? nullptr : value->if_string();
  return text == nullptr ? std::string() : *text;
}

[[nodiscard]] inline auto number_of(json::value const& from, std::string_view name)
    -> std::optional<std::uint64_t> {
  auto const* const value = from.find(name);
  auto const* const number = value == nullptr ? nullptr : value->if_integer();
  return number == nullptr || *number < 0 ? std::nullopt
                                          : std::optional(static_cast<std::uint64_t>(*number));
}

[[nodiscard]] inline auto is_true(json::value const& from, std::string_view name) -> bool {
  auto const* const value = from.find(name);
  return value != nullptr && *value == json::value(true);
}

}  // namespace tidegate::client
