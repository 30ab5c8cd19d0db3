// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/result.hpp>
#include <tidegate/http/ip_address.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

/// The PROXY protocol, versions 1 and 2: what a load balancer without HTTP says before the first
/// byte of a connection.
namespace tidegate::TIDEGATE_ABI::http {

/// The longest header of version 2 that is taken, with its TLVs; that of version 1 is 107 by its
/// specification.
inline constexpr std::size_t proxy_header_size_max = 4096;

/// Why bytes are not a PROXY header. The connection is to be closed without an answer.
enum class proxy_fault : std::uint8_t {
  no_signature,          ///< neither `PROXY ` nor the twelve bytes of version 2
  unexpected_character,  ///< version 1: something else must stand here
  unknown_protocol,      ///< version 1: neither TCP4 nor TCP6 nor UNKNOWN
  invalid_address,       ///< version 1: not one of the family that was named
  invalid_port,          ///< version 1: not a number from 0 to 65535 without zeros before it
  too_long,              ///< longer than the limit of its version
  unknown_version,       ///< version 2: another version
  unknown_command,       ///< version 2: neither LOCAL nor PROXY
  unknown_family,        ///< version 2: a family or transport that is not assigned
  too_short,             ///< version 2: no room for the addresses of its family
  invalid_tlv,           ///< version 2: a TLV goes beyond the header
};

/// What is wrong and at which byte; for an address, a port, a protocol or a TLV, where that begins.
struct proxy_error {
  proxy_fault fault{};
  std::size_t offset{};
  auto operator==(proxy_error const&) const -> bool = default;
};

/// One sentence for people, without the offset.
[[nodiscard]] auto message(proxy_fault fault) noexcept -> std::string_view;

/// A connection as the proxy saw it.
struct proxied_connection {
  endpoint source{};
  endpoint destination{};
  auto operator==(proxied_connection const&) const -> bool = default;
};

/// A whole PROXY header.
struct proxy_header {
  std::size_t size = 0;  ///< how many bytes it has; what follows them is of the connection
  /// Nothing for LOCAL (the proxy speaks for itself), UNKNOWN and whatever is not TCP over IP: then
  /// the addresses of the socket are the right ones.
  std::optional<proxied_connection> connection{};
  auto operator==(proxy_header const&) const -> bool = default;
};

/// Reads the header at the beginning of `received`, all bytes of the connection so far.
///
/// Nothing means: incomplete, call again with more. A wrong signature, version, command, family or
/// length is said as soon as it is there, the rest when the header is whole; there are never more
/// bytes than the limit to wait for. Strict: one space between two words, no TLV that is cut off.
/// Which TLVs there are is not looked at. Only a peer that is known to send the header may be asked
/// for it, since anybody can write one. Never allocates.
[[nodiscard]] auto parse_proxy_header(std::string_view received) noexcept
    -> result<std::optional<proxy_header>, proxy_error>;

}  // namespace tidegate::TIDEGATE_ABI::http
