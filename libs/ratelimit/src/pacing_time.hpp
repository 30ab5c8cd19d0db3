// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/instant.hpp>

#include <chrono>
#include <cstdint>

/// What the parts of a pacer share: times, and how much the past counts.
namespace tidegate::TIDEGATE_ABI::ratelimit {

/// A reset further away than this says no more than this does, and adds up without an overflow.
inline constexpr std::int64_t reset_max = 1'000'000'000;
/// How much the latest request counts in what one is expected to cost.
inline constexpr double newest_weighs = 0.25;

[[nodiscard]] inline auto seconds(std::chrono::nanoseconds d) noexcept -> double {
  return std::chrono::duration<double>(d).count();
}

[[nodiscard]] inline auto after(instant t, std::chrono::nanoseconds d) noexcept -> instant {
  return t > instant::max() - d ? instant::max() : t + d;
}

}  // namespace tidegate::TIDEGATE_ABI::ratelimit
