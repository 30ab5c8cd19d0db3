// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/http/ip_address.hpp>

namespace tidegate::gateway {

/// What we add to Via, behind the version in which the message came.
inline constexpr std::string_view via_here = " tidegate";

/// Who asks. Made once for each connection.
struct client_address {
  client_address(http::ip_address const& address, std::string_view scheme_of_connection);

  /// The other end of the connection, or what the PROXY protocol says of it.
  http::ip_address peer;
  std::uint8_t peer_text_size = 0;
  /// False where a trusted proxy did not say whom it connects for: what comes then is not
  /// believed.
  bool may_name_others = true;
  bool redirects_to_https = false;  ///< the listener answers everything so
  std::string_view scheme;
  /// What an upstream is told about it, when nothing else came before us: X-Forwarded-For,
  /// X-Forwarded-Proto and Via.
  std::string forwarding_lines;

  /// For a connection that goes on in HTTP/2, which Via tells.
  void becomes_http2();

  /// A part of those lines: a connection that is idle keeps no more than it needs.
  [[nodiscard]] auto peer_text() const -> std::string_view {
    return std::string_view(forwarding_lines)
        .substr(std::string_view("X-Forwarded-For: ").size(), peer_text_size);
  }
};

}  // namespace tidegate::gateway
