// SPDX-License-Identifier: Apache-2.0
#include "upstream/request_pause.hpp"

#include "upstream/connection_limit.hpp"

#include <utility>

namespace tidegate::gateway {

void request_pause::pause_for(std::chrono::nanoseconds time) {
  set(loop_of_.loop.timers(), loop_of_.loop.now() + time);
}

void request_pause::wait_for(connection_limit& limit, instant until, bool is_next) {
  limit.add_waiting(*this, is_next);
  waits_for_ = &limit;
  set(loop_of_.loop.timers(), until);
}

void request_pause::end_pause() noexcept {
  cancel();
  if (waits_for_ != nullptr) {
    std::exchange(waits_for_, nullptr)->remove_waiting(*this);
  }
}

void request_pause::expired() {
  bool const is_late = waits_for_ != nullptr;
  end_pause();
  pause_ended(is_late);
}

}  // namespace tidegate::gateway
