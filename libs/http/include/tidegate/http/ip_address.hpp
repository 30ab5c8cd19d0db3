// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/result.hpp>

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// IP addresses as clients, proxies and operators write them. Nothing here knows of sockets.
namespace tidegate::TIDEGATE_ABI::http {

/// An IPv4 or IPv6 address. An IPv4-mapped IPv6 address (`::ffff:192.0.2.1`) is the IPv4 address: a
/// socket that listens for both shows IPv4 clients like that, and one client must not have two
/// names.
///
/// All IPv4 addresses come before all IPv6 addresses; else the order is that of the bytes.
class ip_address {
 public:
  /// 0.0.0.0
  constexpr ip_address() noexcept = default;

  /// From bytes in network order.
  [[nodiscard]] static auto from_v4(std::span<std::uint8_t const, 4> bytes) noexcept -> ip_address;
  [[nodiscard]] static auto from_v6(std::span<std::uint8_t const, 16> bytes) noexcept -> ip_address;

  /// Whether it is an address of IPv4.
  [[nodiscard]] constexpr auto is_v4() const noexcept -> bool { return size_ == 4; }
  /// 32 or 128.
  [[nodiscard]] constexpr auto bits() const noexcept -> unsigned { return size_ * 8U; }
  /// Its 4 or 16 bytes in network order; they live as long as the address.
  [[nodiscard]] auto bytes() const noexcept -> std::span<std::uint8_t const> {
    return {bytes_.data(), size_};
  }

  /// The first address of its network: all bits after the first `prefix_length` are 0. As it is
  /// when `prefix_length` is `bits()` or more.
  [[nodiscard]] auto first_of_network(unsigned prefix_length) const noexcept -> ip_address;
  /// The last address of its network: all bits after the first `prefix_length` are 1.
  [[nodiscard]] auto last_of_network(unsigned prefix_length) const noexcept -> ip_address;

  auto operator<=>(ip_address const&) const noexcept = default;

 private:
  std::uint8_t size_ = 4;  // first, so that it comes first in the order
  std::array<std::uint8_t, 16> bytes_{};
};

/// Why a text is not an address or network.
enum class ip_fault : std::uint8_t {
  unexpected_end,
  unexpected_character,
  octet_out_of_range,   ///< more than 255
  leading_zero,         ///< in a decimal number: some readers take it for octal
  group_too_long,       ///< more than four hexadecimal digits
  too_many_groups,      ///< more than eight, or eight and "::"
  second_gap,           ///< "::" twice
  prefix_out_of_range,  ///< more than 32 or 128 bits, or fewer than 96 of an IPv4-mapped address
};

/// What is wrong and at which byte; for a number, where it begins.
struct ip_error {
  ip_fault fault{};
  std::size_t offset{};
  auto operator==(ip_error const&) const -> bool = default;
};

/// One sentence for people, without the offset.
[[nodiscard]] auto message(ip_fault fault) noexcept -> std::string_view;

/// Reads an IPv4 address of four decimal numbers (RFC 3986, section 3.2.2) or an IPv6 address in
/// any form of RFC 4291, section 2.2. Nothing around it: no brackets, port, zone or prefix.
[[nodiscard]] auto parse_ip_address(std::string_view text) noexcept -> result<ip_address, ip_error>;

/// An address and perhaps a port, as proxies write them.
struct endpoint {
  ip_address address{};
  std::uint16_t port = 0;  ///< 0 when it is not known
  auto operator==(endpoint const&) const -> bool = default;
};

/// Appends the address in its canonical form: RFC 5952 for IPv6. Allocates nothing when `out` has
/// room for 39 more bytes.
void append_ip_address(std::string& out, ip_address const& address);
[[nodiscard]] auto to_string(ip_address const& address) -> std::string;

/// Appends the text that stands for a client in keys: an IPv4 address as it is, an IPv6 address cut
/// to its network, such as `2001:db8:1:2::/64`. A household or a rented server has a whole /64 at
/// its disposal and would get a new quota for each address in it. With 128 the address stays whole
/// and has no "/".
void append_client_key(std::string& out, ip_address const& address,
                       unsigned ipv6_prefix_length = 64);

/// A network: the addresses that share the first `prefix_length` bits.
struct cidr {
  ip_address address{};  ///< the first address of the network, when `parse_cidr` made it
  unsigned prefix_length = 0;

  /// An IPv4 network has no IPv6 address in it, and the other way round: 0.0.0.0/0 and ::/0 are two
  /// things.
  [[nodiscard]] auto contains(ip_address const& candidate) const noexcept -> bool;
  auto operator==(cidr const&) const -> bool = default;
};

/// Reads `ADDRESS/LENGTH`; an address alone is the network of that one address. Bits behind the
/// prefix are cleared. An IPv4-mapped network of 96 bits or more is the IPv4 network.
[[nodiscard]] auto parse_cidr(std::string_view text) noexcept -> result<cidr, ip_error>;

/// `10.0.0.0/8`
[[nodiscard]] auto to_string(cidr const& network) -> std::string;

/// Many networks, such as those of the proxies that are trusted. `contains` is a binary search.
class cidr_set {
 public:
  cidr_set() = default;
  explicit cidr_set(std::span<cidr const> networks);

  /// Whether one of the blocks has the address.
  [[nodiscard]] auto contains(ip_address const& address) const noexcept -> bool;
  [[nodiscard]] auto empty() const noexcept -> bool { return ranges_.empty(); }

 private:
  struct range {
    ip_address first;
    ip_address last;
  };
  std::vector<range> ranges_;  // in order, none overlaps another
};

}  // namespace tidegate::TIDEGATE_ABI::http
