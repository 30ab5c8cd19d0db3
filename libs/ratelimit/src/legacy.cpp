// SPDX-License-Identifier: Apache-2.0
#include <tidegate/ratelimit/legacy.hpp>

#include <tidegate/base/ascii.hpp>
#include <tidegate/http/date.hpp>
#include <tidegate/sf/parse.hpp>

#include "parsed_field.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <string>
#include <utility>

namespace tidegate::TIDEGATE_ABI::ratelimit {

namespace {

using std::chrono::seconds;
using std::chrono::sys_seconds;

/// Takes `prefix`, which is in lower case, off the front of `text`.
[[nodiscard]] auto take_prefix(std::string_view& text, std::string_view prefix) noexcept -> bool {
  if (text.size() < prefix.size() || !std::equal(prefix.begin(), prefix.end(), text.begin(),
                                                 [](char a, char b) { return a == to_lower(b); })) {
    return false;
  }
  text.remove_prefix(prefix.size());
  return true;
}

/// Up to fifteen digits off the front of `text`.
[[nodiscard]] auto take_digits(std::string_view& text) noexcept -> std::optional<std::int64_t> {
  auto const size =
      static_cast<std::size_t>(std::find_if_not(text.begin(), text.end(), is_digit) - text.begin());
  if (size == 0 || size > 15) {
    return std::nullopt;
  }
  std::int64_t value = 0;
  std::from_chars(text.data(), text.data() + size, value);
  text.remove_prefix(size);
  return value;
}

// ── reset ──

[[nodiscard]] constexpr auto divided_up(std::int64_t value, std::int64_t by) noexcept
    -> std::int64_t {
  return value / by + (value % by != 0 ? 1 : 0);
}

/// A number with or without a fraction off the front of `text`, in thousandths and rounded up.
[[nodiscard]] auto take_thousandths(std::string_view& text) noexcept
    -> std::optional<std::int64_t> {
  auto const whole = take_digits(text);
  if (!whole) {
    return std::nullopt;
  }
  auto value = *whole * 1000;
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    auto const* const end = std::find_if_not(text.begin(), text.end(), is_digit);
    auto fraction = text.substr(0, static_cast<std::size_t>(end - text.begin()));
    if (fraction.empty()) {
      return std::nullopt;
    }
    text.remove_prefix(fraction.size());
    for (std::int64_t digit = 100; digit != 0 && !fraction.empty(); digit /= 10) {
      value += digit * (fraction.front() - '0');
      fraction.remove_prefix(1);
    }
    value += fraction.find_first_not_of('0') == std::string_view::npos ? 0 : 1;
  }
  return value;
}

/// A whole value that is a number, rounded up.
[[nodiscard]] auto read_number(std::string_view text) noexcept -> std::optional<std::int64_t> {
  auto const thousandths = take_thousandths(text);
  return thousandths && text.empty() ? std::optional(divided_up(*thousandths, 1000)) : std::nullopt;
}

/// How long it is until `moment`, if it can be believed.
[[nodiscard]] auto until(std::int64_t moment, sys_seconds now) noexcept
    -> std::optional<std::int64_t> {
  auto const since_now = moment - now.time_since_epoch().count();
  if (since_now < -legacy_past_max.count() || since_now > legacy_future_max.count()) {
    return std::nullopt;
  }
  return std::max<std::int64_t>(since_now, 0);
}

[[nodiscard]] auto with_form(reset_form form, std::optional<std::int64_t> value) noexcept
    -> std::optional<legacy_reset> {
  return value ? std::optional(legacy_reset{form, *value}) : std::nullopt;
}

[[nodiscard]] auto decide_form(std::int64_t n, sys_seconds now,
                               std::optional<seconds> window) noexcept
    -> std::optional<legacy_reset> {
  using enum reset_form;
  auto const in_milliseconds = legacy_reset{delta_milliseconds, divided_up(n, 1000)};
  if (window) {
    if (n <= 2 * window->count()) {
      return legacy_reset{delta_seconds, n};
    }
    if (n <= 1000 * window->count()) {
      return in_milliseconds;
    }
  }
  if (n <= legacy_delta_max.count()) {
    return legacy_reset{delta_seconds, n};
  }
  if (auto const moment = with_form(epoch_seconds, until(n, now))) {
    return moment;
  }
  if (auto const moment = with_form(epoch_milliseconds, until(divided_up(n, 1000), now))) {
    return moment;
  }
  if (n <= legacy_delta_max.count() * 1000) {
    return in_milliseconds;
  }
  return std::nullopt;
}

/// `1h2m3.5s`, `20ms`: what Go prints for a duration.
[[nodiscard]] auto read_duration(std::string_view text) noexcept -> std::optional<std::int64_t> {
  struct unit {
    std::string_view name;
    std::int64_t milliseconds;
  };
  constexpr std::array<unit, 4> units{{{"ms", 1}, {"s", 1000}, {"m", 60'000}, {"h", 3'600'000}}};
  constexpr auto milliseconds_max = legacy_future_max.count() * 1000;
  std::int64_t milliseconds = 0;
  do {
    auto const thousandths = take_thousandths(text);
    auto const* const found = std::find_if(
        units.begin(), units.end(), [&](unit const& u) { return take_prefix(text, u.name); });
    if (!thousandths || found == units.end() ||
        divided_up(*thousandths, 1000) > milliseconds_max / found->milliseconds) {
      return std::nullopt;
    }
    milliseconds += divided_up(*thousandths * found->milliseconds, 1000);
  } while (!text.empty() && milliseconds <= milliseconds_max);
  return milliseconds <= milliseconds_max ? std::optional(divided_up(milliseconds, 1000))
                                          : std::nullopt;
}

/// What the name of a Reset field says of its value.
enum class reset_hint : std::uint8_t { none, milliseconds, after };

[[nodiscard]] auto read_hinted_reset(std::string_view value, sys_seconds now,
                                     std::optional<seconds> window, reset_hint hint)
    -> std::optional<legacy_reset> {
  auto const number = read_number(value);
  if (!number || hint == reset_hint::none) {
    return read_legacy_reset(value, now, window);
  }
  auto const in_seconds = hint == reset_hint::after ? *number : divided_up(*number, 1000);
  if (in_seconds <= legacy_future_max.count()) {
    return legacy_reset{
        hint == reset_hint::after ? reset_form::delta_seconds : reset_form::delta_milliseconds,
        in_seconds};
  }
  return hint == reset_hint::after
             ? std::nullopt
             : with_form(reset_form::epoch_milliseconds, until(in_seconds, now));
}

// ── names ──

enum class part : std::uint8_t { limit, remaining, reset };

/// What the name of a field says.
struct legacy_name {
  std::size_t family = 0;  // which of the prefixes
  ratelimit::part part{};
  reset_hint hint{};
  std::string name;  // of the limit, in lower case
};

[[nodiscard]] auto take_suffix(std::string& name, std::string_view suffix) -> bool {
  if (!name.ends_with(suffix) ||
      (name.size() > suffix.size() && name[name.size() - suffix.size() - 1] != '-')) {
    return false;
  }
  name.resize(name.size() > suffix.size() ? name.size() - suffix.size() - 1 : 0);
  return true;
}

constexpr std::array<std::string_view, 4> families{"x-ratelimit-", "x-rate-limit-", "ratelimit-",
                                                   "beta-ratelimit-"};
constexpr std::array<std::string_view, 3> parts{"limit", "remaining", "reset"};

/// `anthropic-ratelimit-requests-remaining`, where the part stands behind the name of the limit.
[[nodiscard]] auto read_reversed_name(std::string_view text) -> std::optional<legacy_name> {
  legacy_name name{.family = families.size(), .part = part::limit, .hint = {}, .name = {}};
  if (!take_prefix(text, "anthropic-ratelimit-")) {
    return std::nullopt;
  }
  name.name.assign(text);
  std::transform(name.name.begin(), name.name.end(), name.name.begin(), to_lower);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (take_suffix(name.name, parts[i]) && !name.name.empty()) {
      name.part = static_cast<part>(i);
      return name;
    }
  }
  return std::nullopt;
}

[[nodiscard]] auto read_name(std::string_view text) -> std::optional<legacy_name> {
  if (auto reversed = read_reversed_name(text)) {
    return reversed;
  }
  auto take_one = [&text](auto const& prefixes) {
    return static_cast<std::size_t>(
        std::find_if(prefixes.begin(), prefixes.end(),
                     [&](auto prefix) { return take_prefix(text, prefix); }) -
        prefixes.begin());
  };
  legacy_name name;
  name.family = take_one(families);
  if (name.family == families.size()) {
    return std::nullopt;
  }
  auto const which = take_one(parts);
  if (which == parts.size()) {
    return std::nullopt;
  }
  name.part = static_cast<part>(which);
  if (text.empty()) {
    return name;
  }
  if (text.size() == 1 || text.front() != '-') {
    return std::nullopt;
  }
  name.name.assign(text.substr(1));
  std::transform(name.name.begin(), name.name.end(), name.name.begin(), to_lower);
  if (name.part == part::reset) {
    if (take_suffix(name.name, "ms")) {
      name.hint = reset_hint::milliseconds;
    } else if (take_suffix(name.name, "after")) {
      name.hint = reset_hint::after;
    }
  }
  return name;
}

/// The window that the name of a limit ends in.
[[nodiscard]] auto window_named(std::string name) -> std::optional<seconds> {
  using namespace std::chrono;
  struct named_window {
    std::string_view name;
    seconds length;
  };
  constexpr std::array<named_window, 7> windows{{{"second", seconds(1)},
                                                 {"minute", minutes(1)},
                                                 {"hour", hours(1)},
                                                 {"day", days(1)},
                                                 {"week", weeks(1)},
                                                 {"month", days(30)},
                                                 {"year", days(365)}}};
  auto const* const found = std::find_if(windows.begin(), windows.end(), [&](auto const& window) {
    return take_suffix(name, window.name);
  });
  if (found == windows.end()) {
    return std::nullopt;
  }
  auto number = std::string_view(name).substr(name.rfind('-') + 1);  // npos + 1 is 0
  auto const times = take_digits(number);
  constexpr std::int64_t times_max = 1000;
  if (!times || !number.empty()) {
    return found->length;
  }
  return *times >= 1 && *times <= times_max ? std::optional(found->length * *times) : std::nullopt;
}

// ── values ──

/// The lines that make up one limit.
struct group {
  struct reset_line {
    std::string_view value;
    reset_hint hint{};
  };
  std::size_t family = 0;
  std::string name;
  std::vector<std::string_view> limit;
  std::vector<std::string_view> remaining;
  std::vector<reset_line> reset;
};

[[nodiscard]] auto group_lines(std::span<http::field_view const> lines) -> std::vector<group> {
  std::vector<group> groups;
  for (auto const& line : lines) {
    auto name = read_name(line.name);
    if (!name) {
      continue;
    }
    auto same = std::find_if(groups.begin(), groups.end(), [&](group const& known) {
      return known.family == name->family && known.name == name->name;
    });
    if (same == groups.end()) {
      if (groups.size() == legacy_groups_max) {
        continue;
      }
      same = groups.insert(same, {name->family, std::move(name->name), {}, {}, {}});
    }
    auto const value = trimmed(line.value);
    switch (name->part) {
      case part::limit: same->limit.push_back(value); break;
      case part::remaining: same->remaining.push_back(value); break;
      case part::reset: same->reset.push_back({value, name->hint}); break;
    }
  }
  return groups;
}

struct counted {
  std::int64_t count = 0;
  std::optional<std::int64_t> window;
  comment_parameters comments;
};

/// A list of numbers, or nothing if any of it is something else or there are too many.
[[nodiscard]] auto read_counts(std::span<std::string_view const> lines) -> std::vector<counted> {
  std::string scratch;
  auto const list = sf::parse_list<field_dialect>(sf::combine(lines, scratch));
  if (!list || list->size() > legacy_items_max) {
    return {};
  }
  std::vector<counted> counts;
  for (auto const& member : *list) {
    auto const* item = std::get_if<0>(&member);
    if (item == nullptr) {
      return {};
    }
    counted count;
    if (item->value.is(sf::bare_item_type::integer)) {
      count.count = item->value.as_integer().value();
    } else if (item->value.is(sf::bare_item_type::decimal)) {
      auto const thousandths = item->value.as_decimal().thousandths();
      count.count = thousandths < 0 ? -1 : thousandths / 1000;
    } else {
      return {};
    }
    if (count.count < 0) {
      return {};
    }
    for (auto const& [key, value] : item->parameters) {
      bool const is_window = key == "w" || key == "window";
      if (!is_window) {
        count.comments.set(key, value);
      } else if (value.is(sf::bare_item_type::integer) && value.as_integer().value() > 0) {
        count.window = value.as_integer().value();
      }
    }
    counts.push_back(std::move(count));
  }
  return counts;
}

/// The seconds that these Reset lines say, or nothing if any of it makes no sense.
[[nodiscard]] auto read_reset_lines(std::span<group::reset_line const> lines, sys_seconds now,
                                    std::optional<seconds> window) -> std::vector<std::int64_t> {
  std::vector<std::int64_t> resets;
  for (auto line : lines) {
    // A date has a comma in it, so that the line as a whole comes first.
    if (auto const reset = read_hinted_reset(line.value, now, window, line.hint)) {
      resets.push_back(reset->seconds);
      continue;
    }
    for (bool more = true; more;) {
      auto const comma = line.value.find(',');
      auto const reset =
          read_hinted_reset(trimmed(line.value.substr(0, comma)), now, window, line.hint);
      if (!reset) {
        return {};
      }
      resets.push_back(reset->seconds);
      more = comma != std::string_view::npos;
      line.value.remove_prefix(more ? comma + 1 : 0);
    }
  }
  return resets;
}

/// The seconds that the Reset lines of a group say. A time from now needs no clock, so it counts
/// alone where there is one beside a moment.
[[nodiscard]] auto read_resets(std::span<group::reset_line const> lines, sys_seconds now,
                               std::optional<seconds> window) -> std::vector<std::int64_t> {
  std::vector<group::reset_line> from_now;
  std::ranges::copy_if(lines, std::back_inserter(from_now), [](group::reset_line const& line) {
    return line.hint == reset_hint::after;
  });
  auto resets = read_reset_lines(from_now, now, window);
  return resets.empty() ? read_reset_lines(lines, now, window) : resets;
}

/// The window of the expiring limit, which is the first item.
[[nodiscard]] auto find_window(std::span<counted const> limits) noexcept -> std::optional<seconds> {
  for (auto const& limit : limits) {
    if (limit.window && limit.count == limits.front().count) {
      return seconds(*limit.window);
    }
  }
  return std::nullopt;
}

template <class T>
void add_once(std::vector<T>& to, T value) {
  if (std::find(to.begin(), to.end(), value) == to.end()) {
    to.push_back(std::move(value));
  }
}

void read_group(group const& group, sys_seconds now, legacy_fields& out) {
  auto limits = read_counts(group.limit);
  auto const remaining = read_counts(group.remaining);
  auto const window = window_named(group.name);
  if (window && limits.size() == 1 && !limits.front().window) {
    limits.front().window = window->count();
  }
  bool const several = remaining.size() > 1;
  auto const resets =
      read_resets(group.reset, now, window || several ? window : find_window(limits));

  for (std::size_t i = 0; i < std::max<std::size_t>(remaining.size(), 1); ++i) {
    service_limit limit;
    limit.name = group.name;
    if (i < remaining.size()) {
      limit.remaining = remaining[i].count;
    }
    if (!limits.empty() && (!several || limits.size() == remaining.size())) {
      limit.limit = limits[i].count;
    }
    if (several && resets.size() == remaining.size()) {
      limit.reset = resets[i];
    } else if (!resets.empty()) {
      limit.reset = *std::max_element(resets.begin(), resets.end());
    }
    if (limit.remaining || limit.limit) {
      add_once(out.limits, std::move(limit));
    }
  }
  for (auto& limit : limits) {
    if (limit.window) {
      quota_policy policy;
      policy.name = group.name;
      policy.quota = limit.count;
      policy.window = limit.window;
      policy.comments = std::move(limit.comments);
      add_once(out.policies, std::move(policy));
    }
  }
}

}  // namespace

auto read_legacy_reset(std::string_view value, sys_seconds now, std::optional<seconds> window)
    -> std::optional<legacy_reset> {
  value = trimmed(value);
  if (auto const number = read_number(value)) {
    return decide_form(*number, now, window);
  }
  if (auto const date = http::parse_http_date(value, now)) {
    return with_form(reset_form::http_date, until(date->time_since_epoch().count(), now));
  }
  if (auto const date = http::parse_rfc3339(value)) {
    return with_form(reset_form::rfc3339, until(date->time_since_epoch().count(), now));
  }
  return with_form(reset_form::duration, read_duration(value));
}

auto read_legacy(std::span<http::field_view const> lines, sys_seconds now) -> legacy_fields {
  legacy_fields fields;
  for (auto const& group : group_lines(lines)) {
    read_group(group, now, fields);
  }
  return fields;
}

}  // namespace tidegate::TIDEGATE_ABI::ratelimit
