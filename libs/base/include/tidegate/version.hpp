// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <version>

#ifndef __cpp_lib_expected
#error "Tidegate needs std::expected: use -std=c++23 with g++ 12, clang 19 or a newer one"
#endif

#include <string_view>

// tools/check_version writes these numbers; they come from project() in CMakeLists.txt.

/// The numbers of this release, for `#if`.
#define TIDEGATE_VERSION_MAJOR 0
#define TIDEGATE_VERSION_MINOR 2
#define TIDEGATE_VERSION_PATCH 0
/// The same as text.
#define TIDEGATE_VERSION "0.2.0"

/// The inline namespace that all names of the libraries are in. Releases that may not be mixed have
/// different ones, so that headers of one do not link with archives of another. Never write it in a
/// program: `tidegate::sf` finds what is in it.
#define TIDEGATE_ABI inline v0_2

namespace tidegate::TIDEGATE_ABI {

/// The release that a program was compiled with.
inline constexpr std::string_view library_version = TIDEGATE_VERSION;

}  // namespace tidegate::TIDEGATE_ABI
