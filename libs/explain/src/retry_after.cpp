// SPDX-License-Identifier: Apache-2.0
#include "report.hpp"
#include "words.hpp"

#include <tidegate/base/ascii.hpp>
#include <tidegate/http/date.hpp>
#include <tidegate/http/retry_after.hpp>

#include <algorithm>

namespace tidegate::TIDEGATE_ABI::explain {

namespace {

using std::chrono::seconds;

constexpr std::string_view name = "Retry-After";
/// A longer wait is not plausible, and a Unix time is far above it.
constexpr seconds plausible_max = std::chrono::days(31);
/// Both sides round up or down.
constexpr std::int64_t rounding = 1;

[[nodiscard]] auto is_number(std::string_view text) noexcept -> bool {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

/// What people take for a Retry-After that is none.
[[nodiscard]] auto hint_for(std::string_view value) -> std::string_view {
  if (value.empty()) {
    return "it is empty";
  }
  if (value.starts_with('-') && is_number(value.substr(1))) {
    return "a number of seconds is not negative";
  }
  if (value.find_first_not_of("0123456789.") == std::string_view::npos) {
    return "seconds have no fraction";
  }
  if (http::parse_rfc3339(value)) {
    return "a date is written as in Sun, 06 Nov 1994 08:49:37 GMT";
  }
  return "it is neither a number of seconds nor an HTTP-date such as Sun, 06 Nov 1994 08:49:37 GMT";
}

/// Of a refusal by quota: both fields name the same moment. An exhausted limit without a reset, as
/// one of concurrent requests is, leaves it to Retry-After.
void compare(std::int64_t delay, ratelimit::limit_field const& field, report& out) {
  std::optional<std::int64_t> latest;
  bool has_exhausted = false;
  for (auto const& limit : field.limits) {
    bool const is_exhausted = limit.remaining == 0;
    if (is_exhausted && !limit.reset) {
      return;
    }
    if (!limit.reset) {
      continue;
    }
    if (std::abs(*limit.reset - delay) <= rounding) {
      return;
    }
    if (is_exhausted > has_exhausted) {
      has_exhausted = true;
      latest = limit.reset;
    } else if (is_exhausted == has_exhausted) {
      latest = std::max(latest.value_or(0), *limit.reset);
    }
  }
  if (!latest) {
    return;
  }
  if (delay < *latest) {
    out.break_rule(rule_of("retry-after-before-reset"), name,
                   "it ends " + duration_words(*latest - delay) +
                       " before the quota is reset; a client that obeys it is refused again",
                   field.version);
  } else {
    out.break_rule(rule_of("retry-after-behind-reset"), name,
                   "it ends " + duration_words(delay - *latest) +
                       " after the quota is reset; it wins, so that this time is lost",
                   field.version);
  }
}

}  // namespace

void explain_retry_after(message_view const& message, std::chrono::sys_seconds now,
                         told_limits const& told, told_waits& waits, report& out) {
  auto const lines = lines_of(message, name);
  if (lines.empty()) {
    return;
  }
  if (lines.size() > 1) {
    out.break_rule(rule_of("retry-after-repeated"), name,
                   "it is there " + std::to_string(lines.size()) +
                       " times; clients cannot know which one counts");
    return;
  }
  auto const value = trimmed(lines.front());
  auto const delay = http::parse_retry_after(value, now);
  if (!delay) {
    out.break_rule(rule_of("retry-after-syntax"), name,
                   std::string(hint_for(value)) + "; clients act as if it were not there");
    return;
  }
  if (is_number(value)) {
    out.say(name, delay->count() == 0
                      ? "try again at once"
                      : "wait " + duration_words(delay->count()) + ", then try again");
  } else {
    auto const date = *http::parse_http_date(value, now);
    if (date < now) {
      out.break_rule(rule_of("retry-after-past"), name,
                     "the date has passed " + duration_words((now - date).count()) +
                         " ago, so that it asks for no wait");
    } else {
      out.say(name, "wait until " + std::string(value) + ", which is in " +
                        duration_words(delay->count()));
    }
  }
  if (*delay > plausible_max) {
    out.break_rule(rule_of("retry-after-implausible"), name,
                   delay->count() >= 1'000'000'000
                       ? "it looks like a Unix time; it has to be seconds from now or an HTTP-date"
                       : "no client waits " + duration_words(delay->count()));
    return;
  }
  waits.add(name, delay->count(), true);
  if (told.limits && (!message.status || *message.status == 429)) {
    compare(delay->count(), *told.limits, out);
  }
}

}  // namespace tidegate::TIDEGATE_ABI::explain
