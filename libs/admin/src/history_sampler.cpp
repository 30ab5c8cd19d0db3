// SPDX-License-Identifier: Apache-2.0
#include "history_sampler.hpp"

namespace tidegate::gateway {

history_sampler::history_sampler(control& seen) : control_(seen) {
  set(seen.loop.timers(), seen.loop.now());
}

void history_sampler::expired() {
  auto const now = control_.loop.now();
  set(control_.loop.timers(), now + traffic_history::interval);  // also when there is no memory
  sample(now);
}

void history_sampler::sample(instant now) {
  auto const active = control_.active;
  std::vector<named_policy_sums> policies;
  for (auto const& policy : active->config.policies) {
    policies.push_back({policy.name, control_.sums_of(policy.name)});
  }
  history_.add(now, control_.traffic(), policies);
  has_begun_ = true;
}

}  // namespace tidegate::gateway
