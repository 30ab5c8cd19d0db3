// SPDX-License-Identifier: Apache-2.0
#include "http2_client_state.hpp"

#include <algorithm>

namespace tidegate::TIDEGATE_ABI::wire {

using namespace http2;

namespace {

/// Of one response: more than any server needs, so that it cannot send them for ever.
constexpr std::uint8_t interims_max = 64;
/// Requests that are cancelled make room for others, which may be cancelled before the server has
/// heard of the first: it is not to blame for what it sends until then.
constexpr std::size_t resets_on_their_way_max = 1024;

}  // namespace

http2_client_session::state::state(http2_limits const& given, http2_client_events& events_to,
                                   response_head& head_for)
    : receiver(given, role::client), events(events_to), response(head_for) {
  awaited = step::frame_head;
  was_reset_max = resets_on_their_way_max;
}

// ── heads ────────────────────────────────────────────────────────────────────────────────────────

void http2_client_session::state::open_block() {
  if (is_idle(frame.stream)) {  // section 5.1
    return terminate(http2_error::protocol_error);
  }
  auto* const stream = find(frame.stream);
  if (stream == nullptr) {
    if (std::ranges::find(was_reset, frame.stream) == was_reset.end()) {
      note(control_frames);  // else the server has not heard that we want no answer
    }
  } else if (stream->received_ || stream->connect_ == http2_stream::connect::open) {
    refuse_response(*stream);  // section 8.5
  } else if (stream->response_.head_came) {
    expect_trailers(*stream);
  } else {
    current = stream;
    block.use = field_block::purpose::head;
    head.clear();
  }
}

/// The head is complete: has it judged as one of HTTP/1.1 would be, and handed on.
void http2_client_session::state::end_of_head(http2_stream& stream, bool last) {
  if (head.is_malformed()) {
    return refuse_response(stream);
  }
  auto const status = head.status();
  bool const is_interim = status < 200;
  if (status == 101 || (is_interim && last) ||  // sections 8.6 and 8.1
      take_response_head(status, head.fields(), limits.head, stream.response_.asked, last,
                         response) != head_fault::none) {
    return refuse_response(stream);
  }
  if (is_interim) {
    if (++stream.response_.interims > interims_max) {
      return refuse_response(stream);
    }
    return events.interim(stream, response);
  }
  stream.response_.head_came = true;
  auto const body = response.body();
  bool const opens = stream.connect_ == http2_stream::connect::asked && status < 300;
  if (opens) {
    stream.connect_ = http2_stream::connect::open;
  }
  stream.length_.is_known = body.kind != body_kind::until_close && !opens;
  stream.length_.missing_octets = body.length;
  if (last && body.length != 0) {
    return refuse_response(stream);
  }
  events.response(stream, response);
  if (last && current == &stream) {
    end_of_message(stream, {});
  }
}

// ── content and ends ─────────────────────────────────────────────────────────────────────────────

void http2_client_session::state::take_content(http2_stream& stream, std::string_view piece) {
  if (!stream.response_.head_came) {
    return refuse_response(stream);
  }
  if (!fits_length(stream, piece)) {
    return;
  }
  if (!events.content(stream, piece)) {
    stream.held_octets_ += piece.size();
  }
}

void http2_client_session::state::end_of_message(http2_stream& stream, std::string_view trailers) {
  if (!stream.response_.head_came || stream.length_.missing_octets != 0) {
    return refuse_response(stream);
  }
  stream.received_ = true;
  events.end_of_response(stream, trailers);
  if (!stream.is_over() && stream.all_is_sent_) {
    leave_answered(stream);
  }
}

void http2_client_session::state::take_reset(http2_stream* stream, http2_error why) {
  if (stream == nullptr || stream->is_over()) {
    note(resets);  // of one that is open the request was ours
  }
  if (stream == nullptr || terminated) {
    return;
  }
  if (!stream->is_over()) {
    bool const is_refused = why == http2_error::refused_stream && !stream->response_.head_came;
    stream->response_.end = stream->received_ ? http2_stream_end::complete
                            : is_refused      ? http2_stream_end::refused
                                              : http2_stream_end::reset;
  }
  close(*stream);
}

/// The server has seen nothing of the streams behind `last_stream` (section 6.8).
void http2_client_session::state::take_goaway(std::int32_t last_stream) {
  for (auto i = streams.size(); i-- > 0;) {
    if (i >= streams.size()) {
      continue;  // others have gone in its place
    }
    if (auto& [id, stream] = streams[i]; id > last_stream && !stream->is_over()) {
      stream->response_.end = http2_stream_end::refused;
      close(*stream);
    }
  }
}

void http2_client_session::state::take_setting_of_end(setting which, std::uint32_t value) {
  switch (which) {
    case setting::max_concurrent_streams: server_streams_max = value; break;
    case setting::enable_connect_protocol:
      if (extended_connect && value == 0) {  // RFC 8441, section 3
        terminate(http2_error::protocol_error);
      }
      extended_connect = value == 1;
      break;
    case setting::enable_push:  // section 6.5.2
      if (value != 0) {
        terminate(http2_error::protocol_error);
      }
      break;
    default: break;
  }
}

}  // namespace tidegate::TIDEGATE_ABI::wire
