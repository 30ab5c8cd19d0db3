// SPDX-License-Identifier: Apache-2.0
#include <tidegate/config/consumers.hpp>
#include <tidegate/config/values.hpp>

#include <algorithm>

namespace tidegate::gateway {

auto to_string(key_place const& place) -> std::string {
  switch (place.kind) {
    case key_place::place_kind::header: return "header:" + place.name;
    case key_place::place_kind::query: return "query:" + place.name;
    case key_place::place_kind::bearer: break;
  }
  return "bearer";
}

auto quota_choice::quota_for(std::string_view value, std::int64_t otherwise) const -> std::int64_t {
  if (by.kind == ratelimit::partition_source_kind::plan) {
    auto const found = std::ranges::find(plans, value, &named::plan);
    return found == plans.end() ? otherwise : found->quota;
  }
  auto const number = parse_count(value);
  return number ? std::min(*number, max) : otherwise;
}

auto quota_choice::policy_with(ratelimit::policy const& base, std::int64_t quota) const
    -> ratelimit::policy {
  if (burst && quota > 0) {
    auto const made = ratelimit::policy::make({.quota = quota,
                                               .window = base.window(),
                                               .unit = base.unit(),
                                               .algorithm = base.algorithm(),
                                               .burst = burst});
    if (made) {
      return *made;
    }
  }
  return base.with_quota(quota).value_or(base);
}

auto quota_choice::largest(std::int64_t otherwise) const -> std::int64_t {
  auto most = std::max(otherwise, max);
  for (auto const& each : plans) {
    most = std::max(most, each.quota);
  }
  return most;
}

auto quota_choice::smallest(std::int64_t otherwise) const -> std::int64_t {
  auto least = otherwise;
  for (auto const& each : plans) {
    least = least == 0 || (each.quota > 0 && each.quota < least) ? each.quota : least;
  }
  return least;
}

}  // namespace tidegate::gateway
