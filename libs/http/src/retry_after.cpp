// SPDX-License-Identifier: Apache-2.0
#include <tidegate/http/retry_after.hpp>

#include <tidegate/base/ascii.hpp>
#include <tidegate/http/date.hpp>

#include <algorithm>
#include <cstdint>

namespace tidegate::TIDEGATE_ABI::http {

namespace {

/// delay-seconds = 1*DIGIT
[[nodiscard]] auto parse_delay_seconds(std::string_view text) noexcept
    -> std::optional<std::chrono::seconds> {
  std::int64_t delay = 0;
  for (char const c : text) {
    if (!is_digit(c)) {
      return std::nullopt;
    }
    delay = std::min<std::int64_t>(delay * 10 + (c - '0'), retry_after_max.count());
  }
  return text.empty() ? std::nullopt : std::optional(std::chrono::seconds(delay));
}

}  // namespace

auto parse_retry_after(std::string_view field_value, std::chrono::sys_seconds now) noexcept
    -> std::optional<std::chrono::seconds> {
  auto const text = trimmed(field_value);
  if (auto const delay = parse_delay_seconds(text)) {
    return delay;
  }
  auto const date = parse_http_date(text, now);
  if (!date) {
    return std::nullopt;
  }
  // A `now` beyond every date is as good as the last one; the difference cannot overflow then.
  auto const delay = *date - std::clamp(now, date_min, date_max);
  return std::clamp(delay, std::chrono::seconds(0), retry_after_max);
}

}  // namespace tidegate::TIDEGATE_ABI::http
