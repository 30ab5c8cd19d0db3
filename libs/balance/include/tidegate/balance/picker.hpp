// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/instant.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace tidegate::balance {

enum class method : std::uint8_t {
  least,        ///< fewest requests under way, by weight; in turn where that is the same
  round_robin,  ///< in turn, by weight
  hash,         ///< the same value goes to the same server (consistent hashing)
};

/// How long a server that comes back gets less than its weight.
inline constexpr std::chrono::seconds slow_start{10};
/// Weights are counted in parts, so that the addresses of a name can share one.
inline constexpr std::int64_t parts_of_weight = 1000;

/// One server, as choices are made between them.
struct candidate {
  /// Of a server that never was out.
  static constexpr instant always{-slow_start};

  std::uint32_t id = 0;
  std::int64_t weight = parts_of_weight;  ///< in parts; 0 takes no requests
  std::uint64_t seed = 0;                 ///< tells servers apart for `method::hash`
  instant usable_from{always};            ///< until then it is out; `instant::max()`: for good
  std::int64_t in_flight = 0;
  // Of the picker: when it is due, for a request that was not sent before and for one that was.
  std::uint64_t turn = 0;
  std::uint64_t retry_turn = 0;
};

/// What a request says of its server.
struct pick_options {
  std::optional<std::uint64_t> hash{};     ///< for `method::hash`; without it as `least`
  std::span<std::uint32_t const> avoid{};  ///< that failed it, by `id`
};

/// For `candidate::seed` and `pick_options::hash`: the same for the same text, in every process.
[[nodiscard]] auto hash_of(std::string_view text) noexcept -> std::uint64_t;

/// The weight of a server at `now`: from a tenth to all of it in `slow_start`; 0 while it is out.
[[nodiscard]] auto weight_at(candidate const& server, instant now) noexcept -> std::int64_t;

/// Chooses servers for one thread.
class picker {
 public:
  /// Null when no server takes requests: there is none, or all have weight 0. One that is out is
  /// taken only when all are. What a request avoids is taken only when there is nothing else.
  [[nodiscard]] auto pick(std::span<candidate* const> servers, method by, pick_options const& how,
                          instant now) noexcept -> candidate*;

 private:
  // Of the last one that was taken. What is sent again has turns of its own, or a server that fails
  // would be the first for every request while the others take what it did not.
  std::uint64_t turn_ = 0;
  std::uint64_t retry_turn_ = 0;
};

}  // namespace tidegate::balance
