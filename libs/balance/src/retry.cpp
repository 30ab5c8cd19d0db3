// SPDX-License-Identifier: Apache-2.0
#include <tidegate/balance/retry.hpp>

#include <algorithm>

namespace tidegate::balance {

auto backoff_before(std::int64_t retry, std::chrono::nanoseconds first,
                    std::uint64_t randomness) noexcept -> std::chrono::nanoseconds {
  constexpr std::chrono::nanoseconds more_at_most = std::chrono::seconds(1);
  auto const doublings = std::clamp<std::int64_t>(retry - 1, 0, 20);
  auto const whole = std::min(first * (std::int64_t{1} << doublings), first + more_at_most);
  auto const half = whole / 2;
  return half + std::chrono::nanoseconds(static_cast<std::int64_t>(
                    randomness % static_cast<std::uint64_t>((whole - half).count() + 1)));
}

void retry_budget::forget_until(std::int64_t second) noexcept {
  auto const passed = std::min(second - second_, seconds);
  for (std::int64_t i = 1; i <= passed; ++i) {
    auto& old = by_second_[static_cast<std::size_t>((second_ + i) % seconds)];
    sum_.requests -= old.requests;
    sum_.retries -= old.retries;
    old = {};
  }
  second_ = second;
  if (passed == seconds) {  // all of them were forgotten, whichever they were
    by_second_ = {};
    sum_ = {};
  }
}

auto retry_floor::take(instant now) noexcept -> bool {
  constexpr std::chrono::nanoseconds cost =
      std::chrono::nanoseconds(std::chrono::seconds(1)) / each_second;
  constexpr std::chrono::nanoseconds most = std::chrono::seconds(retry_budget::seconds);
  auto const from = std::max(full_at_, now);
  if (from - now > most - cost) {
    return false;
  }
  full_at_ = from + cost;
  return true;
}

}  // namespace tidegate::balance
