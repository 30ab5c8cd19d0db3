// expect: ok
// SPDX-License-Identifier: Apache-2.0
#include <tidegate/base/result.hpp>

auto answer() -> tidegate::result<long, int> {
  return tidegate::failure(7);
}
