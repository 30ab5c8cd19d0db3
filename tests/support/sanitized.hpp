// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tidegate::test_support {

/// Built with a sanitizer, everything takes ten times as long: what is repeated for its number is
/// repeated less often.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool sanitized = true;
#else
inline constexpr bool sanitized = false;
#endif

}  // namespace tidegate::test_support
