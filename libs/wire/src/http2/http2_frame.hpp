// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/wire/http2_stream.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

/// The frames of HTTP/2 as octets (RFC 9113, sections 4 and 6).
namespace tidegate::TIDEGATE_ABI::wire::http2 {

inline constexpr std::string_view preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

enum class frame_type : std::uint8_t {
  data = 0x0,
  headers = 0x1,
  priority = 0x2,
  rst_stream = 0x3,
  settings = 0x4,
  push_promise = 0x5,
  ping = 0x6,
  goaway = 0x7,
  window_update = 0x8,
  continuation = 0x9,
  priority_update = 0x10,  // RFC 9218, section 7.1
};

namespace flag {
inline constexpr std::uint8_t none = 0x0;
inline constexpr std::uint8_t ack = 0x1;
inline constexpr std::uint8_t end_stream = 0x1;
inline constexpr std::uint8_t end_headers = 0x4;
inline constexpr std::uint8_t padded = 0x8;
inline constexpr std::uint8_t priority = 0x20;
}  // namespace flag

enum class setting : std::uint16_t {
  header_table_size = 0x1,
  enable_push = 0x2,
  max_concurrent_streams = 0x3,
  initial_window_size = 0x4,
  max_frame_size = 0x5,
  max_header_list_size = 0x6,
  enable_connect_protocol = 0x8,  // RFC 8441, section 3
  no_rfc7540_priorities = 0x9,    // RFC 9218, section 2.1
};

inline constexpr std::size_t frame_head_octets = 9;
/// What every peer takes (section 4.2), and what we take and send.
inline constexpr std::uint32_t frame_octets_max = 16'384;
inline constexpr std::uint32_t frame_octets_max_max = (1U << 24U) - 1;
/// Of a window (section 6.9.1), and the initial one of every connection and stream.
inline constexpr std::int64_t window_octets_max = (std::int64_t{1} << 31U) - 1;
inline constexpr std::uint32_t default_window_octets = 65'535;

/// A number in network order.
template <std::size_t Octets>
[[nodiscard]] constexpr auto read_number(char const* at) noexcept -> std::uint32_t {
  std::uint32_t out = 0;
  for (std::size_t i = 0; i < Octets; ++i) {
    out = out << 8U | static_cast<unsigned char>(at[i]);
  }
  return out;
}

template <std::size_t Octets>
constexpr auto write_number(char* to, std::uint32_t number) noexcept -> char* {
  for (std::size_t i = Octets; i-- > 0;) {
    *to++ = static_cast<char>(number >> 8U * i);
  }
  return to;
}

/// The number of a stream, or an increment: the first bit is reserved.
[[nodiscard]] constexpr auto read_31_bits(char const* at) noexcept -> std::int32_t {
  return static_cast<std::int32_t>(read_number<4>(at) & 0x7fffffffU);
}

struct frame_head {
  std::uint32_t length = 0;
  frame_type type{};
  std::uint8_t flags = 0;
  std::int32_t stream = 0;

  [[nodiscard]] auto has(std::uint8_t which) const noexcept -> bool { return (flags & which) != 0; }
};

[[nodiscard]] constexpr auto read_frame_head(char const* at) noexcept -> frame_head {
  return {read_number<3>(at), static_cast<frame_type>(at[3]), static_cast<std::uint8_t>(at[4]),
          read_31_bits(at + 5)};
}

/// Returns where the payload begins.
constexpr auto write_frame_head(char* to, frame_head const& head) noexcept -> char* {
  to = write_number<3>(to, head.length);
  *to++ = static_cast<char>(head.type);
  *to++ = static_cast<char>(head.flags);
  return write_number<4>(to, static_cast<std::uint32_t>(head.stream));
}

/// Appends a frame whose payload is numbers of 32 bits.
template <class... Numbers>
void append_frame(std::string& out, frame_type type, std::uint8_t flags, std::int32_t stream,
                  Numbers... payload) {
  char octets[frame_head_octets + 4 * sizeof...(payload)];  // NOLINT: all of it is written
  [[maybe_unused]] char* at =
      write_frame_head(octets, {4 * sizeof...(payload), type, flags, stream});
  ((at = write_number<4>(at, static_cast<std::uint32_t>(payload))), ...);
  out.append(octets, sizeof octets);
}

/// Appends a frame with that payload, which is not too large.
inline void append_frame_of(std::string& out, frame_type type, std::uint8_t flags,
                            std::int32_t stream, std::string_view payload) {
  auto const at = out.size();
  auto const size = at + frame_head_octets + payload.size();
  out.resize_and_overwrite(size, [&](char* to, std::size_t /*room*/) {
    auto* const begin = write_frame_head(
        to + at, {static_cast<std::uint32_t>(payload.size()), type, flags, stream});
    payload.copy(begin, payload.size());
    return size;
  });
}

}  // namespace tidegate::TIDEGATE_ABI::wire::http2
