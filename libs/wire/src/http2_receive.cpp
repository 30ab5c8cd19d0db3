// SPDX-License-Identifier: Apache-2.0
#include "http2_state.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace tidegate::TIDEGATE_ABI::wire {

using namespace http2;

namespace {

/// As many as nghttp2 takes; there are seven that mean something to us.
constexpr std::uint32_t settings_max = 32;

}  // namespace

http2_session::state::state(http2_limits const& given, http2_events& events_to,
                            request_head& head_for)
    : sender(given, events_to),
      request(head_for),
      resets(given.resets),
      control_frames(given.control_frames),
      receive_window(std::max(given.connection_window_octets, http2::default_window_octets)) {}

// ── octets ───────────────────────────────────────────────────────────────────────────────────────

auto http2_session::state::gather(std::string_view& in, std::size_t count) -> char const* {
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

auto http2_session::state::advance(std::string_view& in) -> bool {
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
void http2_session::state::expect_fixed(std::size_t octets) {
  awaited = step::fixed;
  fixed_octets = static_cast<std::uint8_t>(octets);
}

void http2_session::state::skip_rest() {
  awaited = step::skipped;
}

// ── frames begin ─────────────────────────────────────────────────────────────────────────────────

void http2_session::state::begin_frame() {
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

void http2_session::state::begin_settings() {
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

// ── what they say ────────────────────────────────────────────────────────────────────────────────

void http2_session::state::take_fixed(char const* at) {
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
      note(resets);
      // Also one of which output is left: for the client it is over now, and so it may open another
      // one.
      if (auto* const stream = find_any(frame.stream); stream != nullptr && !terminated) {
        close(*stream);
      }
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
        note(control_frames);
      }
      break;
    case frame_type::goaway: goaway_received = true; break;
    case frame_type::window_update:
      take_window_update(static_cast<std::uint32_t>(read_31_bits(at)));
      break;
    default: take_priority_update({at, fixed_octets}); break;
  }
  skip_rest();
}

/// Dependencies mean nothing any more (section 5.3.2), but none was ever on itself (RFC 7540,
/// section 5.3.1).
void http2_session::state::take_dependency(char const* at) {
  if (read_31_bits(at) == frame.stream) {
    refuse(frame.stream, http2_error::protocol_error);
  }
}

void http2_session::state::take_setting(char const* at) {  // section 6.5.2
  auto const value = read_number<4>(at + 2);
  switch (static_cast<setting>(read_number<2>(at))) {
    case setting::header_table_size: encoder.set_table_octets_max(value); break;
    case setting::enable_push:
    case setting::no_rfc7540_priorities:
      if (value > 1) {
        terminate(http2_error::protocol_error);
      }
      break;
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

void http2_session::state::take_window_update(std::uint32_t increment) {  // section 6.9
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

void http2_session::state::end_frame() {
  if (terminated) {
    return;
  }
  switch (frame.type) {
    case frame_type::data:
      if (current == nullptr) {
        return;
      }
      if (frame.has(flag::end_stream)) {
        end_of_request(*current);
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

void http2_session::state::end_settings() {
  if (frame.has(flag::ack)) {
    settings_acknowledged = true;
    return;
  }
  set_initial_window(new_initial_window);
  append_frame(pending, frame_type::settings, flag::ack, 0);
  count_answer();
  note(control_frames);
}

// ── windows, priorities, limits ──────────────────────────────────────────────────────────────────

/// Of streams, those that are open as well (section 6.9.2).
void http2_session::state::set_initial_window(std::uint32_t octets) {
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

void http2_session::state::set_priority(http2_stream& stream, priority to) {
  stream.incremental_ = to.incremental;
  if (std::exchange(stream.urgency_, to.urgency) != to.urgency &&
      stream.queue_ == http2_stream::queue::ready) {
    remove(stream);
    schedule(stream);
  }
}

void http2_session::state::note(allowance& of) {
  if (!of.spend(now)) {
    terminate(http2_error::enhance_your_calm);
  }
}

void http2_session::state::refuse(http2_stream& stream, http2_error why) {
  reset(stream, why);
  note(resets);
}

void http2_session::state::refuse(std::int32_t id, http2_error why) {
  if (auto* const stream = find(id); stream != nullptr) {
    refuse(*stream, why);
  } else if (is_idle(id)) {
    terminate(why);
  }
}

}  // namespace tidegate::TIDEGATE_ABI::wire
