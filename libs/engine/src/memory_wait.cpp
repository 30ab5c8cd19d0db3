// SPDX-License-Identifier: Apache-2.0
#include <tidegate/engine/memory_wait.hpp>

#include <cstdlib>
#include <ctime>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <new>
#include <utility>

namespace tidegate::engine {

namespace {

using clock = std::chrono::steady_clock;

/// An allocation fails for good when this and all others of its thread did for so long.
constexpr std::chrono::seconds wait_max{10};
constexpr std::chrono::milliseconds pause{5};

thread_local bool throws_at_once = false;
thread_local clock::time_point first_failure{};
thread_local clock::time_point last_failure{};

/// Given to those that wait, so that small things can go on while memory is short: a thread may
/// hold a lock that a loop needs to end what takes the memory.
constexpr std::size_t reserve_octets = std::size_t{4} << 20;
std::atomic<void*> reserve = nullptr;

void allocation_failed() {
  if (throws_at_once) {
    throw std::bad_alloc();
  }
  if (auto* const kept = reserve.exchange(nullptr)) {
    std::free(kept);  // NOLINT(cppcoreguidelines-no-malloc): `new` would end up here again
    return;
  }
  auto const now = clock::now();
  if (now - last_failure > 2 * pause) {
    first_failure = now;  // the allocation that failed before this one has succeeded
  }
  if (now - first_failure > wait_max) {
    throw std::bad_alloc();
  }
  timespec const wait{0, std::chrono::nanoseconds(pause).count()};
  (void)::nanosleep(&wait, nullptr);
  last_failure = clock::now();
}

}  // namespace

void wait_for_memory() {
  std::set_new_handler(allocation_failed);
  restore_memory_reserve();
}

void restore_memory_reserve() {
  if (reserve.load() == nullptr) {
    auto* const made = std::malloc(reserve_octets);  // NOLINT(cppcoreguidelines-no-malloc)
    void* expected = nullptr;
    if (!reserve.compare_exchange_strong(expected, made)) {
      std::free(made);  // NOLINT(cppcoreguidelines-no-malloc)
    }
  }
}

no_memory_wait::no_memory_wait() noexcept : was_(std::exchange(throws_at_once, true)) {}

no_memory_wait::~no_memory_wait() {
  throws_at_once = was_;
}

}  // namespace tidegate::engine
