// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "endpoint_fixture.hpp"

#include "support/memory_data_plane.hpp"

#include <tidegate/proxy/control.hpp>

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tidegate::gateway {

/// A data plane that serves clients, and what the admin address sees of it.
class control_fixture {
 public:
  enum class listening : std::uint8_t { yes, no };

  explicit control_fixture(std::string const& text, listening listens = listening::yes)
      : loop(make_loop()), plane_(test_support::make_memory_data_plane(text)) {
    if (listens == listening::yes) {
      std::vector<engine::passed_socket> none;
      auto const bound = plane_->listen(none);
      EXPECT_TRUE(bound) << (bound ? "" : bound.error());
    }
    plane_->start();
    auto made = make_control();
    EXPECT_TRUE(made) << (made ? "" : made.error());
    seen_ = std::make_unique<control>(*std::move(made));
  }

  [[nodiscard]] auto seen() -> control& { return *seen_; }
  /// Another one, for what owns its own.
  [[nodiscard]] auto make_control() -> result<control, std::string> {
    return plane_->make_control(*loop);
  }
  void begin_drain() { plane_->begin_drain(); }

  /// Sends a client's request for `path` through the listener, and returns the whole response.
  auto get(std::string_view path, std::string_view field_lines = "") -> std::string {
    auto const address = seen_->listeners().front().address;
    auto const socket = ::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC, 0);
    auto const connected = ::connect(socket, static_cast<sockaddr const*>(address.data()),
                                     static_cast<socklen_t>(address.size()));
    EXPECT_EQ(connected, 0);
    auto const request = "GET " + std::string(path) + " HTTP/1.1\r\nHost: a.example\r\n" +
                         std::string(field_lines) + "Connection: close\r\n\r\n";
    EXPECT_EQ(::send(socket, request.data(), request.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(request.size()));
    std::string response;
    std::array<char, 4096> bytes{};
    for (ssize_t size = 0; (size = ::recv(socket, bytes.data(), bytes.size(), 0)) > 0;) {
      response.append(bytes.data(), static_cast<std::size_t>(size));
    }
    ::close(socket);
    return response;
  }

  /// Last answers of the data plane go to the loop.
  std::unique_ptr<engine::loop> loop;

 private:
  std::unique_ptr<data_plane> plane_;
  std::unique_ptr<control> seen_;
};

}  // namespace tidegate::gateway
