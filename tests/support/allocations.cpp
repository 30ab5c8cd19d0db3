// SPDX-License-Identifier: Apache-2.0
#include "support/allocations.hpp"

#include <cstdlib>
#include <new>

namespace {

// For each thread its own, so that counting costs no lock and shows up in no benchmark.
constinit thread_local std::size_t count = 0;

}  // namespace

auto operator new(std::size_t size) -> void* {
  ++count;
  for (;;) {
    if (void* p = std::malloc(size == 0 ? 1 : size)) {
      return p;
    }
    auto const handler = std::get_new_handler();
    if (handler == nullptr) {
      throw std::bad_alloc();
    }
    handler();
  }
}
auto operator new(std::size_t size, std::nothrow_t const& /*unused*/) noexcept -> void* {
  ++count;
  return std::malloc(size == 0 ? 1 : size);
}
void operator delete(void* p) noexcept {
  std::free(p);
}
void operator delete(void* p, std::size_t) noexcept {
  std::free(p);
}

namespace tidegate::test {

auto allocations() noexcept -> std::size_t {
  return count;
}

}  // namespace tidegate::test
