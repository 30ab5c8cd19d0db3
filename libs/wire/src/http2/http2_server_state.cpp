// SPDX-License-Identifier: Apache-2.0
#include "http2_server_state.hpp"

#include <algorithm>
#include <utility>

namespace tidegate::TIDEGATE_ABI::wire {

using namespace http2;

// ── heads ───────────────────────────────────────────────────────────────────────────

void http2_session::state::open_block() {
  auto const id = frame.stream;
  if (id > last_id) {
    if (id != last_id + 2) {
      note_skipped(id);
    }
    last_id = id;
    if (goaway_sent) {  // section 6.8
      note(control_frames);
    } else if (streams.size() >= limits.concurrent_streams_max) {  // section 5.1.2
      append_frame(pending, frame_type::rst_stream, flag::none, id, http2_error::refused_stream);
      note_reset(id);
      count_answer();
      note(resets);
    } else {
      last_accepted_id = id;
      current = &open(id, now, initial_send_window);
      block.use = field_block::purpose::head;
      head.clear();
    }
  } else if (auto* const stream = find(id); stream == nullptr) {
    if (is_skipped(id)) {  // section 5.1.1
      return terminate(http2_error::protocol_error);
    }
    note(control_frames);  // trailers that we did not wait for
  } else if (stream->received_) {
    refuse(*stream, http2_error::stream_closed);
  } else if (stream->connect_ != http2_stream::connect::none) {  // section 8.5
    refuse(*stream, http2_error::protocol_error);
  } else {
    expect_trailers(*stream);
  }
}

/// The head is complete: has it judged as HTTP/1.1 would be, and handed on.
void http2_session::state::end_of_head(http2_stream& stream, bool last) {
  stream.received_ = last;
  if (auto const& said = head.said_priority()) {
    set_priority(stream, *said);
  }
  if (stream.id_ == early.stream) {
    set_priority(stream, early.value);
  }
  if (head.is_too_large(limits.head.head_octets_max)) {
    events.refused_request(stream, head_fault::head_too_large);
    return;
  }
  auto const parts = head.parts(last);
  if (head.is_malformed()) {
    refuse(stream, http2_error::protocol_error);
    return;
  }
  switch (auto const fault = take_request_head(parts, limits.head, request)) {
    case head_fault::none: break;
    case head_fault::invalid_method:
    case head_fault::repeated_content_length:
    case head_fault::invalid_content_length:
    case head_fault::content_length_overflow: refuse(stream, http2_error::protocol_error); return;
    default: events.refused_request(stream, fault); return;
  }
  if (request.is_extended_connect()) {
    stream.connect_ = http2_stream::connect::asked;
  }
  stream.length_.is_known = request.has(known_field::content_length);
  stream.length_.missing_octets = request.body().length;
  if (last && stream.length_.missing_octets != 0) {
    refuse(stream, http2_error::protocol_error);
    return;
  }
  events.request(stream, request);
}

void http2_session::state::take_priority_update(std::string_view payload) {
  auto const id = read_31_bits(payload.data());
  if (id % 2 == 0) {
    return terminate(http2_error::protocol_error);
  }
  // One that is longer than any use of it sets nothing.
  auto const said = left_octets == 0 ? priority_of(payload.substr(4)) : priority{};
  if (is_idle(id)) {
    early = {id, said};
  } else if (auto* const stream = find(id); stream != nullptr) {
    set_priority(*stream, said);
  }
}

void http2_session::state::set_priority(http2_stream& stream, priority to) {
  stream.priority_.incremental = to.incremental;
  if (std::exchange(stream.priority_.urgency, to.urgency) != to.urgency &&
      stream.queue_ == http2_stream::queue::ready) {
    remove(stream);
    schedule(stream);
  }
}

// ── content ──────────────────────────────────────────────────────────────────────────────────────

void http2_session::state::take_content(http2_stream& stream, std::string_view piece) {
  if (!fits_length(stream, piece)) {
    return;
  }
  if (stream.all_is_sent_ && stream.connect_ != http2_stream::connect::open) {
    // All is said, and the client need not send the rest (section 8.1). Some of it is thrown away
    // before we say so: a reset that comes together with the response makes some clients forget the
    // response.
    stream.discarded_octets_ += piece.size();
    if (stream.discarded_octets_ > limits.stream_window_octets) {
      return reset(stream, http2_error::no_error);
    }
  }
  if (!events.content(stream, piece) &&
      (!stream.all_is_known_ || stream.connect_ == http2_stream::connect::open)) {
    stream.held_octets_ += piece.size();
  }
}

void http2_session::state::end_of_message(http2_stream& stream, std::string_view trailers) {
  if (stream.length_.missing_octets != 0) {
    refuse(stream, http2_error::protocol_error);
    return;
  }
  stream.received_ = true;
  bool const is_answered = stream.all_is_sent_;
  events.end_of_request(stream, trailers);
  if (is_answered && !stream.is_over()) {
    leave_answered(stream);
  }
}

}  // namespace tidegate::TIDEGATE_ABI::wire
