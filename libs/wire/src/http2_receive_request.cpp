// SPDX-License-Identifier: Apache-2.0
#include "http2_state.hpp"

#include <algorithm>
#include <utility>

namespace tidegate::TIDEGATE_ABI::wire {

using namespace http2;

namespace {

/// Frames of a block after the first. More than the largest head needs, so that a client cannot
/// send them for ever.
constexpr std::size_t continuations_max = 8;

}  // namespace

// ── heads and trailers ───────────────────────────────────────────────────────────────────────────

void http2_session::state::begin_headers() {
  auto const id = frame.stream;
  if (id % 2 == 0) {  // section 5.1.1
    return terminate(http2_error::protocol_error);
  }
  auto const fixed = (frame.has(flag::padded) ? 1U : 0U) + (frame.has(flag::priority) ? 5U : 0U);
  if (frame.length < fixed) {
    return terminate(http2_error::frame_size_error);
  }
  block.stream = id;
  block.is_last = frame.has(flag::end_stream);
  block.continuations = 0;
  block.use = field_block::purpose::none;
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
      block.use = field_block::purpose::request;
      head.clear();
    }
  } else if (auto* const stream = find(id); stream == nullptr) {
    if (is_skipped(id)) {  // section 5.1.1
      return terminate(http2_error::protocol_error);
    }
    note(control_frames);  // trailers that we did not wait for
  } else if (stream->request_complete_) {
    refuse(*stream, http2_error::stream_closed);
  } else {
    current = stream;
    block.use = field_block::purpose::trailers;
    block.trailers_are_malformed = false;
    block.trailer_octets = 0;
  }
  if (fixed != 0) {
    expect_fixed(fixed);
  } else {
    awaited = step::block;
  }
}

void http2_session::state::begin_continuation() {
  if (frame.type != frame_type::continuation || frame.stream != block.stream ||
      block.stream == 0) {  // section 6.10
    return terminate(http2_error::protocol_error);
  }
  if (++block.continuations > continuations_max + limits.head.head_octets_max / frame_octets_max) {
    return terminate(http2_error::enhance_your_calm);
  }
  awaited = step::block;
}

void http2_session::state::take_block(std::string_view piece) {
  bool const last = left_octets == 0 && frame.has(flag::end_headers);
  auto const octets_max = limits.head.head_octets_max;
  bool const decoded =
      decoder.take(piece, last, [&](std::string_view name, std::string_view value) {
        if (block.use == field_block::purpose::request) {
          head.add(name, value, octets_max);
        } else if (block.use == field_block::purpose::trailers && !block.trailers_are_malformed) {
          // Some octets may stand for many fields, so that there is a bound to what is looked at.
          block.trailer_octets += name.size() + value.size() + 4;
          block.trailers_are_malformed =
              block.trailer_octets > octets_max || is_malformed_trailer(name, value);
        }
      });
  if (!decoded) {
    terminate(http2_error::compression_error);
  }
}

void http2_session::state::end_block() {
  block.stream = 0;
  if (current == nullptr) {
    return;
  }
  if (block.use == field_block::purpose::request) {
    end_of_head(*current, block.is_last);
  } else if (!block.is_last || block.trailers_are_malformed) {  // section 8.1
    refuse(*current, http2_error::protocol_error);
  } else {
    end_of_request(*current);
  }
}

/// The head is complete: has it judged as HTTP/1.1 would be, and handed on.
void http2_session::state::end_of_head(http2_stream& stream, bool last) {
  stream.request_complete_ = last;
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
  stream.length_is_known_ = request.has(known_field::content_length);
  stream.missing_octets_ = request.body().length;
  if (last && stream.missing_octets_ != 0) {
    refuse(stream, http2_error::protocol_error);
    return;
  }
  events.request(stream, request);
}

// ── content ──────────────────────────────────────────────────────────────────────────────────────

void http2_session::state::begin_data() {
  if (is_idle(frame.stream)) {  // 0 is such a number too
    return terminate(http2_error::protocol_error);
  }
  if (auto* const stream = find(frame.stream); stream != nullptr) {
    // A client that does not know our window yet has the default one.
    std::size_t const window = settings_acknowledged
                                   ? limits.stream_window_octets
                                   : std::max(limits.stream_window_octets, default_window_octets);
    if (stream->request_complete_) {  // section 5.1
      refuse(*stream, http2_error::stream_closed);
    } else if (stream->taken_octets_ + frame.length > window) {
      refuse(*stream, http2_error::flow_control_error);
    } else {
      current = stream;
    }
  } else if (!(goaway_sent && frame.stream > last_accepted_id) &&
             std::ranges::find(was_reset, frame.stream) == was_reset.end()) {  // section 6.1
    append_frame(pending, frame_type::rst_stream, flag::none, frame.stream,
                 http2_error::stream_closed);
    note_reset(frame.stream);
    count_answer();
    note(resets);
  }
  if (!frame.has(flag::padded)) {
    if (frame.length == 0 && !frame.has(flag::end_stream)) {
      note(control_frames);
    }
    awaited = step::content;
  } else if (frame.length == 0) {
    terminate(http2_error::frame_size_error);
  } else {
    expect_fixed(1);
  }
}

void http2_session::state::take_padding(char const* at) {
  padding_octets = static_cast<std::uint8_t>(*at);
  if (padding_octets > left_octets) {  // sections 6.1 and 6.2
    return terminate(http2_error::protocol_error);
  }
  left_octets -= padding_octets;
}

void http2_session::state::take_content(http2_stream& stream, std::string_view piece) {
  if (stream.length_is_known_) {
    if (piece.size() > stream.missing_octets_) {
      return refuse(stream, http2_error::protocol_error);
    }
    stream.missing_octets_ -= piece.size();
  }
  if (stream.response_sent_) {
    // All is said, and the client need not send the rest (section 8.1). Some of it is thrown away
    // before we say so: a reset that comes together with the response makes some clients forget the
    // response.
    stream.discarded_octets_ += piece.size();
    if (stream.discarded_octets_ > limits.stream_window_octets) {
      return reset(stream, http2_error::no_error);
    }
  }
  if (!events.content(stream, piece) && !stream.response_complete_) {
    stream.held_octets_ += piece.size();
  }
}

void http2_session::state::end_of_request(http2_stream& stream) {
  if (stream.missing_octets_ != 0) {
    refuse(stream, http2_error::protocol_error);
    return;
  }
  stream.request_complete_ = true;
  bool const is_answered = stream.response_sent_;
  events.end_of_request(stream);
  if (is_answered && !stream.is_over()) {
    leave_answered(stream);
  }
}

/// It is opened before half of it is used, which is more than a frame, so that no client overruns
/// it: what waits is bounded by the windows of the streams.
void http2_session::state::count_received(std::size_t octets) {
  received_octets += static_cast<std::uint32_t>(octets);
  if (received_octets >= receive_window / 2) {
    append_frame(pending, frame_type::window_update, flag::none, 0,
                 std::exchange(received_octets, 0));
  }
}

}  // namespace tidegate::TIDEGATE_ABI::wire
