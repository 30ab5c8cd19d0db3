// SPDX-License-Identifier: Apache-2.0
#include "request/websocket_handshake.hpp"

#include <tidegate/base/ascii.hpp>
#include <tidegate/base/base64.hpp>
#include <tidegate/wire/http1_write.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include <sys/random.h>

namespace tidegate::gateway {

namespace {

constexpr std::size_t key_octets = 16;
constexpr std::size_t key_size = 24;  // in base64
constexpr std::size_t block_octets = 64;
constexpr std::string_view websocket_guid = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
constexpr std::string_view accept_name = "sec-websocket-accept";

/// One block of SHA-1 (FIPS 180-4, section 6.1.2).
void sha1_block(std::array<std::uint32_t, 5>& state, char const* block) noexcept {
  std::array<std::uint32_t, 80> w{};
  for (std::size_t i = 0; i < 16; ++i) {
    for (std::size_t j = 0; j < 4; ++j) {
      w[i] = w[i] << 8U | static_cast<unsigned char>(block[4 * i + j]);
    }
  }
  for (std::size_t i = 16; i < w.size(); ++i) {
    w[i] = std::rotl(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
  }
  auto [a, b, c, d, e] = state;
  for (std::size_t i = 0; i < w.size(); ++i) {
    auto const f = i < 20   ? (b & c) | (~b & d)
                   : i < 40 ? b ^ c ^ d
                   : i < 60 ? (b & c) | (b & d) | (c & d)
                            : b ^ c ^ d;
    constexpr std::array<std::uint32_t, 4> constants{0x5a827999, 0x6ed9eba1, 0x8f1bbcdc,
                                                     0xca62c1d6};
    auto const next = std::rotl(a, 5) + f + e + constants[i / 20] + w[i];
    e = d;
    d = c;
    c = std::rotl(b, 30);
    b = a;
    a = next;
  }
  std::array const worked{a, b, c, d, e};
  for (std::size_t i = 0; i < state.size(); ++i) {
    state[i] += worked[i];
  }
}

/// SHA-1, which a handshake wants of a key that is not secret: it shows that an answer is one to
/// this request, and proves nothing else.
[[nodiscard]] auto sha1_of(std::string message) -> std::string {
  std::array<std::uint32_t, 5> state{0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
  std::uint64_t const bits = 8 * message.size();
  message.push_back('\x80');
  while (message.size() % block_octets != block_octets - 8) {
    message.push_back('\0');
  }
  for (unsigned shift = 64; shift > 0; shift -= 8) {
    message.push_back(static_cast<char>(bits >> (shift - 8)));
  }
  for (std::size_t at = 0; at < message.size(); at += block_octets) {
    sha1_block(state, message.data() + at);
  }
  std::string digest;
  for (auto const word : state) {
    for (auto const shift : {24U, 16U, 8U, 0U}) {
      digest.push_back(static_cast<char>(word >> shift));
    }
  }
  return digest;
}

[[nodiscard]] auto to_base64(std::string_view octets) -> std::string {
  std::string out(base64::encoded_size(octets.size()), '\0');
  base64::encode<base64::standard>(octets, out.data());
  out.append((4 - out.size() % 4) % 4, '=');
  return out;
}

}  // namespace

auto make_websocket_key() -> std::string {
  std::array<char, key_octets> random{};
  if (::getrandom(random.data(), random.size(), 0) != static_cast<ssize_t>(random.size())) {
    return {};
  }
  return to_base64({random.data(), random.size()});
}

auto is_websocket_key(std::string_view text) noexcept -> bool {
  if (text.size() != key_size || !text.ends_with("==")) {
    return false;
  }
  for (char const c : text.substr(0, key_size - 2)) {
    if (base64::standard.value(c) == base64::no_digit) {
      return false;
    }
  }
  return true;
}

auto websocket_accept_of(std::string_view key) -> std::string {
  return to_base64(sha1_of(std::string(key).append(websocket_guid)));
}

auto only_value_of(wire::message_head const& head, std::string_view name) noexcept
    -> std::string_view {
  std::string_view found;
  std::size_t count = 0;
  for (auto const& field : head.fields()) {
    if (equal_ignoring_case(field.name, name)) {
      found = field.value;
      ++count;
    }
  }
  return count == 1 ? found : std::string_view();
}

auto take_line(std::string& lines, std::string_view name) -> std::string {
  std::string found;
  for (std::size_t at = 0; at < lines.size();) {
    auto const end = std::min(lines.find("\r\n", at), lines.size() - 2) + 2;
    auto const line = std::string_view(lines).substr(at, end - at);
    auto const colon = line.find(':');
    if (colon == name.size() && equal_ignoring_case(line.substr(0, colon), name)) {
      if (found.empty()) {
        auto value = line.substr(colon + 1, line.size() - colon - 3);
        value.remove_prefix(std::min(value.find_first_not_of(' '), value.size()));
        found.assign(value);
      }
      lines.erase(at, end - at);
    } else {
      at = end;
    }
  }
  return found;
}

auto switching_head_of(wire::response_head const& head, std::string_view accept) -> std::string {
  std::string out;
  wire::append_status_line(out, 101);
  out.append("Connection: upgrade\r\nUpgrade: websocket\r\n");
  wire::append_field(out, "Sec-WebSocket-Accept", accept);
  for (auto const& field : head.fields()) {
    if (field.known != wire::known_field::content_length &&
        !equal_ignoring_case(field.name, accept_name) && !wire::is_of_connection(head, field)) {
      wire::append_field(out, field.name, field.value);
    }
  }
  out.append("\r\n");
  return out;
}

}  // namespace tidegate::gateway
