// SPDX-License-Identifier: Apache-2.0
#include "reader/cover_index.hpp"

#include <tidegate/http/target.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

namespace tidegate::gateway {

namespace {

constexpr char exact = '=';   // the path of a route ends in the node
constexpr char below = '/';   // `**` is next
constexpr char header = 'h';  // what the key of a value is of
constexpr char parameter = 'q';

auto key_of(std::uint32_t number, std::string_view text) -> std::string {
  auto const octets = std::bit_cast<std::array<char, sizeof number>>(number);
  std::string key(octets.data(), octets.size());
  return key.append(text);
}

auto key_of(value_match const& wanted, char kind, bool is_any) -> std::string {
  auto key = kind + wanted.name;
  key += '\0';
  return is_any ? key + '*' : key + '=' + *wanted.value;
}

/// By which one a route is found; empty for none.
auto first_value(request_match const& match) -> std::string {
  for (auto const& [values, kind] :
       {std::pair(&match.headers, header), std::pair(&match.query, parameter)}) {
    if (!values->empty()) {
      return key_of(values->front(), kind, !values->front().value);
    }
  }
  return "";
}

/// All that a route which covers `match` may be found by.
auto values_of(request_match const& match) -> std::vector<std::string> {
  std::vector<std::string> keys = {""};
  for (auto const& [values, kind] :
       {std::pair(&match.headers, header), std::pair(&match.query, parameter)}) {
    for (auto const& each : *values) {
      keys.push_back(key_of(each, kind, true));
      if (each.value) {
        keys.push_back(key_of(each, kind, false));
      }
    }
  }
  return keys;
}

auto normal_host(std::string_view host) -> std::string {
  auto const parsed = http::parse_host(host);
  std::string normal;
  if (parsed) {
    http::append_normal_host(normal, *parsed);
  }
  return parsed ? normal : std::string(host);
}

/// All hosts that a route which covers one for `host` may have.
auto hosts_of(std::string_view host) -> std::vector<std::string> {
  std::vector<std::string> hosts = {""};
  if (host.empty()) {
    return hosts;
  }
  auto normal = normal_host(host);
  for (auto dot = normal.find('.', 1); dot != std::string::npos; dot = normal.find('.', dot + 1)) {
    hosts.push_back("*" + normal.substr(dot));
  }
  hosts.push_back(std::move(normal));
  return hosts;
}

/// The first segment of `rest`, which becomes what follows; nothing behind the last.
auto take_segment(std::optional<std::string_view>& rest) -> std::string_view {
  auto const slash = rest->find('/');
  auto const segment = rest->substr(0, slash);
  rest = slash == std::string_view::npos ? std::nullopt : std::optional(rest->substr(slash + 1));
  return segment;
}

auto place_key(std::uint32_t at, char kind, std::string const& host, std::string const& value)
    -> std::string {
  auto key = key_of(at, std::string_view(&kind, 1));
  key += host;
  key += '\0';
  return key += value;
}

}  // namespace

struct cover_index::search {
  request_match const& match;
  std::vector<std::string> hosts;
  std::vector<std::string> values;
  std::size_t best;
};

void cover_index::add(std::size_t position) {
  auto const& match = routes_[position].match;
  node at = 0;
  char kind = exact;
  for (std::optional<std::string_view> rest = std::string_view(match.path).substr(1); rest;) {
    auto const segment = take_segment(rest);
    if (segment == "**") {
      kind = below;
      break;
    }
    auto const [child, fresh] = children_.try_emplace(key_of(at, segment), nodes_);
    nodes_ += fresh ? 1 : 0;
    at = child->second;
  }
  positions_[place_key(at, kind, normal_host(match.host), first_value(match))].push_back(position);
}

void cover_index::update() {
  for (; count_ < routes_.size(); ++count_) {
    add(count_);
  }
}

void cover_index::take(search& wanted, node at, char kind) const {
  for (auto const& host : wanted.hosts) {
    for (auto const& value : wanted.values) {
      auto const found = positions_.find(place_key(at, kind, host, value));
      if (found == positions_.end()) {
        continue;
      }
      for (auto const position : found->second) {
        if (position >= wanted.best) {
          break;
        }
        if (covers(routes_[position].match, wanted.match)) {
          wanted.best = position;
        }
      }
    }
  }
}

auto cover_index::find(request_match const& match) const -> std::optional<std::size_t> {
  search wanted{match, hosts_of(match.host), values_of(match), count_};
  struct step {
    node at;
    std::optional<std::string_view> rest;
  };
  std::vector<step> steps = {{0, std::string_view(match.path).substr(1)}};
  while (!steps.empty()) {
    auto [at, rest] = steps.back();
    steps.pop_back();
    take(wanted, at, below);
    if (!rest) {
      take(wanted, at, exact);
      continue;
    }
    auto const segment = take_segment(rest);
    for (auto const name : {segment, std::string_view("*")}) {
      auto const child = children_.find(key_of(at, name));
      if (child != children_.end() && segment != "**") {
        steps.push_back({child->second, rest});
      }
      if (segment.empty() || segment == "*") {
        break;  // `*` stands for a segment that is not empty
      }
    }
  }
  return wanted.best < count_ ? std::optional(wanted.best) : std::nullopt;
}

}  // namespace tidegate::gateway
