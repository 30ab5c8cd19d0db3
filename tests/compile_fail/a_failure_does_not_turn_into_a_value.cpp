// expect: could not convert|no viable conversion|cannot convert
// SPDX-License-Identifier: Apache-2.0
#include <tidegate/base/result.hpp>

auto answer() -> int {
  return tidegate::failure(7);
}
