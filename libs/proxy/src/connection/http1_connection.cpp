// SPDX-License-Identifier: Apache-2.0
#include "connection/http1_connection.hpp"

#include "connection/http2_connection.hpp"
#include "request/caller.hpp"
#include "request/reply_edits.hpp"

#include <new>

namespace tidegate::gateway {

namespace {

using namespace std::chrono_literals;

/// Answers to requests that came together are gathered up to here.
constexpr std::size_t gathered_octets_max = 64 * 1024;
/// A body that is not wanted is read up to here, so that the connection can serve the next request.
constexpr std::size_t skipped_octets_max = 64 * 1024;
/// How long a client may go on sending after the last response.
constexpr auto linger_timeout = 2s;

}  // namespace

http1_connection::http1_connection(worker& on, worker::client_place at, engine::transport transport,
                                   http::ip_address const& peer, bool http2)
    : http1_writer(on, std::move(transport)),
      may_be_http2_(http2),
      from_(peer, transport_.is_secure() ? "https" : "http"),
      place_(at) {
  *place_ = this;
}

auto http1_connection::start(bool is_watched) -> bool {
  set_deadline(worker_.first_byte_timeout());
  auto const& socket = transport_.socket();
  return (is_watched ? worker_.loop.watch_instead(socket, *this)
                     : worker_.loop.watch(socket, *this))
      .has_value();
}

// ---- input ----

void http1_connection::ready(engine::readiness what) {
  if (phase_ == phase::closed) {
    return;
  }
  // In a tunnel both directions may have ended in order, with octets that are still to be read.
  bool const is_read_to_end =
      what.hung_up && phase_ == phase::tunnel && engine::connect_error(transport_.socket()) == 0;
  if (what.hung_up && !is_read_to_end) {
    close();
    return;
  }
  if (what.closing && !std::exchange(closing_, true) && phase_ == phase::waiting && in_.empty()) {
    close();  // no answer is waited for any more
    return;
  }
  readable_ = readable_ || what.readable || (what.writable && transport_.is_handshaking());
  if (what.writable && unsent_) {
    write_out();
  }
  if (phase_ != phase::closed && readable_) {
    read();
  }
}

auto http1_connection::may_read() const -> bool {
  switch (phase_) {
    case phase::head:
      return (in_.size() < worker::input_octets_max ||
              in_.size() <= worker_.current->active->head_limits.head_octets_max) &&
             may_begin();
    case phase::body: return !exchange_->is_above_high_watermark();
    case phase::tunnel: return tunnel_->reads_client();
    case phase::skipping:
    case phase::lingering: return true;
    default: return false;
  }
}

void http1_connection::read() {
  while (readable_ && may_read()) {
    auto const [state, size] = transport_.read(worker_.input);
    if (state == engine::io_state::again) {
      readable_ = false;
      return;
    }
    if (state == engine::io_state::closed && phase_ == phase::tunnel) {
      readable_ = false;
      tunnel_->client_ended();
      return;
    }
    if (state != engine::io_state::done) {
      close();
      return;
    }
    readable_ = closing_ || size == worker_.input.size();
    came_at_ = worker_.loop.now();
    take({worker_.input.data(), size});
  }
}

void http1_connection::take(std::string_view bytes) {
  if (phase_ == phase::lingering) {
    return;
  }
  if (phase_ == phase::tunnel) {
    tunnel_->client_sent(bytes);
    return;
  }
  // What was left over comes first. It stays in a text of its own while it is looked at.
  std::string joined;
  if (!in_.empty()) {
    joined = std::exchange(in_, {});
    joined.append(bytes);
    bytes = joined;
  }
  taking_ = true;
  bool more = true;
  while (more && !bytes.empty()) {
    switch (phase_) {
      case phase::head:
        if (worker_.to_client.size() > gathered_octets_max) {
          flush();
        }
        more = phase_ == phase::head && may_begin() && take_head(bytes);
        break;
      case phase::body: more = take_body(bytes); break;
      case phase::skipping: more = skip_body(bytes); break;
      default: more = false;
    }
  }
  taking_ = false;
  if (!bytes.empty() && phase_ != phase::closed && phase_ != phase::lingering) {
    in_.assign(bytes);
  }
  if (phase_ != phase::closed) {
    worker_.count_buffered(counted_, in_.size());
    flush();
  }
}

auto http1_connection::take_head(std::string_view& bytes) -> bool {
  auto const& settings = worker_.current->active->config.http;
  if (may_be_http2_ && transport_.is_secure()) {
    // What was agreed upon binds both (RFC 9113, section 3.2).
    may_be_http2_ = false;
    if (transport_.protocol() == "h2") {
      become_http2(bytes);
      return false;
    }
  }
  auto const head =
      wire::parse_request_head(bytes, seen_, worker_.current->active->head_limits, worker_.request);
  if (head.state == wire::head_state::incomplete) {
    if (seen_ == 0) {
      set_deadline(settings.header_timeout);  // from its first byte on
    }
    seen_ = head.size;
    return false;
  }
  seen_ = 0;
  if (std::exchange(may_be_http2_, false) && head.state == wire::head_state::http2_preface) {
    become_http2(bytes);
    return false;
  }
  is_new_ = false;
  if (head.state != wire::head_state::complete) {
    respond_to_malformed(
        head.state == wire::head_state::http2_preface ? 505 : wire::status_of(head.fault));
    return false;
  }
  auto const& request = worker_.request;
  bytes.remove_prefix(head.size);
  minor_version_ = static_cast<std::uint8_t>(request.minor_version());
  is_head_request_ = request.method() == wire::method::head;
  client_closes_ = !request.keep_alive();
  keep_alive_ = !client_closes_ && !worker_.shared.drain.draining.load(std::memory_order_relaxed);
  response_done_ = false;
  head_sent_ = false;
  chunks_ = false;
  body_ = wire::body_decoder(request.body());
  body_octets_ = 0;
  // A client that asks for a 100 may, after another answer, send the body or the next request, and
  // nothing tells which.
  may_skip_ = !request.has(wire::known_field::expect) &&
              (request.body().kind != wire::body_kind::content_length ||
               request.body().length <= skipped_octets_max);
  phase_ = body_.done() ? phase::waiting : phase::body;
  set_deadline(phase_ == phase::body ? settings.body_timeout : forever);
  exchange_ = worker_.exchanges->take();
  exchange_->begin(*this, request, from_, bytes.size());
  if (response_done_) {
    next_request();
  }
  return true;
}

auto http1_connection::take_body(std::string_view& bytes) -> bool {
  std::string rewritten;
  auto const passed =
      body_.pass(bytes, rewritten, {.left_out = dropped_trailers_of(exchange_->context())});
  if (passed.state == wire::body_state::refused) {
    respond_to_malformed(400);
    return false;
  }
  bytes.remove_prefix(passed.consumed);
  body_octets_ += passed.content_octets;
  if (body_octets_ > exchange_->context().terms.body_octets_max) {
    respond_to_malformed(413);
    return false;
  }
  set_deadline(worker_.current->active->config.http.body_timeout);
  if (body_.done()) {
    phase_ = phase::waiting;
    set_deadline(forever);  // the upstream has its own times
  }
  exchange_->body(passed.send, passed.content_octets, body_.done());
  if (response_done_) {
    next_request();
  }
  return passed.consumed > 0 && phase_ != phase::body;
}

auto http1_connection::skip_body(std::string_view& bytes) -> bool {
  std::string rewritten;
  auto const passed = body_.pass(bytes, rewritten);
  bytes.remove_prefix(passed.consumed);
  body_octets_ += passed.consumed;
  if (passed.state == wire::body_state::refused || body_octets_ > skipped_octets_max) {
    keep_alive_ = false;
  }
  if (!keep_alive_) {
    flush();  // the answer, before nothing more is written
    if (phase_ != phase::closed) {
      linger();
    }
    return false;
  }
  if (body_.done()) {
    await_request();
  }
  return passed.consumed > 0;
}

void http1_connection::become_http2(std::string_view bytes) {
  auto* const next = new http2_connection(worker_, place_, std::move(transport_), from_);  // NOLINT
  place_ = worker_.clients.end();
  next->start(bytes, closing_);
  close();
}

void http1_connection::respond_to_malformed(int status) {
  worker_.metrics->requests_malformed.add();
  auto const grpc = exchange_ ? exchange_->context().grpc : grpc_kind::none;
  auto const edits = exchange_ ? response_edits_of(exchange_->context()) : nullptr;
  std::string const cors = exchange_ ? to_string(exchange_->context().terms.cors) : "";
  if (exchange_) {
    exchange_->abandon(status);
    worker_.exchanges->recycle(std::move(exchange_));
    if (head_sent_) {  // what we would say were part of that response
      flush();
      close();
      return;
    }
  } else if (worker_.log != nullptr) {
    worker_.log_malformed(from_.peer, protocol(), status);
  }
  worker_.text.clear();
  http::problem_writer(worker_.text, {.title = wire::reason_phrase(status),
                                      .status = status,
                                      .detail = "The gateway does not accept this request."});
  keep_alive_ = false;
  minor_version_ = 1;
  is_head_request_ = false;
  phase_ = phase::waiting;
  local_reply reply{.status = status, .content = worker_.text, .closes = true};
  worker_.field_lines.assign(worker_.date_line());
  if (grpc != grpc_kind::none) {
    become_grpc(reply, grpc, worker_.grpc_lines);
    worker_.field_lines.append(reply.field_lines);
  }
  if (edits) {
    apply_edits(*edits, reply, worker_.field_lines);
  }
  worker_.field_lines.append(cors);
  send_whole(reply, worker_.field_lines);
  if (taking_) {
    next_request();
  }
}

// ---- output ----

auto http1_connection::waiting_octets() const -> std::size_t {
  if (phase_ == phase::closed) {
    return 0;
  }
  // Of a text that others wait for too, its part.
  auto const text = unsent_ ? unsent_->text.size() : 0;
  auto const rest =
      unsent_ && unsent_->owner != nullptr
          ? unsent_->rest.size() / static_cast<std::size_t>(unsent_->owner.use_count())
          : 0;
  return in_.size() + text + rest + (exchange_ ? exchange_->waiting_octets() : 0) +
         (tunnel_ ? tunnel_->waiting_octets() : 0);
}

auto http1_connection::waiting_since(instant now) const -> instant {
  if (unsent_) {
    return unsent_->pace.since();
  }
  return phase_ == phase::head || phase_ == phase::body ? came_at_ : now;
}

void http1_connection::send_end(response_end const& how) {
  if (how.is_cut) {
    response_done_ = true;  // as far as the exchange goes, which has ended
    close();
    return;
  }
  if (auto const over = std::move(tunnel_)) {
    flush();
    if (phase_ != phase::closed) {
      linger();
    }
    return;
  }
  if (chunks_) {
    wire::append_parts(worker_.to_client, wire::last_chunk, how.trailers, "\r\n");
  }
  response_is_complete();
}

void http1_connection::response_is_complete() {
  response_done_ = true;
  if (!taking_) {
    flush();
    if (phase_ != phase::closed) {
      next_request();
      resume_reading();
    }
  }
}

/// Takes what has come of the next request.
void http1_connection::resume_reading() {
  bool const may_take = phase_ == phase::head ? may_begin() : phase_ == phase::skipping;
  if (may_take && !in_.empty()) {
    take({});
  }
  if (phase_ != phase::closed && readable_) {
    read();
  }
}

/// To the next request, or to the end.
void http1_connection::next_request() {
  response_done_ = false;
  if (exchange_) {
    worker_.exchanges->recycle(std::move(exchange_));
  }
  if (keep_alive_ && !body_.done()) {
    phase_ = phase::skipping;
    set_deadline(worker_.current->active->config.http.body_timeout);
  } else if (keep_alive_) {
    await_request();
  } else {
    flush();
    // A client that has asked for it sends no more (RFC 9112, section 9.6), so that nothing of its
    // response is lost when the connection is closed at once.
    bool const has_all = client_closes_ && body_.done() && in_.empty() && !unsent_ && !readable_;
    if (phase_ != phase::closed && has_all && !transport_.is_secure()) {
      close();
    } else if (phase_ != phase::closed) {
      linger();
    }
  }
}

void http1_connection::await_request() {
  phase_ = phase::head;
  set_deadline(worker_.current->active->config.http.idle_timeout);
}

void http1_connection::write_out() {
  auto& from = *unsent_;
  auto const [state, sent] = transport_.write(from.text, from.rest);
  if (state != engine::io_state::done && sent == 0) {
    if (state != engine::io_state::again) {
      close();
    }
    return;
  }
  auto const of_text = std::min(sent, from.text.size());
  from.text.erase(0, of_text);
  from.rest.remove_prefix(sent - of_text);
  worker_.count_buffered(from.counted, from.text.size());
  if (from.octets() == 0) {
    unsent_.reset();
    if (phase_ == phase::lingering) {
      linger();
      return;
    }
    if (phase_ == phase::head && in_.empty()) {
      await_request();
    }
    if (finishing_) {
      transport_.finish();
    }
  }
  wait_for_reader(sent);
  if (tunnel_ && !is_above_high_watermark()) {
    tunnel_->client_resumed();
  } else if (exchange_ && !is_above_high_watermark()) {
    exchange_->client_resumed();
  } else if (phase_ == phase::head) {
    resume_reading();
  }
}

void http1_connection::resume() {
  if (!taking_ && readable_) {
    read();
  }
}

// ---- after an upgrade ----

void http1_connection::begin_tunnel(std::unique_ptr<tunnel> made, wire::response_head const& head,
                                    dropped_fields const& drop, std::string_view field_lines) {
  tunnel_ = std::move(made);
  worker_.exchanges->recycle(std::move(exchange_));
  phase_ = phase::tunnel;
  cancel();
  wire::response_forwarding how;
  how.drop = drop.known;
  how.drop_names = drop.names;
  how.field_lines = field_lines;
  how.upgrade = true;
  wire::append_response_head(worker_.to_client, head, how);
  flush();
  if (phase_ == phase::tunnel && !in_.empty()) {
    auto const early = std::exchange(in_, {});
    worker_.count_buffered(counted_, 0);
    tunnel_->client_sent(early);
  }
  if (phase_ == phase::tunnel && readable_) {
    read();
  }
}

/// What the client still sends would make the system throw away what it has not read yet of the
/// response, so it is taken in for a moment.
void http1_connection::linger() {
  phase_ = phase::lingering;
  in_.clear();
  set_deadline(linger_timeout);
  wait_for_reader();
  if (!unsent_) {
    transport_.finish();
    if (closing_) {
      close();
    }
  }
}

void http1_connection::drain() {
  if (phase_ != phase::head || !in_.empty() || unsent_) {
    keep_alive_ = false;
  } else if (is_new_) {
    set_deadline(worker_.first_byte_timeout());  // its request may be on the way
  } else {
    close();
  }
}

/// Nothing can be told to the client, since that would take memory as well.
void http1_connection::out_of_memory() {
  taking_ = false;
  response_done_ = false;
  close();
}

void http1_connection::expired() {
  try {
    time_is_up();
  } catch (std::bad_alloc const&) {
    out_of_memory();
    throw;
  }
}

void http1_connection::time_is_up() {
  if (phase_ == phase::head && !in_.empty() && may_begin()) {
    respond_to_malformed(408);
  } else if (phase_ == phase::body) {
    if (exchange_->is_above_high_watermark()) {
      // It is the upstream that is slow, and has its own time.
      set_deadline(worker_.current->active->config.http.body_timeout);
      return;
    }
    respond_to_malformed(408);
  } else if (phase_ != phase::closed) {
    close();
  }
}

void http1_connection::close() {
  if (phase_ == phase::closed) {
    return;
  }
  phase_ = phase::closed;
  cancel();
  if (exchange_) {
    if (!response_done_) {
      try {
        exchange_->abandon();
      } catch (std::bad_alloc const&) {  // this has to end all the same
      }
    }
    worker_.exchanges->recycle(std::move(exchange_));
  }
  if (auto const over = std::move(tunnel_)) {
    over->client_gone();
  }
  worker_.to_client.clear();
  drop_unsent();
  worker_.count_buffered(counted_, 0);
  if (place_ != worker_.clients.end()) {
    worker_.remove_client(place_);
  }
  transport_.close();
  worker_.loop.dispose(std::unique_ptr<watched>(this));
}

}  // namespace tidegate::gateway
