// SPDX-License-Identifier: Apache-2.0
#include "allocations.hpp"

#include <cstdlib>
#include <new>

namespace {

std::size_t count = 0;

}  // namespace

auto operator new(std::size_t size) -> void* {
  ++count;
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

namespace tidegate::http::test {

auto allocations() noexcept -> std::size_t {
  return count;
}

}  // namespace tidegate::http::test
