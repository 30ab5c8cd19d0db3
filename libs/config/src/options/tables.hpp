// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "options/options.hpp"

#include <cstdint>
#include <span>

/// The table of options, part by part. `options()` has them one behind the other.
namespace tidegate::gateway {

/// `listen`, `admin` and what a process has.
[[nodiscard]] auto process_options() -> std::span<option const>;
[[nodiscard]] auto upstream_options() -> std::span<option const>;
[[nodiscard]] auto policy_options() -> std::span<option const>;
[[nodiscard]] auto route_options() -> std::span<option const>;
/// `fields`, `http`, logs, and what is promised of the whole file.
[[nodiscard]] auto http_options() -> std::span<option const>;

// Bounds of options: durations in milliseconds, sizes in octets.
inline constexpr std::int64_t second = 1000;
inline constexpr std::int64_t minute = 60 * second;
inline constexpr std::int64_t hour = 60 * minute;
inline constexpr std::int64_t day = 24 * hour;
inline constexpr std::int64_t kib = 1024;
inline constexpr std::int64_t mib = 1024 * kib;
inline constexpr std::int64_t fifteen_digits = 999'999'999'999'999;

}  // namespace tidegate::gateway
