// SPDX-License-Identifier: Apache-2.0
#include "connection/http1_writer.hpp"

namespace tidegate::gateway {

namespace {

/// What may wait to be sent before the upstream is asked to stop, and no other request begins.
constexpr std::size_t unsent_octets_max = 256 * 1024;
/// The same where there are so many clients that together they would have too much.
constexpr std::size_t unsent_octets_min = 16 * 1024;

}  // namespace

auto http1_writer::is_above_high_watermark() const -> bool {
  auto const octets = unsent_ ? unsent_->octets() : 0;
  return octets > unsent_octets_min &&
         octets > worker_.share_of_buffers(unsent_octets_min, unsent_octets_max);
}

void http1_writer::send_interim(wire::response_head const& head, dropped_fields const& drop) {
  if (minor_version_ == 1) {
    wire::response_forwarding how;
    how.drop = drop.known;
    how.drop_names = drop.names;
    wire::append_response_head(worker_.to_client, head, how);
    flush();
  }
}

void http1_writer::send_head(wire::response_head const& head, dropped_fields const& drop,
                             std::string_view field_lines) {
  wire::response_forwarding how;
  how.drop = drop.known;
  how.drop_names = drop.names;
  how.body = head.body();
  if (how.body.kind == wire::body_kind::none && !is_head_request_ && head.status() != 204 &&
      head.status() != 304 && !head.has(wire::known_field::content_length)) {
    how.body.kind = wire::body_kind::content_length;  // an end that only HTTP/2 has said
  }
  if (phase_ == phase::body) {
    keep_alive_ = false;  // an answer before the end of the request: the rest is not waited for
  }
  if (how.body.kind == wire::body_kind::until_close) {
    if (minor_version_ == 1) {
      how.body.kind = wire::body_kind::chunked;
      chunks_ = true;
    } else {
      keep_alive_ = false;
    }
  } else if (how.body.kind == wire::body_kind::chunked && minor_version_ == 0) {
    how.body.kind = wire::body_kind::until_close;
    keep_alive_ = false;
  }
  if (!keep_alive_) {
    how.connection = wire::connection_option::close;
  } else if (minor_version_ == 0) {
    how.connection = wire::connection_option::keep_alive;
  }
  how.field_lines = field_lines;
  head_sent_ = true;
  wire::append_response_head(worker_.to_client, head, how);
}

void http1_writer::send_own_head(int status, std::string_view field_lines,
                                 std::optional<std::uint64_t> length) {
  auto& out = worker_.to_client;
  head_sent_ = true;
  wire::append_status_line(out, status);
  out.append(field_lines);
  if (status == 204 || status == 304) {
    // It ends with its head, whatever comes behind it where HTTP/2 is spoken.
  } else if (length) {
    wire::append_field(out, "Content-Length", *length);
  } else if (minor_version_ == 1) {
    out.append("Transfer-Encoding: chunked\r\n");
    chunks_ = true;
  } else {
    keep_alive_ = false;
  }
  out.append(!keep_alive_          ? "Connection: close\r\n"
             : minor_version_ == 0 ? "Connection: keep-alive\r\n"
                                   : "")
      .append("\r\n");
}

void http1_writer::send_body(std::string_view bytes) {
  if (bytes.empty()) {
    return;
  }
  if (chunks_) {
    wire::append_chunk_size(worker_.to_client, bytes.size());
    worker_.to_client.append(bytes).append(wire::chunk_end);
  } else {
    wire::append_parts(worker_.to_client, bytes);
  }
}

void http1_writer::send_whole(local_reply const& reply, std::string_view field_lines) {
  if (phase_ == phase::body && !may_skip_) {
    keep_alive_ = false;
  }
  keep_alive_ = keep_alive_ && !reply.closes;
  std::string_view const connection = !keep_alive_          ? "Connection: close\r\n"
                                      : minor_version_ == 0 ? "Connection: keep-alive\r\n"
                                                            : "";
  auto& out = worker_.to_client;
  auto const content = reply.content;
  bool const is_large = content.size() >= large_octets_min && !is_head_request_;
  if (reply.content_type.empty()) {
    wire::append_whole_head(out, reply.status, field_lines, connection,
                            reply.content_begin.size() + content.size());
    if (!is_head_request_) {
      wire::append_parts(out, reply.content_begin, is_large ? std::string_view() : content);
    }
  } else {
    if (reply.content_head.empty()) {
      append_content_head(out, reply.status, reply.content_type, content.size());
    }
    wire::append_parts(out, reply.content_head, field_lines, connection, "\r\n",
                       is_head_request_ || is_large ? std::string_view() : content);
  }
  if (is_large) {
    send_large(reply);
  }
  response_is_complete();
}

/// Writes what was gathered and, without a copy, what comes behind it. A connection that turns out
/// to be broken is closed by the next write or by an event of the loop: a caller may still use it.
void http1_writer::send_large(local_reply const& reply) {
  auto& gathered = worker_.to_client;
  std::string_view first = gathered;
  auto rest = reply.content;
  if (!unsent_) {
    auto const [state, sent] = transport_.write(first, rest);
    auto const of_first = std::min(sent, first.size());
    first.remove_prefix(of_first);
    rest.remove_prefix(sent - of_first);
  }
  if (!first.empty()) {
    keep(first);
  }
  if (!rest.empty() && reply.owner == nullptr) {
    keep(rest);
  } else if (!rest.empty()) {
    keep({});
    unsent_->rest = rest;
    unsent_->owner = reply.owner;
    unsent_->held = worker_.shedder.hold_text(reply.content);
    wait_for_reader();
  }
  gathered.clear();
}

void http1_writer::keep(std::string_view bytes) {
  if (!unsent_) {
    unsent_ = std::make_unique<unsent>();
  }
  auto& to = *unsent_;
  if (!to.rest.empty()) {  // more comes behind it
    to.text.append(std::exchange(to.rest, {}));
    to.owner.reset();
    to.held.reset();
  }
  to.text.append(bytes);
  worker_.count_buffered(to.counted, to.text.size());
  wait_for_reader();
}

void http1_writer::drop_unsent() {
  if (unsent_) {
    worker_.count_buffered(unsent_->counted, 0);
    unsent_.reset();
  }
}

void http1_writer::flush() {
  auto& gathered = worker_.to_client;
  std::string_view bytes = gathered;
  if (bytes.empty() || phase_ == phase::closed) {
    return;
  }
  if (!unsent_) {
    auto const [state, sent] = transport_.write(bytes);
    if (state == engine::io_state::failed) {
      gathered.clear();
      close();
      return;
    }
    bytes.remove_prefix(sent);
  }
  if (!bytes.empty()) {
    keep(bytes);
  }
  gathered.clear();
  if (gathered.capacity() > 2 * worker::input_octets_max) {
    gathered.shrink_to_fit();
  }
}

void http1_writer::end_sending() {
  flush();
  finishing_ = phase_ == phase::tunnel;
  if (finishing_ && !unsent_) {
    transport_.finish();
  }
}

void http1_writer::wait_for_reader(std::size_t taken) {
  if (unsent_) {
    unsent_->pace.note(taken, unsent_->octets(), worker_.loop.now());
  }
  if (phase_ == phase::waiting || (phase_ == phase::lingering && unsent_) ||
      (phase_ == phase::head && !may_begin())) {
    set_deadline(unsent_ ? worker_.current->active->config.http.idle_timeout : forever);
  }
}

}  // namespace tidegate::gateway
