// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "gateway.hpp"

#include <nghttp2/nghttp2.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace tidegate::e2e {

enum frame_type : std::uint8_t {
  data = 0,
  headers = 1,
  rst_stream = 3,
  settings = 4,
  ping = 6,
  goaway = 7,
  window_update = 8,
  continuation = 9,
};

struct frame {
  std::uint8_t type = 0;
  std::uint8_t flags = 0;
  std::uint32_t stream = 0;
  std::string payload;
};

inline auto number_of(std::string_view octets) -> std::uint32_t {
  std::uint32_t number = 0;
  for (char const c : octets) {
    number = number << 8U | static_cast<unsigned char>(c);
  }
  return number;
}

/// One end of a connection of HTTP/2 that sends frames one by one, and whatever it likes.
class raw_frames {
 public:
  explicit raw_frames(connection over) : connection_(std::move(over)) {
    nghttp2_hd_inflate_new(&inflater_);
  }
  raw_frames(raw_frames&& other) noexcept
      : connection_(std::move(other.connection_)),
        inflater_(std::exchange(other.inflater_, nullptr)) {}
  auto operator=(raw_frames&&) -> raw_frames& = delete;
  ~raw_frames() {
    if (inflater_ != nullptr) {
      nghttp2_hd_inflate_del(inflater_);
    }
  }

  void send(std::uint8_t type, std::uint8_t flags, std::uint32_t stream, std::string_view payload) {
    std::string out;
    for (auto const number : {payload.size() >> 16U, payload.size() >> 8U, payload.size()}) {
      out.push_back(static_cast<char>(number));
    }
    out.push_back(static_cast<char>(type));
    out.push_back(static_cast<char>(flags));
    for (auto const shift : {24U, 16U, 8U, 0U}) {
      out.push_back(static_cast<char>(stream >> shift));
    }
    connection_.send(out.append(payload));
  }
  void reset(std::uint32_t stream, std::uint8_t why = 8) {
    send(rst_stream, 0, stream, {"\0\0\0", 3}, why);
  }
  /// The last octet of the payload apart.
  void send(std::uint8_t type, std::uint8_t flags, std::uint32_t stream, std::string_view payload,
            std::uint8_t last) {
    send(type, flags, stream, std::string(payload) + static_cast<char>(last));
  }

  /// The next frame.
  auto read() -> frame {
    auto const head = connection_.read(9);
    frame out{static_cast<std::uint8_t>(head[3]),
              static_cast<std::uint8_t>(head[4]),
              number_of(head.substr(5)),
              {}};
    out.payload = connection_.read(number_of(head.substr(0, 3)));
    return out;
  }
  /// The next frame of a type, whatever comes before it.
  auto read(frame_type type) -> frame {
    for (;;) {
      if (auto out = read(); out.type == type) {
        return out;
      }
    }
  }
  auto socket() -> connection& { return connection_; }

  struct field_block {
    std::uint32_t stream = 0;
    bool is_last = false;
    std::string fields;  ///< `name: value` and a line break each
  };
  /// What a frame of HEADERS says. Each has to be decoded.
  auto decode(frame const& head) -> field_block {
    field_block out{head.stream, (head.flags & 1U) != 0, {}};
    auto const* at = reinterpret_cast<std::uint8_t const*>(head.payload.data());
    auto left = head.payload.size();
    for (int flags = 0; (flags & NGHTTP2_HD_INFLATE_FINAL) == 0;) {
      nghttp2_nv field{};
      auto const size = nghttp2_hd_inflate_hd2(inflater_, &field, &flags, at, left, 1);
      if (size < 0) {
        throw std::runtime_error("no field block");
      }
      at += size;
      left -= static_cast<std::size_t>(size);
      if ((flags & NGHTTP2_HD_INFLATE_EMIT) != 0) {
        out.fields.append(reinterpret_cast<char const*>(field.name), field.namelen)
            .append(": ")
            .append(reinterpret_cast<char const*>(field.value), field.valuelen)
            .append("\n");
      }
    }
    nghttp2_hd_inflate_end_headers(inflater_);
    return out;
  }

 private:
  connection connection_;
  nghttp2_hd_inflater* inflater_ = nullptr;
};

/// A field as HPACK writes it when no table is to know it.
inline auto literal(std::string_view name, std::string_view value) -> std::string {
  std::string out(1, '\0');
  for (auto const text : {name, value}) {
    out.append(1, static_cast<char>(text.size())).append(text);  // less than 127 octets
  }
  return out;
}

/// A client of that kind.
class raw_client : public raw_frames {
 public:
  explicit raw_client(connection to) : raw_frames(std::move(to)) {
    socket().send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    send(settings, 0, 0, "");
  }
  /// `GET /` or `POST /`, of http://a.
  void get(std::uint32_t stream) {
    send(headers, 5, stream,
         "\x82\x86\x84\x41\x01"
         "a");
  }
  void post(std::uint32_t stream) {
    send(headers, 4, stream,
         "\x83\x86\x84\x41\x01"
         "a");
  }
};

/// A server of that kind, behind the gateway.
class raw_server : public raw_frames {
 public:
  /// `with` are its settings.
  explicit raw_server(connection from, std::string_view with = {}) : raw_frames(std::move(from)) {
    if (socket().read(24) != "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n") {
      throw std::runtime_error("no preface");
    }
    send(settings, 0, 0, with);
  }

  using request = field_block;
  /// The next HEADERS, whatever comes before it: those of a request, or trailers.
  auto read_request() -> request {
    auto head = read(headers);
    while ((head.flags & 4U) == 0) {
      auto const more = read(continuation);
      head.payload.append(more.payload);
      head.flags |= more.flags & 4U;
    }
    return decode(head);
  }
  /// `:status: 200` and more fields, as HPACK writes them.
  void answer(std::uint32_t stream, bool last = false, std::string_view block = {}) {
    send(headers, last ? 5 : 4, stream, "\x88" + std::string(block));
  }
  /// A head, content and the end.
  void answer_whole(std::uint32_t stream, std::string_view content) {
    answer(stream);
    send(data, 1, stream, content);
  }
};

}  // namespace tidegate::e2e
