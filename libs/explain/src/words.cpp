// SPDX-License-Identifier: Apache-2.0
#include "words.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

namespace tidegate::TIDEGATE_ABI::explain {

namespace {

struct named_time {
  std::int64_t seconds;
  std::string_view name;
};

/// `tenths` of something, without a fraction of zero.
[[nodiscard]] auto with_tenth(std::int64_t tenths) -> std::string {
  auto text = std::to_string(tenths / 10);
  if (tenths % 10 != 0) {
    text.append(".").append(std::to_string(tenths % 10));
  }
  return text;
}

}  // namespace

auto duration_words(std::int64_t seconds) -> std::string {
  constexpr std::array<named_time, 4> units = {{{86'400, "d"}, {3600, "h"}, {60, "min"}, {1, "s"}}};
  // Up to two minutes seconds are easier to compare.
  if (seconds < 120) {
    return std::to_string(seconds) + " s";
  }
  for (std::size_t i = 0; i + 1 < units.size(); ++i) {
    if (seconds < units[i].seconds) {
      continue;
    }
    auto text = std::to_string(seconds / units[i].seconds) + " " + std::string(units[i].name);
    if (auto const rest = seconds % units[i].seconds / units[i + 1].seconds; rest > 0) {
      text.append(" ").append(std::to_string(rest)).append(" ").append(units[i + 1].name);
    }
    return text;
  }
  return std::to_string(seconds) + " s";
}

auto window_name(std::int64_t seconds) -> std::string_view {
  constexpr std::array<named_time, 5> names = {
      {{1, "second"}, {60, "minute"}, {3600, "hour"}, {86'400, "day"}, {604'800, "week"}}};
  auto const* const found = std::ranges::find(names, seconds, &named_time::seconds);
  return found == names.end() ? std::string_view() : found->name;
}

auto octets_words(std::int64_t octets) -> std::string {
  constexpr std::array<std::string_view, 5> units = {"KiB", "MiB", "GiB", "TiB", "PiB"};
  if (octets < 1024) {
    return std::to_string(octets) + " B";
  }
  std::size_t unit = 0;
  std::int64_t size = 1024;
  while (unit + 1 < units.size() && octets / size >= 1024) {
    size *= 1024;
    ++unit;
  }
  // The rest is below 2^50, so that ten times it does not overflow.
  auto const tenths = octets / size * 10 + octets % size * 10 / size;
  return with_tenth(tenths) + " " + std::string(units[unit]);
}

auto pace_words(std::int64_t units, std::int64_t seconds, bool are_octets, std::string_view unit)
    -> std::string {
  std::string const one(unit);
  if (are_octets) {
    return octets_words(std::max<std::int64_t>(1, units / seconds)) + " a second";
  }
  if (units > seconds) {
    auto const whole = units / seconds;
    auto const tenth = units % seconds * 10 / seconds;
    return with_tenth(whole * 10 + tenth) + " " + one + "s a second";
  }
  if (units == seconds) {
    return "one " + one + " a second";
  }
  auto const tenths = (seconds * 10 + units - 1) / units;
  return "one " + one + " every " +
         (tenths < 1200 ? with_tenth(tenths) + " s" : duration_words((tenths + 9) / 10));
}

auto quoted(std::string_view text) -> std::string {
  constexpr std::size_t shown_max = 60;
  std::string out = "\"";
  if (text.size() > shown_max) {
    out.append(text.substr(0, shown_max - 3)).append("...");
  } else {
    out.append(text);
  }
  return out.append("\"");
}

}  // namespace tidegate::TIDEGATE_ABI::explain
