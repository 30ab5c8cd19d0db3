// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/http/field.hpp>
#include <tidegate/ratelimit/fields.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

/// Reading the fields that came before the drafts, which no document specifies: X-RateLimit-Limit,
/// -Remaining and -Reset with all their variants (draft-09, appendix D), and RateLimit-Limit,
/// -Remaining and -Reset of the drafts before 07. Where a response has RateLimit, a client listens
/// to that and not to these.
namespace tidegate::TIDEGATE_ABI::ratelimit {

/// The meanings of reset that are in use.
enum class reset_form : std::uint8_t {
  delta_seconds,
  delta_milliseconds,
  epoch_seconds,
  epoch_milliseconds,
  http_date,
  rfc3339,
  duration,  ///< such as `6m0s` or `250ms`
};

/// What a reset was taken for, and how many seconds from now that is: rounded up, 0 when it has
/// passed.
struct legacy_reset {
  reset_form form{};
  std::int64_t seconds{};
  auto operator==(legacy_reset const&) const -> bool = default;
};

/// A number of seconds up to this is one: the longest month.
inline constexpr std::chrono::seconds legacy_delta_max = std::chrono::days(31);
/// A moment is believed up to a day before `now`, which is a clock that goes wrong or a window that
/// has just ended, and up to a year after it.
inline constexpr std::chrono::seconds legacy_past_max = std::chrono::days(1);
inline constexpr std::chrono::seconds legacy_future_max = std::chrono::days(366);

/// Reads the value of a Reset field. Its form is decided by the first of these that holds for a
/// number n:
///
/// 1. n is at most twice `window`, where that is known: seconds. A reset is hardly ever behind the
///    window.
/// 2. n is at most a thousand times `window`, where that is known: milliseconds.
/// 3. n is at most `legacy_delta_max`: seconds.
/// 4. n seconds after 1970 is between `now - legacy_past_max` and `now + legacy_future_max`: that
///    moment.
/// 5. The same for n milliseconds after 1970.
/// 6. n milliseconds are at most `legacy_delta_max`: milliseconds.
///
/// A number may have a fraction. Else the value is an HTTP-date, a date-time of RFC 3339, both
/// within the bounds of 4, or a duration in h, m, s and ms. Anything else is invalid.
///
/// `now` is best the Date of the response, so that a clock that goes wrong at either end does not
/// matter.
[[nodiscard]] auto read_legacy_reset(std::string_view value, std::chrono::sys_seconds now,
                                     std::optional<std::chrono::seconds> window = std::nullopt)
    -> std::optional<legacy_reset>;

/// So many names are looked at, and so many items in one value.
inline constexpr std::size_t legacy_groups_max = 32;
inline constexpr std::size_t legacy_items_max = 64;

/// What the fields of one response say. Where a Reset-After is beside a Reset, it counts alone: it
/// needs no clock.
struct legacy_fields {
  std::vector<quota_policy> policies;  ///< quotas whose window is known
  std::vector<service_limit> limits;   ///< each has at least a limit or what remains
  auto operator==(legacy_fields const&) const -> bool = default;
};

/// Reads all fields whose names begin with X-RateLimit-, X-Rate-Limit-, RateLimit- or
/// Beta-RateLimit- and go on with Limit, Remaining or Reset, in any case. Other lines may be among
/// them and are not looked at.
///
/// - `anthropic-ratelimit-requests-limit` has the part at the end: `requests` is the limit's name.
/// - What follows in the name makes a limit of its own, of that name in lower case: `minute` of
///   X-RateLimit-Remaining-Minute, `tokens` of x-ratelimit-remaining-tokens. If it ends in second,
///   minute, hour, day, week, month (30 days) or year (365 days), with a number before it or not
///   (`5-minute`), that is the window.
/// - `-Ms` at the end of the name of a Reset means milliseconds, `-After` means seconds from now.
/// - Limit is a number, or a List as in the early drafts: `10, 10;w=1, 50;w=60`. The first item is
///   the expiring limit; each with `w` (or `window`) is a policy too.
/// - Limit and Remaining may have a fraction, which is dropped. When Remaining is a list of several
///   numbers, they are as many limits, paired with the numbers in Limit and Reset where those are
///   as many.
/// - A value that makes no sense counts as not there; so does what is left without a limit and a
///   number that remains. Limits that say the same are given once.
[[nodiscard]] auto read_legacy(std::span<http::field_view const> lines,
                               std::chrono::sys_seconds now) -> legacy_fields;

}  // namespace tidegate::TIDEGATE_ABI::ratelimit
