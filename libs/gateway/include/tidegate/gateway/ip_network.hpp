// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tidegate::gateway {

/// The 16 bytes of an IPv6 address; an IPv4 address is `::ffff:a.b.c.d`.
using ip_address = std::array<std::uint8_t, 16>;

/// Reads `192.0.2.1` or `2001:db8::1`, without brackets or a zone.
[[nodiscard]] auto parse_ip_address(std::string_view text) -> std::optional<ip_address>;

/// As RFC 5952 writes it; an IPv4 address in its own form.
[[nodiscard]] auto to_string(ip_address const& address) -> std::string;

/// A block of addresses (RFC 4632): those that begin with the same bits.
struct ip_network {
  ip_address address{};
  std::uint8_t prefix_bits = 0;  ///< of 128: 96 more than is written for IPv4

  [[nodiscard]] auto contains(ip_address const& candidate) const noexcept -> bool;

  auto operator==(ip_network const&) const -> bool = default;
};

/// Reads `10.0.0.0/8`, `2001:db8::/32`, or an address, which is a network of one. Bits behind the prefix
/// must be 0.
[[nodiscard]] auto parse_ip_network(std::string_view text) -> std::optional<ip_network>;

}  // namespace tidegate::gateway
