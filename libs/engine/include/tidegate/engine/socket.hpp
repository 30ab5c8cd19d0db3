// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/result.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace tidegate::engine {

/// A file descriptor that is closed with its owner.
class descriptor {
 public:
  descriptor() = default;
  explicit descriptor(int fd) noexcept : fd_(fd) {}
  descriptor(descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  auto operator=(descriptor&& other) noexcept -> descriptor& {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~descriptor() { close(); }

  [[nodiscard]] auto get() const noexcept -> int { return fd_; }
  [[nodiscard]] auto is_open() const noexcept -> bool { return fd_ >= 0; }
  void close() noexcept;

 private:
  int fd_ = -1;
};

/// What the system said no to.
struct system_error {
  char const* call = "";
  int code = 0;  ///< errno
  auto operator==(system_error const&) const -> bool = default;
};
[[nodiscard]] auto to_string(system_error const& error) -> std::string;

/// The address of one end of a connection: IPv4, IPv6 or a path.
class socket_address {
 public:
  socket_address() = default;
  /// `127.0.0.1:8080`, `[::1]:8080`, `:8080` for all addresses, `unix:/path`. Port 0: any free one.
  [[nodiscard]] static auto parse(std::string_view text) -> result<socket_address, std::string>;
  /// From what the system gave.
  [[nodiscard]] static auto from_bytes(void const* data, std::size_t size) -> socket_address;

  [[nodiscard]] auto data() const noexcept -> void const* { return bytes_; }
  [[nodiscard]] auto size() const noexcept -> std::size_t { return size_; }
  [[nodiscard]] auto family() const noexcept -> int;
  [[nodiscard]] auto port() const noexcept -> std::uint16_t;
  /// The address without the port: 4 or 16 bytes; none for a path.
  [[nodiscard]] auto ip_bytes() const noexcept -> std::string_view;
  [[nodiscard]] auto to_string() const -> std::string;

 private:
  alignas(8) std::byte bytes_[112]{};  // NOLINT(modernize-avoid-c-arrays): as large as sockaddr_un
  std::uint32_t size_ = 0;
};

/// Why `listen_on` could not succeed, as far as that can be told beside a program that listens
/// there already: the folder of a path cannot be written to, or an IP address is not of this
/// machine. Changes nothing.
[[nodiscard]] auto check_listening(socket_address const& address) -> result<void, system_error>;

/// Whether a program listens on an IP address already. Of a path `listen_on` says so.
[[nodiscard]] auto is_listened_on(socket_address const& address) -> bool;

/// A listening socket that does not block. With `shared`, others may listen on the same address and
/// the kernel spreads connections (SO_REUSEPORT); there is no such thing for a path. The socket of
/// a path that no program listens on any more is replaced, and no other file.
[[nodiscard]] auto listen_on(socket_address const& address, bool shared)
    -> result<descriptor, system_error>;
/// Another descriptor for the same socket.
[[nodiscard]] auto share(descriptor const& socket) -> result<descriptor, system_error>;
/// The address that a socket got.
[[nodiscard]] auto local_address(descriptor const& socket) -> result<socket_address, system_error>;
/// Begins to connect; the socket becomes writable when it is done, and `connect_error` says how it
/// went.
[[nodiscard]] auto connect_to(socket_address const& address) -> result<descriptor, system_error>;
[[nodiscard]] auto connect_error(descriptor const& socket) noexcept -> int;

}  // namespace tidegate::engine
