// SPDX-License-Identifier: Apache-2.0
#include "phases/tunnel/upgrade.hpp"

namespace tidegate::gateway {

namespace {

/// How many protocols the Upgrade fields name, and whether WebSocket is one of them.
struct named_protocols {
  std::size_t count = 0;
  bool has_websocket = false;
};

[[nodiscard]] auto protocols_of(wire::message_head const& head) noexcept -> named_protocols {
  named_protocols found;
  for (auto const& field : head.fields()) {
    if (field.known != wire::known_field::upgrade) {
      continue;
    }
    for (auto rest = field.value; !rest.empty();) {
      auto const protocol = http::take_element(rest);
      found.count += protocol.empty() ? 0U : 1U;
      found.has_websocket = found.has_websocket || equal_ignoring_case(protocol, "websocket");
    }
  }
  return found;
}

}  // namespace

auto asks_for_websocket(wire::request_head const& request) noexcept -> bool {
  return request.upgrade_asked() && request.method() == wire::method::get &&
         request.body().kind == wire::body_kind::none && protocols_of(request).has_websocket;
}

auto is_websocket(wire::response_head const& response) noexcept -> bool {
  auto const protocols = protocols_of(response);
  return response.upgrade_asked() && protocols.count == 1 && protocols.has_websocket;
}

}  // namespace tidegate::gateway
