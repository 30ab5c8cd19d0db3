// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "http2_fields.hpp"
#include "http2_frame.hpp"
#include "http2_stream_table.hpp"

#include <tidegate/wire/http2_session.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tidegate::TIDEGATE_ABI::wire::http2 {

/// Which end of a connection this is.
enum class role : std::uint8_t { server, client };

/// What goes to the peer: heads and control frames in the order in which they are made, content by
/// priorities and windows.
struct sender : stream_table {
  sender(http2_limits const& given, role as) : limits(given), is_server(as == role::server) {}
  sender(sender const&) = delete;
  auto operator=(sender const&) -> sender& = delete;
  virtual ~sender() = default;

  /// The stream is over, and is destroyed after this call.
  virtual void closed(http2_stream& stream) = 0;

  void send_head(http2_stream& stream, int status, std::string_view field_lines, bool last);
  void send_whole(http2_stream& stream, int status, std::string_view field_lines,
                  http2_content const& content);
  void send_content(http2_stream& stream, std::string_view bytes);
  void send_end(http2_stream& stream, std::string_view trailers);
  void reset(http2_stream& stream, http2_error why);
  void drain();
  void terminate(http2_error why);
  /// An answer that the peer makes us give: they wait in the output while it takes none of it.
  void count_answer();
  /// Ends the connection when too much waits for a peer that takes none of it.
  void check_pending();

  void take_output(std::string& out, std::size_t octets_max);
  [[nodiscard]] auto wants_output() const -> bool;
  [[nodiscard]] auto is_over() const -> bool;

  [[nodiscard]] auto may_send(http2_stream const& stream) const -> bool;
  /// Appends a block: of a response, or of trailers when `status` is 0.
  void append_block(std::int32_t id, int status, std::string_view field_lines, bool last);
  /// Where a block is written to; its frame is made when it is complete.
  [[nodiscard]] auto begin_block() -> std::size_t;
  void frame_block(std::size_t begun_at, std::int32_t id, bool last);
  void send_trailers(http2_stream& stream);
  /// Lets it wait for its turn when it has something to send and may.
  void schedule(http2_stream& stream);
  void send_data(std::string& out);
  void append_content(http2_stream& stream, std::string_view bytes);
  /// Throws away what waits to be sent.
  void drop_content(http2_stream& stream);
  /// All that we send of it is in the output.
  void finish(http2_stream& stream) {
    stream.all_is_sent_ = true;
    if (stream.received_) [[likely]] {
      leave(stream);
    } else {
      finish_early(stream);
    }
  }
  /// The rest of what the peer sends is to come.
  void finish_early(http2_stream& stream);
  /// What was held of its content is gone, or is not wanted any more.
  void let_send(http2_stream& stream);
  /// A server that has said all wants no more of the request, unless it is a tunnel.
  void want_no_more(http2_stream& stream) {
    if (is_server && stream.connect_ != http2_stream::connect::open) {
      let_send(stream);
    }
  }
  /// Lets the peer send again what was passed on.
  void open_window(http2_stream& stream);
  void leave(http2_stream& stream);
  /// As that, when the end of what the peer sends comes after that of what we send.
  void leave_answered(http2_stream& stream);
  void close(http2_stream& stream);
  void take_pending(std::string& out, std::size_t octets_max);

  http2_limits limits;
  bool const is_server;
  /// What changes all the time is not worth remembering for long; of the requests of many clients
  /// there is more to remember.
  field_encoder encoder{is_server ? 1024U : 4096U};
  http2_stream* current = nullptr;  // whose frame is being read; null when its content is ignored
  bool terminated = false;
  bool goaway_sent = false;
  bool goaway_received = false;

  // Windows of the peer.
  std::int64_t send_window = default_window_octets;
  std::uint32_t initial_send_window = default_window_octets;  // of streams

  // Output that waits to be taken: all but DATA, which waits in the streams.
  std::uint32_t answers_waiting = 0;
  std::string pending;
  std::size_t pending_taken = 0;
  std::uint64_t pending_begin = 0;  // which octet of the output its first one is
  std::uint64_t content_sent = 0;
  std::size_t content_waiting = 0;  // in all streams
  std::size_t shared_waiting = 0;   // of that, what has an owner
};

}  // namespace tidegate::TIDEGATE_ABI::wire::http2
