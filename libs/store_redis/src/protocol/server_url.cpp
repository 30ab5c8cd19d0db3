// SPDX-License-Identifier: Apache-2.0
#include <tidegate/store_redis/server_url.hpp>

#include <tidegate/base/hex.hpp>
#include <tidegate/base/number.hpp>

#include <algorithm>
#include <array>

namespace tidegate::store_redis {

namespace {

constexpr std::uint16_t redis_port = 6379;
constexpr std::uint16_t sentinel_port = 26379;
/// RFC 1035, section 2.3.4.
constexpr std::size_t host_octets_max = 253;
constexpr std::size_t word_octets_max = 512;

struct scheme {
  std::string_view name;
  topology kind;
  bool tls;
};
constexpr std::array schemes{
    scheme{"redis", topology::single, false},
    scheme{"rediss", topology::single, true},
    scheme{"redis+cluster", topology::cluster, false},
    scheme{"rediss+cluster", topology::cluster, true},
    scheme{"redis+sentinel", topology::sentinel, false},
    scheme{"rediss+sentinel", topology::sentinel, true},
};

auto wrong(std::string_view text) -> std::unexpected<std::string> {
  return failure(std::string(text));
}

/// What stands before `mark`, which goes with it; all of it when there is none.
auto take_until(std::string_view& rest, char mark) -> std::string_view {
  auto const taken = rest.substr(0, rest.find(mark));
  rest.remove_prefix(std::min(taken.size() + 1, rest.size()));
  return taken;
}

/// Octets as they are or as %XX (RFC 3986, section 2.1).
auto decode(std::string_view text) -> result<std::string, std::string> {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    auto const high = i + 2 < text.size() ? hex_value(text[i + 1]) : -1;
    auto const low = i + 2 < text.size() ? hex_value(text[i + 2]) : -1;
    if (high < 0 || low < 0) {
      return wrong("a % is followed by two hexadecimal digits; write %25 for the sign itself");
    }
    out += static_cast<char>(high * 16 + low);
    i += 2;
  }
  if (out.size() > word_octets_max) {
    return wrong("a user, password or name has at most 512 bytes");
  }
  return out;
}

auto parse_login(std::string_view text) -> result<credentials, std::string> {
  auto const colon = text.find(':');
  if (colon == std::string_view::npos) {
    return wrong("what stands before @ is user:password, or :password for the default user");
  }
  credentials out;
  TIDEGATE_TRY(out.user, decode(text.substr(0, colon)));
  TIDEGATE_TRY(out.password, decode(text.substr(colon + 1)));
  if (out.password.empty()) {
    return wrong("the password before @ is empty");
  }
  return out;
}

auto is_host(std::string_view host) -> bool {
  return !host.empty() && host.size() <= host_octets_max && std::ranges::all_of(host, [](char c) {
    return is_letter_or_digit(c) || c == '.' || c == '-' || c == '_';
  });
}

auto is_address_6(std::string_view host) -> bool {
  return host.size() >= 2 && host.size() <= 45 && std::ranges::all_of(host, [](char c) {
           return hex_value(c) >= 0 || c == ':' || c == '.';
         });
}

auto parse_server(std::string_view text, std::uint16_t port)
    -> result<server_address, std::string> {
  server_address out{{}, port};
  bool good = false;
  if (text.starts_with('[')) {
    auto const end = text.find(']');
    out.host = text.substr(1, std::min(end, text.size()) - 1);
    good = end != std::string_view::npos && is_address_6(out.host);
    text.remove_prefix(good ? end + 1 : 0);
  } else {
    out.host = text.substr(0, text.find(':'));
    good = is_host(out.host);
    text.remove_prefix(out.host.size());
  }
  if (!good) {
    return wrong("a server is a name, an IPv4 address or an IPv6 address in brackets");
  }
  if (!text.empty()) {
    auto const number = parse_number<std::uint16_t>(text.substr(1));
    if (text.front() != ':' || !number || *number == 0) {
      return wrong("a port is a number from 1 to 65535");
    }
    out.port = *number;
  }
  return out;
}

auto parse_parameter(std::string_view text, server_url& url) -> result<void, std::string> {
  auto const name = take_until(text, '=');
  TIDEGATE_TRY(auto const value, decode(text));
  if (name == "ca") {
    if (!url.tls) {
      return wrong("ca is for TLS: write rediss instead of redis");
    }
    url.ca = value;
  } else if (name == "sentinel-user" || name == "sentinel-password") {
    if (url.kind != topology::sentinel) {
      return wrong("sentinel-user and sentinel-password are for sentinels");
    }
    (name == "sentinel-user" ? url.sentinel_login.user : url.sentinel_login.password) = value;
  } else {
    return wrong("behind ? there may be ca, sentinel-user and sentinel-password");
  }
  return {};
}

/// What stands behind the servers: nothing, a database, or a master and a database.
auto parse_path(std::string_view path, server_url& url) -> result<void, std::string> {
  if (url.kind == topology::sentinel) {
    TIDEGATE_TRY(url.master_name, decode(take_until(path, '/')));
    if (url.master_name.empty()) {
      return wrong(
          "behind the sentinels stands the name of the master: redis+sentinel://host/name");
    }
  }
  if (path.empty()) {
    return {};
  }
  if (url.kind == topology::cluster) {
    return wrong("a cluster has database 0 only");
  }
  auto const number = parse_number<std::uint32_t>(path);
  if (!number || *number > 0x7fffffff) {
    return wrong("behind the server stands the number of a database, or nothing");
  }
  url.database = *number;
  return {};
}

}  // namespace

auto to_string(server_address const& address) -> std::string {
  bool const is_6 = address.host.find(':') != std::string::npos;
  return (is_6 ? "[" + address.host + "]" : address.host) + ":" + std::to_string(address.port);
}

auto parse_server_url(std::string_view text) -> result<server_url, std::string> {
  auto const separator = text.find("://");
  auto const* const found = std::ranges::find(schemes, text.substr(0, separator), &scheme::name);
  if (separator == std::string_view::npos || found == schemes.end()) {
    return wrong(
        "a URL of Redis begins with redis://, rediss://, redis+cluster:// or redis+sentinel://");
  }
  server_url url{.kind = found->kind, .tls = found->tls};
  auto rest = text.substr(separator + 3);
  auto const query_at = rest.find('?');
  auto query = query_at == std::string_view::npos ? std::string_view() : rest.substr(query_at + 1);
  rest = rest.substr(0, query_at);
  auto const slash = rest.find('/');
  auto const path = slash == std::string_view::npos ? std::string_view() : rest.substr(slash + 1);
  auto servers = rest.substr(0, slash);
  if (auto const at = servers.rfind('@'); at != std::string_view::npos) {
    TIDEGATE_TRY(url.login, parse_login(servers.substr(0, at)));
    servers.remove_prefix(at + 1);
  }
  auto const port = url.kind == topology::sentinel ? sentinel_port : redis_port;
  do {
    TIDEGATE_TRY(auto server, parse_server(take_until(servers, ','), port));
    url.servers.push_back(std::move(server));
  } while (!servers.empty() && url.servers.size() <= url_servers_max);
  if (url.servers.size() > url_servers_max) {
    return wrong("too many servers: at most 64");
  }
  if (url.kind == topology::single && url.servers.size() > 1) {
    return wrong("one server, unless it is redis+cluster:// or redis+sentinel://");
  }
  TIDEGATE_TRY_VOID(parse_path(path, url));
  while (!query.empty()) {
    TIDEGATE_TRY_VOID(parse_parameter(take_until(query, '&'), url));
  }
  if (!url.sentinel_login.user.empty() && url.sentinel_login.password.empty()) {
    return wrong("sentinel-user needs sentinel-password");
  }
  return url;
}

auto to_string(server_url const& url) -> std::string {
  auto const* const found = std::ranges::find_if(
      schemes, [&](scheme const& each) { return each.kind == url.kind && each.tls == url.tls; });
  std::string out = std::string(found->name) + "://";
  for (auto const& server : url.servers) {
    out += (&server == url.servers.data() ? "" : ",") + to_string(server);
  }
  if (url.kind == topology::sentinel) {
    out += "/" + url.master_name;
  }
  if (url.database != 0) {
    out += "/" + std::to_string(url.database);
  }
  return out;
}

}  // namespace tidegate::store_redis
