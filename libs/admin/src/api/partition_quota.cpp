// SPDX-License-Identifier: Apache-2.0
#include "api/partition_quota.hpp"

#include <tidegate/base/ascii.hpp>

#include <algorithm>

namespace tidegate::gateway {

namespace {

using ratelimit::partition_source_kind;

/// What a consumer has under the source; empty: nothing.
[[nodiscard]] auto value_of(consumer_config const& consumer,
                            ratelimit::partition_source const& source) -> std::string_view {
  if (source.kind == partition_source_kind::plan) {
    return consumer.plan;
  }
  auto const found = std::ranges::find(consumer.attributes, source.name, &consumer_attribute::name);
  return found == consumer.attributes.end() ? std::string_view() : found->value;
}

}  // namespace

auto usual_quota_of(consumer_index const& consumers, policy_config const& policy,
                    std::string_view partition) -> std::int64_t {
  auto const otherwise = policy.policy.quota();
  if (!policy.choice) {
    return otherwise;
  }
  auto const& choice = *policy.choice;
  auto lines = partition;
  for (auto const& source : policy.partition.sources()) {
    auto line = take_until(lines, '\n');
    line.remove_prefix(std::min(to_string(source).size() + 1, line.size()));
    if (source == choice.by) {
      return choice.quota_for(line, otherwise);
    }
    if (source.kind == partition_source_kind::principal) {
      auto const* const consumer = consumers.find_by_name(line);
      return consumer == nullptr ? otherwise
                                 : choice.quota_for(value_of(*consumer, choice.by), otherwise);
    }
  }
  return otherwise;
}

auto usual_policy_of(consumer_index const& consumers, policy_config const& policy,
                     std::string_view partition) -> ratelimit::policy {
  return policy.choice ? policy.choice->policy_with(policy.policy,
                                                    usual_quota_of(consumers, policy, partition))
                       : policy.policy;
}

auto policies_of(consumer_index const& consumers, policy_config const& policy,
                 std::string_view partition) -> std::vector<ratelimit::policy> {
  std::vector made{policy.policy};
  if (policy.choice) {
    for (auto const& each : policy.choice->plans) {
      made.push_back(policy.choice->policy_with(policy.policy, each.quota));
    }
    made.push_back(usual_policy_of(consumers, policy, partition));
  }
  return made;
}

}  // namespace tidegate::gateway
