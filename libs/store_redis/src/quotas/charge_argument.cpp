// SPDX-License-Identifier: Apache-2.0
#include "quotas/quota_script.hpp"

#include <algorithm>
#include <bit>

namespace tidegate::store_redis {

namespace {

/// A double is exact for all that gets here.
void append(std::string& to, std::int64_t number) {
  auto const bits = std::bit_cast<std::uint64_t>(static_cast<double>(number));
  for (unsigned shift = 0; shift < 64; shift += 8) {
    to += static_cast<char>(bits >> shift & 0xff);
  }
}

/// As the scripts number them.
auto kind_of(ratelimit::policy const& policy) -> char {
  if (policy.unit() == ratelimit::quota_unit::concurrent_requests) {
    return 3;
  }
  switch (policy.algorithm()) {
    case ratelimit::algorithm::fixed: return policy.has_window_begin() ? 5 : 0;
    case ratelimit::algorithm::sliding: return 1;
    case ratelimit::algorithm::log: return 4;
    case ratelimit::algorithm::gcra: break;
  }
  return 2;
}

}  // namespace

auto wall_time(ratelimit::policy const& policy, instant at) noexcept -> std::int64_t {
  using std::chrono::microseconds;
  return microseconds(policy.wall_begin().time_since_epoch()).count() +
         std::chrono::floor<microseconds>(at - policy.window_begin()).count();
}

auto charge_argument(ratelimit::policy const& policy, std::int64_t cost, bool enforced,
                     std::string_view holder, std::chrono::microseconds alive_for, instant now)
    -> std::string {
  bool const concurrent = policy.unit() == ratelimit::quota_unit::concurrent_requests;
  std::string argument;
  argument.reserve(34 + (concurrent ? holder.size() : 0));
  argument += kind_of(policy);
  argument += static_cast<char>(enforced ? 1 : 0);
  append(argument, std::clamp(cost, -units_max, units_max));
  append(argument, policy.quota());
  append(argument, std::chrono::microseconds(concurrent ? alive_for : policy.window()).count());
  append(argument, policy.burst());
  if (concurrent) {
    argument += holder;
  } else if (policy.has_window_begin()) {
    append(argument, std::chrono::microseconds(policy.wall_begin().time_since_epoch()).count());
    append(argument, wall_time(policy, now));
  }
  return argument;
}

}  // namespace tidegate::store_redis
