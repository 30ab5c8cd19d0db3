// SPDX-License-Identifier: Apache-2.0
#include <tidegate/config/values.hpp>

#include <tidegate/base/ascii.hpp>
#include <tidegate/http/ip_address.hpp>
#include <tidegate/http/path_readings.hpp>
#include <tidegate/http/target.hpp>

#include <algorithm>
#include <array>
#include <charconv>

namespace tidegate::gateway {

namespace {

using namespace std::chrono_literals;

struct unit {
  std::string_view name;
  std::int64_t size;
};

// From the largest to the smallest.
constexpr std::array duration_units = {
    unit{"d", std::chrono::nanoseconds(24h).count()},
    unit{"h", std::chrono::nanoseconds(1h).count()},
    unit{"m", std::chrono::nanoseconds(1min).count()},
    unit{"s", std::chrono::nanoseconds(1s).count()},
    unit{"ms", std::chrono::nanoseconds(1ms).count()},
};
constexpr std::array size_units = {
    unit{"TiB", std::int64_t{1} << 40},
    unit{"GiB", std::int64_t{1} << 30},
    unit{"MiB", std::int64_t{1} << 20},
    unit{"KiB", std::int64_t{1} << 10},
    unit{"", 1},
};

template <std::size_t N>
auto parse_with_unit(std::string_view text, std::array<unit, N> const& units)
    -> std::optional<std::int64_t> {
  auto const digits = std::min(text.find_first_not_of("0123456789"), text.size());
  auto const count = parse_count(text.substr(0, digits));
  auto const found = std::find_if(units.begin(), units.end(),
                                  [&](unit const& u) { return u.name == text.substr(digits); });
  std::int64_t product = 0;
  if (!count || found == units.end() || __builtin_mul_overflow(*count, found->size, &product)) {
    return std::nullopt;
  }
  return product;
}

template <std::size_t N>
auto format_with_unit(std::int64_t value, std::array<unit, N> const& units) -> std::string {
  auto const fits = [&](unit const& u) { return value != 0 && value % u.size == 0; };
  auto const found = std::find_if(units.begin(), units.end(), fits);
  // Nothing has no largest unit; seconds and octets read best.
  auto const& chosen = found != units.end() ? *found : units[3 + (units.back().size == 1)];
  return std::to_string(value / chosen.size) + std::string(chosen.name);
}

auto parse_port(std::string_view text) -> std::optional<std::uint16_t> {
  auto const port = parse_count(text);
  return port && *port <= 65535 ? std::optional(static_cast<std::uint16_t>(*port)) : std::nullopt;
}

}  // namespace

auto parse_count(std::string_view text) -> std::optional<std::int64_t> {
  std::int64_t value = 0;
  auto const* const end = text.data() + text.size();
  auto const [stop, error] = std::from_chars(text.data(), end, value);
  bool const plain =
      !text.empty() && is_digit(text.front()) && (text.size() == 1 || text.front() != '0');
  return plain && error == std::errc{} && stop == end ? std::optional(value) : std::nullopt;
}

auto parse_duration(std::string_view text) -> std::optional<std::chrono::nanoseconds> {
  auto const value = parse_with_unit(text, duration_units);
  return value ? std::optional(std::chrono::nanoseconds(*value)) : std::nullopt;
}

auto format_duration(std::chrono::nanoseconds duration) -> std::string {
  return format_with_unit(duration.count(), duration_units);
}

auto parse_size(std::string_view text) -> std::optional<std::int64_t> {
  return parse_with_unit(text, size_units);
}

auto format_size(std::int64_t octets) -> std::string {
  return format_with_unit(octets, size_units);
}

auto parse_rate(std::string_view text) -> std::optional<ratelimit::rate> {
  auto const slash = text.find('/');
  if (slash == std::string_view::npos || slash + 1 == text.size()) {
    return std::nullopt;
  }
  auto const units = parse_count(text.substr(0, slash));
  std::string over(text.substr(slash + 1));
  if (over.front() < '0' || over.front() > '9') {
    over.insert(over.begin(), '1');  // 10/s is ten in 1s
  }
  auto const duration = parse_duration(over);
  if (!units || !duration) {
    return std::nullopt;
  }
  auto const made = ratelimit::rate::make(*units, *duration);
  return made ? std::optional(*made) : std::nullopt;
}

auto parse_listen_address(std::string_view text) -> result<std::string, std::string> {
  constexpr std::size_t socket_path_max = 107;  // of sockaddr_un, with its NUL
  if (text.starts_with("unix:")) {
    auto const path = text.substr(5);
    if (!path.starts_with('/') || path.size() > socket_path_max) {
      return failure(std::string("the path must begin with / and have at most 107 bytes"));
    }
    return std::string(text);
  }
  auto const colon = text.rfind(':');
  if (colon == std::string_view::npos || !parse_port(text.substr(colon + 1))) {
    return failure(std::string("the port is missing or not from 0 to 65535"));
  }
  auto const host = text.substr(0, colon);
  if (host == "localhost") {
    return "127.0.0.1" + std::string(text.substr(colon));
  }
  if (host.empty()) {
    return std::string(text);
  }
  bool const brackets = host.size() > 2 && host.front() == '[' && host.back() == ']';
  auto const address = http::parse_ip_address(brackets ? host.substr(1, host.size() - 2) : host);
  // [::ffff:192.0.2.1] is an IPv4 address that was written as IPv6.
  bool const written_as_v6 = host.find(':') != std::string_view::npos;
  if (!address || written_as_v6 != brackets) {
    return failure(std::string("the host is not an IPv4 address or an IPv6 address in brackets"));
  }
  return std::string(text);
}

auto is_local_address(std::string_view address) -> bool {
  if (address.starts_with("unix:")) {
    return true;
  }
  auto host = address.substr(0, address.rfind(':'));
  if (host.starts_with('[')) {
    host = host.substr(1, host.size() - 2);
  }
  auto const ip = http::parse_ip_address(host);
  if (!ip) {
    return false;
  }
  constexpr std::array<std::uint8_t, 16> loopback_v6 = {0, 0, 0, 0, 0, 0, 0, 0,
                                                        0, 0, 0, 0, 0, 0, 0, 1};
  return ip->is_v4() ? ip->bytes()[0] == 127 : std::ranges::equal(ip->bytes(), loopback_v6);
}

auto without_passwords(std::string_view text) -> std::string {
  auto const scheme_end = text.find("://");
  if (scheme_end == std::string_view::npos) {
    return std::string(text);
  }
  auto const begin = scheme_end + 3;
  auto const at = text.rfind('@');
  std::string out(text.substr(0, begin));
  if (at != std::string_view::npos && at >= begin) {
    // What is in doubt is left out: a password may hold any character, escaped or not.
    auto const login = text.substr(begin, at - begin);
    out += login.substr(0, login.find_first_of(":/?#"));
    out += ":***";
    text.remove_prefix(at);
  } else {
    text.remove_prefix(begin);
  }
  auto const query = std::min(text.find('?'), text.size());
  out += text.substr(0, query);
  text.remove_prefix(query);
  while (!text.empty()) {
    auto const end = std::min(text.find('&', 1), text.size());
    auto const parameter = text.substr(0, end);
    auto const equals = std::min(parameter.find('='), parameter.size());
    auto const name = parameter.substr(0, equals);
    bool const is_secret = name.contains("pass") || name.contains('%');
    out += is_secret ? std::string(name) + "=***" : std::string(parameter);
    text.remove_prefix(end);
  }
  return out;
}

namespace {

/// The path of a server without the slash at its end: what is put before the path of a request.
auto parse_base_path(std::string_view text) -> result<std::string, std::string> {
  if (text.find_first_of("?#") != std::string_view::npos) {
    return failure(std::string("a query or a fragment is not allowed"));
  }
  std::string room;
  auto const normal = http::normal_path(text, room);
  if (!normal || *normal != text || http::may_be_read_otherwise(text)) {
    return failure(std::string("not all servers read its path the same"));
  }
  while (text.ends_with('/')) {
    text.remove_suffix(1);
  }
  return std::string(text);
}

}  // namespace

auto parse_server_url(std::string_view text) -> result<upstream_server, std::string> {
  upstream_server server;
  server.written = text;
  if (text.starts_with("unix:")) {
    constexpr std::size_t path_octets_max = 107;  // of a socket
    server.socket = text.substr(5);
    if (!server.socket.starts_with('/') || server.socket.size() > path_octets_max) {
      return failure(std::string("the path must begin with / and have at most 107 bytes"));
    }
    return server;
  }
  if (text.starts_with("https://")) {
    server.tls = true;
  } else if (!text.starts_with("http://")) {
    return failure(std::string("it does not begin with http://, https:// or unix:/"));
  }
  auto authority = text.substr(server.tls ? 8 : 7);
  if (auto const end = authority.find_first_of("/?#"); end != std::string_view::npos) {
    TIDEGATE_TRY(server.path, parse_base_path(authority.substr(end)));
    authority = authority.substr(0, end);
  }
  if (authority.find('@') != std::string_view::npos) {
    return failure(std::string("a user name or password is not allowed"));
  }
  auto const host = http::parse_host(authority);
  if (!host) {
    return failure("the host is invalid: " + std::string(http::message(host.error().fault)));
  }
  if (host->name.empty() || host->port == 0) {
    return failure(std::string("the host is missing, or the port is not from 1 to 65535"));
  }
  server.host = host->name;
  server.port = host->port.value_or(server.tls ? 443 : 80);
  return server;
}

auto to_string(upstream_server const& server) -> std::string {
  if (!server.socket.empty()) {
    return "unix:" + server.socket;
  }
  bool const brackets = server.host.find(':') != std::string::npos;
  return std::string(server.tls ? "https://" : "http://") + (brackets ? "[" : "") + server.host +
         (brackets ? "]:" : ":") + std::to_string(server.port) + server.path;
}

auto is_printable_name(std::string_view text) -> bool {
  return !text.empty() && text.front() != ' ' && text.back() != ' ' &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

}  // namespace tidegate::gateway
