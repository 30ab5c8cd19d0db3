// SPDX-License-Identifier: Apache-2.0
#include <tidegate/engine/transport.hpp>

#include "tls_state.hpp"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <arpa/inet.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <new>
#include <utility>

namespace tidegate::engine {

namespace {

// Not by `recv` and `send` of the C library: those are points of cancellation, which nothing here
// needs and which cost them as much again.

auto receive(int socket, void* into, std::size_t size) noexcept -> ssize_t {
  ssize_t got = 0;
  do {
    got = ::syscall(SYS_recvfrom, socket, into, size, 0, nullptr, nullptr);
  } while (got < 0 && errno == EINTR);
  return got;
}

auto send(int socket, void const* from, std::size_t size) noexcept -> ssize_t {
  ssize_t sent = 0;
  do {
    sent = ::syscall(SYS_sendto, socket, from, size, MSG_NOSIGNAL, nullptr, 0);
  } while (sent < 0 && errno == EINTR);
  return sent;
}

auto send(int socket, std::string_view first, std::string_view then) noexcept -> ssize_t {
  // The system takes it by pointers to what is not const, and only reads.
  std::array<iovec, 2> parts{{{const_cast<char*>(first.data()), first.size()},
                              {const_cast<char*>(then.data()), then.size()}}};
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  ssize_t sent = 0;
  do {
    sent = ::syscall(SYS_sendmsg, socket, &message, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return sent;
}

/// What one of these has returned.
auto result_of(ssize_t size) noexcept -> io_result {
  if (size >= 0) {
    return {io_state::done, static_cast<std::size_t>(size)};
  }
  return {errno == EAGAIN ? io_state::again : io_state::failed, 0};
}

}  // namespace

/// OpenSSL's state of one connection, and the socket as OpenSSL sees it.
class transport::tls_session {
 public:
  tls_session(int socket, SSL_CTX* context, bool is_server)
      : socket_(socket), ssl_(SSL_new(context)) {
    auto* const bio = ssl_ == nullptr ? nullptr : BIO_new(socket_method());
    if (bio == nullptr) {
      SSL_free(ssl_);
      throw std::bad_alloc();
    }
    BIO_set_data(bio, this);
    BIO_set_init(bio, 1);
    SSL_set_bio(ssl_, bio, bio);
    if (is_server) {
      SSL_set_accept_state(ssl_);
    } else {
      SSL_set_connect_state(ssl_);
    }
  }
  tls_session(tls_session const&) = delete;
  auto operator=(tls_session const&) -> tls_session& = delete;
  ~tls_session() { SSL_free(ssl_); }

  void expect(std::string const& server_name, bool verify) {
    std::array<unsigned char, sizeof(in6_addr)> address{};
    bool const is_address = ::inet_pton(AF_INET, server_name.c_str(), address.data()) == 1 ||
                            ::inet_pton(AF_INET6, server_name.c_str(), address.data()) == 1;
    bool good = true;
    if (!is_address) {  // RFC 6066, section 3: an address is not sent
      // What SSL_set_tlsext_host_name does, by casts of C. The name is copied.
      good = SSL_ctrl(ssl_, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
                      const_cast<char*>(server_name.c_str())) == 1;
    }
    if (verify) {
      good = good && (is_address ? X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl_),
                                                                 server_name.c_str()) == 1
                                 : SSL_set1_host(ssl_, server_name.c_str()) == 1);
    }
    failed_ = !good;  // never a connection to a peer that was not checked
    ERR_clear_error();
  }

  [[nodiscard]] auto verify_fault() const -> std::string {
    auto const code = SSL_get_verify_result(ssl_);
    return code == X509_V_OK ? std::string() : X509_verify_cert_error_string(code);
  }

  [[nodiscard]] auto is_handshaking() const noexcept -> bool {
    return !failed_ && SSL_is_init_finished(ssl_) == 0;
  }

  [[nodiscard]] auto protocol() const noexcept -> std::string_view {
    unsigned char const* name = nullptr;
    unsigned size = 0;
    SSL_get0_alpn_selected(ssl_, &name, &size);
    return {reinterpret_cast<char const*>(name), size};
  }

  [[nodiscard]] auto handshake() noexcept -> io_state {
    if (failed_) {
      return io_state::failed;
    }
    drained_ = false;
    begin();
    auto const code = SSL_do_handshake(ssl_);
    return code == 1 ? io_state::done : state_after(code);
  }

  [[nodiscard]] auto read(std::span<char> into) noexcept -> io_result {
    return transfer(SSL_read_ex, into.data(), into.size());
  }

  [[nodiscard]] auto write(std::string_view bytes) noexcept -> io_result {
    return transfer(SSL_write_ex, bytes.data(), bytes.size());
  }

  /// Sends close_notify, once and if there is room for it.
  void finish() noexcept {
    if (!failed_ && SSL_is_init_finished(ssl_) == 1 &&
        (SSL_get_shutdown(ssl_) & SSL_SENT_SHUTDOWN) == 0) {
      begin();
      if (SSL_shutdown(ssl_) < 0) {
        ERR_clear_error();
      }
    }
  }

 private:
  // What OpenSSL keeps in its queue of errors, of this or any other connection, would mislead
  // SSL_get_error.
  static void begin() noexcept {
    ERR_clear_error();
    errno = 0;
  }

  /// Calls `SSL_read_ex` or `SSL_write_ex` until all went through or nothing more does.
  template <class Call, class Octet>
  [[nodiscard]] auto transfer(Call call, Octet* octets, std::size_t all) noexcept -> io_result {
    drained_ = false;
    std::size_t size = 0;
    auto state = failed_ ? io_state::failed : io_state::done;
    while (state == io_state::done && size < all) {
      begin();
      std::size_t some = 0;
      auto const code = call(ssl_, octets + size, all - size, &some);
      size += some;
      if (code != 1) {
        state = state_after(code);
      }
    }
    return size > 0 ? io_result{io_state::done, size} : io_result{state, 0};
  }

  [[nodiscard]] auto state_after(int code) noexcept -> io_state {
    auto const error = SSL_get_error(ssl_, code);
    switch (error) {
      case SSL_ERROR_WANT_READ:
      case SSL_ERROR_WANT_WRITE: return io_state::again;
      case SSL_ERROR_ZERO_RETURN: return io_state::closed;
      default:
        failed_ = true;
        ERR_clear_error();
        return io_state::failed;
    }
  }

  // The BIO of OpenSSL for sockets raises SIGPIPE, and reads once more to learn that there is
  // nothing.
  static auto socket_method() -> BIO_METHOD const* {
    static auto const* const method = [] {
      auto* const made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "tidegate");
      if (made == nullptr) {
        throw std::bad_alloc();
      }
      BIO_meth_set_read(made, bio_read);
      BIO_meth_set_write(made, bio_write);
      BIO_meth_set_ctrl(made, bio_control);
      return made;
    }();
    return method;
  }

  static auto bio_read(BIO* bio, char* into, int size) -> int {
    auto& self = *static_cast<tls_session*>(BIO_get_data(bio));
    BIO_clear_retry_flags(bio);
    if (self.drained_) {
      BIO_set_retry_read(bio);
      return -1;
    }
    auto const got = receive(self.socket_, into, static_cast<std::size_t>(size));
    if (got < 0 && errno == EAGAIN) {
      BIO_set_retry_read(bio);
    }
    // A short read has taken all there was; the end of the stream comes with an event of its own.
    self.drained_ = got > 0 && got < size;
    return static_cast<int>(got);
  }

  static auto bio_write(BIO* bio, char const* from, int size) -> int {
    auto const& self = *static_cast<tls_session*>(BIO_get_data(bio));
    BIO_clear_retry_flags(bio);
    auto const sent = engine::send(self.socket_, from, static_cast<std::size_t>(size));
    if (sent < 0 && errno == EAGAIN) {
      BIO_set_retry_write(bio);
    }
    return static_cast<int>(sent);
  }

  static auto bio_control(BIO* /*bio*/, int command, long /*number*/, void* /*pointer*/) -> long {
    return command == BIO_CTRL_FLUSH ? 1 : 0;
  }

  int socket_;
  SSL* ssl_;
  bool failed_ = false;
  bool drained_ = false;  // in this call: the socket has no more
};

transport::transport(descriptor socket) noexcept : socket_(std::move(socket)) {}

transport::transport(descriptor socket, tls_context const& context)
    : socket_(std::move(socket)),
      tls_(std::make_unique<tls_session>(socket_.get(), context.state_->context.get(), true)) {}

transport::transport(descriptor socket, tls_context const& context, std::string const& server_name)
    : socket_(std::move(socket)),
      tls_(std::make_unique<tls_session>(socket_.get(), context.state_->context.get(), false)) {
  tls_->expect(server_name, context.state_->verify);
}

transport::transport(transport&&) noexcept = default;
auto transport::operator=(transport&&) noexcept -> transport& = default;
transport::~transport() = default;

auto transport::handshake() noexcept -> io_state {
  return tls_ == nullptr ? io_state::done : tls_->handshake();
}

auto transport::verify_fault() const -> std::string {
  return tls_ == nullptr ? std::string() : tls_->verify_fault();
}

auto transport::is_handshaking() const noexcept -> bool {
  return tls_ != nullptr && tls_->is_handshaking();
}

auto transport::read(std::span<char> into) noexcept -> io_result {
  if (tls_ != nullptr) {
    return tls_->read(into);
  }
  auto const got = receive(socket_.get(), into.data(), into.size());
  return got == 0 ? io_result{io_state::closed, 0} : result_of(got);
}

auto transport::write(std::string_view bytes) noexcept -> io_result {
  if (tls_ != nullptr) {
    return tls_->write(bytes);
  }
  return result_of(engine::send(socket_.get(), bytes.data(), bytes.size()));
}

auto transport::protocol() const noexcept -> std::string_view {
  return tls_ != nullptr ? tls_->protocol() : std::string_view();
}

auto transport::write(std::string_view first, std::string_view then) noexcept -> io_result {
  if (tls_ != nullptr) {
    auto made = tls_->write(first);
    if (made.state != io_state::done || made.size < first.size()) {
      return made;
    }
    made = tls_->write(then);
    made.size += first.size();
    return made;
  }
  return result_of(engine::send(socket_.get(), first, then));
}

void transport::finish() noexcept {
  if (tls_ != nullptr) {
    tls_->finish();
  }
  ::shutdown(socket_.get(), SHUT_WR);
}

void transport::close() noexcept {
  if (tls_ != nullptr) {
    tls_->finish();
    tls_.reset();
  }
  socket_.close();
}

}  // namespace tidegate::engine
