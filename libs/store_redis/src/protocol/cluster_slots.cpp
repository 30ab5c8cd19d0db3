// SPDX-License-Identifier: Apache-2.0
#include "protocol/cluster_slots.hpp"

#include <tidegate/base/number.hpp>

#include <array>

namespace tidegate::store_redis {

namespace {

constexpr std::size_t host_octets_max = 253;

/// CRC-16/XMODEM, as the specification of clusters says.
constexpr auto crc16_table = [] {
  std::array<std::uint16_t, 256> table{};
  for (std::size_t i = 0; i < table.size(); ++i) {
    auto crc = static_cast<unsigned>(i) << 8U;
    for (int bit = 0; bit < 8; ++bit) {
      crc = (crc << 1U) ^ ((crc & 0x8000U) != 0 ? 0x1021U : 0U);
    }
    table[i] = static_cast<std::uint16_t>(crc);
  }
  return table;
}();

auto crc16(std::string_view octets) noexcept -> std::uint16_t {
  unsigned crc = 0;
  for (auto const octet : octets) {
    crc = (crc << 8U) ^ crc16_table[((crc >> 8U) ^ static_cast<unsigned char>(octet)) & 0xffU];
  }
  return static_cast<std::uint16_t>(crc);
}

auto address_in(std::string_view host, std::int64_t port, server_address const& asked)
    -> std::optional<server_address> {
  if (port < 1 || port > 65'535 || host.size() > host_octets_max) {
    return std::nullopt;
  }
  // A server that does not know its own address leaves it out.
  bool const is_left_out = host.empty() || host == "?";
  return server_address{is_left_out ? asked.host : std::string(host),
                        static_cast<std::uint16_t>(port)};
}

}  // namespace

auto slot_of(std::string_view key) noexcept -> std::uint16_t {
  if (auto const begin = key.find('{'); begin != std::string_view::npos) {
    auto const end = key.find('}', begin + 1);
    if (end != std::string_view::npos && end > begin + 1) {
      key = key.substr(begin + 1, end - begin - 1);
    }
  }
  return crc16(key) % cluster_slots;
}

auto read_cluster_slots(resp_value const& answer, server_address const& asked)
    -> result<std::vector<slot_range>, std::string> {
  if (answer.is_error()) {
    return failure(answer.text);
  }
  auto const invalid = failure(std::string("CLUSTER SLOTS was answered by something else"));
  if (answer.kind != resp_kind::array || answer.items.size() > cluster_slots) {
    return invalid;
  }
  std::vector<slot_range> out;
  for (auto const& each : answer.items) {
    if (each.items.size() < 3 || each.items[2].items.size() < 2) {
      return invalid;
    }
    auto const& first = each.items[0];
    auto const& last = each.items[1];
    auto const& node = each.items[2].items;
    if (!first.is_integer() || !last.is_integer() || first.integer < 0 ||
        last.integer < first.integer || last.integer >= static_cast<std::int64_t>(cluster_slots) ||
        !node[1].is_integer()) {
      return invalid;
    }
    auto address = address_in(node[0].text, node[1].integer, asked);
    if (!address) {
      return invalid;
    }
    out.push_back({static_cast<std::uint16_t>(first.integer),
                   static_cast<std::uint16_t>(last.integer), *std::move(address)});
  }
  return out;
}

auto read_redirection(resp_value const& error, server_address const& asked)
    -> std::optional<redirection> {
  redirection out{.is_moved = error.is_error("MOVED"), .slot = 0, .to = {}};
  if (!out.is_moved && !error.is_error("ASK")) {
    return std::nullopt;
  }
  auto rest = std::string_view(error.text).substr(error.text.find(' ') + 1);
  auto const space = rest.find(' ');
  auto const colon = rest.rfind(':');
  if (space == std::string_view::npos || colon == std::string_view::npos || colon < space) {
    return std::nullopt;
  }
  auto const slot = parse_number<std::uint16_t>(rest.substr(0, space));
  auto const port = parse_number<std::int64_t>(rest.substr(colon + 1));
  auto address = address_in(rest.substr(space + 1, colon - space - 1), port.value_or(0), asked);
  if (!slot || *slot >= cluster_slots || !address) {
    return std::nullopt;
  }
  out.slot = *slot;
  out.to = *std::move(address);
  return out;
}

}  // namespace tidegate::store_redis
