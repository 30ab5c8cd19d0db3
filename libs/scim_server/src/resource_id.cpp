// SPDX-License-Identifier: Apache-2.0
#include "changes.hpp"

#include <tidegate/idempotency/make_key.hpp>

#include <pthread.h>
#include <sys/random.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <span>

namespace tidegate::gateway {

namespace {

std::atomic<unsigned> forks = 0;

/// Random octets of the system. It is asked for many at once, and a child of a process does not use
/// what its parent has asked for.
void take_random(std::span<unsigned char> out) {
  static bool const knows_forks = ::pthread_atfork(nullptr, nullptr, [] { ++forks; }) == 0;
  struct block {
    std::array<unsigned char, 240> octets{};
    std::size_t used = octets.size();
    unsigned of_fork = 0;
  };
  thread_local block some;
  if (some.octets.size() - some.used < out.size() || some.of_fork != forks || !knows_forks) {
    if (::getrandom(some.octets.data(), some.octets.size(), 0) !=
        static_cast<ssize_t>(some.octets.size())) {
      std::abort();  // the system gave some when the process began
    }
    some.used = 0;
    some.of_fork = forks;
  }
  std::ranges::copy(std::span(some.octets).subspan(some.used, out.size()), out.begin());
  some.used += out.size();
}

}  // namespace

auto make_resource_id(scim::wall_time now) -> std::string {
  std::array<unsigned char, 10> random{};
  take_random(random);
  return idempotency::make_key(now, random);
}

}  // namespace tidegate::gateway
