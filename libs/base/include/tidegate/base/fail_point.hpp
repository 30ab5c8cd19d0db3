// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/version.hpp>

#include <string_view>

namespace tidegate::TIDEGATE_ABI {

#ifdef TIDEGATE_FAIL_POINTS

/// Whether this build has fail points.
inline constexpr bool has_fail_points = true;

/// A place where a test may have the process killed, as a loss of power would:
/// `TIDEGATE_FAIL_POINT=NAME`, or `NAME:N` for the Nth time that it is passed. Any thread may pass
/// it.
void fail_point(std::string_view name) noexcept;

#else

/// Whether this build has fail points.
inline constexpr bool has_fail_points = false;

/// Does nothing: what users get is built without TIDEGATE_FAIL_POINTS.
constexpr void fail_point(std::string_view /*name*/) noexcept {}

#endif

}  // namespace tidegate::TIDEGATE_ABI
