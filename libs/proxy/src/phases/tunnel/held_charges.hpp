// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "request/request_context.hpp"

namespace tidegate::gateway {

/// Where charges are corrected.
struct charge_stores {
  store::quota_table& table;
  store::quota_store* shared;  ///< null where quotas are in memory
};

/// A charge that was made.
struct made_charge {
  gateway::limit const* limit = nullptr;
  store::charge charge{};
  store::charged result{};
  bool without_store = false;  ///< the store did not answer
  instant admitted_at{};
};

/// Gives back `-units` of a charge, or takes `units` more.
void settle_charge(charge_stores stores, made_charge const& made, instant now, std::int64_t units);

/// With other quotas than those of the policies, or in a window of the calendar, in the order of
/// the limits.
using overridden_policies = std::array<std::optional<ratelimit::policy>, limits_max>;

/// The quotas that hold for one request in the place of those of its policies.
struct other_quotas {
  std::unique_ptr<overridden_policies> policies;  ///< kept for later requests, so that few allocate
  bool are_used = false;

  void use(store::charge& charge, std::size_t limit, ratelimit::policy const& other) {
    are_used = true;
    if (!policies) {
      policies = std::make_unique<overridden_policies>();
    }
    (*policies)[limit] = other;
    charge.policy = &*(*policies)[limit];
  }
};

/// What a tunnel has charged and what is corrected at its end: places and octets. Does not move,
/// since the charges point into it.
struct held_charges {
  std::string partitions;
  std::unique_ptr<overridden_policies> overrides;
  std::vector<made_charge> charges;

  /// The tunnel is over; so many octets have passed.
  void settle(charge_stores stores, std::uint64_t octets, instant now) const;
};

}  // namespace tidegate::gateway
