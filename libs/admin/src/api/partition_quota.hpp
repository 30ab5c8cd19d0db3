// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/proxy/control.hpp>

#include <cstdint>
#include <string_view>

namespace tidegate::gateway {

/// The quota of a partition, without what an operator gave it for a while. Where the policy has it
/// by plan or attribute, and the partition tells who asks, it is that of the consumer as it is now;
/// else the default.
[[nodiscard]] auto usual_quota_of(consumer_index const& consumers, policy_config const& policy,
                                  std::string_view partition) -> std::int64_t;

/// The policy with that quota.
[[nodiscard]] auto usual_policy_of(consumer_index const& consumers, policy_config const& policy,
                                   std::string_view partition) -> ratelimit::policy;

}  // namespace tidegate::gateway
