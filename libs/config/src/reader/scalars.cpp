// SPDX-License-Identifier: Apache-2.0
#include "reader/scalars.hpp"

#include <tidegate/base/hex.hpp>
#include <tidegate/config/values.hpp>
#include <tidegate/http/field.hpp>
#include "reader/wording.hpp"

#include <tidegate/http/target.hpp>

#include <algorithm>
#include <cstddef>
#include <utility>

namespace tidegate::gateway {

namespace {

auto invalid(std::string_view type, scalar const& given, std::string_view reason = "")
    -> std::unexpected<std::string> {
  return failure("invalid " + std::string(type) + " " + shown(given.text) +
                 (reason.empty() ? "" : ": ") + std::string(reason));
}

/// Without passwords, which stand anywhere in what people write for a server: what is in doubt is
/// left out.
auto harmless(std::string_view text) -> std::string {
  bool const is_odd = !text.contains("://") && text.find_first_of("=@ /") != std::string_view::npos;
  return is_odd ? std::string(text.substr(0, text.find_first_of(":=@ /")))
                : without_passwords(text);
}

auto in_range(option const& rule, std::int64_t number, scalar const& given)
    -> scalar_result<std::int64_t> {
  if (number < rule.min || number > rule.max) {
    return failure(shown(given.text) + " is out of range");
  }
  return number;
}

}  // namespace

auto read_boolean(option const&, scalar const& given) -> scalar_result<bool> {
  if (given.in_quotes || (given.text != "true" && given.text != "false")) {
    return invalid("boolean", given, given.in_quotes ? "it is in quotes" : "");
  }
  return given.text == "true";
}

auto read_integer(option const& rule, scalar const& given) -> scalar_result<std::int64_t> {
  auto const number = parse_count(given.text);
  if (!number || given.in_quotes) {
    return invalid("number", given, given.in_quotes ? "it is in quotes" : "");
  }
  return in_range(rule, *number, given);
}

auto read_duration(option const& rule, scalar const& given)
    -> scalar_result<std::chrono::nanoseconds> {
  auto const duration = parse_duration(given.text);
  if (!duration) {
    return invalid("duration", given);
  }
  auto const milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(*duration);
  TIDEGATE_TRY_VOID(in_range(rule, milliseconds.count(), given));
  return *duration;
}

auto read_size(option const& rule, scalar const& given) -> scalar_result<std::int64_t> {
  auto const size = parse_size(given.text);
  return size ? in_range(rule, *size, given) : invalid("size", given);
}

auto read_quota(option const& rule, scalar const& given) -> scalar_result<std::int64_t> {
  auto const units = parse_size(given.text);
  return units ? in_range(rule, *units, given) : invalid("quota", given);
}

auto read_rate(option const&, scalar const& given) -> scalar_result<ratelimit::rate> {
  auto const rate = parse_rate(given.text);
  return rate ? scalar_result<ratelimit::rate>(*rate) : invalid("rate", given);
}

auto read_choice(option const& rule, scalar const& given) -> scalar_result<std::string_view> {
  auto const words = split_words(rule.words);
  auto const found = std::find(words.begin(), words.end(), given.text);
  if (found == words.end()) {
    return failure("unknown value " + shown(given.text) + did_you_mean(given.text, words));
  }
  return *found;
}

auto read_file(option const&, scalar const& given) -> scalar_result<std::string> {
  return given.text.empty() ? invalid("path", given)
                            : scalar_result<std::string>(std::string(given.text));
}

auto read_address(option const&, scalar const& given) -> scalar_result<std::string> {
  auto address = parse_listen_address(given.text);
  return address ? scalar_result<std::string>(*std::move(address))
                 : invalid("address", given, address.error());
}

auto read_url(option const&, scalar const& given) -> scalar_result<upstream_server> {
  auto server = parse_server_url(given.text);
  return server ? scalar_result<upstream_server>(*std::move(server))
                : invalid("URL", {harmless(given.text)}, server.error());
}

auto read_balance(option const&, scalar const& given) -> scalar_result<balance_choice> {
  constexpr std::string_view by_hash = "hash:";
  if (given.text == "least" || given.text == "round-robin") {
    return balance_choice{given.text == "least" ? balance::method::least
                                                : balance::method::round_robin};
  }
  if (given.text.starts_with(by_hash)) {
    if (auto source = ratelimit::parse_partition_source(given.text.substr(by_hash.size()))) {
      return balance_choice{balance::method::hash, *std::move(source)};
    }
  }
  return invalid("balance", given);
}

auto read_statuses(option const&, scalar const& given)
    -> scalar_result<std::vector<balance::status_range>> {
  std::vector<balance::status_range> ranges;
  auto const status = [](std::string_view text) -> std::optional<std::uint16_t> {
    auto const number = text.size() == 3 ? parse_count(text) : std::nullopt;
    return number && *number >= 100 && *number <= 599
               ? std::optional(static_cast<std::uint16_t>(*number))
               : std::nullopt;
  };
  auto rest = given.text;
  do {
    auto const part = trimmed(take_until(rest, ','));
    auto const dash = part.find('-');
    auto const first = status(part.substr(0, dash));
    auto const last = dash == std::string_view::npos ? first : status(part.substr(dash + 1));
    if (!first || !last || *first > *last) {
      return invalid("statuses", given);
    }
    ranges.push_back({*first, *last});
  } while (!rest.empty());
  return ranges;
}

auto read_percent(option const& rule, scalar const& given) -> scalar_result<std::int64_t> {
  auto const number = given.text.ends_with('%')
                          ? parse_count(given.text.substr(0, given.text.size() - 1))
                          : std::nullopt;
  return number ? in_range(rule, *number, given) : invalid("percentage", given);
}

auto read_request_path(option const&, scalar const& given) -> scalar_result<std::string> {
  bool const is_clean = std::all_of(given.text.begin(), given.text.end(),
                                    [](char c) { return c > ' ' && c < '\x7f' && c != '#'; });
  return is_clean && given.text.starts_with('/')
             ? scalar_result<std::string>(std::string(given.text))
             : invalid("path", given);
}

auto read_dns_server(option const&, scalar const& given) -> scalar_result<std::string> {
  auto const colon = given.text.find(':');
  auto const address = http::parse_ip_address(given.text.substr(0, colon));
  auto const port = colon == std::string_view::npos ? std::optional<std::int64_t>(53)
                                                    : parse_count(given.text.substr(colon + 1));
  if (!address || !address->is_v4() || !port || *port < 1 || *port > 65535) {
    return invalid("server", given);
  }
  return std::string(given.text.substr(0, colon)) + ":" + std::to_string(*port);
}

auto read_network(option const&, scalar const& given) -> scalar_result<http::cidr> {
  auto const network = http::parse_cidr(given.text);
  if (!network) {
    return invalid("network", given, http::message(network.error().fault));
  }
  auto const address = http::parse_ip_address(given.text.substr(0, given.text.find('/')));
  if (address && *address != network->address) {
    return failure(shown(given.text) + " has bits after its prefix; did you mean " +
                   shown(to_string(*network)) + "?");
  }
  return *network;
}

auto read_path(option const&, scalar const& given) -> scalar_result<std::string> {
  if (auto const checked = check_path_pattern(given.text); !checked) {
    return invalid("path pattern", given, message(checked.error().fault));
  }
  return std::string(given.text);
}

auto read_method(option const&, scalar const& given) -> scalar_result<std::string> {
  // Methods are case-sensitive (RFC 9110, section 9.1): `get` would match no request.
  bool const lower = std::any_of(given.text.begin(), given.text.end(),
                                 [](char c) { return c >= 'a' && c <= 'z'; });
  return lower || !http::is_token(given.text) ? invalid("method", given)
                                              : scalar_result<std::string>(std::string(given.text));
}

auto read_host(option const&, scalar const& given) -> scalar_result<std::string> {
  auto const host = http::parse_host(given.text);
  if (!host || host->name.empty()) {
    return invalid("host", given);
  }
  std::string normal;
  http::append_normal_host(normal, *host);
  if (host->port || given.text.ends_with(':')) {
    return failure(shown(given.text) + " has a port");
  }
  return normal;
}

auto read_source(option const&, scalar const& given) -> scalar_result<ratelimit::partition_source> {
  auto source = ratelimit::parse_partition_source(given.text);
  return source ? scalar_result<ratelimit::partition_source>(*std::move(source))
                : invalid("source", given);
}

auto read_pointer(option const&, scalar const& given) -> scalar_result<json::pointer> {
  auto pointer = json::pointer::parse(given.text);
  return pointer ? scalar_result<json::pointer>(*std::move(pointer))
                 : invalid("JSON pointer", given, to_string(pointer.error()));
}

/// A path or a URL that can stand between "<" and ">".
auto read_reference(option const&, scalar const& given) -> scalar_result<std::string> {
  bool const is_clean = std::all_of(given.text.begin(), given.text.end(), [](char c) {
    return c > ' ' && c < '\x7f' && !std::string_view("<>\"\\^`{|}#").contains(c);
  });
  bool const is_absolute = given.text.starts_with('/') || given.text.starts_with("https://") ||
                           given.text.starts_with("http://");
  return is_clean && is_absolute ? scalar_result<std::string>(std::string(given.text))
                                 : invalid("URL or absolute path", given);
}

auto read_store(option const& rule, scalar const& given) -> scalar_result<store_location> {
  for (auto const form : split_words(rule.forms)) {
    auto const begin = beginning_of(form);
    if (!given.text.starts_with(begin) || given.text.size() == begin.size()) {
      continue;
    }
    if (begin == "sqlite:") {
      return store_location{store_kind::sqlite, std::string(given.text.substr(begin.size()))};
    }
    return store_location{begin.starts_with("redis") ? store_kind::redis : store_kind::postgres,
                          std::string(given.text)};
  }
  return invalid("store", {harmless(given.text)});
}

/// What is wrong is not shown: it may be the token itself.
auto read_digest(option const&, scalar const& given) -> scalar_result<sha256_digest> {
  sha256_digest digest{};
  auto const invalid_digest = failure(std::string("invalid SHA-256 digest"));
  if (given.text.size() != 2 * digest.size()) {
    return invalid_digest;
  }
  for (std::size_t i = 0; i < digest.size(); ++i) {
    unsigned octet = 0;
    for (auto const c : given.text.substr(2 * i, 2)) {
      if (hex_value(c) < 0 || is_upper(c)) {
        return invalid_digest;
      }
      octet = octet * 16 + static_cast<unsigned>(hex_value(c));
    }
    digest[i] = static_cast<std::byte>(octet);
  }
  return digest;
}

auto read_name(option const&, scalar const& given) -> scalar_result<std::string> {
  return is_printable_name(given.text) ? scalar_result<std::string>(std::string(given.text))
                                       : invalid("name", given);
}

auto is_word(option const& rule, std::string_view text) -> bool {
  auto const words = split_words(rule.words);
  return std::find(words.begin(), words.end(), text) != words.end();
}

}  // namespace tidegate::gateway
