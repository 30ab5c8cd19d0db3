// SPDX-License-Identifier: Apache-2.0
#include "connection/http2_client_stream.hpp"

#include "request/caller.hpp"
#include "request/reply_edits.hpp"
#include "request/websocket_handshake.hpp"

namespace tidegate::gateway {

namespace {

/// What may wait of one response before its upstream is asked to stop.
constexpr std::size_t waiting_octets_max = 64 * 1024;

/// The field lines of a response as they are sent on, without what is HTTP/1.1's own.
[[nodiscard]] auto lines_of(std::string& out, wire::response_head const& head,
                            dropped_fields const& drop, std::string_view field_lines)
    -> std::string_view {
  wire::response_forwarding how;
  how.drop = drop.known;
  how.drop_names = drop.names;
  how.field_lines = field_lines;
  how.body = head.body();
  if (how.body.kind == wire::body_kind::chunked) {
    how.body.kind = wire::body_kind::until_close;  // that is: nothing says where it ends
  }
  out.clear();
  wire::append_response_head(out, head, how);
  std::string_view lines = out;
  lines.remove_prefix(lines.find("\r\n") + 2);
  lines.remove_suffix(2);
  return lines;
}

/// Appends complete lines but for those with one of these names.
void append_trailers(std::string& out, std::string_view lines, std::span<std::string const> names) {
  if (names.empty()) {
    out.append(lines);
    return;
  }
  while (!lines.empty()) {
    auto const line = lines.substr(0, std::min(lines.find("\r\n") + 2, lines.size()));
    if (!wire::is_trailer_of(line.substr(0, line.find(':')), names)) {
      out.append(line);
    }
    lines.remove_prefix(line.size());
  }
}

}  // namespace

void http2_client_stream::begin(wire::request_head const& head) {
  auto& on = connection_.worker_;
  is_head_request_ = head.method() == wire::method::head;
  chunks_ = head.body().kind == wire::body_kind::chunked;
  is_connect_ = head.is_extended_connect();
  received_at_ = on.loop.now();
  exchange_ = on.exchanges->take();
  exchange_->begin(*this, head, connection_.from_);
}

auto http2_client_stream::take(std::string_view bytes) -> bool {
  received_at_ = connection_.worker_.loop.now();
  if (tunnel_) {
    tunnel_->client_sent(bytes);
    return !tunnel_ || tunnel_->reads_client();
  }
  if (!exchange_) {
    if (was_tunnel_) {  // nothing reads any more, as of a socket that is closed
      connection_.session_.reset(*stream_, wire::http2_error::cancel);
      connection_.write_soon();
    }
    return true;  // answered already
  }
  if (is_connect_) {
    keep_early(std::move(early_.octets.append(bytes)));
    return false;  // at most a window of it
  }
  body_octets_ += bytes.size();
  if (body_octets_ > exchange_->context().terms.body_octets_max) {
    refuse(413);
    return true;
  }
  if (chunks_) {
    auto& out = connection_.worker_.http2_text;
    out.clear();
    wire::append_chunk_size(out, bytes.size());
    out.append(bytes).append(wire::chunk_end);
    exchange_->body(out, bytes.size(), false);
  } else {
    exchange_->body(bytes, bytes.size(), false);
  }
  return !exchange_ || !exchange_->is_above_high_watermark();
}

void http2_client_stream::take_end(std::string_view trailers) {
  if (tunnel_) {
    tunnel_->client_ended();
    return;
  }
  if (!exchange_ || is_connect_) {
    return;  // of a tunnel that is not open yet it comes to light then
  }
  if (!chunks_ || trailers.empty()) {
    exchange_->body(chunks_ ? wire::last_chunk_and_end : std::string_view(), 0, true);
    return;
  }
  auto& out = connection_.worker_.http2_text;
  out.assign(wire::last_chunk);
  append_trailers(out, trailers, dropped_trailers_of(exchange_->context()));
  out.append("\r\n");
  exchange_->body(out, 0, true);
}

void http2_client_stream::refuse(int status) {
  auto& on = connection_.worker_;
  if (on.log != nullptr && !exchange_ && !head_sent_) {
    on.log_malformed(connection_.from_.peer, protocol(), status);
  }
  if (exchange_ || !head_sent_) {  // else it is one that was answered before
    on.metrics->requests_malformed.add();
  }
  auto const grpc = exchange_ ? exchange_->context().grpc : grpc_kind::none;
  auto const edits = exchange_ ? response_edits_of(exchange_->context()) : nullptr;
  std::string const cors = exchange_ ? to_string(exchange_->context().terms.cors) : "";
  abandon(status);
  if (head_sent_) {
    connection_.session_.reset(*stream_, wire::http2_error::cancel);
    connection_.write_soon();
    return;
  }
  on.text.clear();
  http::problem_writer(on.text, {.title = wire::reason_phrase(status),
                                 .status = status,
                                 .detail = "The gateway does not accept this request."});
  local_reply reply{.status = status, .content = on.text, .closes = true};
  on.field_lines.assign(on.date_line());
  if (grpc != grpc_kind::none) {
    become_grpc(reply, grpc, on.grpc_lines);
    on.field_lines.append(reply.field_lines);
  }
  if (edits) {
    apply_edits(*edits, reply, on.field_lines);
  }
  on.field_lines.append(cors);
  send_whole(reply, on.field_lines);
}

void http2_client_stream::resume_waiting() {
  if (waits_for_ == room::any || !has(waits_for_)) {
    return;
  }
  if (tunnel_) {
    tunnel_->client_resumed();
  } else if (exchange_) {
    exchange_->client_resumed();
  }
}

auto http2_client_stream::held_octets() const -> std::size_t {
  auto const users = owner_.use_count();
  return early_.octets.size() + (exchange_ ? exchange_->waiting_octets() : 0) +
         (tunnel_ ? tunnel_->waiting_octets() : 0) +
         (users > 0 ? text_octets_ / static_cast<std::size_t>(users) : 0);
}

auto http2_client_stream::waits_for_content() const -> bool {
  // In a call of gRPC both sides may be silent for as long as they like once it is answered.
  bool const is_stream = exchange_ && head_sent_ && exchange_->context().grpc != grpc_kind::none;
  return !stream_->is_received() && !tunnel_ && !is_stream && !(exchange_ && is_connect_) &&
         !(exchange_ && exchange_->is_above_high_watermark());
}

void http2_client_stream::send_interim(wire::response_head const& head,
                                       dropped_fields const& drop) {
  auto const lines = lines_of(connection_.worker_.http2_text, head, drop, {});
  connection_.session_.send_interim(*stream_, head.status(), lines);
  connection_.write_soon();
}

void http2_client_stream::send_head(wire::response_head const& head, dropped_fields const& drop,
                                    std::string_view field_lines) {
  auto const lines = lines_of(connection_.worker_.http2_text, head, drop, field_lines);
  head_sent_ = true;
  connection_.session_.send_head(*stream_, head.status(), lines,
                                 head.body().kind == wire::body_kind::none);
  connection_.write_soon();
}

void http2_client_stream::send_own_head(int status, std::string_view field_lines,
                                        std::optional<std::uint64_t> length) {
  auto& lines = connection_.worker_.http2_text;
  lines.assign(field_lines);
  if (length) {
    wire::append_field(lines, "content-length", *length);
  }
  head_sent_ = true;
  connection_.session_.send_head(*stream_, status, lines, false);
  connection_.write_soon();
}

void http2_client_stream::send_body(std::string_view bytes) {
  if (!bytes.empty()) {
    if (stream_->waiting_octets() == 0) {
      waiting_since_ = connection_.worker_.loop.now();
    }
    connection_.session_.send_content(*stream_, bytes);
    connection_.write_soon();
  }
}

void http2_client_stream::send_end(response_end const& how) {
  auto const over = std::move(tunnel_);
  was_tunnel_ = over != nullptr;
  if (how.is_cut) {
    connection_.session_.reset(
        *stream_, over ? wire::http2_error::cancel : wire::http2_error::internal_error);
  } else {
    connection_.session_.send_end(*stream_, how.trailers);
    if (over && stream_->waiting_octets() == 0 && !stream_->is_received()) {
      connection_.session_.reset(*stream_, wire::http2_error::no_error);
    }
  }
  is_over();
}

void http2_client_stream::send_whole(local_reply const& reply, std::string_view field_lines) {
  auto& on = connection_.worker_;
  auto& lines = on.http2_text;
  lines.clear();
  bool const has_type = !reply.content_type.empty();
  if (has_type && !reply.content.empty()) {
    wire::append_field(lines, "content-type", reply.content_type);
  }
  if (has_type || (reply.status != 204 && reply.status != 304)) {
    wire::append_field(lines, "content-length", reply.content_begin.size() + reply.content.size());
  }
  lines.append(field_lines);
  head_sent_ = true;
  wire::http2_content content;
  if (!is_head_request_) {
    content = {reply.content_begin, reply.content, reply.owner};
  }
  connection_.session_.send_whole(*stream_, reply.status, lines, content);
  if (stream_->waiting_octets() > 0) {
    waiting_since_ = on.loop.now();
    if (content.owner) {
      text_ = on.shedder.hold_text(content.rest);
      owner_ = content.owner;
      text_octets_ = content.rest.size();
    }
  }
  is_over();
}

void http2_client_stream::give_up() {
  abandon(503);
  connection_.session_.reset(*stream_, wire::http2_error::internal_error);
  connection_.write_soon();
}

auto http2_client_stream::is_above_high_watermark() const -> bool {
  return !has(room::for_piece);
}

auto http2_client_stream::may_ask_directory() -> bool {
  if (!has(room::for_page)) {
    return false;
  }
  asks_ = true;
  ++connection_.asking_;
  return true;
}

void http2_client_stream::resume() {
  connection_.session_.let_send(*stream_);
  connection_.write_soon();
}

void http2_client_stream::begin_tunnel(std::unique_ptr<tunnel> made,
                                       wire::response_head const& head, dropped_fields const& drop,
                                       std::string_view field_lines) {
  auto& text = connection_.worker_.http2_text;
  text = std::string(lines_of(text, head, drop, field_lines));
  (void)take_line(text, "sec-websocket-accept");
  auto const early = std::exchange(early_.octets, {});
  tunnel_ = std::move(made);
  head_sent_ = true;
  connection_.session_.send_head(*stream_, 200, text, false);  // RFC 8441, section 5
  is_over();
  if (!early.empty()) {
    tunnel_->client_sent(early);
    if (tunnel_ && tunnel_->reads_client()) {
      connection_.session_.let_send(*stream_);
    }
  }
  if (tunnel_ && stream_->is_received()) {
    tunnel_->client_ended();
  }
}

void http2_client_stream::keep_early(std::string octets) {
  early_.octets = std::move(octets);
  connection_.worker_.count_buffered(early_.counted, early_.octets.size());
}

void http2_client_stream::end_sending() {
  connection_.session_.send_end(*stream_);
  connection_.write_soon();
}

auto http2_client_stream::has(room what) const -> bool {
  auto const waiting = stream_->waiting_octets();
  bool there = true;
  switch (what) {
    case room::any: break;
    case room::for_piece:
      there = waiting <= waiting_octets_max &&
              connection_.session_.pending_octets() <= waiting_octets_max &&
              (waiting == 0 || !connection_.is_full());
      break;
    case room::for_answer: there = !connection_.is_full(); break;
    case room::for_page: there = !connection_.is_full() && connection_.may_ask(); break;
  }
  waits_for_ = there ? room::any : what;
  connection_.has_full_stream_ = connection_.has_full_stream_ || !there;
  return there;
}

void http2_client_stream::is_over() {
  has_asked();
  if (is_connect_) [[unlikely]] {
    keep_early({});
  }
  if (exchange_) {
    connection_.worker_.exchanges->recycle(std::move(exchange_));
  }
  connection_.write_soon();
}

}  // namespace tidegate::gateway
