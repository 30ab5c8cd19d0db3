// SPDX-License-Identifier: Apache-2.0
#include "allocations.hpp"

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<std::size_t> count = 0;  // the limiters are tested with threads

}  // namespace

auto operator new(std::size_t size) -> void* {
  count.fetch_add(1, std::memory_order_relaxed);
  if (void* p = std::malloc(size == 0 ? 1 : size)) {
    return p;
  }
  throw std::bad_alloc();
}
void operator delete(void* p) noexcept {
  std::free(p);
}
void operator delete(void* p, std::size_t) noexcept {
  std::free(p);
}

namespace tidegate::ratelimit::test {

auto allocations() noexcept -> std::size_t {
  return count.load(std::memory_order_relaxed);
}

}  // namespace tidegate::ratelimit::test
