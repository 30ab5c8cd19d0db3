// SPDX-License-Identifier: Apache-2.0
#include <tidegate/gateway/ip_network.hpp>

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>

namespace tidegate::gateway {

namespace {

constexpr ip_address ipv4_mapped = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
constexpr std::size_t ipv4_offset = 12;
constexpr unsigned ipv4_prefix_bits = ipv4_offset * 8;

auto is_ipv4(ip_address const& address) -> bool {
  return std::equal(address.begin(), address.begin() + ipv4_offset, ipv4_mapped.begin());
}

}  // namespace

auto parse_ip_address(std::string_view text) -> std::optional<ip_address> {
  if (text.size() >= INET6_ADDRSTRLEN || text.find('\0') != std::string_view::npos) {
    return std::nullopt;
  }
  std::string const terminated(text);
  auto address = ipv4_mapped;
  if (inet_pton(AF_INET, terminated.c_str(), address.data() + ipv4_offset) == 1 ||
      inet_pton(AF_INET6, terminated.c_str(), address.data()) == 1) {
    return address;
  }
  return std::nullopt;
}

auto to_string(ip_address const& address) -> std::string {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (is_ipv4(address)) {
    inet_ntop(AF_INET, address.data() + ipv4_offset, text.data(), text.size());
  } else {
    inet_ntop(AF_INET6, address.data(), text.data(), text.size());
  }
  return text.data();
}

auto ip_network::contains(ip_address const& candidate) const noexcept -> bool {
  std::size_t const whole = prefix_bits / 8;
  if (!std::equal(address.begin(), address.begin() + whole, candidate.begin())) {
    return false;
  }
  unsigned const rest = prefix_bits % 8;
  return rest == 0 || ((address[whole] ^ candidate[whole]) >> (8 - rest)) == 0;
}

auto parse_ip_network(std::string_view text) -> std::optional<ip_network> {
  auto const slash = text.find('/');
  auto const address = parse_ip_address(text.substr(0, slash));
  if (!address) {
    return std::nullopt;
  }
  // `::ffff:10.0.0.0/104` is written as IPv6 and counts its bits like it.
  bool const ipv4 = text.substr(0, slash).find(':') == std::string_view::npos;
  unsigned bits = ipv4 ? 32 : 128;
  if (slash != std::string_view::npos) {
    auto const written = text.substr(slash + 1);
    unsigned asked = 0;
    auto const end = written.data() + written.size();
    auto const [stop, error] = std::from_chars(written.data(), end, asked);
    bool const leading_zero = written.size() > 1 && written.front() == '0';
    if (error != std::errc{} || stop != end || asked > bits || leading_zero) {
      return std::nullopt;
    }
    bits = asked;
  }
  ip_network const network{*address,
                           static_cast<std::uint8_t>(ipv4 ? bits + ipv4_prefix_bits : bits)};
  for (std::size_t bit = network.prefix_bits; bit < 128; ++bit) {
    if (((network.address[bit / 8] >> (7 - bit % 8)) & 1U) != 0) {
      return std::nullopt;
    }
  }
  return network;
}

}  // namespace tidegate::gateway
