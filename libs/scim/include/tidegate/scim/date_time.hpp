// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/version.hpp>

#include <chrono>
#include <compare>
#include <cstdint>
#include <optional>
#include <string_view>

namespace tidegate::TIDEGATE_ABI::scim {

/// A moment as a DateTime says it (RFC 7643, section 2.3.5). 64 bits of nanoseconds would not reach
/// all years.
struct date_time {
  std::chrono::sys_seconds second;
  std::uint32_t nanosecond = 0;
  auto operator<=>(date_time const&) const = default;
};

/// Reads a DateTime such as `2008-01-23T04:56:22.5Z`. A fraction has at most nine digits; what
/// comes without a zone is in UTC. The year is 0 to 9999 in UTC too.
[[nodiscard]] auto parse_date_time(std::string_view text) -> std::optional<date_time>;

}  // namespace tidegate::TIDEGATE_ABI::scim
