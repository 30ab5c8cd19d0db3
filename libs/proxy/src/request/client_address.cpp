// SPDX-License-Identifier: Apache-2.0
#include "request/client_address.hpp"

#include <tidegate/wire/http1_write.hpp>

namespace tidegate::gateway {

client_address::client_address(http::ip_address const& address,
                               std::string_view scheme_of_connection)
    : peer(address), scheme(scheme_of_connection) {
  auto const text = http::to_string(address);
  peer_text_size = static_cast<std::uint8_t>(text.size());
  std::string lines;
  wire::append_field(lines, "X-Forwarded-For", text);
  wire::append_field(lines, "X-Forwarded-Proto", scheme);
  wire::append_parts(lines, "Via: 1.1", via_here, "\r\n");
  forwarding_lines.assign(lines);  // which takes no more room than they need
}

void client_address::becomes_http2() {
  constexpr std::string_view via = "Via: 1.1";
  forwarding_lines.replace(forwarding_lines.find(via), via.size(), "Via: 2");
}

}  // namespace tidegate::gateway
