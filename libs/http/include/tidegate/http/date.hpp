// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/version.hpp>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace tidegate::TIDEGATE_ABI::http {

/// The first and the last moment that four digits of a year can say.
inline constexpr std::chrono::sys_seconds date_min =
    std::chrono::sys_days(std::chrono::year(0) / 1 / 1);
inline constexpr std::chrono::sys_seconds date_max =
    std::chrono::sys_days(std::chrono::year(9999) / 12 / 31) + std::chrono::seconds(86'399);

/// Reads an HTTP-date (RFC 9110, section 5.6.7) in any of its three forms:
///
///     Sun, 06 Nov 1994 08:49:37 GMT     IMF-fixdate
///     Sunday, 06-Nov-94 08:49:37 GMT    rfc850-date
///     Sun Nov  6 08:49:37 1994          asctime-date
///
/// Strict: case and spaces as in the grammar, nothing before or after, a day that exists and its
/// right name. The two digits of an rfc850-date mean the latest such year that is not more than 50
/// years after `now`; the other forms do not look at `now`, and a `now` beyond `date_min` and
/// `date_max` counts as the nearer of them. The leap second 23:59:60 is taken on any day and is the
/// second after it.
[[nodiscard]] auto parse_http_date(std::string_view text, std::chrono::sys_seconds now) noexcept
    -> std::optional<std::chrono::sys_seconds>;

/// Appends `time` as an IMF-fixdate, the one form that may be sent: 29 characters. What is before
/// `date_min` or after `date_max` is written as the nearer of them. Allocates nothing when `out`
/// has room.
void append_http_date(std::string& out, std::chrono::sys_seconds time);

/// Appends `time` as a date-time of RFC 3339 in UTC, `1996-12-19T16:39:57Z`: 20 characters, with
/// the same bounds. Allocates nothing when `out` has room.
void append_rfc3339(std::string& out, std::chrono::sys_seconds time);

/// Reads a date-time of RFC 3339, such as `1996-12-19T16:39:57.25-08:00`.
///
/// A fraction of a second may have any number of digits and is dropped. `T` and `Z` may be in lower
/// case; a space in place of `T` is refused, as is everything else that the grammar of section 5.6
/// lacks. The offset `-00:00` counts as UTC. A second 60 is taken where it is 23:59:60 in UTC, on
/// any day, and is the second after it. An offset may lead up to a day beyond `date_min` or
/// `date_max`.
[[nodiscard]] auto parse_rfc3339(std::string_view text) noexcept
    -> std::optional<std::chrono::sys_seconds>;

}  // namespace tidegate::TIDEGATE_ABI::http
