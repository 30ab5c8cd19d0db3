// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/wire/http2_session.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Frames one by one, and a session that takes them.
namespace tidegate::TIDEGATE_ABI::wire::test {

enum frame_type : std::uint8_t {
  data,
  headers,
  priority,
  rst_stream,
  settings,
  push_promise,
  ping,
  goaway,
  window_update,
  continuation,
  priority_update = 0x10,
  unknown = 0xbe,
};

inline constexpr std::uint8_t ack = 1;
inline constexpr std::uint8_t end_stream = 1;
inline constexpr std::uint8_t end_headers = 4;
inline constexpr std::uint8_t padded = 8;

inline auto number(std::size_t octets, std::uint64_t value) -> std::string {
  std::string out;
  while (octets-- > 0) {
    out.push_back(static_cast<char>(value >> 8U * octets));
  }
  return out;
}

inline auto frame(std::uint8_t type, unsigned flags, std::uint32_t stream,
                  std::string_view payload = {}) -> std::string {
  return number(3, payload.size()) + static_cast<char>(type) + static_cast<char>(flags) +
         number(4, stream) + std::string(payload);
}

/// GET / or POST / of http://a.
inline auto const get_block = std::string("\x82\x86\x84\x41\x01") + "a";
inline auto const post_block = std::string("\x83\x86\x84\x41\x01") + "a";

inline auto get(std::uint32_t stream) -> std::string {
  return frame(headers, end_stream | end_headers, stream, get_block);
}
inline auto post(std::uint32_t stream) -> std::string {
  return frame(headers, end_headers, stream, post_block);
}
inline auto reset_by_client(std::uint32_t stream) -> std::string {
  return frame(rst_stream, 0, stream, number(4, 8));
}
inline auto set(unsigned which, std::uint32_t value) -> std::string {
  return frame(settings, 0, 0, number(2, which) + number(4, value));
}
inline auto open_window(std::uint32_t stream, std::uint32_t octets) -> std::string {
  return frame(window_update, 0, stream, number(4, octets));
}
inline auto repeat(std::string const& text, int count) -> std::string {
  std::string out;
  for (int i = 0; i < count; ++i) {
    out.append(text);
  }
  return out;
}

inline auto const preface = std::string("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
inline auto const hello = preface + frame(settings, 0, 0);

struct said_frame {
  std::uint8_t type = 0;
  std::uint8_t flags = 0;
  std::uint32_t stream = 0;
  std::string payload;

  [[nodiscard]] auto number_at(std::size_t at) const -> std::uint32_t {
    std::uint32_t out = 0;
    for (char const c : std::string_view(payload).substr(at, 4)) {
      out = out << 8U | static_cast<unsigned char>(c);
    }
    return out;
  }
};

/// A session and what it told. It answers nothing by itself.
class server final : private http2_events {
 public:
  explicit server(http2_limits const& limits = {}) : session(limits, *this, head_) {}

  /// False when the connection is over.
  auto take(std::string_view bytes, std::size_t piece = std::string_view::npos) -> bool {
    for (; !bytes.empty(); bytes.remove_prefix(std::min(piece, bytes.size()))) {
      // A copy of its own, so that a look behind it is seen.
      std::string const part(bytes.substr(0, piece));
      if (!session.receive(part, now)) {
        return false;
      }
    }
    return true;
  }

  /// What it says, frame by frame.
  auto said(std::size_t octets_max = 1U << 20U) -> std::vector<said_frame> {
    std::string out;
    (void)session.take_output(out, octets_max);
    std::vector<said_frame> frames;
    for (std::string_view rest = out; !rest.empty();) {
      said_frame each{
          static_cast<std::uint8_t>(rest[3]), static_cast<std::uint8_t>(rest[4]), 0, {}};
      each.payload = rest.substr(0, 9);
      auto const size = each.number_at(0) >> 8U;
      each.stream = each.number_at(5);
      each.payload = rest.substr(9, size);
      rest.remove_prefix(9 + size);
      frames.push_back(std::move(each));
    }
    return frames;
  }

  /// The frames of a type, in short: "type stream number", the number being the last of the
  /// payload.
  auto said_of(std::vector<std::uint8_t> const& types) -> std::vector<std::string> {
    std::vector<std::string> out;
    for (auto const& each : said()) {
      if (std::ranges::find(types, each.type) != types.end()) {
        out.push_back(
            std::to_string(each.type) + " " + std::to_string(each.stream) + " " +
            std::to_string(each.payload.size() < 4 ? 0 : each.number_at(each.payload.size() - 4)));
      }
    }
    return out;
  }

  auto stream(std::int32_t id) -> http2_stream& {
    for (std::size_t i = 0; i < session.streams_count(); ++i) {
      if (session.stream_at(i).id() == id) {
        return session.stream_at(i);
      }
    }
    throw std::runtime_error("no such stream");
  }

  /// The octets of content in the frames, by streams.
  static auto content_of(std::vector<said_frame> const& frames) -> std::vector<std::string> {
    std::vector<std::string> out;
    for (auto const& each : frames) {
      if (each.type == data) {
        out.push_back(std::to_string(each.stream) + ": " + std::to_string(each.payload.size()));
      }
    }
    return out;
  }

  std::vector<std::string> log;
  std::string received;
  instant now{std::chrono::hours(1)};
  bool takes_content = true;
  std::function<void(http2_stream&)> when_closed;

 private:
  void request(http2_stream& on, request_head const& /*head*/) override {
    log.push_back("request " + std::to_string(on.id()));
  }
  void refused_request(http2_stream& on, head_fault fault) override {
    log.push_back("refused " + std::to_string(on.id()) + " " + std::string(to_string(fault)));
  }
  [[nodiscard]] auto content(http2_stream& /*on*/, std::string_view bytes) -> bool override {
    received.append(bytes);
    return takes_content;
  }
  void end_of_request(http2_stream& on, std::string_view /*trailers*/) override {
    log.push_back("end " + std::to_string(on.id()));
  }
  void closed(http2_stream& on) override {
    log.push_back("closed " + std::to_string(on.id()));
    if (when_closed) {
      when_closed(on);
    }
  }

  request_head head_;

 public:
  http2_session session;
};

}  // namespace tidegate::TIDEGATE_ABI::wire::test
