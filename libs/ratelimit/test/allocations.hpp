// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace tidegate::ratelimit::test {

/// How often `operator new` was called in this program.
[[nodiscard]] auto allocations() noexcept -> std::size_t;

}  // namespace tidegate::ratelimit::test
