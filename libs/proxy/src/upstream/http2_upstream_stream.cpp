// SPDX-License-Identifier: Apache-2.0
#include "upstream/http2_upstream_stream.hpp"

#include "request/websocket_handshake.hpp"
#include "upstream/http2_upstream_connection.hpp"
#include "upstream/upstream_pool.hpp"

#include <tidegate/wire/http1_write.hpp>

namespace tidegate::gateway {

namespace {

/// What may wait to be sent before no more of a request is read: less when many clients share the
/// memory, but never less than this.
constexpr std::size_t waiting_octets_max = 256 * 1024;
constexpr std::size_t waiting_octets_min = 16 * 1024;
/// A request is kept up to here, so that it can be sent again when the server refuses it.
constexpr std::size_t kept_octets_max = 64 * 1024;
/// So much also when memory is short: a head, and little more.
constexpr std::size_t kept_octets_min = 4096;
/// Trailers were judged where they came in.
constexpr wire::body_limits any_trailers{.trailer_octets_max = 1U << 20U,
                                         .trailers_max = 1U << 20U};

}  // namespace

void http2_upstream_stream::set_deadline(std::chrono::nanoseconds wait) {
  auto& loop = connection_.worker_.loop;
  set(loop.timers(), loop.now() + wait);
}

void http2_upstream_stream::forget() {
  keeps_ = true;
  is_whole_ = false;
  answered_ = false;
  has_failed_ = false;
  paused_ = false;
  tunnel_ = {};
  was_full_ = false;
  body_ = {};
  kept_.clear();
  rest_.clear();
  trailers_.clear();
}

void http2_upstream_stream::start(upstream_user& user, wire::method method,
                                  std::string_view bytes) {
  user_ = &user;
  method_ = method;
  started_ = connection_.worker_.loop.now();
  if (is_connected()) {
    await_answer();
  } else if (connection_.phase_ == http2_upstream_connection::phase::open) {
    await_turn();
  }
  if (!bytes.empty()) {
    send(bytes);
  }
  if (bytes.size() > waiting_octets_min) {
    // Where that waited before, its user may have been told to wait: it is to be told to go on.
    was_full_ = true;
    connection_.has_full_ = true;
  }
}

void http2_upstream_stream::await_answer() {
  set_deadline(answer_timeout_of(user_, connection_.pool_.target().settings->timeout));
}

void http2_upstream_stream::await_turn() {
  set_deadline(connection_.pool_.target().settings->connect_timeout);
}

void http2_upstream_stream::connected() {
  if (user_ == nullptr) {
    return;
  }
  await_answer();
  user_->upstream_connected();
  if (user_ != nullptr && stream_ == nullptr && !kept_.empty()) {
    open();
  }
}

void http2_upstream_stream::send(std::string_view bytes) {
  if (bytes.empty() || connection_.phase_ == http2_upstream_connection::phase::closed) {
    return;
  }
  if (tunnel_.is_open) {
    connection_.session_.send_content(*stream_, bytes);
    connection_.write_soon();
    return;
  }
  if (keeps_) {
    kept_.append(bytes);
  }
  if (!is_connected()) {
    connection_.count_waiting();
    return;
  }
  if (stream_ == nullptr) {
    open();
  } else {
    send_body(bytes);
  }
  if (kept_.size() > kept_octets_max ||
      (kept_.size() > kept_octets_min && !connection_.worker_.may_hold_bodies())) {
    keeps_ = false;
    std::string().swap(kept_);
  }
  connection_.write_soon();
}

void http2_upstream_stream::open() {
  auto& session = connection_.session_;
  auto& worker = connection_.worker_;
  if (!session.takes_requests()) {  // since it was chosen
    connection_.has_refused_ = true;
    connection_.write_soon();
    return;
  }
  auto text = wire::split_request_text(kept_);
  text.request.scheme = server_->server->identity.tls_name ? "https" : "http";
  if (user_->wants_upgrade()) [[unlikely]] {
    open_tunnel(text.request);
    return;
  }
  auto const [stream, body] = session.open(text.request, method_, worker.loop.now());
  stream.user = this;
  stream_ = &stream;
  body_ = wire::body_decoder(body);
  is_whole_ = body.kind == wire::body_kind::none;
  send_body(std::string_view(kept_).substr(text.size));
}

void http2_upstream_stream::open_tunnel(wire::http2_request request) {
  auto& session = connection_.session_;
  if (!session.has_settings()) {
    return;  // the connection comes back to it
  }
  if (!session.takes_extended_connect()) {
    tunnel_.is_unwanted = true;
    connection_.has_refused_ = true;
    connection_.write_soon();
    return;
  }
  std::string lines(request.field_lines);
  tunnel_.key = take_line(lines, "sec-websocket-key");
  (void)take_line(lines, "content-length");
  request.method = "CONNECT";
  request.protocol = "websocket";
  request.field_lines = lines;
  auto& stream =
      session.open(request, wire::method::connect, connection_.worker_.loop.now()).stream;
  stream.user = this;
  stream_ = &stream;
}

void http2_upstream_stream::send_body(std::string_view bytes) {
  std::string joined;
  if (!rest_.empty()) {
    joined = std::exchange(rest_, {});
    joined.append(bytes);
    bytes = joined;
  }
  while (!bytes.empty() && !body_.done()) {
    auto const fed = body_.feed(bytes, any_trailers);
    if (!fed.content.empty()) {
      connection_.session_.send_content(*stream_, fed.content);
    }
    if (fed.state == wire::body_state::trailer) {
      wire::append_field(trailers_, fed.trailer.name, fed.trailer.value);
    }
    if (fed.consumed == 0) {
      break;
    }
    bytes.remove_prefix(fed.consumed);
  }
  if (body_.done() && !std::exchange(is_whole_, true)) {
    connection_.session_.send_end(*stream_, trailers_);
  } else if (!body_.done()) {
    rest_.assign(bytes);
  }
}

auto http2_upstream_stream::is_above_high_watermark() const noexcept -> bool {
  auto const octets = waiting_octets();
  was_full_ = octets > waiting_octets_min &&
              octets > connection_.worker_.share_of_buffers(waiting_octets_min, waiting_octets_max);
  connection_.has_full_ = connection_.has_full_ || was_full_;
  return was_full_;
}

void http2_upstream_stream::resume() {
  if (std::exchange(paused_, false) && stream_ != nullptr) {
    connection_.session_.let_send(*stream_);
    connection_.write_soon();
  }
}

void http2_upstream_stream::abandon() {
  auto& connection = connection_;
  if (stream_ != nullptr) {
    connection.session_.reset(*stream_, wire::http2_error::cancel);
  }
  (void)connection.release(*this);
  connection.write_soon();
}

// ---- after a 2xx to an extended CONNECT ----

void http2_upstream_stream::end_sending() {
  connection_.session_.send_end(*stream_);
  connection_.write_soon();
}

/// What waits for the server is still sent, within its time. When both directions have ended the
/// session has forgotten the stream, or is about to.
void http2_upstream_stream::leave_tunnel() {
  end_sending();
  user_ = nullptr;
  if (stream_->is_over()) {
    (void)connection_.release(*this);
    return;
  }
  tunnel_.is_left = true;
  server_->leave();
  set_deadline(connection_.pool_.target().settings->idle_timeout);
}

// ---- what comes ----

void http2_upstream_stream::take_head(wire::response_head const& head) {
  auto& worker = connection_.worker_;
  auto const& settings = *connection_.pool_.target().settings;
  answered_ = true;
  keeps_ = false;  // it is not sent again
  kept_.clear();
  if (!connection_.use_.is_check) {
    auto const now = worker.loop.now();
    has_failed_ = !server_->note_head(head.status(), now - started_, now);
  }
  if (!tunnel_.key.empty() && head.status() < 300) [[unlikely]] {
    take_upgrade(head);
    return;
  }
  set_deadline(settings.idle_timeout);
  user_->upstream_head(head);
}

/// It is shown as the 101 that it is in HTTP/1.1 (RFC 8441, section 5).
void http2_upstream_stream::take_upgrade(wire::response_head const& head) {
  auto& connection = connection_;
  auto* const stream = stream_;
  tunnel_.is_open = true;
  cancel();                   // the tunnel has its own time
  std::string().swap(kept_);  // it may stay open for long
  auto const text = switching_head_of(head, websocket_accept_of(std::exchange(tunnel_.key, {})));
  auto& switching = connection.worker_.response;
  bool const is_sound =
      wire::parse_response_head(text, 0, {}, wire::method::get, switching).state ==
      wire::head_state::complete;
  if (!is_sound || !user_->upstream_upgraded(switching)) {
    connection.session_.reset(*stream, wire::http2_error::cancel);
    connection.write_soon();
    connection.fail(*this, upstream_failure::malformed, {}, true);
    return;
  }
  connection.use_.answered = true;
  server_->note_answer(connection.worker_.loop.now());
}

auto http2_upstream_stream::take_content(std::string_view bytes) -> bool {
  auto* const stream = stream_;
  if (tunnel_.is_left) {
    abandon();  // nothing reads it any more, as of a socket that is closed
    return true;
  }
  if (!tunnel_.is_open) {
    set_deadline(connection_.pool_.target().settings->idle_timeout);
  }
  user_->upstream_body(bytes, bytes.size());
  if (stream->user != this || user_ == nullptr) {
    return true;  // it is over
  }
  if (user_->client_is_full()) {
    paused_ = true;
  }
  return !paused_;
}

void http2_upstream_stream::take_end(std::string_view trailers) {
  auto& connection = connection_;
  if (tunnel_.is_open) {
    if (user_ != nullptr) {
      user_->upstream_ended();
    }
    return;
  }
  if (!is_whole_ || stream_->waiting_octets() > 0) {  // the server wants no more of it
    connection.session_.reset(*stream_, wire::http2_error::cancel);
  }
  connection.use_.answered = true;
  if (!connection.use_.is_check && !has_failed_) {
    server_->note_answer(connection.worker_.loop.now());
  }
  connection.switch_to(this);
  connection.fed_ = nullptr;
  connection.release(*this)->upstream_done(trailers);
}

auto http2_upstream_stream::failure_of(wire::http2_stream_end how) const -> upstream_failure {
  switch (how) {
    case wire::http2_stream_end::refused: return upstream_failure::refused_stream;
    case wire::http2_stream_end::malformed: return upstream_failure::malformed;
    default: return upstream_failure::closed;
  }
}

void http2_upstream_stream::expired() {
  auto& connection = connection_;
  auto const& settings = *connection.pool_.target().settings;
  if (tunnel_.is_left) {
    abandon();
    return;
  }
  if (user_ == nullptr) {
    return;
  }
  if (!is_told_) {
    connection_.fail(*this, upstream_failure::connect_timeout, {}, true);
    return;
  }
  if (answered_ && paused_) {  // it is the client that is slow, and has its own time
    set_deadline(settings.idle_timeout);
    return;
  }
  if (!answered_) {
    if (auto const more = user_->upstream_is_late()) {
      // The answer is waited for, and the client was told 504.
      server_->note_failure(
          describe_timeout(answer_timeout_of(user_, connection_.pool_.target().settings->timeout)),
          connection.worker_.loop.now());
      set_deadline(*more);
      return;
    }
  }
  if (stream_ != nullptr) {
    connection.session_.reset(*stream_, wire::http2_error::cancel);
  }
  connection.write_soon();
  if (answered_) {
    connection.fail(*this, upstream_failure::idle, {}, true);
  } else {
    connection.fail(
        *this, upstream_failure::timeout,
        describe_timeout(answer_timeout_of(user_, connection_.pool_.target().settings->timeout)),
        true);
  }
}

}  // namespace tidegate::gateway
