// SPDX-License-Identifier: Apache-2.0
#include <tidegate/http/forwarded.hpp>

#include <tidegate/http/field.hpp>
#include <tidegate/http/target.hpp>

#include <algorithm>
#include <optional>
#include <ranges>

namespace tidegate::TIDEGATE_ABI::http {

namespace {

constexpr auto npos = std::string_view::npos;

/// node-port of RFC 7239, section 6.2: up to five digits, or a name that begins with "_".
[[nodiscard]] auto is_node_port(std::string_view text) noexcept -> bool {
  if (text.starts_with('_')) {
    return text.size() > 1 && std::ranges::all_of(text.substr(1), [](char c) {
             return is_letter_or_digit(c) || c == '.' || c == '_' || c == '-';
           });
  }
  return !text.empty() && text.size() <= 5 && std::ranges::all_of(text, is_digit);
}

[[nodiscard]] auto address_or_nothing(std::string_view text) noexcept -> std::optional<ip_address> {
  auto const address = parse_ip_address(text);
  return address ? std::optional(*address) : std::nullopt;
}

/// Reads an address with or without a port; an IPv6 address may be in brackets, with a port it must
/// be.
[[nodiscard]] auto parse_node(std::string_view text) noexcept -> std::optional<ip_address> {
  if (text.starts_with('[')) {
    auto const end = text.find(']');
    if (end == npos) {
      return std::nullopt;
    }
    auto const address = text.substr(1, end - 1);
    auto const port = text.substr(end + 1);
    bool const is_v6 = address.find(':') != npos;
    bool const port_is_good =
        port.empty() || (port.starts_with(':') && is_node_port(port.substr(1)));
    return is_v6 && port_is_good ? address_or_nothing(address) : std::nullopt;
  }
  auto const colon = text.find(':');
  if (colon != npos && text.find(':', colon + 1) == npos) {
    bool const port_is_good = is_node_port(text.substr(colon + 1));
    return port_is_good ? address_or_nothing(text.substr(0, colon)) : std::nullopt;
  }
  return address_or_nothing(text);
}

/// Takes a token from the beginning of `rest`; it may be empty.
[[nodiscard]] auto take_token(std::string_view& rest) noexcept -> std::string_view {
  auto const end = std::ranges::find_if_not(rest, is_token_character) - rest.begin();
  auto const token = rest.substr(0, static_cast<std::size_t>(end));
  rest.remove_prefix(token.size());
  return token;
}

/// Takes a quoted-string (RFC 9110, section 5.6.4) from the beginning of `rest`; returns what is
/// between the quotes as it is: what has a backslash is not an address.
[[nodiscard]] auto take_quoted_string(std::string_view& rest) noexcept
    -> std::optional<std::string_view> {
  for (std::size_t i = 1; i < rest.size(); ++i) {
    if (rest[i] == '"') {
      auto const text = rest.substr(1, i - 1);
      rest.remove_prefix(i + 1);
      return text;
    }
    if (rest[i] == '\\') {
      ++i;
    }
  }
  return std::nullopt;
}

/// A forwarded-element (RFC 7239, section 4); nothing when it has no parameter `for`, or two, or is
/// malformed anywhere. Spaces around ";" are let pass.
[[nodiscard]] auto parse_forwarded_element(std::string_view rest) noexcept
    -> std::optional<forwarded_client> {
  std::optional<std::string_view> node;
  forwarded_client client;
  while (!rest.empty()) {
    rest = trimmed(rest);
    if (!rest.starts_with(';')) {
      auto const name = take_token(rest);
      if (name.empty() || !rest.starts_with('=')) {
        return std::nullopt;
      }
      rest.remove_prefix(1);
      auto const value = rest.starts_with('"') ? take_quoted_string(rest) : take_token(rest);
      if (!value || value->empty()) {
        return std::nullopt;
      }
      if (equal_ignoring_case(name, "for")) {
        if (node) {
          return std::nullopt;
        }
        node = value;
      } else if (equal_ignoring_case(name, "proto")) {
        client.proto = *value;
      } else if (equal_ignoring_case(name, "host")) {
        client.host = *value;
      }
      rest = trimmed(rest);
    }
    if (!rest.empty()) {
      if (rest.front() != ';') {
        return std::nullopt;
      }
      rest.remove_prefix(1);
    }
  }
  auto const address = node ? parse_node(*node) : std::nullopt;
  if (!address) {
    return std::nullopt;
  }
  client.address = *address;
  return client;
}

[[nodiscard]] auto last_comma(std::string_view list) noexcept -> std::size_t {
  return list.rfind(',');
}

/// Where the quoted-string that ends at `end` begins, or `npos`.
[[nodiscard]] auto opening_quote(std::string_view text, std::size_t end) noexcept -> std::size_t {
  for (auto i = end; i-- > 0;) {
    if (text[i] != '"') {
      continue;
    }
    auto const before = text.substr(0, i);
    // Behind an odd number of backslashes the quote is part of the text.
    auto const backslashes = i - 1 - before.find_last_not_of('\\');
    if (backslashes % 2 == 0) {
      return i;
    }
    i -= backslashes;
  }
  return npos;
}

/// The last comma that is not in a quoted-string. It is looked for from the end, so that a quote
/// which a stranger opened and never closed cannot swallow what trusted proxies have added behind
/// it.
[[nodiscard]] auto last_comma_outside_quotes(std::string_view list) noexcept -> std::size_t {
  for (auto i = list.size(); i-- > 0;) {
    if (list[i] == ',') {
      return i;
    }
    if (list[i] == '"') {
      i = opening_quote(list, i);
      if (i == npos) {
        return npos;
      }
    }
  }
  return npos;
}

/// The walk from the last entry of the last line to the first trustworthy address that is not
/// trusted.
template <class LastComma, class ParseEntry>
[[nodiscard]] auto walk(ip_address const& peer, std::span<std::string_view const> lines,
                        cidr_set const& trusted, LastComma last_comma_of,
                        ParseEntry parse_entry) noexcept -> ip_address {
  auto client = peer;
  std::size_t entries = 0;
  for (auto rest : lines | std::views::reverse) {
    for (bool more = true; more; ++entries) {
      if (entries == forwarded_entries_max || !trusted.contains(client)) {
        return client;
      }
      auto const comma = last_comma_of(rest);
      more = comma != npos;
      auto const entry = trimmed(more ? rest.substr(comma + 1) : rest);
      rest = rest.substr(0, more ? comma : 0);
      if (entry.empty()) {
        continue;
      }
      auto const address = parse_entry(entry);
      if (!address) {
        return client;
      }
      client = *address;
    }
  }
  return client;
}

void append_separator(std::string& out) {
  if (!out.empty()) {
    out.append(", ");
  }
}

void append_token_or_quoted(std::string& out, std::string_view text) {
  bool const is_token = std::ranges::all_of(text, is_token_character);
  if (!is_token) {
    out.push_back('"');
  }
  out.append(text);
  if (!is_token) {
    out.push_back('"');
  }
}

}  // namespace

auto client_by_x_forwarded_for(ip_address const& peer, std::span<std::string_view const> lines,
                               cidr_set const& trusted) noexcept -> ip_address {
  return walk(peer, lines, trusted, last_comma, parse_node);
}

auto read_forwarded(ip_address const& peer, std::span<std::string_view const> lines,
                    cidr_set const& trusted) noexcept -> forwarded_client {
  forwarded_client client;
  client.address = walk(peer, lines, trusted, last_comma_outside_quotes,
                        [&client](std::string_view entry) -> std::optional<ip_address> {
                          auto const element = parse_forwarded_element(entry);
                          if (!element) {
                            return std::nullopt;
                          }
                          client = *element;
                          return element->address;
                        });
  return client;
}

auto client_by_forwarded(ip_address const& peer, std::span<std::string_view const> lines,
                         cidr_set const& trusted) noexcept -> ip_address {
  return read_forwarded(peer, lines, trusted).address;
}

void append_x_forwarded_for(std::string& out, ip_address const& peer) {
  append_separator(out);
  append_ip_address(out, peer);
}

auto x_forwarded_proto(std::string_view received, bool peer_is_trusted,
                       std::string_view scheme) noexcept -> std::string_view {
  bool const is_good =
      equal_ignoring_case(received, "http") || equal_ignoring_case(received, "https");
  return peer_is_trusted && is_good ? received : scheme;
}

auto x_forwarded_host(std::string_view received, bool peer_is_trusted,
                      std::string_view host) noexcept -> std::string_view {
  return peer_is_trusted && parse_host(received) ? received : host;
}

void append_forwarded(std::string& out, forwarded_element const& element) {
  append_separator(out);
  out.append("for=");
  if (element.peer.is_v4()) {
    append_ip_address(out, element.peer);
  } else {
    // The brackets and colons of an IPv6 address are not of a token (RFC 7239, section 6).
    out.append("\"[");
    append_ip_address(out, element.peer);
    out.append("]\"");
  }
  // A host has no quotes and backslashes, so between quotes it needs no escapes.
  if (parse_host(element.host)) {
    out.append(";host=");
    append_token_or_quoted(out, element.host);
  }
  if (!element.scheme.empty()) {
    out.append(";proto=").append(element.scheme);
  }
}

}  // namespace tidegate::TIDEGATE_ABI::http
