// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace tidegate::test_support {

/// Stands between a client and a server on 127.0.0.1 and cuts a connection behind a chosen octet of
/// either direction: the octets before it arrive, no other does, and both sides see the connection
/// closed.
class cut_proxy {
 public:
  enum class direction : std::uint8_t { to_server, to_client };

  explicit cut_proxy(std::uint16_t server_port) : server_port_(server_port) {
    listening_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    auto address = loopback(0);
    socklen_t size = sizeof address;
    ::bind(listening_, reinterpret_cast<sockaddr*>(&address), size);
    ::listen(listening_, 64);
    ::getsockname(listening_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    wake_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    thread_ = std::thread([this] { run(); });
  }
  ~cut_proxy() {
    {
      std::lock_guard const lock(mutex_);
      stopping_ = true;
    }
    wake();
    thread_.join();
    for (auto const& each : pairs_) {
      ::close(each.client);
      ::close(each.server);
    }
    ::close(listening_);
    ::close(wake_);
  }
  cut_proxy(cut_proxy const&) = delete;
  auto operator=(cut_proxy const&) -> cut_proxy& = delete;

  [[nodiscard]] auto port() const noexcept -> std::uint16_t { return port_; }

  /// From now on, counted over all connections, `octets` more go in that direction; then the
  /// connection is cut which brings the next one, or at once behind the last one. That happens
  /// once.
  void cut_behind(direction which, std::size_t octets) {
    std::lock_guard const lock(mutex_);
    cut_ = cut{which, octets};
  }
  /// The same, and no connection gets through until `let_through`.
  void cut_behind_and_stay_away(direction which, std::size_t octets) {
    std::lock_guard const lock(mutex_);
    cut_ = cut{which, octets, true};
  }
  void let_through() {
    std::lock_guard const lock(mutex_);
    is_away_ = false;
  }
  /// Whether it has come to the cut. If not, there will not be one.
  [[nodiscard]] auto has_cut() -> bool {
    std::lock_guard const lock(mutex_);
    bool const pending = cut_.has_value();
    cut_.reset();
    return !pending;
  }
  /// How many octets went in that direction.
  [[nodiscard]] auto octets(direction which) -> std::size_t {
    std::lock_guard const lock(mutex_);
    return octets_[static_cast<std::size_t>(which)];
  }

 private:
  struct cut {
    direction which;
    std::size_t left;
    bool stays_away = false;
  };
  struct pair {
    int client = -1;
    int server = -1;
  };

  [[nodiscard]] static auto loopback(std::uint16_t port) -> sockaddr_in {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port);
    return address;
  }

  void wake() const {
    std::uint64_t const one = 1;
    [[maybe_unused]] auto const written = ::write(wake_, &one, sizeof one);
  }

  void run() {
    for (;;) {
      std::vector<pollfd> wanted = {{wake_, POLLIN, 0}, {listening_, POLLIN, 0}};
      for (auto const& each : pairs_) {
        wanted.push_back({each.client, POLLIN, 0});
        wanted.push_back({each.server, POLLIN, 0});
      }
      ::poll(wanted.data(), wanted.size(), -1);
      {
        std::lock_guard const lock(mutex_);
        if (stopping_) {
          return;
        }
      }
      std::size_t at = 2;
      for (auto each = pairs_.begin(); each != pairs_.end(); at += 2) {
        bool const stays =
            (wanted[at].revents == 0 || pass(each->client, each->server, direction::to_server)) &&
            (wanted[at + 1].revents == 0 || pass(each->server, each->client, direction::to_client));
        if (stays) {
          ++each;
          continue;
        }
        ::close(each->client);
        ::close(each->server);
        each = pairs_.erase(each);
      }
      if (wanted[1].revents != 0) {
        accept_one();
      }
    }
  }

  void accept_one() {
    int const client = ::accept4(listening_, nullptr, nullptr, SOCK_CLOEXEC);
    if (client < 0) {
      return;
    }
    {
      std::lock_guard const lock(mutex_);
      if (is_away_) {
        ::close(client);
        return;
      }
    }
    int const server = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    auto const address = loopback(server_port_);
    if (::connect(server, reinterpret_cast<sockaddr const*>(&address), sizeof address) != 0) {
      ::close(client);
      ::close(server);
      return;
    }
    int const on = 1;
    ::setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    ::setsockopt(server, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    pairs_.push_back({client, server});
  }

  /// False when the connection has ended, by one side or by a cut.
  [[nodiscard]] auto pass(int from, int to, direction which) -> bool {
    std::array<char, 16384> octets{};
    auto const got = ::recv(from, octets.data(), octets.size(), 0);
    if (got <= 0) {
      return false;
    }
    auto size = static_cast<std::size_t>(got);
    bool is_cut = false;
    {
      std::lock_guard const lock(mutex_);
      if (cut_ && cut_->which == which) {
        is_cut = size >= cut_->left;
        size = std::min(size, cut_->left);
        cut_->left -= size;
        if (is_cut) {
          is_away_ = cut_->stays_away;
          cut_.reset();
        }
      }
      octets_[static_cast<std::size_t>(which)] += size;
    }
    for (std::size_t sent = 0; sent < size;) {
      auto const now = ::send(to, octets.data() + sent, size - sent, MSG_NOSIGNAL);
      if (now <= 0) {
        return false;
      }
      sent += static_cast<std::size_t>(now);
    }
    return !is_cut;
  }

  std::uint16_t server_port_;
  std::uint16_t port_ = 0;
  int listening_ = -1;
  int wake_ = -1;
  std::list<pair> pairs_;  // of the thread
  std::mutex mutex_;
  std::optional<cut> cut_;
  std::array<std::size_t, 2> octets_{};
  bool is_away_ = false;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace tidegate::test_support
