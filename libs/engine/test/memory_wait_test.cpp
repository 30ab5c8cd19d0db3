// SPDX-License-Identifier: Apache-2.0
#include <tidegate/engine/memory_wait.hpp>

#include "support/sanitized.hpp"

#include <gtest/gtest.h>

#include <sys/resource.h>

#include <atomic>
#include <cstddef>
#include <fstream>
#include <memory>
#include <new>
#include <thread>

namespace tidegate::engine {
namespace {

constexpr std::size_t mib = std::size_t{1} << 20;

/// Leaves so many octets of addresses, until it is destroyed.
class memory_limit {
 public:
  explicit memory_limit(std::size_t octets) {
    std::size_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    ::getrlimit(RLIMIT_AS, &before_);
    auto limit = before_;
    limit.rlim_cur = pages * 4096 + octets;
    ::setrlimit(RLIMIT_AS, &limit);
  }
  ~memory_limit() { ::setrlimit(RLIMIT_AS, &before_); }
  memory_limit(memory_limit const&) = delete;
  auto operator=(memory_limit const&) -> memory_limit& = delete;

 private:
  rlimit before_{};
};

TEST(engine_memory_wait, gives_a_thread_the_memory_that_another_gives_back) {
  if (test_support::sanitized) {
    GTEST_SKIP() << "a sanitizer needs the addresses";
  }
  wait_for_memory();
  constexpr std::size_t large = 200 * mib;
  std::unique_ptr<char[]> held;  // NOLINT(modernize-avoid-c-arrays)
  std::atomic<bool> begins = false;
  std::atomic<bool> has_some = false;
  std::thread waiting([&] {
    begins.wait(false);
    auto const own = std::make_unique_for_overwrite<char[]>(large);  // NOLINT
    has_some = own != nullptr;
  });
  {
    memory_limit const little(large + 150 * mib);          // the thread's arena takes 64 to 128
    held = std::make_unique_for_overwrite<char[]>(large);  // NOLINT
    {
      no_memory_wait const here;
      EXPECT_THROW((void)std::make_unique_for_overwrite<char[]>(large), std::bad_alloc);  // NOLINT
    }
    begins = true;
    begins.notify_all();
    EXPECT_FALSE(has_some);
    held.reset();
    waiting.join();
  }
  EXPECT_TRUE(has_some);
  std::set_new_handler(nullptr);
}

}  // namespace
}  // namespace tidegate::engine
