// SPDX-License-Identifier: Apache-2.0
#include <tidegate/wire/http2_session.hpp>

#include "http2_server_state.hpp"

#include <array>
#include <cassert>
#include <cstddef>
#include <utility>

namespace tidegate::TIDEGATE_ABI::wire {

http2_session::http2_session(http2_limits const& limits, http2_events& events, request_head& head)
    : state_(std::make_unique<state>(limits, events, head)) {
  using http2::setting;
  std::array<std::pair<setting, std::uint32_t>, 5> const settings{{
      {setting::max_concurrent_streams, limits.concurrent_streams_max},
      {setting::initial_window_size, limits.stream_window_octets},
      {setting::max_header_list_size, static_cast<std::uint32_t>(limits.head.head_octets_max)},
      {setting::no_rfc7540_priorities, 1},
      {setting::enable_connect_protocol, 1},
  }};
  std::array<char, 6 * settings.size()> payload{};
  auto* at = payload.data();
  for (auto const& [which, value] : settings) {
    if (which != setting::enable_connect_protocol || limits.extended_connect) {
      at = http2::write_number<2>(at, static_cast<std::uint32_t>(which));
      at = http2::write_number<4>(at, value);
    }
  }
  state_->send_settings({payload.data(), static_cast<std::size_t>(at - payload.data())});
}

http2_session::~http2_session() = default;

auto http2_session::receive(std::string_view bytes, instant now) -> bool {
  return state_->receive(bytes, now);
}

auto http2_session::take_output(std::string& out, std::size_t octets_max) -> bool {
  state_->take_output(out, octets_max);
  return !state_->terminated;
}

auto http2_session::wants_output() const noexcept -> bool {
  return state_->wants_output();
}

auto http2_session::is_over() const noexcept -> bool {
  return state_->is_over();
}

auto http2_session::waiting_octets() const noexcept -> std::size_t {
  return state_->content_waiting + pending_octets();
}

auto http2_session::own_waiting_octets() const noexcept -> std::size_t {
  return waiting_octets() - state_->shared_waiting;
}

auto http2_session::pending_octets() const noexcept -> std::size_t {
  return state_->pending.size() - state_->pending_taken;
}

auto http2_session::content_octets_sent() const noexcept -> std::uint64_t {
  return state_->content_sent;
}

auto http2_session::streams_count() const noexcept -> std::size_t {
  return state_->streams.size();
}

auto http2_session::stream_at(std::size_t position) noexcept -> http2_stream& {
  return *state_->streams[position].stream;
}

auto http2_session::stream_at(std::size_t position) const noexcept -> http2_stream const& {
  return *state_->streams[position].stream;
}

void http2_session::send_interim(http2_stream& on, int status, std::string_view field_lines) {
  state_->send_head(on, status, field_lines, false);
}

void http2_session::send_head(http2_stream& on, int status, std::string_view field_lines,
                              bool last) {
  state_->send_head(on, status, field_lines, last);
}

void http2_session::send_whole(http2_stream& on, int status, std::string_view field_lines,
                               http2_content const& content) {
  state_->send_whole(on, status, field_lines, content);
}

void http2_session::send_content(http2_stream& on, std::string_view bytes) {
  state_->send_content(on, bytes);
}

void http2_session::send_end(http2_stream& on, std::string_view trailers) {
  state_->send_end(on, trailers);
}

void http2_session::reset(http2_stream& on, http2_error why) {
  state_->reset(on, why);
}

void http2_session::let_send(http2_stream& on) {
  state_->let_send(on);
}

void http2_session::rest() {
  auto& self = *state_;
  assert(self.streams.empty());
  // Moved away: a string that is assigned an empty one keeps its buffer.
  (void)std::exchange(self.head, {});
  self.streams.shrink_to_fit();
  (void)std::exchange(self.was_reset, {});
  self.encoder.rest();
  self.pending.shrink_to_fit();
}

void http2_session::drain() {
  state_->drain();
}

void http2_session::terminate(http2_error why) {
  state_->terminate(why);
}

}  // namespace tidegate::TIDEGATE_ABI::wire
