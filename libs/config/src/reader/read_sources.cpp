// SPDX-License-Identifier: Apache-2.0
#include "reader/parts.hpp"

#include <algorithm>
#include <utility>

namespace tidegate::gateway {

auto read_sources(option_reader& in, section const& from, std::string const& key)
    -> std::vector<ratelimit::partition_source> {
  auto const& rule = from.rule(key);
  if (from.find(key) == nullptr) {
    return {*read_source(rule, {rule.initial})};
  }
  std::vector<ratelimit::partition_source> sources;
  for (auto const* const item : in.items_at(from, key)) {
    auto source = in.take_node(rule, *item, read_source);
    if (source && std::find(sources.begin(), sources.end(), *source) != sources.end()) {
      in.fault(item->place, key + ": duplicate " + shown(item->text));
    } else if (sources.size() == sources_max) {
      in.fault(item->place,
               key + ": too many sources" + expected("at most " + std::to_string(sources_max)));
      break;
    } else if (source) {
      sources.push_back(*std::move(source));
    }
  }
  return sources;
}

void check_principal(option_reader& in, yaml_place place, std::string_view key,
                     std::span<ratelimit::partition_source const> sources,
                     route_config const& route) {
  bool const asks = std::ranges::any_of(sources, [](auto const& source) {
    return source.kind == ratelimit::partition_source_kind::principal;
  });
  if (asks && !route.auth) {
    in.fault(place, std::string(key) + ": \"principal\" needs \"auth\" on the route");
  }
}

}  // namespace tidegate::gateway
