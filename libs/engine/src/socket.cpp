// SPDX-License-Identifier: Apache-2.0
#include <tidegate/engine/socket.hpp>

#include <tidegate/base/number.hpp>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace tidegate::engine {

namespace {

constexpr std::string_view path_prefix = "unix:";

}  // namespace

void descriptor::close() noexcept {
  if (fd_ >= 0) {
    ::close(fd_);
    fd_ = -1;
  }
}

auto to_string(system_error const& error) -> std::string {
  std::array<char, 256> text{};
  return std::string(error.call) + ": " + ::strerror_r(error.code, text.data(), text.size());
}

auto socket_address::from_bytes(void const* data, std::size_t size) -> socket_address {
  socket_address out;
  out.size_ = static_cast<std::uint32_t>(std::min(size, sizeof out.bytes_));
  std::memcpy(out.bytes_, data, out.size_);
  return out;
}

auto socket_address::parse(std::string_view text) -> result<socket_address, std::string> {
  if (text.starts_with(path_prefix)) {
    sockaddr_un to{};
    auto const path = text.substr(path_prefix.size());
    if (path.empty() || path.size() >= sizeof to.sun_path) {
      return failure("the path of a socket has 1 to 107 characters");
    }
    to.sun_family = AF_UNIX;
    std::memcpy(to.sun_path, path.data(), path.size());
    return from_bytes(&to, offsetof(sockaddr_un, sun_path) + path.size() + 1);
  }
  auto const colon = text.rfind(':');
  auto const port = parse_number<std::uint16_t>(text.substr(std::min(colon + 1, text.size())));
  if (colon == std::string_view::npos || !port) {
    return failure(std::string("the port is missing (expected e.g. 127.0.0.1:8080)"));
  }
  auto host = text.substr(0, colon);
  if (host.empty()) {
    host = "[::]";
  }
  if (host.starts_with('[') && host.ends_with(']')) {
    sockaddr_in6 to{};
    to.sin6_family = AF_INET6;
    to.sin6_port = htons(*port);
    if (::inet_pton(AF_INET6, std::string(host.substr(1, host.size() - 2)).c_str(),
                    &to.sin6_addr) == 1) {
      return from_bytes(&to, sizeof to);
    }
  } else {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(*port);
    if (::inet_pton(AF_INET, std::string(host).c_str(), &to.sin_addr) == 1) {
      return from_bytes(&to, sizeof to);
    }
  }
  return failure(std::string("the host is not an IPv4 address or an IPv6 address in brackets"));
}

auto socket_address::family() const noexcept -> int {
  if (size_ == 0) {
    return AF_UNSPEC;
  }
  sa_family_t family = 0;
  std::memcpy(&family, bytes_ + offsetof(sockaddr, sa_family), sizeof family);
  return family;
}

auto socket_address::port() const noexcept -> std::uint16_t {
  std::uint16_t port = 0;
  if (family() == AF_INET || family() == AF_INET6) {  // at the same place in both
    std::memcpy(&port, bytes_ + offsetof(sockaddr_in, sin_port), sizeof port);
  }
  return ntohs(port);
}

auto socket_address::ip_bytes() const noexcept -> std::string_view {
  auto const* const text = reinterpret_cast<char const*>(bytes_);
  switch (family()) {
    case AF_INET: return {text + offsetof(sockaddr_in, sin_addr), 4};
    case AF_INET6: return {text + offsetof(sockaddr_in6, sin6_addr), 16};
    default: return {};
  }
}

auto socket_address::to_string() const -> std::string {
  std::array<char, INET6_ADDRSTRLEN> text{};
  auto const ip = ip_bytes();
  if (ip.size() == 4) {
    ::inet_ntop(AF_INET, ip.data(), text.data(), text.size());
    return std::string(text.data()) + ":" + std::to_string(port());
  }
  if (ip.size() == 16) {
    ::inet_ntop(AF_INET6, ip.data(), text.data(), text.size());
    return "[" + std::string(text.data()) + "]:" + std::to_string(port());
  }
  if (family() == AF_UNIX) {
    return std::string(path_prefix) +
           (reinterpret_cast<char const*>(bytes_) + offsetof(sockaddr_un, sun_path));
  }
  return "";
}

namespace {

auto path_of(socket_address const& address) -> std::string {
  return address.to_string().substr(path_prefix.size());
}

/// Whether there is a file that is not a socket, to which a connection is refused as well.
auto is_other_file(std::string const& path) -> bool {
  struct stat is {};
  return ::lstat(path.c_str(), &is) == 0 && !S_ISSOCK(is.st_mode);
}

/// A program that was killed leaves the file of its socket behind. False when another one listens
/// there, with errno as it was.
auto remove_if_abandoned(socket_address const& address) -> bool {
  auto const before = errno;
  bool removed = false;
  if (address.family() == AF_UNIX && !is_other_file(path_of(address))) {
    descriptor const probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    bool const is_abandoned = probe.is_open() &&
                              ::connect(probe.get(), static_cast<sockaddr const*>(address.data()),
                                        static_cast<socklen_t>(address.size())) != 0 &&
                              errno == ECONNREFUSED;
    removed = is_abandoned && ::unlink(path_of(address).c_str()) == 0;
  }
  errno = before;
  return removed;
}

}  // namespace

auto check_listening(socket_address const& address) -> result<void, system_error> {
  if (address.family() == AF_UNIX) {
    auto const path = path_of(address);
    auto const slash = path.rfind('/');
    auto const folder =
        slash == std::string::npos ? "." : path.substr(0, std::max<std::size_t>(slash, 1));
    if (::access(folder.c_str(), W_OK | X_OK) != 0) {
      return failure(system_error{"bind", errno});
    }
    if (is_other_file(path)) {
      return failure(system_error{"bind", EADDRINUSE});
    }
    return {};
  }
  descriptor const socket(::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket.is_open()) {
    return failure(system_error{"socket", errno});
  }
  int const on = 1;
  (void)::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  (void)::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
  // Not one that is in use, perhaps by the gateway that is to be replaced; nor a port that the
  // service manager may open.
  if (::bind(socket.get(), static_cast<sockaddr const*>(address.data()),
             static_cast<socklen_t>(address.size())) != 0 &&
      errno == EADDRNOTAVAIL) {
    return failure(system_error{"bind", errno});
  }
  return {};
}

auto is_listened_on(socket_address const& address) -> bool {
  if (address.family() == AF_UNIX || address.port() == 0) {
    return false;
  }
  descriptor const socket(::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
  int const on = 1;  // connections of a program that has ended are in no way
  return socket.is_open() &&
         ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
         ::bind(socket.get(), static_cast<sockaddr const*>(address.data()),
                static_cast<socklen_t>(address.size())) != 0 &&
         errno == EADDRINUSE;
}

auto listen_on(socket_address const& address, bool shared) -> result<descriptor, system_error> {
  descriptor socket(::socket(address.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket.is_open()) {
    return failure(system_error{"socket", errno});
  }
  int const on = 1;
  if (address.family() != AF_UNIX) {
    (void)::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    // Accepted connections inherit it: answers go out as they are written.
    (void)::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (shared && ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEPORT, &on, sizeof on) != 0) {
      return failure(system_error{"setsockopt SO_REUSEPORT", errno});
    }
  }
  auto const bind = [&] {
    return ::bind(socket.get(), static_cast<sockaddr const*>(address.data()),
                  static_cast<socklen_t>(address.size())) == 0;
  };
  if (!bind() && !(errno == EADDRINUSE && remove_if_abandoned(address) && bind())) {
    return failure(system_error{"bind", errno});
  }
  if (::listen(socket.get(), 4096) != 0) {
    return failure(system_error{"listen", errno});
  }
  return socket;
}

auto share(descriptor const& socket) -> result<descriptor, system_error> {
  descriptor out(::fcntl(socket.get(), F_DUPFD_CLOEXEC, 0));
  if (!out.is_open()) {
    return failure(system_error{"fcntl", errno});
  }
  return out;
}

auto local_address(descriptor const& socket) -> result<socket_address, system_error> {
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;
  if (::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&storage), &size) != 0) {
    return failure(system_error{"getsockname", errno});
  }
  return socket_address::from_bytes(&storage, size);
}

auto connect_to(socket_address const& address) -> result<descriptor, system_error> {
  descriptor socket(::socket(address.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket.is_open()) {
    return failure(system_error{"socket", errno});
  }
  if (address.family() != AF_UNIX) {
    int const on = 1;
    (void)::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }
  if (::connect(socket.get(), static_cast<sockaddr const*>(address.data()),
                static_cast<socklen_t>(address.size())) != 0 &&
      errno != EINPROGRESS) {
    return failure(system_error{"connect", errno});
  }
  return socket;
}

auto connect_error(descriptor const& socket) noexcept -> int {
  int code = 0;
  socklen_t size = sizeof code;
  if (::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &code, &size) != 0) {
    return errno;
  }
  return code;
}

}  // namespace tidegate::engine
