// SPDX-License-Identifier: Apache-2.0
#include "changes.hpp"

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
  std::array<unsigned char, 16> octets{};
  take_random(std::span(octets).subspan(6));
  auto time = static_cast<std::uint64_t>(now.time_since_epoch().count());
  for (int i = 5; i >= 0; --i, time >>= 8) {
    octets[static_cast<std::size_t>(i)] = static_cast<unsigned char>(time);
  }
  octets[6] = static_cast<unsigned char>(0x70 | (octets[6] & 0x0f));
  octets[8] = static_cast<unsigned char>(0x80 | (octets[8] & 0x3f));
  constexpr std::string_view digits = "0123456789abcdef";
  std::string out;
  out.reserve(36);
  for (std::size_t i = 0; i < octets.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) {
      out += '-';
    }
    out += digits[octets[i] >> 4];
    out += digits[octets[i] & 15];
  }
  return out;
}

}  // namespace tidegate::gateway
