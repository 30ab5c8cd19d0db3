// SPDX-License-Identifier: Apache-2.0
#include "connection/proxy_header_reader.hpp"

#include "connection/http1_connection.hpp"

#include <tidegate/http/proxy_protocol.hpp>

#include <sys/socket.h>

#include <cerrno>

namespace tidegate::gateway {

namespace {

auto receive(engine::descriptor const& socket, std::span<char> into, int flags) -> ssize_t {
  ssize_t got = 0;
  do {
    got = ::recv(socket.get(), into.data(), into.size(), flags);
  } while (got < 0 && errno == EINTR);
  return got;
}

}  // namespace

proxy_header_reader::proxy_header_reader(worker& on, worker::client_place at,
                                         engine::descriptor socket, http::ip_address const& peer,
                                         next_options next)
    : worker_(on), place_(at), socket_(std::move(socket)), peer_(peer), next_(std::move(next)) {
  *place_ = this;
}

auto proxy_header_reader::start() -> bool {
  set(worker_.loop.timers(), worker_.loop.now() + worker_.first_byte_timeout());
  return worker_.loop.watch(socket_, *this).has_value();
}

void proxy_header_reader::drain() {
  set(worker_.loop.timers(), worker_.loop.now() + worker_.first_byte_timeout());
}

void proxy_header_reader::ready(engine::readiness what) {
  if (closed_) {
    return;
  }
  if (what.hung_up) {
    refuse();
  } else if (what.readable) {
    read_header(what.closing);
  }
}

/// Looks at what has come and takes the header off when it is whole: the bytes behind it are for
/// the next reader, perhaps TLS.
void proxy_header_reader::read_header(bool is_last) {
  std::array<char, http::proxy_header_size_max> bytes;  // NOLINT: what is not read is not looked at
  auto const size = receive(socket_, bytes, MSG_PEEK);
  if (size < 0 && errno == EAGAIN) {
    return;
  }
  if (size <= 0) {
    refuse();
    return;
  }
  auto const header = http::parse_proxy_header({bytes.data(), static_cast<std::size_t>(size)});
  if (!header || (!*header && is_last)) {
    refuse();
    return;
  }
  if (!*header) {
    return;
  }
  auto const header_size = (*header)->size;
  if (receive(socket_, std::span(bytes).first(header_size), 0) !=
      static_cast<ssize_t>(header_size)) {
    refuse();
    return;
  }
  if ((*header)->connection) {
    peer_ = (*header)->connection->source.address;
  } else {
    // The header names no client: a health check, or an address that is not an IP address.
    may_name_others_ = false;
  }
  hand_over();
}

void proxy_header_reader::hand_over() {
  auto transport = next_.tls ? engine::transport(std::move(socket_), *next_.tls)
                             : engine::transport(std::move(socket_));
  auto* const next =
      new http1_connection(worker_, place_, std::move(transport), peer_, next_.http2);  // NOLINT
  place_ = worker_.clients.end();
  next->from().may_name_others = may_name_others_;
  next->from().redirects_to_https = next_.redirects_to_https;
  if (!next->start(true)) {
    next->drop();
  }
  close();
}

void proxy_header_reader::refuse() {
  worker_.metrics->connections_without_header.add();
  close();
}

void proxy_header_reader::close() {
  if (std::exchange(closed_, true)) {
    return;
  }
  cancel();
  if (place_ != worker_.clients.end()) {
    worker_.remove_client(place_);
  }
  socket_.close();
  worker_.loop.dispose(std::unique_ptr<watched>(this));
}

}  // namespace tidegate::gateway
