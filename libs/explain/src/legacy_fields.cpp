// SPDX-License-Identifier: Apache-2.0
#include "report.hpp"
#include "words.hpp"

#include <tidegate/base/ascii.hpp>
#include <tidegate/http/date.hpp>
#include <tidegate/http/field.hpp>
#include <tidegate/ratelimit/legacy.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <iterator>
#include <system_error>
#include <vector>

namespace tidegate::TIDEGATE_ABI::explain {

namespace {

using ratelimit::legacy_fields;
using ratelimit::reset_form;
using ratelimit::service_limit;
using std::chrono::sys_seconds;

/// What the name of a line says, as far as it matters here.
struct legacy_name {
  std::string_view family;  ///< such as `X-RateLimit-`, as it was sent
  std::string_view part;    ///< `limit`, `remaining` or `reset`, in lower case
  std::string_view rest;    ///< such as `-minute`
};

[[nodiscard]] auto begins_with(std::string_view text, std::string_view prefix) noexcept -> bool {
  return equal_ignoring_case(text.substr(0, prefix.size()), prefix);
}

[[nodiscard]] auto read_name(std::string_view text) -> std::optional<legacy_name> {
  constexpr std::array<std::string_view, 4> families{"x-ratelimit-", "x-rate-limit-", "ratelimit-",
                                                     "beta-ratelimit-"};
  constexpr std::array<std::string_view, 3> parts{"limit", "remaining", "reset"};
  for (auto const family : families) {
    if (!begins_with(text, family)) {
      continue;
    }
    for (auto const part : parts) {
      auto const rest = text.substr(family.size());
      if (begins_with(rest, part) && (rest.size() == part.size() || rest[part.size()] == '-')) {
        return legacy_name{text.substr(0, family.size()), part, rest.substr(part.size())};
      }
    }
  }
  return std::nullopt;
}

/// RateLimit-Limit, -Remaining and -Reset are of drafts up to 06, where a reset is in seconds from
/// now. The others are of no specification.
[[nodiscard]] auto is_of_a_draft(std::string_view family) -> bool {
  return equal_ignoring_case(family, "ratelimit-") ||
         equal_ignoring_case(family, "beta-ratelimit-");
}

/// A reset as it is taken, for people.
[[nodiscard]] auto form_words(reset_form form, std::int64_t seconds, sys_seconds now)
    -> std::string {
  std::string moment;
  http::append_rfc3339(moment, now + std::chrono::seconds(seconds));
  switch (form) {
    case reset_form::delta_seconds: return "seconds from now";
    case reset_form::delta_milliseconds: return "milliseconds from now";
    case reset_form::epoch_seconds: return "a Unix time, " + moment;
    case reset_form::epoch_milliseconds: return "a Unix time in milliseconds, " + moment;
    case reset_form::http_date: return "an HTTP-date";
    case reset_form::rfc3339: return "a date of RFC 3339";
    case reset_form::duration: break;
  }
  return "a duration";
}

/// A date has a comma in it, so that a value is tried as a whole before it is a list.
[[nodiscard]] auto read_first_reset(std::string_view value, sys_seconds now,
                                    std::optional<std::chrono::seconds> window)
    -> std::optional<ratelimit::legacy_reset> {
  if (auto const whole = ratelimit::read_legacy_reset(value, now, window)) {
    return whole;
  }
  std::optional<ratelimit::legacy_reset> first;
  for (;;) {
    auto const comma = value.find(',');
    auto const one = ratelimit::read_legacy_reset(trimmed(value.substr(0, comma)), now, window);
    if (!one) {
      return std::nullopt;
    }
    first = first ? first : one;
    if (comma == std::string_view::npos) {
      return first;
    }
    value.remove_prefix(comma + 1);
  }
}

[[nodiscard]] auto window_of(legacy_fields const& read, std::string_view name)
    -> std::optional<std::int64_t> {
  for (auto const& policy : read.policies) {
    if (equal_ignoring_case(policy.name, name)) {
      return policy.window;
    }
  }
  return std::nullopt;
}

/// The line that gives the same reset as a time from now: `X-RateLimit-Reset-After` beside
/// `X-RateLimit-Reset`.
[[nodiscard]] auto find_after(message_view const& message, legacy_name const& name)
    -> http::field_view const* {
  for (auto const& line : message.fields) {
    auto const other = read_name(line.name);
    if (other && other->part == "reset" && equal_ignoring_case(other->family, name.family) &&
        equal_ignoring_case(other->rest, std::string(name.rest) + "-after") &&
        ratelimit::read_legacy_reset(line.value, {})) {
      return &line;
    }
  }
  return nullptr;
}

/// A Unix time that is longer past than a clock goes wrong: `2016-08-02T21:23:43Z`. Empty for
/// everything else.
[[nodiscard]] auto past_moment(std::string_view value, sys_seconds now) -> std::string {
  constexpr std::int64_t first = 1'000'000'000;  // 2001; what is less may be a time from now
  std::int64_t number = 0;
  auto const [end, fault] = std::from_chars(value.data(), value.data() + value.size(), number);
  std::string_view const rest(end, value.data() + value.size());
  if (fault != std::errc{} || (!rest.empty() && rest.front() != '.') ||
      rest.find_first_not_of("0123456789", 1) != std::string_view::npos) {
    return {};
  }
  auto const moment = sys_seconds(std::chrono::seconds(number));
  std::string out;
  if (number >= first && moment < now - ratelimit::legacy_past_max) {
    http::append_rfc3339(out, moment);
  }
  return out;
}

/// A reset beside a time from now, `after`, which counts alone.
void judge_overruled(http::field_view const& line, http::field_view const& after,
                     service_limit const* limit, std::optional<ratelimit::legacy_reset> reset,
                     sys_seconds now, told_waits& waits, report& out) {
  auto const past = past_moment(trimmed(line.value), now);
  out.say(line.name, (past.empty() ? "taken for " + form_words(reset->form, reset->seconds, now)
                                   : "a Unix time that is past, " + past) +
                         "; " + std::string(after.name) + " counts instead");
  if (limit == nullptr || limit->remaining != 0 || !limit->reset) {
    return;
  }
  if (!past.empty()) {
    waits.overrule(after.name, *limit->reset, line.name, past + ", which is past");
  } else if (std::abs(reset->seconds - *limit->reset) > 1) {  // both sides round
    waits.overrule(after.name, *limit->reset, line.name, duration_words(reset->seconds));
  }
}

void judge_reset(http::field_view const& line, legacy_name const& name, legacy_fields const& read,
                 message_view const& message, sys_seconds now, told_waits& waits, report& out) {
  auto const group = name.rest.empty() ? name.rest : name.rest.substr(1);
  auto const window = window_of(read, group);
  auto const reset =
      read_first_reset(trimmed(line.value), now,
                       window ? std::optional(std::chrono::seconds(*window)) : std::nullopt);
  auto const* const after = find_after(message, name);
  bool const is_past = after != nullptr && !past_moment(trimmed(line.value), now).empty();
  bool const has_unit = equal_ignoring_case(name.rest, "-ms") ||
                        equal_ignoring_case(name.rest, "-after") || name.rest.ends_with("-ms") ||
                        name.rest.ends_with("-after");
  if (!reset && (!is_past || has_unit)) {
    out.break_rule(rule_of("x-ratelimit-value"), line.name,
                   quoted(trimmed(line.value)) +
                       " is neither a number nor a date near now; clients ignore it");
    return;
  }
  if (has_unit) {
    bool const is_after = name.rest.ends_with("-after") || name.rest.ends_with("-After");
    out.say(line.name, "resets in " + duration_words(reset->seconds) +
                           (is_after ? ", given in seconds from now" : ", given in milliseconds"));
    return;
  }
  if (after != nullptr) {
    auto const limit = std::ranges::find_if(read.limits, [&](service_limit const& each) {
      return equal_ignoring_case(each.name, group);
    });
    judge_overruled(line, *after, limit == read.limits.end() ? nullptr : &*limit, reset, now, waits,
                    out);
    return;
  }
  auto const words = form_words(reset->form, reset->seconds, now);
  if (!is_of_a_draft(name.family)) {
    out.say(line.name, "taken for " + words + "; no specification says which");
  } else if (reset->form == reset_form::delta_seconds) {
    out.say(line.name, words + ", as the drafts up to 06 have it");
  } else {
    out.say(line.name, "taken for " + words + "; the drafts up to 06 have seconds from now");
  }
  bool const is_moment = reset->form == reset_form::epoch_seconds ||
                         reset->form == reset_form::epoch_milliseconds ||
                         reset->form == reset_form::http_date || reset->form == reset_form::rfc3339;
  if (is_moment) {
    out.break_rule(
        rule_of("x-ratelimit-reset-clock"), line.name,
        "a moment is only right for clients whose clock is; seconds from now always are");
  }
}

/// What a limit counts, by its name.
[[nodiscard]] auto unit_of(std::string_view name) -> std::string_view {
  return name.find("token") != std::string_view::npos ? "token" : "request";
}

void say_limit(service_limit const& limit, legacy_fields const& read, std::string_view family,
               report& out) {
  auto const field = std::string(family) + "*" + (limit.name.empty() ? "" : "-" + limit.name);
  std::string text = limit.remaining
                         ? (*limit.remaining == 0 ? "nothing" : std::to_string(*limit.remaining))
                         : std::string("it is not said how many");
  auto const unit = unit_of(limit.name);
  text += limit.limit
              ? " of " + std::to_string(*limit.limit) + (unit == "token" ? " tokens" : "") + " left"
              : " left";
  if (auto const window = window_of(read, limit.name)) {
    auto const name = window_name(*window);
    text += name.empty() ? " in this window of " + duration_words(*window)
                         : " in this " + std::string(name);
  }
  if (limit.reset) {
    text += ", resets in " + duration_words(*limit.reset);
    if (limit.remaining == 0) {
      text += "; wait until then";
    } else if (limit.remaining && *limit.reset > 0) {
      text += "; pace yourself to " + pace_words(*limit.remaining, *limit.reset, false, unit) +
              " until then";
    }
  }
  out.say(field, std::move(text));
  if (!limit.limit || !limit.remaining || !limit.reset) {
    out.break_rule(rule_of("x-ratelimit-incomplete"), field,
                   std::string(!limit.remaining ? "what remains"
                               : !limit.reset   ? "the reset"
                                                : "the limit") +
                       " is missing; clients that need it have to guess");
  }
}

/// Both are there: they have to tell the same.
void compare(legacy_fields const& read, ratelimit::limit_field const& field,
             std::string_view family, report& out) {
  for (auto const& limit : read.limits) {
    bool const is_known =
        !limit.remaining || std::ranges::any_of(field.limits, [&](service_limit const& other) {
          return other.remaining == limit.remaining;
        });
    if (!is_known) {
      out.break_rule(
          rule_of("x-ratelimit-disagrees"), std::string(family) + "*",
          std::to_string(*limit.remaining) +
              " remain by this, but by no item of RateLimit, which is the one that counts");
    }
  }
}

}  // namespace

auto is_legacy_name(std::string_view name) -> bool {
  return read_name(name).has_value();
}

void explain_legacy(message_view const& message, sys_seconds now, told_limits const& told,
                    told_waits& waits, report& out) {
  std::string_view family;
  // Those of vendors are explained apart.
  std::vector<http::field_view> lines;
  std::ranges::copy_if(message.fields, std::back_inserter(lines),
                       [](auto const& line) { return is_legacy_name(line.name); });
  auto const read = ratelimit::read_legacy(lines, now);
  for (auto const& line : lines) {
    auto const name = read_name(line.name);
    family = family.empty() ? name->family : family;
    if (name->part == "reset") {
      judge_reset(line, *name, read, message, now, waits, out);
    } else if (ratelimit::read_legacy({&line, 1}, now).limits.empty()) {
      // One line with a number is a limit of its own.
      out.break_rule(
          rule_of("x-ratelimit-value"), line.name,
          quoted(trimmed(line.value)) + " is not a number of 0 or more; clients ignore it");
    }
  }
  if (family.empty()) {
    return;
  }
  for (auto const& limit : read.limits) {
    say_limit(limit, read, family, out);
    if (limit.remaining == 0 && limit.reset) {
      waits.add(std::string(family) + "*", *limit.reset, false);
    }
  }
  if (told.limits && !told.limits->limits.empty()) {
    compare(read, *told.limits, family, out);
  } else if (!told.is_there) {
    out.break_rule(
        rule_of("x-ratelimit-only"), std::string(family) + "*",
        is_of_a_draft(family)
            ? "drafts up to 06 have these fields; those after them have one RateLimit field "
              "instead, "
              "which newer clients look for"
            : "no specification has these fields; a RateLimit field says the same in a way that "
              "every "
              "client understands");
  }
}

}  // namespace tidegate::TIDEGATE_ABI::explain
