// SPDX-License-Identifier: Apache-2.0
#include <tidegate/http/proxy_protocol.hpp>

#include <tidegate/base/ascii.hpp>

#include <algorithm>
#include <array>

namespace tidegate::TIDEGATE_ABI::http {

namespace {

using namespace std::string_view_literals;

constexpr auto npos = std::string_view::npos;

constexpr auto v1_signature = "PROXY "sv;
constexpr std::size_t v1_size_max = 107;  // with CR LF, by the specification

constexpr auto v2_signature = "\r\n\r\n\0\r\nQUIT\n"sv;
constexpr std::size_t v2_fixed_size = 16;  // signature, version and command, family, length

[[nodiscard]] auto fault_at(proxy_fault fault, std::size_t offset) noexcept {
  return failure(proxy_error{fault, offset});
}

/// The words of a header of version 1, taken from left to right.
class v1_words {
 public:
  v1_words(std::string_view line, std::size_t offset) noexcept : line_(line), offset_(offset) {}

  /// Where the next word begins.
  [[nodiscard]] auto offset() const noexcept -> std::size_t { return offset_; }
  /// Whether the last word that was taken had nothing behind it.
  [[nodiscard]] auto at_end() const noexcept -> bool { return offset_ > line_.size(); }
  /// The next word, without the space behind it; empty when there is none.
  [[nodiscard]] auto take() noexcept -> std::string_view {
    if (at_end()) {
      return {};
    }
    auto const end = std::min(line_.find(' ', offset_), line_.size());
    auto const word = line_.substr(offset_, end - offset_);
    offset_ = end + 1;
    return word;
  }

 private:
  std::string_view line_;
  std::size_t offset_;
};

/// A place in the line, also when the words have run out.
[[nodiscard]] auto place_of(v1_words const& words, std::string_view line) noexcept -> std::size_t {
  return std::min(words.offset(), line.size());
}

[[nodiscard]] auto parse_v1_port(std::string_view word) noexcept -> std::optional<std::uint16_t> {
  if (word.empty() || word.size() > 5 || (word.size() > 1 && word.front() == '0') ||
      !std::ranges::all_of(word, is_digit)) {
    return std::nullopt;
  }
  unsigned port = 0;
  for (char const c : word) {
    port = port * 10 + static_cast<unsigned>(c - '0');
  }
  return port <= 65535 ? std::optional(static_cast<std::uint16_t>(port)) : std::nullopt;
}

/// Reads the line of version 1, without CR LF.
[[nodiscard]] auto parse_v1_line(std::string_view line) noexcept
    -> result<std::optional<proxied_connection>, proxy_error> {
  v1_words words(line, v1_signature.size());
  auto const protocol = words.take();
  if (protocol == "UNKNOWN") {
    // Whatever follows must be ignored.
    return std::nullopt;
  }
  if (protocol != "TCP4" && protocol != "TCP6") {
    return fault_at(proxy_fault::unknown_protocol, v1_signature.size());
  }
  bool const is_v6 = protocol == "TCP6";
  proxied_connection connection;
  for (auto* end : {&connection.source, &connection.destination}) {
    auto const begin = place_of(words, line);
    auto const word = words.take();
    auto const address = parse_ip_address(word);
    if (!address || (word.find(':') != npos) != is_v6) {
      return fault_at(proxy_fault::invalid_address, begin);
    }
    end->address = *address;
  }
  for (auto* end : {&connection.source, &connection.destination}) {
    auto const begin = place_of(words, line);
    auto const port = parse_v1_port(words.take());
    if (!port) {
      return fault_at(proxy_fault::invalid_port, begin);
    }
    end->port = *port;
  }
  if (!words.at_end()) {
    return fault_at(proxy_fault::unexpected_character, words.offset() - 1);
  }
  return connection;
}

[[nodiscard]] auto parse_v1(std::string_view received) noexcept
    -> result<std::optional<proxy_header>, proxy_error> {
  auto const window = received.substr(0, v1_size_max);
  auto const end = window.find_first_of("\r\n"sv);
  if (end == npos || end + 1 == window.size()) {
    if (end != npos && window[end] == '\n') {
      return fault_at(proxy_fault::unexpected_character, end);
    }
    if (window.size() == v1_size_max) {
      return fault_at(proxy_fault::too_long, v1_size_max);
    }
    return std::nullopt;
  }
  if (window.substr(end, 2) != "\r\n"sv) {
    return fault_at(proxy_fault::unexpected_character, window[end] == '\r' ? end + 1 : end);
  }
  TIDEGATE_TRY(auto const connection, parse_v1_line(window.substr(0, end)));
  return proxy_header{end + 2, connection};
}

[[nodiscard]] auto octet_at(std::string_view text, std::size_t offset) noexcept -> std::uint8_t {
  return static_cast<std::uint8_t>(text[offset]);
}

[[nodiscard]] auto number_at(std::string_view text, std::size_t offset) noexcept -> std::uint16_t {
  return static_cast<std::uint16_t>(octet_at(text, offset) * 256 + octet_at(text, offset + 1));
}

[[nodiscard]] auto v4_at(std::string_view text, std::size_t offset) noexcept -> ip_address {
  std::array<std::uint8_t, 4> bytes{};
  std::ranges::copy(text.substr(offset, bytes.size()), bytes.begin());
  return ip_address::from_v4(bytes);
}

[[nodiscard]] auto v6_at(std::string_view text, std::size_t offset) noexcept -> ip_address {
  std::array<std::uint8_t, 16> bytes{};
  std::ranges::copy(text.substr(offset, bytes.size()), bytes.begin());
  return ip_address::from_v6(bytes);
}

/// The second halves of the bytes 12 and 13, by the names of the specification.
constexpr std::uint8_t command_local = 0;
constexpr std::uint8_t command_proxy = 1;
constexpr std::uint8_t family_inet = 1;
constexpr std::uint8_t transport_stream = 1;
constexpr std::uint8_t family_max = 3;
constexpr std::uint8_t transport_max = 2;

/// How many bytes the addresses of a family take: UNSPEC, INET, INET6, UNIX.
constexpr std::array<std::size_t, family_max + 1> addresses_size = {0, 12, 36, 216};

[[nodiscard]] auto check_tlvs(std::string_view header, std::size_t i) noexcept
    -> result<void, proxy_error> {
  constexpr std::size_t type_and_length = 3;
  while (i < header.size()) {
    auto const room = header.size() - i;
    if (room < type_and_length || room - type_and_length < number_at(header, i + 1)) {
      return fault_at(proxy_fault::invalid_tlv, i);
    }
    i += type_and_length + number_at(header, i + 1);
  }
  return {};
}

/// Version 2, with its signature there.
[[nodiscard]] auto parse_v2(std::string_view received) noexcept
    -> result<std::optional<proxy_header>, proxy_error> {
  constexpr auto at_version = v2_signature.size();
  constexpr auto at_family = at_version + 1;
  constexpr auto at_length = at_version + 2;
  if (received.size() <= at_version) {
    return std::nullopt;
  }
  auto const version = octet_at(received, at_version) >> 4U;
  auto const command = octet_at(received, at_version) & 15U;
  if (version != 2) {
    return fault_at(proxy_fault::unknown_version, at_version);
  }
  if (command != command_local && command != command_proxy) {
    return fault_at(proxy_fault::unknown_command, at_version);
  }
  if (received.size() <= at_family) {
    return std::nullopt;
  }
  // With LOCAL the family and what follows must be ignored.
  bool const is_local = command == command_local;
  std::size_t const family = octet_at(received, at_family) >> 4U;
  auto const transport = octet_at(received, at_family) & 15U;
  if (!is_local && (family > family_max || transport > transport_max)) {
    return fault_at(proxy_fault::unknown_family, at_family);
  }
  if (received.size() < v2_fixed_size) {
    return std::nullopt;
  }
  std::size_t const size = v2_fixed_size + number_at(received, at_length);
  if (size > proxy_header_size_max) {
    return fault_at(proxy_fault::too_long, at_length);
  }
  if (!is_local && size - v2_fixed_size < addresses_size[family]) {
    return fault_at(proxy_fault::too_short, at_length);
  }
  if (received.size() < size) {
    return std::nullopt;
  }
  proxy_header header{.size = size};
  if (is_local) {
    return header;
  }
  TIDEGATE_TRY_VOID(check_tlvs(received.substr(0, size), v2_fixed_size + addresses_size[family]));
  if (transport != transport_stream || addresses_size[family] == 0 || family == family_max) {
    return header;
  }
  // source address, destination address, source port, destination port
  bool const is_v4 = family == family_inet;
  std::size_t const address_size = is_v4 ? 4 : 16;
  auto const address_at = is_v4 ? v4_at : v6_at;
  auto const destination = v2_fixed_size + address_size;
  auto const ports = destination + address_size;
  header.connection = {
      .source = {address_at(received, v2_fixed_size), number_at(received, ports)},
      .destination = {address_at(received, destination), number_at(received, ports + 2)},
  };
  return header;
}

/// How many bytes `text` and `signature` have in common at their beginning.
[[nodiscard]] auto common_size(std::string_view text, std::string_view signature) noexcept
    -> std::size_t {
  auto const differing = std::ranges::mismatch(text, signature).in1;
  return static_cast<std::size_t>(differing - text.begin());
}

}  // namespace

auto message(proxy_fault fault) noexcept -> std::string_view {
  switch (fault) {
    case proxy_fault::no_signature: return "the connection does not begin with a PROXY header";
    case proxy_fault::unexpected_character: return "this character cannot stand here";
    case proxy_fault::unknown_protocol: return "the protocol must be TCP4, TCP6 or UNKNOWN";
    case proxy_fault::invalid_address: return "an address of the named protocol must stand here";
    case proxy_fault::invalid_port: return "a port is a number from 0 to 65535";
    case proxy_fault::too_long: return "the header is too long";
    case proxy_fault::unknown_version: return "the version must be 2";
    case proxy_fault::unknown_command: return "the command must be LOCAL or PROXY";
    case proxy_fault::unknown_family: return "the family or transport is not assigned";
    case proxy_fault::too_short: return "the header is too short for its addresses";
    case proxy_fault::invalid_tlv: return "a TLV goes beyond the header";
  }
  return "unknown fault";
}

auto parse_proxy_header(std::string_view received) noexcept
    -> result<std::optional<proxy_header>, proxy_error> {
  auto const v1 = common_size(received, v1_signature);
  auto const v2 = common_size(received, v2_signature);
  if (v1 == v1_signature.size()) {
    return parse_v1(received);
  }
  if (v2 == v2_signature.size()) {
    return parse_v2(received);
  }
  auto const longest = std::max(v1, v2);
  if (longest < received.size()) {
    return fault_at(proxy_fault::no_signature, longest);
  }
  return std::nullopt;
}

}  // namespace tidegate::TIDEGATE_ABI::http
