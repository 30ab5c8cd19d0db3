// SPDX-License-Identifier: Apache-2.0
#include <tidegate/proxy/unresolved_names.hpp>

#include "services/look_up.hpp"

namespace tidegate::gateway {

auto unresolved_names(config const& settings) -> std::vector<unresolved_name> {
  std::vector<unresolved_name> found;
  for (auto const& upstream : settings.upstreams) {
    for (auto const& server : upstream.servers) {
      if (!server.socket.empty() || http::parse_ip_address(server.host)) {
        continue;
      }
      if (auto const known = look_up(server.host, upstream.resolve.server); !known) {
        found.push_back({upstream.name, server.host, known.error()});
      }
    }
  }
  return found;
}

}  // namespace tidegate::gateway
