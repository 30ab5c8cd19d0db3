// SPDX-License-Identifier: Apache-2.0
#include "quota_shard.hpp"

#include <new>

namespace tidegate::TIDEGATE_ABI::store {

void quota_table::slot::drop_log(log_memory& memory) noexcept {
  if (log != nullptr) {
    memory.release(sizeof *log + log->octets());
    delete std::exchange(log, nullptr);  // NOLINT(cppcoreguidelines-owning-memory)
  }
}

auto quota_table::slot::uses_log(ratelimit::policy const& p, log_memory& memory) noexcept -> bool {
  bool const uses = counts_times(p);
  if (!uses) {
    drop_log(memory);
  }
  return uses;
}

auto quota_table::slot::decide_by_log(ratelimit::policy const& p, instant now,
                                      std::int64_t cost) const noexcept -> ratelimit::verdict {
  if (log != nullptr) {
    return log->decide(p, now, cost);
  }
  ratelimit::spent_log one;
  one.add(instant(std::chrono::nanoseconds(state.time)), state.used);
  return one.decide(p, now, cost);
}

void quota_table::slot::add_to_log(ratelimit::policy const& p, instant now, std::int64_t units,
                                   log_memory& memory) noexcept {
  if (units <= 0) {
    return;
  }
  if (log != nullptr && log->is_empty()) {
    drop_log(memory);
    state = {};
  }
  if (log == nullptr) {
    bool const is_one_time = state.used == 0 || ratelimit::expires(p, state) <= now ||
                             state.time >= now.time_since_epoch().count();
    if (is_one_time || !memory.reserve(sizeof *log)) {
      state = ratelimit::settle(p, state, now, now, units);
      return;
    }
    log = new (std::nothrow) ratelimit::spent_log;  // NOLINT(cppcoreguidelines-owning-memory)
    if (log == nullptr) {
      memory.release(sizeof *log);
      state = ratelimit::settle(p, state, now, now, units);
      return;
    }
    log->add(instant(std::chrono::nanoseconds(state.time)), state.used);
    state = {};
  }
  auto const octets = log->octets();
  if (auto const wanted = log->wanted();
      wanted > octets && memory.reserve(wanted - octets) && !log->grow(wanted)) {
    memory.release(wanted - octets);
  }
  log->add(now, units);
}

}  // namespace tidegate::TIDEGATE_ABI::store
