// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/instant.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>

/// How much of a quota a gateway takes ahead. No I/O.
namespace tidegate::store_redis {

/// A slice lasts for about so long.
inline constexpr std::chrono::milliseconds lease_period{100};

/// How many units are used in a `lease_period`, from what was used lately.
class use_rate {
 public:
  void add(instant now, std::int64_t units) noexcept {
    move_on(now);
    current_ += static_cast<double>(units);
  }

  /// Half of it was used in the last whole period, a quarter in the one before, and so on; more
  /// when there was already more in the one that has begun.
  [[nodiscard]] auto per_period(instant now) noexcept -> double {
    move_on(now);
    return std::max(before_, current_);
  }

 private:
  void move_on(instant now) noexcept {
    auto const periods = (now - begin_) / lease_period;
    if (periods <= 0) {
      return;
    }
    before_ = std::ldexp((before_ + current_) / 2,
                         -static_cast<int>(std::min<std::int64_t>(periods - 1, 60)));
    current_ = 0;
    begin_ = now;
  }

  instant begin_{};
  double current_ = 0;
  double before_ = 0;
};

/// Into how many parts what remains is thought to be divided: no taker gets more than one, so that
/// the others find something too.
[[nodiscard]] constexpr auto lease_parts(std::size_t takers) noexcept -> std::int64_t {
  return static_cast<std::int64_t>(2 * std::max<std::size_t>(takers, 1));
}

/// How many units a slice is to have: a period's worth, and not more than a part of what remained
/// by the last answer. 0 when a slice is not worth taking, since less than two units would
/// be used of it.
[[nodiscard]] inline auto lease_size(double used_per_period, std::int64_t remaining,
                                     std::size_t takers) noexcept -> std::int64_t {
  if (used_per_period < 2) {
    return 0;
  }
  constexpr double most = 1e15;
  auto const wanted = static_cast<std::int64_t>(std::ceil(std::min(used_per_period, most)));
  return std::clamp<std::int64_t>(remaining / lease_parts(takers), 1, wanted);
}

/// How many slots for concurrent requests to have ahead of those that are held: a quarter more.
[[nodiscard]] inline auto slots_ahead(std::int64_t held, std::int64_t remaining,
                                      std::size_t takers) noexcept -> std::int64_t {
  return std::clamp<std::int64_t>(remaining / lease_parts(takers), 1, held / 4 + 1);
}

/// Whether it is time to ask for more, so that it comes before the last unit is spent.
[[nodiscard]] constexpr auto is_low(std::int64_t units, std::int64_t wanted) noexcept -> bool {
  return units * 2 < wanted;
}

/// How many units of slots that came back are more than will soon be needed.
[[nodiscard]] constexpr auto excess(std::int64_t units, std::int64_t wanted) noexcept
    -> std::int64_t {
  return units > 2 * wanted ? units - wanted : 0;
}

}  // namespace tidegate::store_redis
