// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/proxy/control.hpp>

#include <cstdint>
#include <string_view>
#include <vector>

namespace tidegate::gateway {

/// The quota of a partition, without what an operator gave it for a while. Where the policy has it
/// by plan or attribute, and the partition tells who asks, it is that of the consumer as it is now;
/// else the default.
[[nodiscard]] auto usual_quota_of(consumer_index const& consumers, policy_config const& policy,
                                  std::string_view partition) -> std::int64_t;

/// The policy with that quota.
[[nodiscard]] auto usual_policy_of(consumer_index const& consumers, policy_config const& policy,
                                   std::string_view partition) -> ratelimit::policy;

/// The policy with each of the quotas that callers of the partition may have had: the default, that
/// of each plan, and the one of above.
[[nodiscard]] auto policies_of(consumer_index const& consumers, policy_config const& policy,
                               std::string_view partition) -> std::vector<ratelimit::policy>;

}  // namespace tidegate::gateway
