// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/version.hpp>

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace tidegate::TIDEGATE_ABI::client {

/// What a server does with a request.
struct reaction {
  std::string bytes;  ///< sent at first
  enum class then : std::uint8_t {
    keep,   ///< the connection
    close,  ///< it
    reset,  ///< it, so that the other end gets a RST
    hang,   ///< say nothing more
  } after = then::keep;
};

/// A server on a thread of its own that does with each request what the test says.
class faulty_server {
 public:
  /// `react` gets the whole request; it is called on the thread of the server.
  explicit faulty_server(std::function<reaction(std::string const&)> react);
  faulty_server(faulty_server const&) = delete;
  auto operator=(faulty_server const&) -> faulty_server& = delete;
  ~faulty_server();

  /// `http://127.0.0.1:PORT` and a path.
  [[nodiscard]] auto url(std::string const& path = "/") const -> std::string;
  /// What has come so far.
  [[nodiscard]] auto requests() const -> std::vector<std::string>;
  [[nodiscard]] auto connections() const -> std::size_t;

 private:
  struct peer {
    int socket;
    std::string received;
    bool hangs = false;
  };
  void serve();
  [[nodiscard]] auto serve_peer(peer& each) -> bool;

  std::function<reaction(std::string const&)> react_;
  int listening_ = -1;
  int stop_ = -1;
  std::uint16_t port_ = 0;
  mutable std::mutex mutex_;
  std::vector<std::string> requests_;
  std::size_t connections_ = 0;
  std::thread thread_;
};

/// `HTTP/1.1 STATUS` with a Content-Length and more field lines, each with its end.
[[nodiscard]] auto response_bytes(std::string const& status, std::string const& body = "",
                                  std::string const& lines = "") -> std::string;

}  // namespace tidegate::TIDEGATE_ABI::client
