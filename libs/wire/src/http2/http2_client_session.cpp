// SPDX-License-Identifier: Apache-2.0
#include <tidegate/wire/http2_client_session.hpp>

#include "http2_client_state.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <limits>
#include <utility>

namespace tidegate::TIDEGATE_ABI::wire {

auto split_request_text(std::string_view text) noexcept -> request_text {
  auto const end = text.find("\r\n\r\n");
  if (end == text.npos) {
    return {};
  }
  auto const line = text.substr(0, text.find("\r\n"));
  auto const method_end = line.find(' ');
  auto const target_end = line.rfind(' ');
  request_text out;
  out.size = end + 4;
  out.request.method = line.substr(0, method_end);
  if (method_end < target_end) {
    out.request.path = line.substr(method_end + 1, target_end - method_end - 1);
  }
  auto lines = text.substr(line.size() + 2, end - line.size());
  constexpr std::string_view host = "Host: ";
  if (lines.starts_with(host)) {
    auto const host_end = lines.find("\r\n");
    out.request.authority = lines.substr(host.size(), host_end - host.size());
    lines.remove_prefix(host_end + 2);
  }
  out.request.field_lines = lines;
  return out;
}

http2_client_session::http2_client_session(http2_limits const& limits, http2_client_events& events,
                                           response_head& head)
    : state_(std::make_unique<state>(limits, events, head)) {
  using http2::setting;
  std::array<std::pair<setting, std::uint32_t>, 3> const settings{{
      {setting::enable_push, 0},
      {setting::initial_window_size, limits.stream_window_octets},
      {setting::max_header_list_size, static_cast<std::uint32_t>(limits.head.head_octets_max)},
  }};
  std::array<char, 6 * settings.size()> payload{};
  auto* at = payload.data();
  for (auto const& [which, value] : settings) {
    at = http2::write_number<2>(at, static_cast<std::uint32_t>(which));
    at = http2::write_number<4>(at, value);
  }
  state_->send_settings({payload.data(), payload.size()});
}

http2_client_session::~http2_client_session() = default;

auto http2_client_session::receive(std::string_view bytes, instant now) -> bool {
  return state_->receive(bytes, now);
}

auto http2_client_session::take_output(std::string& out, std::size_t octets_max) -> bool {
  if (!std::exchange(state_->preface_is_sent, true)) {
    out.append(http2::preface);
  }
  state_->take_output(out, octets_max);
  return !state_->terminated;
}

auto http2_client_session::wants_output() const noexcept -> bool {
  return state_->wants_output();
}

auto http2_client_session::waiting_octets() const noexcept -> std::size_t {
  return state_->content_waiting + pending_octets();
}

auto http2_client_session::pending_octets() const noexcept -> std::size_t {
  return state_->pending.size() - state_->pending_taken;
}

auto http2_client_session::streams_count() const noexcept -> std::size_t {
  return state_->streams.size();
}

auto http2_client_session::streams_max() const noexcept -> std::size_t {
  return std::min(state_->limits.concurrent_streams_max, state_->server_streams_max);
}

auto http2_client_session::takes_requests() const noexcept -> bool {
  constexpr auto id_max = std::numeric_limits<std::int32_t>::max();
  return !state_->terminated && !state_->goaway_received && state_->last_id <= id_max - 2;
}

auto http2_client_session::has_settings() const noexcept -> bool {
  return state_->settings_came;
}

auto http2_client_session::takes_extended_connect() const noexcept -> bool {
  return state_->extended_connect;
}

auto http2_client_session::open(http2_request const& request, method asked, instant now) -> opened {
  auto& self = *state_;
  assert(takes_requests());
  self.last_id += 2;
  self.resets.restore();  // a server may reset, or have us reset, what it was asked for
  auto& stream = self.open(self.last_id, now, self.initial_send_window);
  stream.response_.asked = asked;
  if (!request.protocol.empty()) {
    stream.connect_ = http2_stream::connect::asked;
  }
  auto const at = self.begin_block();
  auto const body = self.encoder.append_request(self.pending, request);
  bool const last = body.kind == body_kind::none && request.protocol.empty();
  self.frame_block(at, stream.id(), last);
  if (last) {
    stream.all_is_known_ = true;
    self.finish(stream);
  }
  return {stream, body};
}

void http2_client_session::send_content(http2_stream& on, std::string_view bytes) {
  state_->send_content(on, bytes);
}

void http2_client_session::send_end(http2_stream& on, std::string_view trailers) {
  state_->send_end(on, trailers);
}

void http2_client_session::reset(http2_stream& on, http2_error why) {
  if (!on.is_over()) {
    on.response_.end = on.received_ ? http2_stream_end::complete : http2_stream_end::cancelled;
  }
  state_->reset(on, why);
}

auto http2_client_session::breaks_off(http2_stream const& on, bool is_all) const noexcept -> bool {
  constexpr int frames_max = 64;  // that are looked at
  if (state_->unread == nullptr) {
    return false;
  }
  auto rest = *state_->unread;
  for (int i = 0; i < frames_max && rest.size() >= http2::frame_head_octets; ++i) {
    auto const frame = http2::read_frame_head(rest.data());
    rest.remove_prefix(http2::frame_head_octets);
    if (frame.stream == on.id()) {
      if (frame.type == http2::frame_type::rst_stream) {
        return true;
      }
      bool const may_end =
          frame.type == http2::frame_type::data || frame.type == http2::frame_type::headers;
      if (may_end && frame.has(http2::flag::end_stream)) {
        return is_all && frame.length > rest.size();
      }
    }
    if (frame.length > rest.size()) {
      return is_all;
    }
    rest.remove_prefix(frame.length);
  }
  return is_all && rest.size() < http2::frame_head_octets;
}

void http2_client_session::let_send(http2_stream& on) {
  state_->let_send(on);
}

void http2_client_session::send_ping() {
  http2::append_frame(state_->pending, http2::frame_type::ping, http2::flag::none, 0, 0, 0);
}

void http2_client_session::terminate(http2_error why) {
  state_->terminate(why);
}

}  // namespace tidegate::TIDEGATE_ABI::wire
