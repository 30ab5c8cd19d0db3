// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/engine/socket.hpp>
#include <tidegate/engine/tls.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace tidegate::engine {

enum class io_state : std::uint8_t {
  done,    ///< `size` octets went through
  again,   ///< nothing can be done now: the loop tells when to try again
  closed,  ///< the peer has sent everything, and said so
  failed,  ///< the connection is of no use any more
};

struct io_result {
  io_state state = io_state::done;
  std::size_t size = 0;
};

/// A connected socket that bytes go through as they are or by TLS. Never waits.
///
/// A read that fills less than it was given room for has taken all that there was, in both cases.
class transport {
 public:
  /// Bytes as they are.
  explicit transport(descriptor socket) noexcept;
  /// TLS, as the server of it.
  transport(descriptor socket, tls_context const& context);
  /// TLS, as a client that wants to talk to `server_name`: a name, or an address.
  transport(descriptor socket, tls_context const& context, std::string const& server_name);
  transport(transport&&) noexcept;
  auto operator=(transport&&) noexcept -> transport&;
  ~transport();

  [[nodiscard]] auto socket() const noexcept -> descriptor const& { return socket_; }
  [[nodiscard]] auto is_secure() const noexcept -> bool { return tls_ != nullptr; }

  /// Goes on with the handshake; `done` when there is none or it is over. Reading does so by
  /// itself.
  [[nodiscard]] auto handshake() noexcept -> io_state;
  /// Why the other end was not believed in the handshake, for people; empty when that is not why it
  /// failed.
  [[nodiscard]] auto verify_fault() const -> std::string;
  /// True while it is under way: then whatever the socket becomes ready for is worth a `read`.
  [[nodiscard]] auto is_handshaking() const noexcept -> bool;

  /// The protocol that was agreed upon (RFC 7301), such as `h2`; empty when none was. Once the
  /// handshake is over.
  [[nodiscard]] auto protocol() const noexcept -> std::string_view;

  [[nodiscard]] auto read(std::span<char> into) noexcept -> io_result;
  /// What was not taken must be given again, perhaps with more behind it.
  [[nodiscard]] auto write(std::string_view bytes) noexcept -> io_result;
  /// The one and then the other. An error says how much was taken before.
  [[nodiscard]] auto write(std::string_view first, std::string_view then) noexcept -> io_result;

  /// Says that nothing more will be written.
  void finish() noexcept;
  void close() noexcept;

 private:
  class tls_session;

  descriptor socket_;
  std::unique_ptr<tls_session> tls_;
};

}  // namespace tidegate::engine
