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

/// Tell concurrent requests and logs from buckets, beside the number of a policy.
constexpr std::uint64_t held_unit = std::uint64_t{1} << 32;
constexpr std::uint64_t log_unit = std::uint64_t{1} << 33;

auto is_log(ratelimit::policy const& policy) noexcept -> bool {
  return !is_concurrent(policy) && policy.algorithm() == ratelimit::algorithm::log;
}

}  // namespace

auto is_leased(store::shared_charge const& charge) noexcept -> bool {
  // What is taken ahead would drain before it is spent, or be spent later than a log says.
  auto const& policy = *charge.local.policy;
  return charge.mode == store::counting::lease &&
         (is_concurrent(policy) || policy.algorithm() == ratelimit::algorithm::fixed ||
          policy.algorithm() == ratelimit::algorithm::sliding);
}

auto key_of(store::shared_charge const& charge) -> std::string {
  auto const digest = sha256::of(charge.local.partition);
  std::string key = "tidegate:{";
  key += to_hex(std::span(digest).first(16));
  auto const& policy = *charge.local.policy;
  key += is_concurrent(policy) ? "}:held:" : is_log(policy) ? "}:log:" : "}:spent:";
  key += charge.policy_name;
  return key;
}

auto id_of(store::hash_seed const& seed, store::charge const& charge) noexcept -> store::key_hash {
  // As a key in Redis: other units of the same policy are something else.
  auto const unit = is_concurrent(*charge.policy) ? held_unit
                    : is_log(*charge.policy)      ? log_unit
                                                  : 0;
  return store::hash_key(seed, charge.policy_id ^ unit, charge.partition);
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
