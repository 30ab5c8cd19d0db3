// SPDX-License-Identifier: Apache-2.0
#include "http2_receiver.hpp"

#include <tidegate/wire/http1_body.hpp>

#include <algorithm>
#include <cstring>
#include <utility>

namespace tidegate::TIDEGATE_ABI::wire::http2 {

namespace {

/// As many as nghttp2 takes; there are seven that mean something to us.
constexpr std::uint32_t settings_max = 32;
/// Frames of a block after the first. More than the largest head needs, so that a peer cannot
/// send them for ever.
constexpr std::size_t continuations_max = 8;

}  // namespace

receiver::receiver(http2_limits const& given, role as)
    : sender(given, as),
      resets(given.resets),
      control_frames(given.control_frames),
      receive_window(std::max(given.connection_window_octets, default_window_octets)) {}

void receiver::send_settings(std::string_view payload) {
  append_frame_of(pending, frame_type::settings, flag::none, 0, payload);
  if (auto const more = receive_window - default_window_octets; more > 0) {
    append_frame(pending, frame_type::window_update, flag::none, 0, more);
  }
}

auto receiver::receive(std::string_view bytes, instant at) -> bool {
  now = at;
  check_pending();
  unread = &bytes;
  while (!terminated && advance(bytes)) {
  }
  unread = nullptr;
  return !terminated;
}

// ── octets ───────────────────────────────────────────────────────────────────────────────────────

auto receiver::gather(std::string_view& in, std::size_t count) -> char const* {
  if (gathered_octets == 0 && in.size() >= count) [[likely]] {
    auto const* const out = in.data();
    in.remove_prefix(count);
    return out;
  }
  auto const more = std::min(count - gathered_octets, in.size());
  in.copy(gathered.data() + gathered_octets, more);
  in.remove_prefix(more);
  gathered_octets = static_cast<std::uint8_t>(gathered_octets + more);
  if (gathered_octets < count) {
    return nullptr;
  }
  gathered_octets = 0;
  return gathered.data();
}

auto receiver::advance(std::string_view& in) -> bool {
  switch (awaited) {
    case step::preface: {
      auto const* const at = gather(in, preface.size());
      if (at == nullptr) {
        // Another protocol is refused before so many octets have come.
        if (std::string_view(gathered.data(), gathered_octets) !=
            preface.substr(0, gathered_octets)) {
          terminate(http2_error::protocol_error);
        }
        return false;
      }
      if (std::memcmp(at, preface.data(), preface.size()) != 0) {
        terminate(http2_error::protocol_error);
      }
      awaited = step::frame_head;
      return true;
    }
    case step::frame_head: {
      auto const* const at = gather(in, frame_head_octets);
      if (at == nullptr) {
        return false;
      }
      frame = read_frame_head(at);
      begin_frame();
      return true;
    }
    case step::fixed: {
      auto const* const at = gather(in, fixed_octets);
      if (at == nullptr) {
        return false;
      }
      left_octets -= fixed_octets;
      take_fixed(at);
      return true;
    }
    default: break;
  }
  // What is left need not come in one piece.
  if (left_octets > 0 && in.empty()) {
    return false;
  }
  auto const piece = in.substr(0, left_octets);
  in.remove_prefix(piece.size());
  left_octets -= static_cast<std::uint32_t>(piece.size());
  if (awaited == step::block) {
    take_block(piece);
  } else if (frame.type == frame_type::data) {
    count_received(piece.size());
    if (current != nullptr) {
      current->taken_octets_ += piece.size();
      if (awaited == step::content && !piece.empty()) {
        take_content(*current, piece);
      }
    }
  }
  if (left_octets == 0) {
    if (padding_octets > 0) {
      awaited = step::skipped;
      left_octets = std::exchange(padding_octets, 0);
    } else {
      awaited = step::frame_head;
      end_frame();
    }
  }
  return true;
}

/// `take_fixed` is called with the next octets of the payload, of which there are as many at least.
void receiver::expect_fixed(std::size_t octets) {
  awaited = step::fixed;
  fixed_octets = static_cast<std::uint8_t>(octets);
}

void receiver::skip_rest() {
  awaited = step::skipped;
}

// ── frames begin ─────────────────────────────────────────────────────────────────────────────────

void receiver::begin_frame() {
  auto const length = frame.length;
  left_octets = length;
  padding_octets = 0;
  if (length > frame_octets_max) {  // section 4.2
    return terminate(http2_error::frame_size_error);
  }
  if (block.stream != 0 || frame.type == frame_type::continuation) {
    return begin_continuation();
  }
  current = nullptr;
  if (!first_settings_came &&
      (frame.type != frame_type::settings || frame.has(flag::ack))) {  // section 3.4
    return terminate(http2_error::protocol_error);
  }
  bool const is_connection = frame.stream == 0;
  switch (frame.type) {
    case frame_type::data: return begin_data();
    case frame_type::headers: return begin_headers();
    case frame_type::settings: return begin_settings();
    case frame_type::priority:
      if (is_connection) {
        return terminate(http2_error::protocol_error);
      }
      if (length != 5) {
        refuse(frame.stream, http2_error::frame_size_error);
        return skip_rest();
      }
      return expect_fixed(5);
    case frame_type::rst_stream:
    case frame_type::window_update:
      if (length != 4) {
        return terminate(http2_error::frame_size_error);
      }
      if (is_connection ? frame.type == frame_type::rst_stream : is_idle(frame.stream)) {
        return terminate(http2_error::protocol_error);
      }
      return expect_fixed(4);
    case frame_type::ping:
    case frame_type::goaway:
      if (!is_connection) {
        return terminate(http2_error::protocol_error);
      }
      if (frame.type == frame_type::ping ? length != 8 : length < 8) {
        return terminate(http2_error::frame_size_error);
      }
      return expect_fixed(8);
    case frame_type::priority_update:  // RFC 9218, section 7.1
      if (!is_connection) {
        return terminate(http2_error::protocol_error);
      }
      if (length < 4) {
        return terminate(http2_error::frame_size_error);
      }
      return expect_fixed(std::min<std::size_t>(length, gathered.size()));
    case frame_type::push_promise:  // section 8.4
      return terminate(http2_error::protocol_error);
    default: return skip_rest();  // section 4.1
  }
}

void receiver::begin_settings() {
  if (frame.stream != 0) {
    return terminate(http2_error::protocol_error);
  }
  if (frame.has(flag::ack) ? frame.length != 0 : frame.length % 6 != 0) {
    return terminate(http2_error::frame_size_error);
  }
  if (frame.length / 6 > settings_max) {
    return terminate(http2_error::enhance_your_calm);
  }
  first_settings_came = true;
  new_initial_window = initial_send_window;
  if (frame.length == 0) {
    skip_rest();
  } else {
    expect_fixed(6);
  }
}

// ── blocks of fields ─────────────────────────────────────────────────────────────────────────────

void receiver::begin_headers() {
  if (frame.stream % 2 == 0) {  // section 5.1.1
    return terminate(http2_error::protocol_error);
  }
  auto const fixed = (frame.has(flag::padded) ? 1U : 0U) + (frame.has(flag::priority) ? 5U : 0U);
  if (frame.length < fixed) {
    return terminate(http2_error::frame_size_error);
  }
  block.stream = frame.stream;
  block.is_last = frame.has(flag::end_stream);
  block.continuations = 0;
  block.use = field_block::purpose::none;
  open_block();
  if (terminated) {
    return;
  }
  if (fixed != 0) {
    expect_fixed(fixed);
  } else {
    awaited = step::block;
  }
}

void receiver::begin_continuation() {
  if (frame.type != frame_type::continuation || frame.stream != block.stream ||
      block.stream == 0) {  // section 6.10
    return terminate(http2_error::protocol_error);
  }
  if (++block.continuations > continuations_max + limits.head.head_octets_max / frame_octets_max) {
    return terminate(http2_error::enhance_your_calm);
  }
  awaited = step::block;
}

void receiver::expect_trailers(http2_stream& stream) {
  current = &stream;
  block.use = field_block::purpose::trailers;
  block.trailers_are_malformed = false;
  block.trailer_octets = 0;
  block.trailers.clear();
}

void receiver::take_block(std::string_view piece) {
  bool const last = left_octets == 0 && frame.has(flag::end_headers);
  bool const decoded =
      decoder.take(piece, last, [&](std::string_view name, std::string_view value) {
        if (block.use == field_block::purpose::head) {
          take_head_field(name, value);
        } else if (block.use == field_block::purpose::trailers && !block.trailers_are_malformed) {
          take_trailer(name, value);
        }
      });
  if (!decoded) {
    terminate(http2_error::compression_error);
  }
}

void receiver::take_trailer(std::string_view name, std::string_view value) {
  // Some octets may stand for many fields, so that there is a bound to what is looked at.
  block.trailer_octets += name.size() + value.size() + 4;
  block.trailers_are_malformed =
      block.trailer_octets > limits.head.head_octets_max || is_malformed_field(name, value);
  if (!block.trailers_are_malformed &&
      is_forwarded_trailer({{name, value}, find_known_field(name)})) {
    block.trailers.append(name).append(": ").append(value).append("\r\n");
  }
}

void receiver::end_block() {
  block.stream = 0;
  if (current == nullptr) {
    return;
  }
  if (block.use == field_block::purpose::head) {
    end_of_head(*current, block.is_last);
  } else if (!block.is_last || block.trailers_are_malformed) {  // section 8.1
    refuse(*current, http2_error::protocol_error);
  } else {
    end_of_message(*current, block.trailers);
  }
}

// ── content ──────────────────────────────────────────────────────────────────────────────────────

void receiver::begin_data() {
  if (is_idle(frame.stream)) {  // 0 is such a number too
    return terminate(http2_error::protocol_error);
  }
  if (auto* const stream = find(frame.stream); stream != nullptr) {
    // A client that does not know our window yet has the default one.
    std::size_t const window = settings_acknowledged
                                   ? limits.stream_window_octets
                                   : std::max(limits.stream_window_octets, default_window_octets);
    if (stream->received_) {  // section 5.1
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

void receiver::take_padding(char const* at) {
  padding_octets = static_cast<std::uint8_t>(*at);
  if (padding_octets > left_octets) {  // sections 6.1 and 6.2
    return terminate(http2_error::protocol_error);
  }
  left_octets -= padding_octets;
}

auto receiver::fits_length(http2_stream& stream, std::string_view piece) -> bool {
  if (stream.length_.is_known) {
    if (piece.size() > stream.length_.missing_octets) {
      refuse(stream, http2_error::protocol_error);
      return false;
    }
    stream.length_.missing_octets -= piece.size();
  }
  return true;
}

/// It is opened before half of it is used, which is more than a frame, so that no client overruns
/// it: what waits is bounded by the windows of the streams.
void receiver::count_received(std::size_t octets) {
  received_octets += static_cast<std::uint32_t>(octets);
  if (received_octets >= receive_window / 2) {
    append_frame(pending, frame_type::window_update, flag::none, 0,
                 std::exchange(received_octets, 0));
  }
}

// ── what they say ────────────────────────────────────────────────────────────────────────────────

void receiver::take_fixed(char const* at) {
  switch (frame.type) {
    case frame_type::data:
      count_received(1);
      if (current != nullptr) {
        ++current->taken_octets_;
      }
      take_padding(at);
      if (left_octets == 0 && !frame.has(flag::end_stream)) {
        note(control_frames);
      }
      awaited = step::content;
      return;
    case frame_type::headers:
      if (frame.has(flag::priority)) {
        take_dependency(at + (frame.has(flag::padded) ? 1 : 0));
      }
      if (frame.has(flag::padded)) {
        take_padding(at);
      }
      awaited = step::block;
      return;
    case frame_type::priority: take_dependency(at); break;
    case frame_type::rst_stream:
      // Also one of which output is left: for the peer it is over now.
      take_reset(find_any(frame.stream), static_cast<http2_error>(read_number<4>(at)));
      break;
    case frame_type::settings:
      take_setting(at);
      if (left_octets > 0) {
        return;  // there are more
      }
      break;
    case frame_type::ping:
      if (!frame.has(flag::ack)) {
        append_frame_of(pending, frame_type::ping, flag::ack, 0, {at, 8});
        count_answer();
        // With one for each piece of content that it gets, a receiver measures how long the way is.
        if (std::exchange(content_at_ping, content_sent) == content_sent) {
          note(control_frames);
        }
      }
      break;
    case frame_type::goaway:
      goaway_received = true;
      take_goaway(read_31_bits(at));
      break;
    case frame_type::window_update:
      take_window_update(static_cast<std::uint32_t>(read_31_bits(at)));
      break;
    default: take_priority_update({at, fixed_octets}); break;
  }
  skip_rest();
}

/// Dependencies mean nothing any more (section 5.3.2), but none was ever on itself (RFC 7540,
/// section 5.3.1).
void receiver::take_dependency(char const* at) {
  if (read_31_bits(at) == frame.stream) {
    refuse(frame.stream, http2_error::protocol_error);
  }
}

void receiver::take_setting(char const* at) {  // section 6.5.2
  auto const value = read_number<4>(at + 2);
  auto const which = static_cast<setting>(read_number<2>(at));
  switch (which) {
    case setting::header_table_size: encoder.set_table_octets_max(value); break;
    case setting::enable_push:
    case setting::enable_connect_protocol:
    case setting::no_rfc7540_priorities:
      if (value > 1) {
        terminate(http2_error::protocol_error);
      }
      take_setting_of_end(which, value);
      break;
    case setting::max_concurrent_streams: take_setting_of_end(which, value); break;
    case setting::initial_window_size:
      if (value > window_octets_max) {
        terminate(http2_error::flow_control_error);
      }
      new_initial_window = value;
      break;
    case setting::max_frame_size:  // we send none that is larger than the smallest
      if (value < frame_octets_max || value > frame_octets_max_max) {
        terminate(http2_error::protocol_error);
      }
      break;
    default: break;
  }
}

void receiver::take_priority_update(std::string_view /*payload*/) {
  terminate(http2_error::protocol_error);
}

void receiver::take_reset(http2_stream* stream, http2_error /*why*/) {
  note(resets);
  if (stream != nullptr && !terminated) {
    close(*stream);
  }
}

void receiver::take_goaway(std::int32_t /*last_stream*/) {}

void receiver::take_setting_of_end(setting /*which*/, std::uint32_t /*value*/) {}

void receiver::take_window_update(std::uint32_t increment) {  // section 6.9
  auto* const stream = frame.stream != 0 ? find(frame.stream) : nullptr;
  if (frame.stream != 0 && stream == nullptr) {
    return;
  }
  auto const window = stream != nullptr ? std::int64_t{stream->send_window_} : send_window;
  if (increment == 0 || window + increment > window_octets_max) {
    auto const why = increment == 0 ? http2_error::protocol_error : http2_error::flow_control_error;
    return stream != nullptr ? refuse(*stream, why) : terminate(why);
  }
  if (stream != nullptr) {
    stream->send_window_ += static_cast<std::int32_t>(increment);
    schedule(*stream);
  } else {
    send_window += increment;
  }
}

// ── frames end ───────────────────────────────────────────────────────────────────────────────────

void receiver::end_frame() {
  if (terminated) {
    return;
  }
  switch (frame.type) {
    case frame_type::data:
      if (current == nullptr) {
        return;
      }
      if (frame.has(flag::end_stream)) {
        end_of_message(*current, {});
      } else {
        open_window(*current);
      }
      return;
    case frame_type::headers:
    case frame_type::continuation:
      if (frame.has(flag::end_headers)) {
        end_block();
      }
      return;
    case frame_type::settings: end_settings(); return;
    default: return;
  }
}

void receiver::end_settings() {
  if (frame.has(flag::ack)) {
    settings_acknowledged = true;
    return;
  }
  settings_came = true;
  set_initial_window(new_initial_window);
  append_frame(pending, frame_type::settings, flag::ack, 0);
  count_answer();
  note(control_frames);
}

// ── windows, priorities, limits ──────────────────────────────────────────────────────────────────

/// Of streams, those that are open as well (section 6.9.2).
void receiver::set_initial_window(std::uint32_t octets) {
  auto const more = std::int64_t{octets} - std::int64_t{initial_send_window};
  initial_send_window = octets;
  if (more == 0) {
    return;
  }
  for (auto const& [id, stream] : streams) {
    if (stream->send_window_ + more > window_octets_max) {
      return terminate(http2_error::flow_control_error);
    }
    stream->send_window_ = static_cast<std::int32_t>(stream->send_window_ + more);
    if (stream->queue_ == http2_stream::queue::ready && stream->send_window_ <= 0) {
      remove(*stream);
    }
    schedule(*stream);
  }
}

void receiver::note(allowance& of) {
  if (!of.spend(now)) {
    terminate(http2_error::enhance_your_calm);
  }
}

void receiver::refuse(http2_stream& stream, http2_error why) {
  stream.response_.end = http2_stream_end::malformed;
  reset(stream, why);
  note(resets);
}

void receiver::refuse(std::int32_t id, http2_error why) {
  if (auto* const stream = find(id); stream != nullptr) {
    refuse(*stream, why);
  } else if (is_idle(id)) {
    terminate(why);
  }
}

}  // namespace tidegate::TIDEGATE_ABI::wire::http2
