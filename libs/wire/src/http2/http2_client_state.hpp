// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/wire/http2_client_session.hpp>

#include "http2_receiver.hpp"
#include "http2_response.hpp"

#include <cstdint>
#include <limits>
#include <string_view>

namespace tidegate::TIDEGATE_ABI::wire {

/// A session of a client: requests go, responses come. http2_receiver.cpp has the frames,
/// http2_sender.cpp what goes, and http2_stream_table.cpp the streams.
struct http2_client_session::state final : http2::receiver {
  state(http2_limits const& given, http2_client_events& events_to, response_head& head_for);

  void closed(http2_stream& stream) override { events.closed(stream, stream.response_.end); }
  void open_block() override;
  void take_head_field(std::string_view name, std::string_view value) override {
    head.add(name, value, limits.head.head_octets_max);
  }
  void end_of_head(http2_stream& stream, bool last) override;
  void take_content(http2_stream& stream, std::string_view piece) override;
  void end_of_message(http2_stream& stream, std::string_view trailers) override;
  void take_reset(http2_stream* stream, http2_error why) override;
  void take_goaway(std::int32_t last_stream) override;
  void take_setting_of_end(http2::setting which, std::uint32_t value) override;

  /// The response is not one that HTTP/2 allows.
  void refuse_response(http2_stream& stream) { refuse(stream, http2_error::protocol_error); }

  http2_client_events& events;
  response_head& response;
  http2::incoming_response head;
  std::uint32_t server_streams_max = std::numeric_limits<std::uint32_t>::max();
  bool extended_connect = false;
  bool preface_is_sent = false;
};

}  // namespace tidegate::TIDEGATE_ABI::wire
