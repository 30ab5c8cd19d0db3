// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/version.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace tidegate::TIDEGATE_ABI::store {

/// Random numbers of a process that the hashes of keys depend on, so that no client can choose keys
/// that collide. The caller brings the randomness.
class hash_seed {
 public:
  constexpr explicit hash_seed(std::array<std::uint64_t, 4> const& randomness) noexcept {
    // Spread over all bits, so that numbers that are small or alike do no harm (SplitMix64).
    std::uint64_t state = 0;
    for (std::size_t i = 0; i < words_.size(); ++i) {
      state += randomness[i] + 0x9e3779b97f4a7c15;
      auto word = state;
      word = (word ^ word >> 30) * 0xbf58476d1ce4e5b9;
      word = (word ^ word >> 27) * 0x94d049bb133111eb;
      words_[i] = word ^ word >> 31;
    }
  }
  [[nodiscard]] constexpr auto operator[](std::size_t i) const noexcept -> std::uint64_t {
    return words_[i];
  }

 private:
  std::array<std::uint64_t, 4> words_{};
};

/// 128 bits that stand for a key.
struct key_hash {
  std::uint64_t low;
  std::uint64_t high;
  auto operator==(key_hash const&) const -> bool = default;
};

namespace detail {

/// Both halves of the product of two words, folded into one.
[[nodiscard]] inline auto folded_multiply(std::uint64_t a, std::uint64_t b) noexcept
    -> std::uint64_t {
  __extension__ using uint128 = unsigned __int128;
  auto const product = static_cast<uint128>(a) * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

}  // namespace detail

/// Hashes `key` under a number that tells apart what the keys are for.
///
/// Fast and seeded, not cryptographic: it keeps strangers from colliding on purpose, and 128 bits
/// keep a billion keys from colliding by chance.
[[nodiscard, gnu::always_inline]] inline auto hash_key(hash_seed const& seed, std::uint64_t domain,
                                                       std::string_view key) noexcept -> key_hash {
  auto const word = [](char const* p) {
    std::uint64_t value = 0;
    std::memcpy(&value, p, sizeof value);
    return value;
  };
  std::uint64_t a = seed[0] ^ key.size();
  std::uint64_t b = seed[1] ^ domain;
  auto const mix = [&](std::uint64_t x, std::uint64_t y) {
    auto const next = detail::folded_multiply(x ^ a, y ^ seed[2]);
    b = detail::folded_multiply(y ^ b, x ^ seed[3]);
    a = next;
  };
  auto const* p = key.data();
  auto left = key.size();
  for (; left > 16; left -= 16, p += 16) {
    mix(word(p), word(p + 8));
  }
  std::uint64_t first = 0;
  std::uint64_t second = 0;
  if (left >= 8) {
    first = word(p);
    second = word(p + left - 8);
  } else if (left > 0) {
    std::memcpy(&first, p, left);
  }
  mix(first, second);
  return {detail::folded_multiply(a ^ seed[1], b ^ seed[2]),
          detail::folded_multiply(a ^ seed[3], b ^ seed[0])};
}

}  // namespace tidegate::TIDEGATE_ABI::store
