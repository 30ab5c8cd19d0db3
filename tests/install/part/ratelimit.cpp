// prints: 2 admitted, then wait for 60 s
// SPDX-License-Identifier: Apache-2.0
#include <tidegate/ratelimit.hpp>

#include <chrono>
#include <cstdio>

auto main() -> int {
  namespace ratelimit = tidegate::ratelimit;
  using namespace std::chrono_literals;
  auto const policy = ratelimit::policy::make(
      {.quota = 2, .window = 60s, .algorithm = ratelimit::algorithm::fixed});
  if (!policy) {
    return 1;
  }
  ratelimit::bucket bucket;
  tidegate::instant const now{1h};
  int admitted = 0;
  for (;;) {
    auto const decided = ratelimit::decide(*policy, bucket, now, 1);
    if (!decided.admitted) {
      auto const wait = std::chrono::ceil<std::chrono::seconds>(decided.retry);
      std::printf("%d admitted, then wait for %d s\n", admitted, static_cast<int>(wait.count()));
      return 0;
    }
    bucket = decided.next;
    ++admitted;
  }
}
