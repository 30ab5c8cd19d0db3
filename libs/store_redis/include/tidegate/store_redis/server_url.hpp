// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/result.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tidegate::store_redis {

/// A name or an address, without brackets, and a port.
struct server_address {
  std::string host;
  std::uint16_t port = 0;
  auto operator==(server_address const&) const -> bool = default;
};
/// `host:port`, with an IPv6 address in brackets.
[[nodiscard]] auto to_string(server_address const& address) -> std::string;

/// How the servers of a URL are to be used.
enum class topology : std::uint8_t {
  single,    ///< one server
  cluster,   ///< any of them knows where each key lives (Redis Cluster)
  sentinel,  ///< any of them knows which server is the master
};

/// How a client logs in to a server; without a password it does not.
struct credentials {
  std::string user;  ///< empty: the default user
  std::string password;
  auto operator==(credentials const&) const -> bool = default;
};

/// Where Redis is.
struct server_url {
  topology kind = topology::single;
  bool tls = false;
  // NOLINTBEGIN(readability-redundant-member-init): so that they may be left out
  std::vector<server_address> servers{};  ///< one or more; of `sentinel`: the sentinels
  credentials login{};
  credentials sentinel_login{};
  std::uint32_t database = 0;
  std::string master_name{};  ///< of `sentinel`
  /// With TLS: a file of trusted certificates; the system's when it is missing.
  std::optional<std::string> ca{};
  // NOLINTEND(readability-redundant-member-init)
  auto operator==(server_url const&) const -> bool = default;
};

/// How many servers a URL may name.
inline constexpr std::size_t url_servers_max = 64;

/// Reads one of
///
///     redis://[[user]:password@]host[:port][/database]
///     redis+cluster://[[user]:password@]host[:port],host[:port]...
///     redis+sentinel://[[user]:password@]host[:port],host[:port].../master[/database]
///
/// with `rediss` instead of `redis` for TLS. Users, passwords and the name of the master may have
/// octets as %XX. Behind `?` and separated by `&` there may be `ca=FILE` (TLS) and, for sentinels
/// that have others than their master, `sentinel-user=` and `sentinel-password=`.
///
/// The error is one line for people and never shows what the URL says: it may be a password.
[[nodiscard]] auto parse_server_url(std::string_view text) -> result<server_url, std::string>;

/// The URL for people: without users and passwords.
[[nodiscard]] auto to_string(server_url const& url) -> std::string;

}  // namespace tidegate::store_redis
