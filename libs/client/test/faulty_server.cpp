// SPDX-License-Identifier: Apache-2.0
#include "faulty_server.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <stdexcept>
#include <utility>

namespace tidegate::TIDEGATE_ABI::client {

namespace {

/// The size of the request at the beginning of `text`; 0 when it is not whole.
auto request_size(std::string const& text) -> std::size_t {
  auto const end = text.find("\r\n\r\n");
  if (end == std::string::npos) {
    return 0;
  }
  constexpr std::string_view name = "\r\nContent-Length: ";
  auto const length = text.substr(0, end + 2).find(name);
  auto const content = length == std::string::npos
                           ? 0
                           : std::strtoul(text.c_str() + length + name.size(), nullptr, 10);
  return text.size() < end + 4 + content ? 0 : end + 4 + content;
}

}  // namespace

faulty_server::faulty_server(std::function<reaction(std::string const&)> react)
    : react_(std::move(react)),
      listening_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)),
      stop_(::eventfd(0, EFD_CLOEXEC)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (::bind(listening_, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      ::listen(listening_, 128) != 0 ||
      ::getsockname(listening_, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    throw std::runtime_error("cannot listen");
  }
  port_ = ntohs(address.sin_port);
  thread_ = std::thread([this] { serve(); });
}

faulty_server::~faulty_server() {
  ::eventfd_write(stop_, 1);
  thread_.join();
  ::close(listening_);
  ::close(stop_);
}

auto faulty_server::url(std::string const& path) const -> std::string {
  return "http://127.0.0.1:" + std::to_string(port_) + path;
}

auto faulty_server::requests() const -> std::vector<std::string> {
  std::lock_guard const lock(mutex_);
  return requests_;
}

auto faulty_server::connections() const -> std::size_t {
  std::lock_guard const lock(mutex_);
  return connections_;
}

/// False when the connection is closed.
auto faulty_server::serve_peer(peer& each) -> bool {
  std::array<char, 65536> bytes{};
  auto const size = ::recv(each.socket, bytes.data(), bytes.size(), 0);
  if (size <= 0) {
    return false;
  }
  if (each.hangs) {
    return true;
  }
  each.received.append(bytes.data(), static_cast<std::size_t>(size));
  while (auto const whole = request_size(each.received)) {
    auto request = each.received.substr(0, whole);
    each.received.erase(0, whole);
    auto const what = react_(request);
    {
      std::lock_guard const lock(mutex_);
      requests_.push_back(std::move(request));
    }
    (void)::send(each.socket, what.bytes.data(), what.bytes.size(), MSG_NOSIGNAL);
    switch (what.after) {
      case reaction::then::keep: break;
      case reaction::then::hang: each.hangs = true; return true;
      case reaction::then::reset: {
        linger const at_once{1, 0};
        ::setsockopt(each.socket, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
        return false;
      }
      case reaction::then::close: return false;
    }
  }
  return true;
}

void faulty_server::serve() {
  std::vector<peer> peers;
  for (;;) {
    std::vector<pollfd> polled{{stop_, POLLIN, 0}, {listening_, POLLIN, 0}};
    for (auto const& each : peers) {
      polled.push_back({each.socket, POLLIN, 0});
    }
    ::poll(polled.data(), polled.size(), -1);
    for (std::size_t i = peers.size(); i-- > 0;) {
      if (polled[0].revents != 0 || (polled[i + 2].revents != 0 && !serve_peer(peers[i]))) {
        ::close(peers[i].socket);
        peers.erase(peers.begin() + static_cast<std::ptrdiff_t>(i));
      }
    }
    if (polled[0].revents != 0) {
      return;
    }
    if (polled[1].revents != 0) {
      peers.push_back({::accept4(listening_, nullptr, nullptr, SOCK_CLOEXEC), ""});
      std::lock_guard const lock(mutex_);
      ++connections_;
    }
  }
}

auto response_bytes(std::string const& status, std::string const& body, std::string const& lines)
    -> std::string {
  return "HTTP/1.1 " + status + "\r\n" + lines + "Content-Length: " + std::to_string(body.size()) +
         "\r\n\r\n" + body;
}

}  // namespace tidegate::TIDEGATE_ABI::client
