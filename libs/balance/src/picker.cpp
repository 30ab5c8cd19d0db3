// SPDX-License-Identifier: Apache-2.0
#include <tidegate/balance/picker.hpp>

#include <algorithm>
#include <cmath>

namespace tidegate::balance {

namespace {

/// Turns are counted in so many steps for a weight of 1.
constexpr std::uint64_t steps = std::uint64_t{1} << 32U;

/// The finalizer of SplitMix64: each bit of the result depends on all bits of `value`.
constexpr auto mixed(std::uint64_t value) noexcept -> std::uint64_t {
  value += 0x9e3779b97f4a7c15U;
  value = (value ^ (value >> 30U)) * 0xbf58476d1ce4e5b9U;
  value = (value ^ (value >> 27U)) * 0x94d049bb133111ebU;
  return value ^ (value >> 31U);
}

/// Weighted rendezvous hashing: each server has a score for each value and the highest one takes
/// it, so that a server that goes or comes moves its own values and no others.
auto score(candidate const& server, std::int64_t weight, std::uint64_t hash) noexcept -> double {
  constexpr double range = 1.0 / 9007199254740992.0;  // 2 to the -53
  auto const share =
      (static_cast<double>(mixed(hash ^ server.seed) >> 11U) + 0.5) * range;  // in (0, 1)
  return static_cast<double>(weight) / -std::log(share);
}

/// Which servers come into question.
struct filter {
  bool usable_only = true;
  bool keeps_avoided = false;
};

auto is_avoided(candidate const& server, pick_options const& how) noexcept -> bool {
  return std::ranges::find(how.avoid, server.id) != how.avoid.end();
}

}  // namespace

auto hash_of(std::string_view text) noexcept -> std::uint64_t {
  std::uint64_t hash = 0xcbf29ce484222325U;  // FNV-1a
  for (auto const c : text) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  }
  return mixed(hash);
}

auto weight_at(candidate const& server, instant now) noexcept -> std::int64_t {
  if (now < server.usable_from) {
    return 0;
  }
  auto const back_for = now - server.usable_from;
  if (back_for >= slow_start || server.weight == 0) [[likely]] {
    return server.weight;
  }
  auto const share = std::max(back_for, std::chrono::nanoseconds(slow_start) / 10);
  return std::max<std::int64_t>(server.weight * (share / std::chrono::milliseconds(1)) /
                                    (slow_start / std::chrono::milliseconds(1)),
                                1);
}

auto picker::pick(std::span<candidate* const> servers, method by, pick_options const& how,
                  instant now) noexcept -> candidate* {
  if (servers.size() == 1) {
    return servers.front()->weight == 0 ? nullptr : servers.front();
  }
  bool const by_hash = by == method::hash && how.hash.has_value();
  candidate* best = nullptr;
  std::int64_t best_weight = 0;
  double best_score = 0;
  auto const turn = how.avoid.empty() ? &candidate::turn : &candidate::retry_turn;
  auto& last_turn = how.avoid.empty() ? turn_ : retry_turn_;
  auto const due = [&](candidate const& each) { return std::max(each.*turn, last_turn); };
  auto const is_better = [&](candidate const& each, std::int64_t weight) {
    if (by != method::round_robin) {
      auto const here = each.in_flight * best_weight;
      auto const there = best->in_flight * weight;
      if (here != there) {
        return here < there;
      }
    }
    // Of several that are due, the one that was taken least recently.
    return due(each) != due(*best) ? due(each) < due(*best) : each.*turn < best->*turn;
  };
  auto const search = [&](filter const& of) {
    for (auto* const each : servers) {
      auto const weight = of.usable_only ? weight_at(*each, now) : each->weight;
      if (weight == 0 || (!of.keeps_avoided && !how.avoid.empty() && is_avoided(*each, how))) {
        continue;
      }
      auto const here = by_hash ? score(*each, weight, *how.hash) : 0;
      if (best == nullptr || (by_hash ? here > best_score : is_better(*each, weight))) {
        best = each;
        best_weight = weight;
        best_score = here;
      }
    }
    return best != nullptr;
  };
  if (!search({}) && !search({.keeps_avoided = true}) && !search({.usable_only = false}) &&
      !search({.usable_only = false, .keeps_avoided = true})) {
    return nullptr;
  }
  if (!by_hash) {
    last_turn = due(*best);
    best->*turn = last_turn + steps / static_cast<std::uint64_t>(best_weight);
  }
  return best;
}

}  // namespace tidegate::balance
