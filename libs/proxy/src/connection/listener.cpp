// SPDX-License-Identifier: Apache-2.0
#include "connection/listener.hpp"

#include "connection/http1_connection.hpp"
#include "connection/proxy_header_reader.hpp"

#include <sys/socket.h>

#include <cerrno>
#include <new>

namespace tidegate::gateway {

namespace {

using namespace std::chrono_literals;

/// When to try again what the system had no means for.
constexpr auto accept_again_after = 100ms;
/// Where turns are shorter, one connection is taken in each, so that no call is made to learn that
/// no other waits. Where they are longer, too many would wait meanwhile.
constexpr auto short_turn = 250us;
/// What is taken of a queue before it is closed: more than any queue holds, and yet an end where
/// connections come faster than they are taken.
constexpr std::size_t last_accepted_max = 65'536;

/// 0.0.0.0 for a client of a Unix domain socket.
auto ip_of(engine::socket_address const& address) -> http::ip_address {
  auto const ip = address.ip_bytes();
  auto const* const octets = reinterpret_cast<std::uint8_t const*>(ip.data());
  switch (ip.size()) {
    case 4: return http::ip_address::from_v4(std::span<std::uint8_t const, 4>(octets, 4));
    case 16: return http::ip_address::from_v6(std::span<std::uint8_t const, 16>(octets, 16));
    default: return {};
  }
}

}  // namespace

listener::listener(worker& on, engine::descriptor socket, std::string address)
    : worker_(on), socket_(std::move(socket)), address_(std::move(address)) {}

listener::~listener() {
  worker_.loop.unwatch(socket_);
}

auto listener::start(bool shared) -> bool {
  shared_ = shared;
  return watch();
}

auto listener::watch() -> bool {
  return worker_.loop.watch_listening(socket_, *this, shared_).has_value();
}

/// What waits in the queue would be told of in each turn.
void listener::pause() {
  worker_.loop.unwatch(socket_);
  set(worker_.loop.timers(), worker_.loop.now() + accept_again_after);
}

void listener::use(active_config const& active) {
  auto const& listen = active.config.listen;
  auto const found = std::ranges::find(listen, address_, &listener_config::address);
  if (found != listen.end()) {
    tls_ = active.listener_tls[static_cast<std::size_t>(found - listen.begin())];
    http2_ = found->http2;
    proxy_protocol_ = found->proxy_protocol;
    redirects_to_https_ = found->redirect_to_https;
  }
}

void listener::ready(engine::readiness /*what*/) {
  auto const now = worker_.loop.now();
  auto const turn = told_at_ == instant::min() ? short_turn : now - told_at_;
  told_at_ = now;
  accept(turn < short_turn ? 1 : last_accepted_max);
}

void listener::accept_last() {
  accept(last_accepted_max);
}

void listener::out_of_memory() {
  pause();
}

void listener::expired() {
  if (!watch()) {
    set(worker_.loop.timers(), worker_.loop.now() + accept_again_after);
  }
}

void listener::accept(std::size_t count_max) {
  for (std::size_t i = 0; i < count_max; ++i) {
    sockaddr_storage storage{};
    socklen_t size = sizeof storage;
    engine::descriptor accepted(::accept4(socket_.get(), reinterpret_cast<sockaddr*>(&storage),
                                          &size, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (accepted.is_open()) {
      take(std::move(accepted), ip_of(engine::socket_address::from_bytes(&storage, size)));
    } else if (errno == EAGAIN) {
      return;
    } else if (errno != ECONNABORTED && errno != EINTR) {
      // Most likely no descriptor is left, and nothing tells when there is one.
      worker_.metrics->accept_failures.add();
      pause();
      return;
    }
  }
}

void listener::take(engine::descriptor socket, http::ip_address const& peer) {
  if (proxy_protocol_ && !worker_.current->active->trusted_proxies.contains(peer)) {
    // Its peer is not a trusted proxy, whose PROXY header would be believed.
    worker_.metrics->connections_untrusted.add();
    return;
  }
  auto const place = worker_.add_client();
  if (!place) {
    worker_.metrics->connections_refused.add();
    return;
  }
  worker_.metrics->connections_accepted.add();
  try {
    begin(*place, std::move(socket), peer);
  } catch (std::bad_alloc const&) {
    if (**place == nullptr) {
      worker_.remove_client(*place);
    }
    throw;
  }
}

void listener::begin(worker::client_place at, engine::descriptor socket,
                     http::ip_address const& peer) {
  if (proxy_protocol_) {
    auto* const client = new proxy_header_reader(worker_, at, std::move(socket), peer,  // NOLINT
                                                 {tls_, http2_, redirects_to_https_});
    if (!client->start()) {
      client->drop();
    }
    return;
  }
  auto transport =
      tls_ ? engine::transport(std::move(socket), *tls_) : engine::transport(std::move(socket));
  auto* const client =
      new http1_connection(worker_, at, std::move(transport), peer, http2_);  // NOLINT
  client->from().redirects_to_https = redirects_to_https_;
  if (!client->start(false)) {
    client->drop();
  }
}

}  // namespace tidegate::gateway
