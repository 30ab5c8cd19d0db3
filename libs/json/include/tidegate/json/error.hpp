// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/version.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tidegate::TIDEGATE_ABI::json {

/// What is wrong with a JSON text.
enum class fault : std::uint8_t {
  value_expected,
  comma_expected,  ///< or the end of the array or object
  colon_expected,
  name_expected,
  name_twice,  ///< `offset` is behind the object
  unterminated_string,
  invalid_escape,
  lone_surrogate,  ///< an escaped one without its partner
  control_character,
  invalid_utf8,
  invalid_number,
  number_out_of_range,  ///< an integer beyond 64 bits, a decimal beyond a double
  too_deep,
  too_long,
  end_expected,
};

/// Why, and at which byte.
struct error {
  json::fault fault{};
  std::size_t offset{};
  auto operator==(error const&) const -> bool = default;
};

/// What is wrong, in words.
[[nodiscard]] auto message(json::fault fault) noexcept -> std::string_view;

/// The same, and where.
[[nodiscard]] auto to_string(error const& error) -> std::string;

}  // namespace tidegate::TIDEGATE_ABI::json
