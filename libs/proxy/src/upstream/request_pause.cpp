// SPDX-License-Identifier: Apache-2.0
#include "upstream/request_pause.hpp"

#include "upstream/upstream_pool.hpp"

namespace tidegate::gateway {

void request_pause::pause_for(std::chrono::nanoseconds time) {
  set(loop_of_.loop.timers(), loop_of_.loop.now() + time);
}

void request_pause::wait_in(upstream_pool& pool, instant until, bool is_next) {
  waits_in_ = &pool;
  pool.add_waiting(*this, is_next);
  set(loop_of_.loop.timers(), until);
}

void request_pause::end_pause() noexcept {
  cancel();
  if (waits_in_ != nullptr) {
    std::exchange(waits_in_, nullptr)->remove_waiting(*this);
  }
}

void request_pause::expired() {
  bool const is_late = waits_in_ != nullptr;
  end_pause();
  pause_ended(is_late);
}

}  // namespace tidegate::gateway
