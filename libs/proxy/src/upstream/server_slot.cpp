// SPDX-License-Identifier: Apache-2.0
#include "upstream/server_slot.hpp"

namespace tidegate::gateway {

void server_slot::note_failed(int status, instant now) {
  report->failed("it answered " + std::to_string(status), servers->failed(*server, now), now);
}

void server_slot::note_failure(std::string_view what, instant now) {
  counts->failures.add();
  report->failed(what, servers->failed(*server, now), now);
}

}  // namespace tidegate::gateway
