// SPDX-License-Identifier: Apache-2.0
#include "peer.hpp"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <span>

namespace tidegate::gateway {

auto is_loopback(engine::descriptor const& socket) -> bool {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    return false;
  }
  if (address.ss_family == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, &address, sizeof v4);
    return ntohl(v4.sin_addr.s_addr) >> 24U == 127;
  }
  sockaddr_in6 v6{};
  std::memcpy(&v6, &address, sizeof v6);
  bool const is_v4_mapped = IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr) && v6.sin6_addr.s6_addr[12] == 127;
  return address.ss_family == AF_INET6 && (IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr) || is_v4_mapped);
}

auto peer_name(engine::descriptor const& socket) -> std::string {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  std::array<char, NI_MAXHOST> host{};
  std::array<char, NI_MAXSERV> port{};
  if (::getpeername(socket.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0 ||
      ::getnameinfo(reinterpret_cast<sockaddr*>(&address), size, host.data(), host.size(),
                    port.data(), port.size(), NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
    return "an unknown client";
  }
  return std::string(host.data()) + ":" + port.data();
}

auto peer_ip(engine::descriptor const& socket) -> http::ip_address {
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;
  if (::getpeername(socket.get(), reinterpret_cast<sockaddr*>(&storage), &size) != 0) {
    return {};
  }
  auto const address = engine::socket_address::from_bytes(&storage, size);
  auto const ip = address.ip_bytes();
  auto const* const octets = reinterpret_cast<std::uint8_t const*>(ip.data());
  switch (ip.size()) {
    case 4: return http::ip_address::from_v4(std::span<std::uint8_t const, 4>(octets, 4));
    case 16: return http::ip_address::from_v6(std::span<std::uint8_t const, 16>(octets, 16));
    default: return {};
  }
}

}  // namespace tidegate::gateway
