// expect: ok
// SPDX-License-Identifier: Apache-2.0
#include <tidegate/ratelimit.hpp>

auto main() -> int {
  using namespace std::chrono_literals;
  namespace ratelimit = tidegate::ratelimit;
  auto const policy = ratelimit::policy::make(
      {.quota = 100, .window = 60s, .algorithm = ratelimit::algorithm::sliding});
  return policy ? 0 : 1;
}
