// SPDX-License-Identifier: Apache-2.0
#include "options/options.hpp"

#include <tidegate/config/values.hpp>
#include "options/tables.hpp"

#include <algorithm>
#include <cassert>
#include <chrono>
#include <utility>
#include <vector>

namespace tidegate::gateway {

namespace {

using enum option_type;
using form = option_form;

auto range(option const& option, std::string (*text)(std::int64_t)) -> std::string {
  bool const bounded = option.max != std::numeric_limits<std::int64_t>::max();
  return bounded ? ", " + text(option.min) + " to " + text(option.max) : std::string();
}

auto milliseconds_text(std::int64_t value) -> std::string {
  return format_duration(std::chrono::milliseconds(value));
}

/// Examples that the bounds of the option allow.
auto durations_within(option const& option) -> std::string {
  std::vector<std::string_view> examples = {"500ms", "10s", "5m", "24h", "7d"};
  std::erase_if(examples, [&](std::string_view each) {
    auto const value = *parse_duration(each) / std::chrono::milliseconds(1);
    return value < option.min || value > option.max;
  });
  std::string out;
  for (auto const& each : examples) {
    out += each == examples.front() ? "" : each == examples.back() ? " or " : ", ";
    out += each;
  }
  return out;
}

auto number_text(std::int64_t value) -> std::string {
  return std::to_string(value);
}

auto allowed_besides_words(option const& option) -> std::string {
  switch (option.type) {
    case section: return option.form == form::list ? "mappings" : "a mapping";
    case boolean: return "true or false";
    case integer: return "a number" + range(option, number_text);
    case duration:
      return "a duration such as " + durations_within(option) + range(option, milliseconds_text);
    case size: return "a size such as 512, 64KiB or 10MiB" + range(option, format_size);
    case quota:
      return "a number" + range(option, number_text) + "; a size such as 10MiB for content-bytes";
    case option_type::rate: return "a rate such as 10/s or 100/m";
    case choice: return "";
    case file: return "the path of a file or folder, relative to the folder of the configuration";
    case address:
      return "HOST:PORT with an IPv4 address, an IPv6 address in brackets, localhost or nothing as "
             "HOST; unix:/PATH";
    case url: return "http://HOST[:PORT] or https://HOST[:PORT]";
    case network: return "a network such as 10.0.0.0/8 or 2001:db8::/32, or an address";
    case path: return "a path such as /v1/orders, /v1/*/items or /v1/**";
    case method: return "a method in upper case, such as GET";
    case host: return "a host such as api.example.com, without a port";
    case source:
      return "client-ip, header:NAME, query:NAME, cookie:NAME, method, host, path, route or "
             "principal";
    case name: return "printable ASCII without spaces at its ends";
    case pointer: return "a JSON pointer such as /order/id";
    case reference: return "a URL or an absolute path, without a fragment";
    case option_type::store: return "";
    case digest: return "64 hexadecimal digits in lower case";
    case policy_name: return "the name of a policy";
    case upstream_name: return "the name of an upstream";
  }
  return "";
}

/// Words for what is not there that people bring from other gateways, with the mapping that they
/// stand in.
constexpr std::pair<std::string_view, std::string_view> known_elsewhere[] = {
    // NOLINT(modernize-avoid-c-arrays): its length is counted by the compiler
    {"routes", "headers"},
    {"routes", "jwt"},
    {"routes", "api-keys"},
    {"routes", "websocket"},
    {"routes", "plan"},
    {"routes", "plugins"},
    {"routes", "strip-prefix"},
    {"routes", "retry"},
    {"routes", "health"},
    {"upstreams", "weight"},
    {"upstreams", "health-check"},
    {"", "plans"},
    {"", "cors"},
    {"", "plugins"},
};

}  // namespace

auto is_known_elsewhere(std::string_view parent, std::string_view key) -> bool {
  return std::ranges::find(known_elsewhere, std::pair(parent, key)) != std::end(known_elsewhere);
}

auto option::key() const -> std::string_view {
  return path.substr(path.rfind('.') + 1);
}

auto options() -> std::span<option const> {
  static auto const all = [] {
    std::vector<option> rows;
    for (auto const part : {process_options(), upstream_options(), policy_options(),
                            route_options(), http_options()}) {
      rows.insert(rows.end(), part.begin(), part.end());
    }
    return rows;
  }();
  return all;
}

auto option_at(std::string_view path) -> option const& {
  auto const rows = options();
  auto const found = std::ranges::find(rows, path, &option::path);
  assert(found != rows.end());
  return *found;
}

auto options_under(std::string_view path) -> std::vector<option const*> {
  std::vector<option const*> found;
  for (auto const& row : options()) {
    auto const dot = row.path.rfind('.');
    auto const parent =
        dot == std::string_view::npos ? std::string_view() : row.path.substr(0, dot);
    if (parent == path) {
      found.push_back(&row);
    }
  }
  return found;
}

auto split_words(std::string_view words) -> std::vector<std::string_view> {
  std::vector<std::string_view> found;
  while (!words.empty()) {
    auto const end = std::min(words.find('|'), words.size());
    found.push_back(words.substr(0, end));
    words.remove_prefix(std::min(end + 1, words.size()));
  }
  return found;
}

auto beginning_of(std::string_view form) -> std::string_view {
  auto const end =
      std::find_if(form.begin(), form.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
  return {form.begin(), end};
}

auto allowed_values(option const& option) -> std::string {
  std::vector<std::string> values;
  for (auto const words : {option.words, option.forms}) {
    for (auto const word : split_words(words)) {
      values.emplace_back(word);
    }
  }
  if (auto other = allowed_besides_words(option); !other.empty()) {
    values.push_back(std::move(other));
  }
  std::string text;
  for (std::size_t i = 0; i < values.size(); ++i) {
    text += i == 0 ? "" : i + 1 == values.size() ? " or " : ", ";
    text += values[i];
  }
  return text;
}

}  // namespace tidegate::gateway
