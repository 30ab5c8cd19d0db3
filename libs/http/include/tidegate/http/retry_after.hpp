// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/version.hpp>

#include <chrono>
#include <optional>
#include <string_view>

namespace tidegate::TIDEGATE_ABI::http {

/// The longest delay that `parse_retry_after` returns: 10^9 seconds, some 31 years. In nanoseconds
/// it fits into 64 bits, and so does the time at which it ends.
inline constexpr std::chrono::seconds retry_after_max{1'000'000'000};

/// Reads a Retry-After field (RFC 9110, section 10.2.3): how long to wait from `now` on.
///
/// The value is a number of seconds or an HTTP-date in any of its forms, with spaces or tabs around
/// it. A date that has passed is a delay of 0. What is longer than `retry_after_max`, however many
/// digits it has, is `retry_after_max`. Anything else is invalid: the caller acts as if the field
/// were not there.
[[nodiscard]] auto parse_retry_after(std::string_view field_value,
                                     std::chrono::sys_seconds now) noexcept
    -> std::optional<std::chrono::seconds>;

}  // namespace tidegate::TIDEGATE_ABI::http
