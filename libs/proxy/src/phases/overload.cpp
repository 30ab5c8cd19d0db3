// SPDX-License-Identifier: Apache-2.0
#include "phases/overload.hpp"

namespace tidegate::gateway {

auto overload_phase::is_admitted(request_context& context, upstream_load& load, instant now)
    -> bool {
  std::lock_guard const lock(load.mutex);
  bool const is_admitted = load.guard.admits(load.in_flight, now);
  context.capacity = load.guard.capacity(now);
  if (is_admitted) {
    ++load.in_flight;
    load_ = &load;
  }
  return is_admitted;
}

void overload_phase::uncount(upstream_load& load, request_context const& context, bool was_sent,
                             instant now) {
  bool const is_answer = context.answered_at != instant::min();
  // A refusal by quota, or a client that has gone, says nothing about the service.
  bool const is_failure = was_sent && !is_answer && context.status >= 500;
  std::lock_guard const lock(load.mutex);
  if (is_answer || is_failure) {
    bool const well =
        is_answer && context.status != 502 && context.status != 503 && context.status != 504;
    load.guard.answered((is_answer ? context.answered_at : now) - context.admitted_at, well,
                        load.in_flight, now);
  }
  --load.in_flight;
}

}  // namespace tidegate::gateway
