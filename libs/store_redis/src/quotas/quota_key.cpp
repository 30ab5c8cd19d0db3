// SPDX-License-Identifier: Apache-2.0
#include "quotas/quota_key.hpp"

#include <tidegate/base/hex.hpp>
#include <tidegate/base/sha256.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <string_view>

namespace tidegate::store_redis {

namespace {

/// Spreads quotas over all numbers, far from those of policies.
constexpr std::uint64_t odd_and_large = 0x9e37'79b9'7f4a'7c15;

/// What is kept of a partition: beside the number of a policy in this process, and in its key.
struct kept_form {
  std::uint64_t bit;
  std::string_view text;
};

auto form_of(ratelimit::policy const& policy) noexcept -> kept_form {
  if (is_concurrent(policy)) {
    return {std::uint64_t{1} << 32, "}:held:"};
  }
  if (policy.algorithm() == ratelimit::algorithm::log) {
    return {std::uint64_t{1} << 33, "}:log:"};
  }
  if (policy.is_calendar()) {
    return {std::uint64_t{1} << 34, "}:calendar:"};
  }
  return {0, "}:spent:"};
}

}  // namespace

auto is_leased(store::shared_charge const& charge) noexcept -> bool {
  // What is taken ahead would drain before it is spent, or be spent later than a log says; and when
  // a window of the calendar ends is not for the store to say.
  auto const& policy = *charge.local.policy;
  return charge.mode == store::counting::lease &&
         (is_concurrent(policy) || policy.algorithm() == ratelimit::algorithm::fixed ||
          policy.algorithm() == ratelimit::algorithm::sliding) &&
         !policy.is_calendar();
}

auto key_of(store::shared_charge const& charge) -> std::string {
  auto const digest = sha256::of(charge.local.partition);
  std::string key = "tidegate:{";
  key += to_hex(std::span(digest).first(16));
  key += form_of(*charge.local.policy).text;
  key += charge.policy_name;
  return key;
}

auto id_of(store::hash_seed const& seed, store::charge const& charge) noexcept -> store::key_hash {
  // As a key in Redis: other units of the same policy are something else.
  auto domain = charge.policy_id ^ form_of(*charge.policy).bit;
  if (!is_concurrent(*charge.policy)) {
    // What was refused or taken ahead by one quota says nothing of another.
    domain ^= static_cast<std::uint64_t>(charge.policy->quota()) * odd_and_large;
  }
  return store::hash_key(seed, domain, charge.partition);
}

auto random_seed() -> store::hash_seed {
  std::random_device random;
  std::array<std::uint64_t, 4> words{};
  for (auto& word : words) {
    word = std::uint64_t{random()} << 32 | random();
  }
  return store::hash_seed(words);
}

auto random_holder(std::string const& gateway) -> std::string {
  std::random_device random;
  std::array<std::byte, 8> octets{};
  std::ranges::generate(octets, [&] { return static_cast<std::byte>(random()); });
  return gateway + "/" + to_hex(octets);
}

}  // namespace tidegate::store_redis
