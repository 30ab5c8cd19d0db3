// SPDX-License-Identifier: Apache-2.0
#include "options/options.hpp"

#include <tidegate/base/ascii.hpp>
#include <tidegate/config/values.hpp>

#include <algorithm>
#include <array>
#include <cassert>
#include <chrono>
#include <unordered_map>
#include <utility>

namespace tidegate::gateway {

namespace {

using enum option_type;
using form = option_form;

auto range(option const& option, std::string (*text)(std::int64_t), std::string_view before = ";")
    -> std::string {
  bool const bounded = option.max != std::numeric_limits<std::int64_t>::max();
  return bounded ? std::string(before) + " from " + text(option.min) + " to " + text(option.max)
                 : std::string();
}

auto milliseconds_text(std::int64_t value) -> std::string {
  return format_duration(std::chrono::milliseconds(value));
}

/// Examples that the bounds of the option allow.
auto durations_within(option const& option) -> std::string {
  std::vector<std::string_view> examples = {"500ms", "10s", "24h"};
  std::erase_if(examples, [&](std::string_view each) {
    auto const value = *parse_duration(each) / std::chrono::milliseconds(1);
    return value < option.min || value > option.max;
  });
  std::string out;
  for (auto const& each : examples) {
    out += out.empty() ? "" : ", ";
    out += each;
  }
  return out;
}

auto number_text(std::int64_t value) -> std::string {
  return std::to_string(value);
}

auto percent_text(std::int64_t value) -> std::string {
  return std::to_string(value) + "%";
}

auto allowed_besides_words(option const& option) -> std::string {
  switch (option.type) {
    case section: return option.form == form::list ? "mappings" : "a mapping";
    case integer: return "a number" + range(option, number_text, "");
    case duration:
      return "a duration, e.g. " + durations_within(option) + range(option, milliseconds_text);
    case size: return "a size, e.g. 512, 64KiB, 10MiB" + range(option, format_size);
    case percent: return "a percentage, e.g. 20%" + range(option, percent_text);
    case quota:
      return "a number" + range(option, number_text, "") + "; for content-bytes a size, e.g. 10MiB";
    default: return std::string(option.allowed);
  }
}

/// `e.g. a, b; more` with marks around each of a and b.
auto with_marked_examples(std::string text, std::string_view mark) -> std::string {
  constexpr std::string_view before = "e.g. ";
  auto const begin = text.find(before);
  if (mark.empty() || begin == std::string::npos) {
    return text;
  }
  auto out = text.substr(0, begin + before.size());
  auto rest = std::string_view(text).substr(begin + before.size());
  auto const end = std::min(rest.find(';'), rest.size());
  for (auto examples = rest.substr(0, end); !examples.empty();) {
    auto const size = std::min(examples.find(", "), examples.size());
    out.append(mark).append(examples.substr(0, size)).append(mark);
    examples.remove_prefix(size);
    out.append(examples.substr(0, 2));
    examples.remove_prefix(std::min<std::size_t>(2, examples.size()));
  }
  return out.append(rest.substr(end));
}

/// Words for what is not there that people bring from other gateways, with the mapping that they
/// stand in.
constexpr std::pair<std::string_view, std::string_view> known_elsewhere[] = {
    // NOLINT(modernize-avoid-c-arrays): its length is counted by the compiler
    {"routes", "jwt"},
    {"routes", "websocket"},
    {"routes", "plan"},
    {"routes", "plugins"},
    {"routes", "retry"},
    {"routes", "health"},
    {"upstreams", "health-check"},
    {"", "plugins"},
};

/// Keys that people write one level too high, or know by another name, with what this file has.
struct moved_key {
  std::string_view parent;
  std::string_view key;
  std::string_view instead;
};

constexpr auto moved_keys = std::to_array<moved_key>({
    {"", "cors", "cors of a route"},
    {"", "plans", "quota: {by: plan, ...} of a policy"},
    {"routes", "api-keys", "auth: {api-keys: ...}"},
    {"", "ipv6-prefix", "client-ip: {ipv6-prefix: ...}"},
    {"routes", "headers", "headers of match, request or response"},
    {"routes", "strip-prefix", "rewrite: {strip-prefix: ...}"},
    {"routes", "add-prefix", "rewrite: {add-prefix: ...}"},
    {"routes", "hsts", "response: {hsts: ...}"},
    {"routes", "path", "match: {path: ...}"},
    {"routes", "host", "match: {host: ...}"},
    {"routes", "methods", "match: {methods: ...}"},
});

}  // namespace

auto find_instead(std::string_view parent, std::string_view key) -> std::string_view {
  auto const found = std::ranges::find_if(moved_keys, [&](moved_key const& known) {
    return known.parent == parent && known.key == key;
  });
  return found == moved_keys.end() ? std::string_view() : found->instead;
}

auto is_known_elsewhere(std::string_view parent, std::string_view key) -> bool {
  return std::ranges::find(known_elsewhere, std::pair(parent, key)) != std::end(known_elsewhere);
}

auto option::key() const -> std::string_view {
  return path.substr(path.rfind('.') + 1);
}

namespace {

/// The table by paths, since all that reads a file asks for them again and again.
struct option_index {
  std::unordered_map<std::string_view, option const*> by_path;
  std::unordered_map<std::string_view, std::vector<option const*>> by_parent;

  option_index() {
    for (auto const& row : options()) {
      auto const dot = row.path.rfind('.');
      auto const parent =
          dot == std::string_view::npos ? std::string_view() : row.path.substr(0, dot);
      by_path.emplace(row.path, &row);
      by_parent[parent].push_back(&row);
    }
  }
};

auto index() -> option_index const& {
  static option_index const made;
  return made;
}

}  // namespace

auto option_at(std::string_view path) -> option const& {
  auto const found = index().by_path.find(path);
  assert(found != index().by_path.end());
  return *found->second;
}

auto options_under(std::string_view path) -> std::span<option const* const> {
  auto const found = index().by_parent.find(path);
  return found == index().by_parent.end() ? std::span<option const* const>() : found->second;
}

auto options_formerly_under(std::string_view path) -> std::vector<option const*> {
  std::vector<option const*> found;
  for (auto const& row : options()) {
    if (!row.former_parent.empty() && row.former_parent == path) {
      found.push_back(&row);
    }
  }
  return found;
}

auto split_words(std::string_view words) -> std::vector<std::string_view> {
  std::vector<std::string_view> found;
  while (!words.empty()) {
    found.push_back(take_until(words, '|'));
  }
  return found;
}

auto beginning_of(std::string_view form) -> std::string_view {
  auto const end = std::find_if(form.begin(), form.end(), is_upper);
  return {form.begin(), end};
}

auto allowed_values(option const& option, std::string_view mark) -> std::string {
  std::vector<std::string> values;
  for (auto const words : {option.words, option.forms}) {
    for (auto const word : split_words(words)) {
      values.push_back(std::string(mark) + std::string(word) + std::string(mark));
    }
  }
  if (auto other = allowed_besides_words(option); !other.empty()) {
    values.push_back(with_marked_examples(std::move(other), mark));
  }
  std::string text;
  for (std::size_t i = 0; i < values.size(); ++i) {
    text += i == 0 ? "" : i + 1 == values.size() ? " or " : ", ";
    text += values[i];
  }
  return text;
}

}  // namespace tidegate::gateway
