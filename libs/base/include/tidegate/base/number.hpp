// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/version.hpp>

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace tidegate::TIDEGATE_ABI {

/// The number that all of `text` is, as `std::from_chars` reads it: without `+` and spaces. Nothing
/// when it is something else or does not fit.
template <class Number>
[[nodiscard]] auto parse_number(std::string_view text) noexcept -> std::optional<Number> {
  Number number{};
  auto const* const last = text.data() + text.size();
  auto const [end, fault] = std::from_chars(text.data(), last, number);
  return fault == std::errc{} && end == last ? std::optional(number) : std::nullopt;
}

}  // namespace tidegate::TIDEGATE_ABI
