// SPDX-License-Identifier: Apache-2.0
#include <tidegate/proxy/route_edge.hpp>

namespace tidegate::gateway {

auto make_route_edge(route_config const& settings, config const& all)
    -> std::shared_ptr<route_edge const> {
  if (!settings.cors) {
    return nullptr;
  }
  auto out = std::make_shared<route_edge>();
  out->cors.emplace(settings, all);
  return out;
}

}  // namespace tidegate::gateway
