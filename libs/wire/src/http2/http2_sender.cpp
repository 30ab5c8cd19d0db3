// SPDX-License-Identifier: Apache-2.0
#include "http2_sender.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

namespace tidegate::TIDEGATE_ABI::wire::http2 {

namespace {

/// More is scheduled with the content of other streams.
constexpr std::size_t pending_octets_max = 64 * 1024;
/// What the output keeps for itself while there is none.
constexpr std::size_t spare_octets_max = 64 * 1024;
/// Answers that wait to be taken, as many as nghttp2 lets wait.
constexpr std::uint32_t answers_waiting_max = 1000;
/// Octets that wait to be taken: heads of 16 KiB for as many streams as a client may have.
constexpr std::size_t waiting_octets_max = 2 * 1024 * 1024;

}  // namespace

auto sender::may_send(http2_stream const& stream) const -> bool {
  return !terminated && !stream.is_over();
}

/// Blocks are written in the order in which they are sent, at once: no window holds them up.
void sender::append_block(std::int32_t id, int status, std::string_view field_lines, bool last) {
  auto const at = begin_block();
  encoder.append(pending, status, field_lines);
  frame_block(at, id, last);
}

auto sender::begin_block() -> std::size_t {
  auto const at = pending.size();
  pending.append(frame_head_octets, '\0');
  return at;
}

void sender::frame_block(std::size_t at, std::int32_t id, bool last) {
  auto const size = pending.size() - at - frame_head_octets;
  std::uint8_t const end_stream = last ? flag::end_stream : flag::none;
  if (size <= frame_octets_max) [[likely]] {
    auto const flags = static_cast<std::uint8_t>(end_stream | flag::end_headers);
    write_frame_head(pending.data() + at,
                     {static_cast<std::uint32_t>(size), frame_type::headers, flags, id});
    return;
  }
  std::string const block(pending, at + frame_head_octets);
  pending.resize(at);
  std::string_view rest = block;
  append_frame_of(pending, frame_type::headers, end_stream, id, rest.substr(0, frame_octets_max));
  do {
    rest.remove_prefix(frame_octets_max);
    append_frame_of(pending, frame_type::continuation,
                    rest.size() <= frame_octets_max ? flag::end_headers : flag::none, id,
                    rest.substr(0, frame_octets_max));
  } while (rest.size() > frame_octets_max);
}

void sender::send_head(http2_stream& stream, int status, std::string_view field_lines, bool last) {
  if (!may_send(stream)) {
    return;
  }
  append_block(stream.id_, status, field_lines, last);
  if (stream.connect_ == http2_stream::connect::asked && status >= 200 && status < 300) {
    stream.connect_ = http2_stream::connect::open;
  }
  if (last) {
    stream.all_is_known_ = true;
    finish(stream);
  }
  check_pending();  // there may be any number of interim ones
}

void sender::send_whole(http2_stream& stream, int status, std::string_view field_lines,
                        http2_content const& content) {
  if (!may_send(stream)) {
    return;
  }
  auto const& rest = content.rest;
  bool const is_empty = content.begin.empty() && rest.empty();
  append_block(stream.id_, status, field_lines, is_empty);
  stream.all_is_known_ = true;
  auto const size = static_cast<std::int32_t>(std::min(rest.size(), pending_octets_max));
  if (is_empty) {
    finish(stream);
  } else if (ready.first == nullptr && content.begin.empty() && rest.size() <= frame_octets_max &&
             pending.size() - pending_taken <= pending_octets_max && size <= stream.send_window_ &&
             size <= send_window) {
    // Nothing else waits that would have to go before it.
    append_frame_of(pending, frame_type::data, flag::end_stream, stream.id_, rest);
    stream.send_window_ -= size;
    send_window -= size;
    finish(stream);
  } else {
    append_content(stream, content.begin);
    if (content.owner == nullptr) {
      append_content(stream, rest);
    } else {
      stream.out_.shared = rest;
      stream.out_.owner = content.owner;
      content_waiting += rest.size();
      shared_waiting += rest.size();
    }
    schedule(stream);
    want_no_more(stream);
  }
}

void sender::send_content(http2_stream& stream, std::string_view bytes) {
  assert(!stream.all_is_known_);
  if (!may_send(stream)) {
    return;
  }
  if (stream.out_.sent > 0 && stream.out_.sent >= stream.waiting_octets()) {
    stream.out_.own.erase(0, std::exchange(stream.out_.sent, 0));
  }
  append_content(stream, bytes);
  schedule(stream);
}

void sender::append_content(http2_stream& stream, std::string_view bytes) {
  stream.out_.own.append(bytes);
  content_waiting += bytes.size();
}

void sender::drop_content(http2_stream& stream) {
  content_waiting -= stream.waiting_octets();
  shared_waiting -= stream.out_.shared.size();
  stream.out_.own.clear();
  stream.out_.sent = 0;
  stream.out_.shared = {};
  stream.out_.owner.reset();
}

void sender::send_end(http2_stream& stream, std::string_view trailers) {
  if (!may_send(stream) || std::exchange(stream.all_is_known_, true)) {
    return;
  }
  stream.out_.trailers.assign(trailers);
  if (stream.waiting_octets() > 0) {
    want_no_more(stream);
  } else if (!trailers.empty()) {
    send_trailers(stream);
  } else {
    append_frame(pending, frame_type::data, flag::end_stream, stream.id_);
    finish(stream);
  }
}

void sender::send_trailers(http2_stream& stream) {
  append_block(stream.id_, 0, stream.out_.trailers, true);
  stream.out_.trailers.clear();
  finish(stream);
  check_pending();
}

void sender::reset(http2_stream& stream, http2_error why) {
  if (!may_send(stream)) {
    return;
  }
  append_frame(pending, frame_type::rst_stream, flag::none, stream.id_, why);
  note_reset(stream.id_);
  drop_content(stream);
  leave(stream);
}

void sender::finish_early(http2_stream& stream) {
  stream.leaves_at_ = pending_begin + pending.size();
  want_no_more(stream);
}

void sender::let_send(http2_stream& stream) {
  if (std::exchange(stream.held_octets_, 0) != 0) {
    open_window(stream);
  }
}

void sender::open_window(http2_stream& stream) {
  auto const passed_on = stream.taken_octets_ - stream.held_octets_;
  if (passed_on > 0 && passed_on >= limits.stream_window_octets / 2 && !stream.received_ &&
      may_send(stream)) {
    append_frame(pending, frame_type::window_update, flag::none, stream.id_, passed_on);
    stream.taken_octets_ = stream.held_octets_;
  }
}

void sender::leave(http2_stream& stream) {
  if (current == &stream) {
    current = nullptr;
  }
  remove(stream);
  stream.leaves_at_ = pending_begin + pending.size();
  enter(stream, http2_stream::queue::leaving);
}

/// For the peer it is over already, so that it is not to be counted longer than its output is
/// there.
void sender::leave_answered(http2_stream& stream) {
  current = nullptr;
  if (stream.leaves_at_ <= pending_begin + pending_taken) {
    close(stream);
    return;
  }
  http2_stream* before = nullptr;
  for (auto* each = leaving.last; each != nullptr && each->leaves_at_ > stream.leaves_at_;
       each = each->previous_) {
    before = each;
  }
  enter(stream, http2_stream::queue::leaving, before);
}

void sender::close(http2_stream& stream) {
  assert(current != &stream);
  remove(stream);
  drop_content(stream);
  stream.queue_ = http2_stream::queue::closed;
  closed(stream);
  release(stream);
}

void sender::drain() {
  if (!terminated) {
    goaway_sent = true;
    append_frame(pending, frame_type::goaway, flag::none, 0, last_accepted_id,
                 http2_error::no_error);
  }
}

void sender::terminate(http2_error why) {
  if (!std::exchange(terminated, true)) {
    append_frame(pending, frame_type::goaway, flag::none, 0, last_accepted_id, why);
  }
}

void sender::count_answer() {
  if (++answers_waiting > answers_waiting_max) {
    terminate(http2_error::enhance_your_calm);
  }
}

void sender::check_pending() {
  if (!is_server) {
    return;  // heads of requests are not the server's doing, and its answers are counted
  }
  if (pending.size() - pending_taken > waiting_octets_max) [[unlikely]] {
    terminate(http2_error::enhance_your_calm);
  }
}

/// The most urgent first, and those that are as urgent in the order in which they come (RFC 9218,
/// section 10).
void sender::schedule(http2_stream& stream) {
  if (stream.queue_ != http2_stream::queue::none || stream.waiting_octets() == 0 ||
      stream.send_window_ <= 0) {
    return;
  }
  http2_stream* before = nullptr;
  for (auto* each = ready.last;
       each != nullptr && each->priority_.urgency > stream.priority_.urgency;
       each = each->previous_) {
    before = each;
  }
  enter(stream, http2_stream::queue::ready, before);
}

/// One frame of whose turn it is.
void sender::send_data(std::string& out) {
  auto& stream = *ready.first;
  auto const waiting = stream.waiting_octets();
  auto const own = std::string_view(stream.out_.own).substr(stream.out_.sent);
  auto const source = own.empty() ? stream.out_.shared : own;
  auto const size = static_cast<std::size_t>(
      std::min({static_cast<std::int64_t>(source.size()), send_window,
                std::int64_t{stream.send_window_}, std::int64_t{frame_octets_max}}));
  bool const is_all = size == waiting;
  bool const has_trailers = !stream.out_.trailers.empty();
  bool const last = is_all && stream.all_is_known_ && !has_trailers;
  append_frame_of(out, frame_type::data, last ? flag::end_stream : flag::none, stream.id_,
                  source.substr(0, size));
  content_sent += size;
  content_waiting -= size;
  if (own.empty()) {
    stream.out_.shared.remove_prefix(size);
    shared_waiting -= size;
  } else {
    stream.out_.sent += size;
  }
  stream.send_window_ -= static_cast<std::int32_t>(size);
  send_window -= static_cast<std::int64_t>(size);
  if (is_all) {
    drop_content(stream);
  }
  if (last) {
    finish(stream);
  } else if (is_all && has_trailers) {
    send_trailers(stream);
  }
  if (stream.queue_ == http2_stream::queue::ready &&
      (is_all || stream.priority_.incremental || stream.send_window_ <= 0)) {
    remove(stream);  // and lets others have their turn
    schedule(stream);
  }
}

void sender::take_pending(std::string& out, std::size_t octets_max) {
  if (pending_taken < pending.size() && out.size() < octets_max) {
    auto const room = octets_max - out.size();
    auto size = pending.size() - pending_taken;
    if (size > room) {
      // Whole frames, until there is no room left.
      for (size = 0; size < room;) {
        size += frame_head_octets + read_number<3>(pending.data() + pending_taken + size);
      }
    }
    out.append(pending, pending_taken, size);
    pending_taken += size;
  }
  auto const taken = pending_begin + pending_taken;
  while (leaving.first != nullptr && leaving.first->leaves_at_ <= taken) {
    close(*leaving.first);
  }
  if (pending_taken == pending.size()) {
    pending_begin = taken;
    pending.clear();
    pending_taken = 0;
    answers_waiting = 0;
    if (pending.capacity() > spare_octets_max) {
      pending.shrink_to_fit();
    }
  } else if (pending_taken > spare_octets_max && pending_taken > pending.size() / 2) {
    // There may always be more before all of it is taken.
    pending_begin = taken;
    pending.erase(0, std::exchange(pending_taken, 0));
  }
}

void sender::take_output(std::string& out, std::size_t octets_max) {
  take_pending(out, octets_max);
  while (pending.empty() && out.size() < octets_max && ready.first != nullptr && send_window > 0 &&
         !terminated) {
    send_data(out);
    take_pending(out, octets_max);
  }
}

auto sender::wants_output() const -> bool {
  return !pending.empty() || leaving.first != nullptr ||
         (ready.first != nullptr && send_window > 0 && !terminated);
}

auto sender::is_over() const -> bool {
  return !wants_output() && (terminated || ((goaway_sent || goaway_received) && streams.empty()));
}

}  // namespace tidegate::TIDEGATE_ABI::wire::http2
