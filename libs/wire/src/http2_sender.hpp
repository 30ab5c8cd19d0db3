// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/version.hpp>

#include "http2_fields.hpp"
#include "http2_frame.hpp"
#include "http2_stream_table.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tidegate::TIDEGATE_ABI::wire {

/// What goes to the client: heads and control frames in the order in which they are made, content
/// by priorities and windows.
struct http2_session::sender : stream_table {
  sender(http2_limits const& given, http2_events& events_to) : limits(given), events(events_to) {}

  void send_head(http2_stream& stream, int status, std::string_view field_lines, bool last);
  void send_whole(http2_stream& stream, int status, std::string_view field_lines,
                  http2_content const& content);
  void send_content(http2_stream& stream, std::string_view bytes);
  void send_end(http2_stream& stream);
  void reset(http2_stream& stream, http2_error why);
  void drain();
  void terminate(http2_error why);
  /// An answer that the client makes us give: they wait in the output while it takes none of it.
  void count_answer();
  /// Ends the connection when too much waits for a client that takes none of it.
  void check_pending();

  void take_output(std::string& out, std::size_t octets_max);
  [[nodiscard]] auto wants_output() const -> bool;
  [[nodiscard]] auto is_over() const -> bool;

  [[nodiscard]] auto may_send(http2_stream const& stream) const -> bool;
  void append_block(std::int32_t id, int status, std::string_view field_lines, bool last);
  /// Lets it wait for its turn when it has something to send and may.
  void schedule(http2_stream& stream);
  void send_data(std::string& out);
  void append_content(http2_stream& stream, std::string_view bytes);
  /// Throws away what waits of a response.
  void drop_content(http2_stream& stream);
  /// All of its response is in the output.
  void finish(http2_stream& stream) {
    stream.response_sent_ = true;
    if (stream.request_complete_) [[likely]] {
      leave(stream);
    } else {
      finish_early(stream);
    }
  }
  /// The rest of the request is to come.
  void finish_early(http2_stream& stream);
  /// What was held of its request is gone, or is not wanted any more.
  void let_send(http2_stream& stream);
  /// Lets the client send again what was passed on.
  void open_window(http2_stream& stream);
  void leave(http2_stream& stream);
  /// As that, when the end of the request comes after that of the response.
  void leave_answered(http2_stream& stream);
  void close(http2_stream& stream);
  void take_pending(std::string& out, std::size_t octets_max);

  http2_limits limits;
  http2_events& events;
  http2::field_encoder encoder;
  http2_stream* current = nullptr;  // whose frame is being read; null when its content is ignored
  bool terminated = false;
  bool goaway_sent = false;
  bool goaway_received = false;

  // Windows of the client.
  std::int64_t send_window = http2::default_window_octets;
  std::uint32_t initial_send_window = http2::default_window_octets;  // of streams

  // Output that waits to be taken: all but DATA, which waits in the streams.
  std::uint32_t answers_waiting = 0;
  std::string pending;
  std::size_t pending_taken = 0;
  std::uint64_t pending_begin = 0;  // which octet of the output its first one is
  std::uint64_t content_sent = 0;
  std::size_t content_waiting = 0;  // in all streams
  std::size_t shared_waiting = 0;   // of that, what has an owner
};

}  // namespace tidegate::TIDEGATE_ABI::wire
