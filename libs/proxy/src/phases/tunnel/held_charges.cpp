// SPDX-License-Identifier: Apache-2.0
#include "phases/tunnel/held_charges.hpp"

#include "services/wall_clock.hpp"

namespace tidegate::gateway {

namespace {

void settle_in(charge_stores stores, made_charge const& made, instant now, std::int64_t units) {
  if (stores.shared == nullptr) {
    stores.table.settle(made.charge, made.result, made.admitted_at, now, units);
    return;
  }
  auto const& policy = *made.limit->policy;
  if (!made.without_store) {
    stores.shared->settle({made.charge, policy.name, policy.counting}, made.admitted_at, now,
                          units);
    return;
  }
  if (policy.on_store_failure == store_failure::local) {
    auto const share =
        made.charge.policy->reduced(1.0 / static_cast<double>(stores.shared->status().gateways));
    auto charge = made.charge;
    charge.policy = &share;
    stores.table.settle(charge, made.result, made.admitted_at, now, units);
  }
}

}  // namespace

void settle_charge(charge_stores stores, made_charge const& made, instant now, std::int64_t units) {
  auto const& rule = made.limit->policy->calendar;
  if (!rule) {
    settle_in(stores, made, now, units);
    return;
  }
  // The window may be another one by now.
  auto const current = ratelimit::in_window_of(*made.charge.policy, *rule, now, wall_clock_now());
  auto settled = made;
  settled.charge.policy = &current;
  settle_in(stores, settled, now, units);
}

void held_charges::settle(charge_stores stores, std::uint64_t octets, instant now) const {
  for (auto const& each : charges) {
    bool const is_place =
        each.limit->policy->policy.unit() == ratelimit::quota_unit::concurrent_requests;
    auto const units = is_place ? -1 : static_cast<std::int64_t>(octets) - each.charge.cost;
    if (units != 0) {
      settle_charge(stores, each, now, units);
    }
  }
}

}  // namespace tidegate::gateway
