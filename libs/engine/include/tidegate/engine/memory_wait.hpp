// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tidegate::engine {

/// From now on an allocation that fails is tried again for some seconds before it throws
/// `std::bad_alloc`: loops end what takes the memory meanwhile. Without it, a thread that has
/// nothing to end, such as one that writes a log, would end the process. For the whole process.
void wait_for_memory();
/// Some memory is kept back for those that wait. Once in a while: keeps it back again.
void restore_memory_reserve();

/// While it lives, a failed allocation of this thread throws at once: for a thread that ends the
/// work that needed the memory.
class no_memory_wait {
 public:
  no_memory_wait() noexcept;
  ~no_memory_wait();
  no_memory_wait(no_memory_wait const&) = delete;
  auto operator=(no_memory_wait const&) -> no_memory_wait& = delete;

 private:
  bool was_;
};

}  // namespace tidegate::engine
