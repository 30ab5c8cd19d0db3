// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "request/request_context.hpp"

namespace tidegate::gateway {

/// How a head goes on to an upstream.
struct forwarding {
  wire::field_set drop{};
  std::string_view target{};                 ///< empty: the request's
  std::optional<wire::body_framing> body{};  ///< nothing: the request's
  bool upgrade = false;                      ///< asks for a WebSocket
  std::string_view websocket_key{};          ///< of ours, where the client has none
};

/// Room for what is written on the way.
struct forwarding_texts {
  std::string& lines;
  std::string& value;
  std::vector<std::string_view>& field_lines;
};

/// Appends the head of a request as it is sent to an upstream: with its normal path, without what
/// only we write, and with who asked. `protocol` is the client's, such as `HTTP/1.1`.
void append_forwarded_head(std::string& out, request_context const& context,
                           std::string_view protocol, forwarding const& wanted,
                           forwarding_texts texts);

/// Puts the path of a server before that of a request that was written by `append_forwarded_head`.
/// `octets` of another server's are there already, and become those of `path`.
void put_base_path(std::string& head, std::string_view path, std::size_t& octets);

}  // namespace tidegate::gateway
