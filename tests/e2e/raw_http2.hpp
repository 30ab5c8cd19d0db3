// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "gateway.hpp"

#include <cstdint>
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
};

struct frame {
  std::uint8_t type = 0;
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

/// A client that sends frames one by one, and whatever it likes.
class raw_client {
 public:
  explicit raw_client(connection to) : connection_(std::move(to)) {
    connection_.send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    send(4, 0, 0, "");
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
  void reset(std::uint32_t stream) {
    send(rst_stream, 0, stream, std::string_view("\0\0\0\x08", 4));
  }

  /// The next frame.
  auto read() -> frame {
    auto const head = connection_.read(9);
    frame out{static_cast<std::uint8_t>(head[3]), number_of(head.substr(5)), {}};
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

 private:
  connection connection_;
};

}  // namespace tidegate::e2e
