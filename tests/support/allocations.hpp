// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace tidegate::test {

/// How often this thread has called `operator new`. A program that links the test support has its
/// `operator new` counted.
[[nodiscard]] auto allocations() noexcept -> std::size_t;

}  // namespace tidegate::test
