// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as lines of X-Forwarded-For and Forwarded, divided by line feeds, and as an address:
//
// - never a crash, and never a look outside of the text;
// - without trust in the peer, the peer is the client;
// - whatever a client sends, the address that a trusted proxy has added is that of the client:
//   nothing that stands before it changes that;
// - an address is what the C library reads, and is read again from its canonical text.
#include "check.hpp"

#include <tidegate/http/forwarded.hpp>

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace tidegate::http;
using tidegate::fuzz::check;

auto lines_of(std::string_view text) -> std::vector<std::string_view> {
  std::vector<std::string_view> lines;
  while (true) {
    auto const end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    if (end == text.size()) {
      return lines;
    }
    text.remove_prefix(end + 1);
  }
}

void check_address(std::string_view text) {
  auto const parsed = parse_ip_address(text);
  std::string const terminated(text);
  std::array<std::uint8_t, 16> bytes{};
  bool const has_nul = text.find('\0') != std::string_view::npos;
  bool const is_v4 = !has_nul && inet_pton(AF_INET, terminated.c_str(), bytes.data()) == 1;
  bool const is_v6 =
      !has_nul && !is_v4 && inet_pton(AF_INET6, terminated.c_str(), bytes.data()) == 1;
  check(parsed.has_value() == (is_v4 || is_v6), "an address is what the C library takes for one");
  if (!parsed) {
    check(parsed.error().offset <= text.size(), "an error is at a place of the text");
  } else {
    auto const expected =
        is_v4 ? ip_address::from_v4(std::span(bytes).first<4>()) : ip_address::from_v6(bytes);
    check(*parsed == expected, "an address has the bytes that the C library sees");
    check(parse_ip_address(to_string(*parsed)) == *parsed, "its text is read again");
  }
  if (auto const network = parse_cidr(text)) {
    check(network->contains(network->address), "a network contains its first address");
    check(parse_cidr(to_string(*network)) == *network, "its text is read again");
  }
}

}  // namespace

extern "C" auto LLVMFuzzerTestOneInput(unsigned char const* data, std::size_t size) -> int {
  // Exactly as many bytes as there are, so that a look behind them is seen.
  std::vector<char> const exact(data, data + size);
  auto const text = std::string_view(exact.data(), exact.size());
  check_address(text);

  std::array const networks = {*parse_cidr("10.0.0.0/8"), *parse_cidr("fd00::/8")};
  cidr_set const trusted(networks);
  auto const proxy = *parse_ip_address("10.0.0.1");
  auto const stranger = *parse_ip_address("2001:db8::1");
  auto const lines = lines_of(text);
  check(client_by_x_forwarded_for(stranger, lines, trusted) == stranger,
        "a stranger is believed in nothing");
  check(client_by_forwarded(stranger, lines, trusted) == stranger,
        "a stranger is believed in nothing");
  (void)client_by_x_forwarded_for(proxy, lines, trusted);
  (void)client_by_forwarded(proxy, lines, trusted);

  std::string x_forwarded_for(text);
  std::string forwarded(text);
  for (auto const& peer : {stranger, proxy}) {
    append_x_forwarded_for(x_forwarded_for, peer);
    append_forwarded(forwarded, {peer, "example.com:8080", "https"});
  }
  check(client_by_x_forwarded_for(proxy, lines_of(x_forwarded_for), trusted) == stranger,
        "nothing before the last stranger counts in X-Forwarded-For");
  check(client_by_forwarded(proxy, lines_of(forwarded), trusted) == stranger,
        "nothing before the last stranger counts in Forwarded");
  return 0;
}
