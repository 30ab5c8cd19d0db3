// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/http/ip_address.hpp>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

/// Who a request came from when proxies stand before us: X-Forwarded-For and Forwarded (RFC 7239),
/// believed only as far as proxies that we trust have written them.
namespace tidegate::TIDEGATE_ABI::http {

/// How many entries are looked at, from the last one on.
inline constexpr std::size_t forwarded_entries_max = 32;

/// The client of a request that `peer` sent, by its X-Forwarded-For lines in the order of the
/// message.
///
/// Each proxy adds at the end whom it was asked by, so the walk goes from the last entry to the
/// first. It starts at `peer` and goes on as long as the address is `trusted`; the first that is
/// not is the client: whatever stands before it was written by the client or by strangers. Where
/// all are trusted it is the first one. The walk stops at the last good address when an entry is
/// not an address, or after `forwarded_entries_max` entries. Empty entries count but mean nothing.
/// An entry may have a port, and an IPv6 address may be in brackets. Never allocates.
[[nodiscard]] auto client_by_x_forwarded_for(ip_address const& peer,
                                             std::span<std::string_view const> lines,
                                             cidr_set const& trusted) noexcept -> ip_address;

/// The same by Forwarded lines (RFC 7239): the parameter `for` of each element. An element without
/// it, or whose node is `unknown` or hidden (`_name`), stops the walk as one that is malformed.
[[nodiscard]] auto client_by_forwarded(ip_address const& peer,
                                       std::span<std::string_view const> lines,
                                       cidr_set const& trusted) noexcept -> ip_address;

/// What Forwarded lines say of the client.
struct forwarded_client {
  ip_address address{};
  /// How the client asked the outermost proxy that is trusted; empty where that is not said. Views
  /// into the lines, as they came.
  std::string_view proto{};
  std::string_view host{};
};

/// The client by Forwarded lines, and how it asked.
[[nodiscard]] auto read_forwarded(ip_address const& peer, std::span<std::string_view const> lines,
                                  cidr_set const& trusted) noexcept -> forwarded_client;

/// Appends `peer` to a value of X-Forwarded-For, after ", " when `out` is not empty. `out` holds
/// what the peer sent, or nothing when it is not trusted.
void append_x_forwarded_for(std::string& out, ip_address const& peer);

/// The value of X-Forwarded-Proto to send on: what a trusted peer sent, when that is `http` or
/// `https`, else `scheme`, by which the request came to us.
[[nodiscard]] auto x_forwarded_proto(std::string_view received, bool peer_is_trusted,
                                     std::string_view scheme) noexcept -> std::string_view;

/// The value of X-Forwarded-Host to send on: what a trusted peer sent, when that is a host, else
/// `host`, the Host field that came to us.
[[nodiscard]] auto x_forwarded_host(std::string_view received, bool peer_is_trusted,
                                    std::string_view host) noexcept -> std::string_view;

/// What one hop tells in Forwarded.
struct forwarded_element {
  ip_address peer{};          ///< `for`: who asked us
  std::string_view host{};    ///< the Host field that came to us; left out when empty or no host
  std::string_view scheme{};  ///< `proto`; left out when empty
};

/// Appends `for=192.0.2.60;host=example.com;proto=https` to a value of Forwarded (RFC 7239, section
/// 4), after ", " when `out` is not empty. Quotes what is not a token. `scheme` must be a token.
void append_forwarded(std::string& out, forwarded_element const& element);

}  // namespace tidegate::TIDEGATE_ABI::http
