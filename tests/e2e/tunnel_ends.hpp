// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "gateway.hpp"
#include "raw_http2.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include <poll.h>

namespace tidegate::e2e {

/// One end of a tunnel, on either side of the gateway, whichever protocol it speaks.
class tunnel_end {
 public:
  virtual ~tunnel_end() = default;
  virtual void send(std::string_view octets) = 0;
  virtual auto read(std::size_t size) -> std::string = 0;
  /// What comes until the other end sends no more.
  virtual auto read_to_end() -> std::string = 0;
  virtual void shut_down_sending() = 0;
  /// Sends until the other side takes no more for a moment. Returns how much that was.
  virtual auto send_until_blocked(std::string_view octets) -> std::size_t = 0;
  /// As a program does that has said all.
  virtual void close() = 0;
  /// As a program does that dies.
  virtual void abort() = 0;
  /// Of HTTP/2: how the stream was reset.
  virtual auto reset_code() -> std::optional<std::uint32_t> { return std::nullopt; }

 protected:
  tunnel_end() = default;
  tunnel_end(tunnel_end const&) = default;
  auto operator=(tunnel_end const&) -> tunnel_end& = default;
};

class http1_end final : public tunnel_end {
 public:
  explicit http1_end(connection over) : over_(std::move(over)) {}
  void send(std::string_view octets) override { over_.send(octets); }
  auto read(std::size_t size) -> std::string override { return over_.read(size); }
  auto read_to_end() -> std::string override { return over_.read_to_end(); }
  void shut_down_sending() override { over_.shut_down_sending(); }
  auto send_until_blocked(std::string_view octets) -> std::size_t override {
    return over_.send_until_blocked(octets);
  }
  void close() override { over_.close(); }
  void abort() override { over_.abort(); }
  auto socket() -> connection& { return over_; }

 private:
  connection over_;
};

/// A stream, on a connection of its own. It keeps to the windows of the gateway and opens its own.
class http2_end final : public tunnel_end {
 public:
  http2_end(raw_frames over, std::uint32_t stream) : over_(std::move(over)), stream_(stream) {}

  void send(std::string_view octets) override {
    while (!octets.empty()) {
      while (std::min(window_, connection_window_) <= 0) {
        take();
      }
      auto const size = std::min<std::size_t>(
          {octets.size(), 16'384, static_cast<std::size_t>(std::min(window_, connection_window_))});
      over_.send(data, 0, stream_, octets.substr(0, size));
      window_ -= static_cast<std::int64_t>(size);
      connection_window_ -= static_cast<std::int64_t>(size);
      octets.remove_prefix(size);
    }
  }
  auto read(std::size_t size) -> std::string override {
    while (content_.size() < size) {
      if (is_ended_) {
        throw std::runtime_error("the stream has ended after " + std::to_string(content_.size()));
      }
      take();
    }
    auto out = content_.substr(0, size);
    content_.erase(0, size);
    return out;
  }
  auto read_to_end() -> std::string override {
    while (!is_ended_) {
      take();
    }
    return std::exchange(content_, {});
  }
  void shut_down_sending() override { over_.send(data, 1, stream_, ""); }
  auto send_until_blocked(std::string_view octets) -> std::size_t override {
    std::size_t sent = 0;
    while (sent < octets.size()) {
      if (window() > 0) {
        auto const size =
            std::min(octets.size() - sent,
                     static_cast<std::size_t>(std::min<std::int64_t>(window(), 16'384)));
        send(octets.substr(sent, size));
        sent += size;
      } else if (pollfd polled{over_.socket().socket(), POLLIN, 0}; ::poll(&polled, 1, 200) > 0) {
        take();
      } else {
        break;
      }
    }
    return sent;
  }
  void close() override { shut_down_sending(); }
  void abort() override { over_.reset(stream_); }
  auto reset_code() -> std::optional<std::uint32_t> override { return reset_; }

  auto frames() -> raw_frames& { return over_; }
  [[nodiscard]] auto stream() const -> std::uint32_t { return stream_; }
  /// The fields of the next head.
  auto read_fields() -> std::string {
    while (fields_.empty() && !is_ended_) {
      take();
    }
    return std::exchange(fields_, {});
  }
  /// True when the other end sends no more.
  [[nodiscard]] auto is_ended() const -> bool { return is_ended_; }
  /// How many octets the gateway takes now.
  [[nodiscard]] auto window() const -> std::int64_t {
    return std::min(window_, connection_window_);
  }
  /// Whether the settings of the gateway say that it takes extended CONNECT, once they are there.
  auto is_offered() -> bool {
    while (!has_settings_) {
      take();
    }
    return is_offered_;
  }
  /// Takes one frame.
  void take() {
    auto const in = over_.read();
    switch (in.type) {
      case data:
        if (in.stream == stream_) {
          content_ += in.payload;
          is_ended_ = is_ended_ || (in.flags & 1U) != 0;
          unopened_ += in.payload.size();
          if (unopened_ >= 16'384) {
            for (auto const of : {0U, stream_}) {
              over_.send(window_update, 0, of, octets_of(unopened_));
            }
            unopened_ = 0;
          }
        }
        break;
      case headers: {
        auto const block = over_.decode(in);
        if (block.stream == stream_) {
          fields_ += block.fields;
          is_ended_ = is_ended_ || block.is_last;
        }
        break;
      }
      case rst_stream:
        if (in.stream == stream_) {
          reset_ = number_of(in.payload);
          is_ended_ = true;
        }
        break;
      case settings: take_settings(in); break;
      case ping:
        if ((in.flags & 1U) == 0) {
          over_.send(ping, 1, 0, in.payload);
        }
        break;
      case window_update:
        (in.stream == 0 ? connection_window_ : window_) += number_of(in.payload);
        break;
      default: break;
    }
  }

 private:
  static auto octets_of(std::size_t number) -> std::string {
    std::string out;
    for (auto const shift : {24U, 16U, 8U, 0U}) {
      out.push_back(static_cast<char>(number >> shift));
    }
    return out;
  }
  void take_settings(frame const& in) {
    if ((in.flags & 1U) != 0) {
      return;
    }
    std::string_view rest = in.payload;
    for (; rest.size() >= 6; rest.remove_prefix(6)) {
      auto const value = number_of(rest.substr(2, 4));
      auto const which = number_of(rest.substr(0, 2));
      if (which == 4) {
        window_ += std::int64_t{value} - initial_window_;
        initial_window_ = value;
      } else if (which == 8) {
        is_offered_ = value == 1;
      }
    }
    has_settings_ = true;
    over_.send(settings, 1, 0, "");
  }

  raw_frames over_;
  std::uint32_t stream_;
  std::int64_t initial_window_ = 65'535;
  std::int64_t window_ = 65'535;
  std::int64_t connection_window_ = 65'535;
  std::size_t unopened_ = 0;  // of our own windows
  bool has_settings_ = false;
  bool is_offered_ = false;
  bool is_ended_ = false;
  std::optional<std::uint32_t> reset_;
  std::string fields_;
  std::string content_;
};

/// What an HTTP/2 client sends to open a WebSocket.
inline auto connect_block(std::string_view protocol = "websocket", std::string_view path = "/chat")
    -> std::string {
  return literal(":method", "CONNECT") + literal(":protocol", protocol) +
         literal(":scheme", "http") + literal(":path", path) + literal(":authority", "a.example") +
         literal("sec-websocket-version", "13") + literal("sec-websocket-protocol", "chat");
}
/// SETTINGS_ENABLE_CONNECT_PROTOCOL of 1.
inline constexpr std::string_view takes_connect{"\0\x08\0\0\0\x01", 6};

}  // namespace tidegate::e2e
