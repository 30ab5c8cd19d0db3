// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/instant.hpp>

#include <array>
#include <chrono>
#include <cstdint>

namespace tidegate::balance {

/// What may go wrong with a request, in the words of `retry.on`.
enum class retry_cause : std::uint8_t {
  connect = 1U << 0U,         ///< no connection came about
  refused_stream = 1U << 1U,  ///< the server says that it did not look at the request
  reset = 1U << 2U,           ///< the connection broke before the head of the response
  timeout = 1U << 3U,         ///< the head of the response did not come in time
  status_502 = 1U << 4U,
  status_503 = 1U << 5U,
  status_504 = 1U << 6U,
};

/// Which failures are worth another attempt, and how many.
struct retry_settings {
  std::uint8_t on = static_cast<std::uint8_t>(retry_cause::connect) |
                    static_cast<std::uint8_t>(retry_cause::refused_stream);
  std::int64_t attempts = 1;
  std::chrono::nanoseconds backoff{std::chrono::milliseconds(25)};
  std::int64_t budget = 20;  ///< percent of the requests of the last ten seconds
  auto operator==(retry_settings const&) const -> bool = default;

  [[nodiscard]] constexpr auto has(retry_cause what) const noexcept -> bool {
    return (on & static_cast<std::uint8_t>(what)) != 0;
  }
  /// Whether any of the responses is.
  [[nodiscard]] constexpr auto has_status() const noexcept -> bool { return (on & 0x70U) != 0; }
  [[nodiscard]] constexpr auto has(int status) const noexcept -> bool {
    return (status == 502 && has(retry_cause::status_502)) ||
           (status == 503 && has(retry_cause::status_503)) ||
           (status == 504 && has(retry_cause::status_504));
  }
};

/// Whether nothing of the request can have had an effect, whatever its method.
[[nodiscard]] constexpr auto cannot_have_arrived(retry_cause what) noexcept -> bool {
  return what == retry_cause::connect || what == retry_cause::refused_stream;
}

/// How long to wait before retry number `retry`, from 1 on: up to twice as long each time, at most
/// a second more than the first, and at least half of that. `randomness` is any number.
[[nodiscard]] auto backoff_before(std::int64_t retry, std::chrono::nanoseconds first,
                                  std::uint64_t randomness) noexcept -> std::chrono::nanoseconds;

/// The requests and retries of one thread in the last ten seconds.
class retry_budget {
 public:
  static constexpr std::int64_t seconds = 10;

  void request(instant now) noexcept {
    roll(now);
    ++current().requests;
    ++sum_.requests;
  }
  void retried(instant now) noexcept {
    roll(now);
    ++current().retries;
    ++sum_.retries;
  }
  /// Whether one more retry is within `percent` of the requests.
  [[nodiscard]] auto allows(std::int64_t percent, instant now) noexcept -> bool {
    roll(now);
    return (sum_.retries + 1) * 100 <= sum_.requests * percent;
  }

 private:
  struct counts {
    std::int64_t requests = 0;
    std::int64_t retries = 0;
  };
  [[nodiscard]] auto current() noexcept -> counts& {
    return by_second_[static_cast<std::size_t>(second_ % seconds)];
  }
  void roll(instant now) noexcept {
    auto const second = now.time_since_epoch() / std::chrono::seconds(1);
    if (second > second_) [[unlikely]] {
      forget_until(second);
    }
  }
  void forget_until(std::int64_t second) noexcept;

  std::array<counts, seconds> by_second_{};
  counts sum_;
  std::int64_t second_ = 0;
};

/// What a budget has at least: three retries a second, of all threads together.
class retry_floor {
 public:
  static constexpr std::int64_t each_second = 3;

  /// Takes one. False when there is none left.
  [[nodiscard]] auto take(instant now) noexcept -> bool;

 private:
  instant full_at_{instant::min()};
};

}  // namespace tidegate::balance
