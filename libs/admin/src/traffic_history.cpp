// SPDX-License-Identifier: Apache-2.0
#include "traffic_history.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace tidegate::gateway {

namespace {

/// By how much a count has grown. Counts of a policy begin again where its name was not used for
/// a while.
[[nodiscard]] auto growth(std::uint64_t now, std::uint64_t before) -> std::uint32_t {
  auto const grown = now - std::min(now, before);
  return static_cast<std::uint32_t>(
      std::min<std::uint64_t>(grown, std::numeric_limits<std::uint32_t>::max()));
}

template <std::size_t Size>
void grow(std::array<std::uint32_t, Size>& to, std::array<std::uint64_t, Size> const& now,
          std::array<std::uint64_t, Size> const& before) {
  for (std::size_t i = 0; i < Size; ++i) {
    to[i] = growth(now[i], before[i]);
  }
}

}  // namespace

auto latency_within(std::array<std::uint64_t, latency_bounds.size() + 1> const& counts,
                    unsigned percent) -> std::uint32_t {
  auto const all = std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
  if (all == 0) {
    return traffic_history::no_latency;
  }
  auto const wanted = static_cast<double>(all) * percent / 100;
  double below = 0;
  for (std::size_t i = 0; i < latency_bounds.size(); ++i) {
    auto const here = static_cast<double>(counts[i]);
    if (counts[i] != 0 && below + here >= wanted) {
      double const low = i == 0 ? 0 : latency_bounds[i - 1];
      return static_cast<std::uint32_t>(low + (latency_bounds[i] - low) * (wanted - below) / here);
    }
    below += here;
  }
  return latency_bounds.back();  // or longer: how long is not counted
}

auto traffic_history::place_of(named_policy_sums const& policy,
                               std::span<named_policy_sums const> all)
    -> std::optional<std::size_t> {
  auto* found = std::ranges::find(places_, policy.name, &place::name);
  if (found == places_.end()) {
    found = std::ranges::find(places_, "", &place::name);
    if (found == places_.end()) {
      found = std::ranges::find_if(places_, [&](place const& each) {
        return std::ranges::find(all, each.name, &named_policy_sums::name) == all.end();
      });
    }
    if (found == places_.end()) {
      return std::nullopt;
    }
    auto const index = static_cast<std::size_t>(found - places_.begin());
    *found = {std::string(policy.name), policy.sums};
    for (auto& each : ring_) {
      each.policies[index] = {};
    }
  }
  return static_cast<std::size_t>(found - places_.begin());
}

void traffic_history::count_policies(sample& made, std::span<named_policy_sums const> policies) {
  for (auto const& policy : policies) {
    if (auto const index = place_of(policy, policies)) {
      auto const& now = policy.sums;
      auto const before = std::exchange(places_[*index].last, now);
      made.policies[*index] = {
          growth(now.admitted, before.admitted),
          growth(now.refused + now.blocked, before.refused + before.blocked),
          growth(now.shadow_refused, before.shadow_refused),
      };
    }
  }
}

void traffic_history::add(instant now, traffic_sums const& counted,
                          std::span<named_policy_sums const> policies) {
  sample made;
  made.at = now;
  count_policies(made, policies);
  if (auto const before = std::exchange(last_, counted)) {
    grow(made.responses, counted.responses, before->responses);
    grow(made.keys, counted.keys, before->keys);
    made.upstream_failures = growth(counted.upstream_failures, before->upstream_failures);
    auto latency = counted.latency;
    for (std::size_t i = 0; i < latency.size(); ++i) {
      latency[i] -= std::min(latency[i], before->latency[i]);
    }
    for (std::size_t i = 0; i < latency_shares.size(); ++i) {
      made.latency[i] = latency_within(latency, latency_shares[i]);
    }
    if (ring_.size() < samples_max) {
      ring_.push_back(made);
    } else {
      ring_[std::exchange(oldest_, (oldest_ + 1) % samples_max)] = made;
      ++dropped_;
    }
  }
}

auto traffic_history::first_after(instant then) const noexcept -> std::size_t {
  std::size_t index = size();
  while (index > 0 && at(index - 1).at > then) {
    --index;
  }
  return index;
}

}  // namespace tidegate::gateway
