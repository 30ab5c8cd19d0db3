// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/wire/http2_session.hpp>

#include "http2_receiver.hpp"

#include <cstdint>
#include <string_view>

namespace tidegate::TIDEGATE_ABI::wire {

namespace http2 {

/// A priority that came before its stream (RFC 9218, section 7.1). One is enough: it comes right
/// before.
struct early_priority {
  std::int32_t stream = 0;
  priority value{};
};

}  // namespace http2

/// A session of a server: requests come, responses go. http2_receiver.cpp has the frames,
/// http2_sender.cpp what goes, and http2_stream_table.cpp the streams.
struct http2_session::state final : http2::receiver {
  state(http2_limits const& given, http2_events& events_to, request_head& head_for)
      : receiver(given, http2::role::server), events(events_to), request(head_for) {}

  void closed(http2_stream& stream) override { events.closed(stream); }
  void open_block() override;
  void take_head_field(std::string_view name, std::string_view value) override {
    head.add(name, value, limits.head.head_octets_max);
  }
  void end_of_head(http2_stream& stream, bool last) override;
  void take_content(http2_stream& stream, std::string_view piece) override;
  void end_of_message(http2_stream& stream, std::string_view trailers) override;
  void take_priority_update(std::string_view payload) override;

  void set_priority(http2_stream& stream, http2::priority to);

  http2_events& events;
  request_head& request;
  http2::incoming_head head;
  http2::early_priority early;
};

}  // namespace tidegate::TIDEGATE_ABI::wire
