// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/instant.hpp>
#include <tidegate/ratelimit/limiter.hpp>
#include <tidegate/store_quota/keyed_hash.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace tidegate::store_redis {

/// What the store last said of a partition.
struct cached_verdict {
  store::key_hash id{};
  instant at{};  ///< when it was asked: what it said was so then or later
  std::int64_t ahead =
      0;  ///< microseconds that its clock is ahead of ours at least; a cluster has several
  ratelimit::service
      left{};  // NOLINT(readability-redundant-member-init): so that it may be left out
  std::int64_t refused_cost = std::numeric_limits<std::int64_t>::max();  ///< and whatever is more
  instant refused_until{};
  instant retry_at{};
  std::int64_t window_end = 0;  ///< by the store's clock; 0 when that is not known
  /// Whatever was asked from `first_asked` on was decided at `first_at` by the store's clock or
  /// later: that is when the first request was that is known to be of this window.
  instant first_asked = instant::max();
  std::int64_t first_at = 0;
  instant last_asked{};

  [[nodiscard]] auto refuses(std::int64_t cost, instant now) const noexcept -> bool {
    return cost >= refused_cost && now < refused_until;
  }
  /// What was left, with the time that has passed since.
  [[nodiscard]] auto left_at(instant now) const noexcept -> ratelimit::service {
    return {left.remaining, std::max(left.reset - (now - at), std::chrono::nanoseconds(0))};
  }
};

/// Remembers as many partitions as there is room for; a new one takes the place of one that was not
/// asked about for longer.
class verdict_cache {
 public:
  explicit verdict_cache(std::size_t entries)
      : sets_(std::bit_ceil(std::max(entries, ways) / ways)), entries_(sets_ * ways) {}

  [[nodiscard]] auto find(store::key_hash const& id) const noexcept -> cached_verdict const* {
    auto const* const begin = entries_.data() + set_of(id);
    auto const* const found = std::ranges::find(begin, begin + ways, id, &cached_verdict::id);
    return found == begin + ways ? nullptr : found;
  }

  /// The entry of a partition, or one that is made for it.
  [[nodiscard]] auto entry(store::key_hash const& id) noexcept -> cached_verdict& {
    auto* const begin = entries_.data() + set_of(id);
    auto* found = std::ranges::find(begin, begin + ways, id, &cached_verdict::id);
    if (found == begin + ways) {
      found = std::ranges::min_element(begin, begin + ways, {}, &cached_verdict::at);
      *found = cached_verdict{.id = id};
    }
    return *found;
  }

  void forget(store::key_hash const& id) noexcept {
    auto* const begin = entries_.data() + set_of(id);
    if (auto* const found = std::ranges::find(begin, begin + ways, id, &cached_verdict::id);
        found != begin + ways) {
      *found = cached_verdict{};
    }
  }

 private:
  static constexpr std::size_t ways = 4;

  [[nodiscard]] auto set_of(store::key_hash const& id) const noexcept -> std::size_t {
    return (id.high & (sets_ - 1)) * ways;
  }

  std::size_t sets_;
  std::vector<cached_verdict> entries_;
};

}  // namespace tidegate::store_redis
