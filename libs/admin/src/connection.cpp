// SPDX-License-Identifier: Apache-2.0
#include "connection.hpp"

#include "console.hpp"

#include <tidegate/base/ascii.hpp>
#include <tidegate/wire/http1_write.hpp>

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <new>
#include <span>
#include <utility>

namespace tidegate::gateway {

namespace {

using namespace std::chrono_literals;

constexpr std::size_t content_octets_max = 16 * 1024;
/// From the first byte to the last one of the answer.
constexpr auto request_timeout = 10s;
/// How long what comes after the answer is read, so that the client gets to read the answer.
constexpr auto closing_timeout = 2s;
/// A console that has not read the last event is sent no other; after so many it is closed.
constexpr int events_missed_max = 30;

/// Whether the client connected to a loopback address.
[[nodiscard]] auto is_loopback(engine::descriptor const& socket) -> bool {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    return false;
  }
  if (address.ss_family == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, &address, sizeof v4);
    return ntohl(v4.sin_addr.s_addr) >> 24U == 127;
  }
  sockaddr_in6 v6{};
  std::memcpy(&v6, &address, sizeof v6);
  bool const is_v4_mapped = IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr) && v6.sin6_addr.s6_addr[12] == 127;
  return address.ss_family == AF_INET6 && (IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr) || is_v4_mapped);
}

/// `127.0.0.1:4711`
[[nodiscard]] auto peer_name(engine::descriptor const& socket) -> std::string {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  std::array<char, NI_MAXHOST> host{};
  std::array<char, NI_MAXSERV> port{};
  if (::getpeername(socket.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0 ||
      ::getnameinfo(reinterpret_cast<sockaddr*>(&address), size, host.data(), host.size(),
                    port.data(), port.size(), NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
    return "an unknown client";
  }
  return std::string(host.data()) + ":" + port.data();
}

/// 0.0.0.0 for a client that connected to a path.
[[nodiscard]] auto peer_ip(engine::descriptor const& socket) -> http::ip_address {
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;
  if (::getpeername(socket.get(), reinterpret_cast<sockaddr*>(&storage), &size) != 0) {
    return {};
  }
  auto const address = engine::socket_address::from_bytes(&storage, size);
  auto const ip = address.ip_bytes();
  auto const* const octets = reinterpret_cast<std::uint8_t const*>(ip.data());
  switch (ip.size()) {
    case 4: return http::ip_address::from_v4(std::span<std::uint8_t const, 4>(octets, 4));
    case 16: return http::ip_address::from_v6(std::span<std::uint8_t const, 16>(octets, 16));
    default: return {};
  }
}

/// Browsers send the cookies of a host to all of its ports, and several gateways may be on one.
[[nodiscard]] auto cookie_name(engine::descriptor const& socket) -> std::string {
  auto const local = engine::local_address(socket);
  return "tidegate_session_" + std::to_string(local ? local->port() : 0);
}

/// True for `localhost` and for addresses, with or without a port.
[[nodiscard]] auto names_this_machine(std::string_view authority) -> bool {
  if (authority.starts_with('[')) {
    return true;
  }
  auto const host = authority.substr(0, authority.find(':'));
  return equal_ignoring_case(host, "localhost") ||
         host.find_first_not_of("0123456789.") == std::string_view::npos;
}

[[nodiscard]] auto failures_in_words(admin_access::failures const& failures) -> std::string {
  return "the admin address refused " + std::to_string(failures.count) +
         (failures.count == 1 ? " wrong token" : " wrong tokens") + "; the last came from " +
         (failures.last_from == http::ip_address{} ? "an unknown client"
                                                   : to_string(failures.last_from));
}

}  // namespace

admin_connection::admin_connection(admin_router& router, engine::descriptor socket,
                                   std::uint64_t number,
                                   std::function<void(admin_connection&)> on_close)
    : router_(router),
      socket_(std::move(socket)),
      number_(number),
      on_close_(std::move(on_close)) {}

auto admin_connection::start() -> bool {
  expire_after(request_timeout);
  return router_.seen().loop.watch(socket_, *this).has_value();
}

void admin_connection::close() {
  if (stage_ == stage::streaming) {
    router_.end_stream();
  }
  cancel();
  socket_.close();
  self_.reset();
  on_close_(*this);
}

void admin_connection::expire_after(std::chrono::nanoseconds time) {
  auto& loop = router_.seen().loop;
  set(loop.timers(), loop.now() + time);
}

void admin_connection::expired() {
  if (stage_ != stage::streaming || missed_ >= events_missed_max) {
    close();
    return;
  }
  try {
    send_event();
  } catch (std::bad_alloc const&) {
    close();
    throw;
  }
}

void admin_connection::ready(engine::readiness events) {
  if (!socket_.is_open()) {
    return;
  }
  if (events.hung_up) {
    close();
    return;
  }
  if (events.readable || events.closing) {
    read();
  }
  if (socket_.is_open() && (stage_ == stage::answering || stage_ == stage::streaming)) {
    write();
  }
}

// ---- the request ----

void admin_connection::read() {
  std::array<char, 8192> bytes;  // NOLINT: what is not read is not looked at
  for (;;) {
    auto const size = ::recv(socket_.get(), bytes.data(), bytes.size(), 0);
    if (size < 0 && errno == EAGAIN) {
      return;
    }
    if (size == 0 && (stage_ == stage::working || stage_ == stage::answering)) {
      return;  // it sends no more, but may still read
    }
    if (size <= 0) {
      close();
      return;
    }
    std::string_view const came(bytes.data(), static_cast<std::size_t>(size));
    if (stage_ == stage::head) {
      take_head(came);
    } else if (stage_ == stage::content) {
      take_content(came);
    }
    if (!socket_.is_open()) {
      return;
    }
  }
}

void admin_connection::take_head(std::string_view bytes) {
  in_.append(bytes);
  auto const request = std::make_unique<wire::request_head>();
  auto const head = wire::parse_request_head(in_, seen_, {}, *request);
  seen_ = head.size;
  if (head.state == wire::head_state::incomplete) {
    return;
  }
  if (head.state != wire::head_state::complete) {
    bool const is_fault = head.state == wire::head_state::refused;
    respond(admin_problem(is_fault ? wire::status_of(head.fault) : 400,
                          is_fault ? to_string(head.fault) : "This address speaks HTTP/1.1."));
    return;
  }
  request_.method = request->method();
  request_.path = request->path();
  request_.query = request->query().substr(std::min<std::size_t>(1, request->query().size()));
  request_.content_type = request->value_of(wire::known_field::content_type);
  // The name of another site may be made to lead here, so that its pages count as of this origin.
  // Where a token is needed that gets them nothing: a session is that of another name.
  if (!router_.access().needs_token() && is_loopback(socket_) &&
      !names_this_machine(request->authority())) {
    respond(admin_problem(421, "Use localhost or the IP address to reach this address."));
    return;
  }
  if (admin_router::role_of(request_.path) != admin_role::anyone && !authorize(*request)) {
    return;
  }
  if (request->body().kind == wire::body_kind::content_length &&
      request->body().length > content_octets_max) {
    refuse_content();
    return;
  }
  decoder_ = wire::body_decoder(request->body());
  stage_ = stage::content;
  if (request->expects_continue() && !decoder_.done() && in_.size() == head.size) {
    constexpr std::string_view interim = "HTTP/1.1 100 Continue\r\n\r\n";
    (void)::send(socket_.get(), interim.data(), interim.size(), MSG_NOSIGNAL);
  }
  auto const rest = in_.substr(head.size);
  in_.clear();
  take_content(rest);
}

auto admin_connection::authorize(wire::request_head const& head) -> bool {
  auto& access = router_.access();
  auto const now = router_.seen().loop.now();
  cookie_ = {cookie_name(socket_),
             head.value_of(wire::known_field::origin).starts_with("https://")};
  auto caller = access.authorize(head, cookie_.name, peer_ip(socket_), now);
  bool const is_read =
      request_.method == wire::method::get || request_.method == wire::method::head;
  if (auto const failures = access.take_failures(now)) {
    router_.seen().events()->warning(failures_in_words(*failures));
  }
  if (!caller) {
    auto& refusal = caller.error();
    bool const asks_for_page =
        is_read && request_.path == "/" && refusal.status == 401 && !asks_by_token(head);
    if (refusal.status == 403) {
      note_refusal();
    }
    respond(asks_for_page ? login_page() : refusal);
    return false;
  }
  caller_ = *std::move(caller);
  if (!is_read && caller_.read_only && admin_router::role_of(request_.path) == admin_role::writer) {
    note_refusal();
    respond(admin_problem(403, "This token is read-only."));
    return false;
  }
  return true;
}

void admin_connection::take_content(std::string_view bytes) {
  in_.append(bytes);
  std::string_view rest = in_;
  while (!decoder_.done() && !rest.empty()) {
    auto const fed = decoder_.feed(rest);
    if (request_.content.size() + fed.content.size() > content_octets_max) {
      refuse_content();
      return;
    }
    request_.content.append(fed.content);
    if (fed.state == wire::body_state::refused) {
      respond(admin_problem(400, to_string(fed.fault)));
      return;
    }
    if (fed.consumed == 0) {
      break;
    }
    rest.remove_prefix(fed.consumed);
  }
  in_.erase(0, in_.size() - rest.size());
  if (decoder_.done()) {
    in_.clear();
    answer();
  }
}

void admin_connection::refuse_content() {
  respond(admin_problem(413, "The body of the request is too large."));
}

// ---- the answer ----

void admin_connection::note_refusal() {
  if (auto const words = change_in_words(request_)) {
    note_function()(*words, 403);
  }
}

auto admin_connection::note_function() const -> admin_note {
  auto by = peer_name(socket_) + (caller_.token.empty() ? "" : " (token " + caller_.token + ")");
  return
      [events = router_.seen().events(), by = std::move(by)](std::string_view words, int status) {
        events->info("the admin address was asked by " + by + " to " + std::string(words) +
                     ": answered " + std::to_string(status));
      };
}

void admin_connection::answer() {
  stage_ = stage::working;
  router_.answer({request_, caller_, cookie_, note_function(),
                  [self = std::weak_ptr(self_)](admin_answer const& answer) {
                    if (auto const there = self.lock()) {
                      (*there)->respond(answer);
                    }
                  }});
}

void admin_connection::respond(admin_answer const& answer) {
  bool const is_head = request_.method == wire::method::head;
  in_ = {};
  wire::append_status_line(out_, answer.status);
  if (answer.status != 204) {
    wire::append_field(out_, "Content-Type", answer.content_type);
  }
  if (answer.status != 204 && !answer.streams) {
    wire::append_field(out_, "Content-Length", answer.content.size());
  }
  if (!answer.allow.empty()) {
    wire::append_field(out_, "Allow", answer.allow);
  }
  for (auto const& [name, value] : answer.fields) {
    wire::append_field(out_, name, value);
  }
  if (!answer.security_policy.empty()) {
    wire::append_field(out_, "Content-Security-Policy", answer.security_policy);
    wire::append_field(out_, "Referrer-Policy", "no-referrer");
  }
  wire::append_field(out_, "Cache-Control", "no-store");
  wire::append_field(out_, "X-Content-Type-Options", "nosniff");
  wire::append_field(out_, "Connection", "close");
  wire::append_end_of_head(out_);
  if (answer.streams && !is_head) {
    stage_ = stage::streaming;
    router_.begin_stream();
    append_event();
    return;
  }
  if (!is_head) {
    out_.append(answer.content);
  }
  stage_ = stage::answering;
  write();
}

void admin_connection::send_event() {
  if (!router_.access().holds(caller_, router_.seen().loop.now())) {
    close();
    return;
  }
  if (out_.empty()) {
    append_event();
  } else {
    ++missed_;
    expire_after(admin_router::event_interval);
  }
}

void admin_connection::append_event() {
  missed_ = 0;
  out_.append("event: metrics\ndata: ").append(router_.figures()).append("\n\n");
  expire_after(admin_router::event_interval);
  write();
}

void admin_connection::write() {
  while (!out_.empty()) {
    auto const sent = ::send(socket_.get(), out_.data(), out_.size(), MSG_NOSIGNAL);
    if (sent < 0) {
      if (errno != EAGAIN) {
        close();
      }
      return;
    }
    out_.erase(0, static_cast<std::size_t>(sent));
  }
  if (stage_ == stage::streaming) {
    return;
  }
  // Closed with bytes unread, the connection would be reset, and the answer could be lost with it.
  ::shutdown(socket_.get(), SHUT_WR);
  stage_ = stage::closing;
  expire_after(closing_timeout);
}

}  // namespace tidegate::gateway
