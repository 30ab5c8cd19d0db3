// SPDX-License-Identifier: Apache-2.0
#include "upstream/server_slot.hpp"

#include <algorithm>

namespace tidegate::gateway {

auto server_slot::note_head(int status, std::chrono::nanoseconds took, instant now) -> bool {
  latency->count(took);
  counts->by_status.add(static_cast<std::size_t>(std::clamp(status, 0, 599)));
  if (!balance::is_failure(status)) [[likely]] {
    return true;
  }
  report->failed("it answered " + std::to_string(status), servers->failed(*server, now), now);
  return false;
}

void server_slot::note_failure(std::string_view what, instant now) {
  counts->failures.add();
  report->failed(what, servers->failed(*server, now), now);
}

}  // namespace tidegate::gateway
