// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/wire/http2_session.hpp>

#include "http2_fields.hpp"
#include "http2_frame.hpp"
#include "http2_request.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tidegate::wire {

namespace http2 {

/// What is left of a rate.
class allowance {
 public:
  explicit allowance(http2_rate rate) : rate_(rate), left_(rate.burst) {}

  /// False when there is nothing left.
  [[nodiscard]] auto spend(instant now) -> bool {
    auto const seconds = std::chrono::floor<std::chrono::seconds>(now - filled_).count();
    if (seconds > 0) {
      auto const more = std::min<std::int64_t>(seconds, rate_.burst) * rate_.per_second;
      left_ = static_cast<std::uint32_t>(std::min<std::int64_t>(rate_.burst, left_ + more));
      filled_ = now;
    }
    if (left_ == 0) {
      return false;
    }
    --left_;
    return true;
  }

 private:
  http2_rate rate_;
  std::uint32_t left_;
  instant filled_{};
};

}  // namespace http2

/// A session, of which http2_streams.cpp has the streams, http2_receive.cpp the frames that come,
/// http2_receive_request.cpp those that make requests, and http2_send.cpp what goes.
struct http2_session::state {
  state(http2_limits const& given, http2_events& events_to, request_head& head_for);

  // ── streams ────────────────────────────────────────────────────────────────────────────────────

  struct open_stream {
    std::int32_t id = 0;  // here as well, so that looking for it touches nothing else
    std::unique_ptr<http2_stream> stream;
  };
  /// Has its links in the streams.
  struct stream_queue {
    http2_stream* first = nullptr;
    http2_stream* last = nullptr;
  };

  /// Null when there is none, or it is over but for its output.
  [[nodiscard]] auto find(std::int32_t id) const -> http2_stream*;
  /// As that, but also one of which only output is left.
  [[nodiscard]] auto find_any(std::int32_t id) const -> http2_stream*;
  /// True when the client used a higher number before it used this one, as far as that is
  /// remembered.
  [[nodiscard]] auto is_skipped(std::int32_t id) const -> bool;
  void note_skipped(std::int32_t before);
  /// A stream that we have reset: what the client sent before it knew is ignored (section 5.1).
  void note_reset(std::int32_t id);
  /// True for the number of a stream that was never opened. We open none, so all of the even ones.
  [[nodiscard]] auto is_idle(std::int32_t id) const -> bool { return id > last_id || id % 2 == 0; }
  auto open(std::int32_t id) -> http2_stream&;
  void close(http2_stream& stream);
  /// Puts it into the queue it waits in, before `before` or at the end.
  void enter(http2_stream& stream, http2_stream::queue which, http2_stream* before = nullptr);
  /// Takes it out of that.
  void remove(http2_stream& stream);
  [[nodiscard]] auto queue_of(http2_stream::queue which) -> stream_queue& {
    return which == http2_stream::queue::ready ? ready : leaving;
  }

  // ── what comes ─────────────────────────────────────────────────────────────────────────────────

  /// What is awaited.
  enum class step : std::uint8_t {
    preface,
    frame_head,
    fixed,    // `fixed_octets` of the payload in one piece
    content,  // of DATA
    block,    // of fields
    skipped,  // padding, and what nobody wants
  };
  /// What becomes of a block of fields. All are decoded, or those after them could not be.
  enum class block_use : std::uint8_t { request, trailers, none };

  /// False when there is not enough of `in`.
  [[nodiscard]] auto advance(std::string_view& in) -> bool;
  /// Null until there are so many octets.
  [[nodiscard]] auto gather(std::string_view& in, std::size_t count) -> char const*;
  void expect_fixed(std::size_t octets);
  void skip_rest();

  void begin_frame();
  void begin_data();
  void begin_headers();
  void begin_continuation();
  void begin_settings();
  void take_fixed(char const* at);
  void take_padding(char const* at);
  void take_dependency(char const* at);
  void take_setting(char const* at);
  void take_priority_update(std::string_view payload);
  void take_window_update(std::uint32_t increment);
  void take_block(std::string_view piece);
  void take_content(http2_stream& stream, std::string_view piece);
  void end_frame();
  void end_block();
  void end_settings();
  void end_of_head(http2_stream& stream, bool last);
  void end_of_request(http2_stream& stream);

  /// Octets of a DATA frame have come, for which the window of the connection is opened again.
  void count_received(std::size_t octets);
  /// Lets the client send again what was passed on.
  void open_window(http2_stream& stream);
  void set_initial_window(std::uint32_t octets);
  void set_priority(http2_stream& stream, http2::priority to);

  /// Ends the connection when there is nothing left.
  void note(http2::allowance& of);
  /// Resets a stream for what the client did.
  void refuse(http2_stream& stream, http2_error why);
  /// As that, for a stream that perhaps is none.
  void refuse(std::int32_t id, http2_error why);

  // ── what goes ──────────────────────────────────────────────────────────────────────────────────

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
  /// What was held of its request is gone, or nobody wants it any more.
  void let_send(http2_stream& stream);
  void leave(http2_stream& stream);
  /// As that, when the end of the request comes after that of the response.
  void leave_answered(http2_stream& stream);
  void take_pending(std::string& out, std::size_t octets_max);

  // ───────────────────────────────────────────────────────────────────────────────────────────────

  http2_limits limits;
  http2_events& events;
  request_head& request;
  instant now{};
  http2::allowance resets;
  http2::allowance control_frames;
  http2::field_decoder decoder;
  http2::field_encoder encoder;

  std::vector<open_stream> streams;
  stream_queue ready;         // have something to send and a window for it, the most urgent first
  stream_queue leaving;       // are closed when their output is taken, in that order
  std::int32_t last_id = -1;  // the highest that the client used
  std::int32_t last_accepted_id = 0;  // and that became a stream
  /// Numbers that the client passed over, the first and the last of each row.
  std::vector<std::pair<std::int32_t, std::int32_t>> skipped;
  std::vector<std::int32_t> was_reset;  // the last ones that we have reset
  bool terminated = false;
  bool goaway_sent = false;
  bool goaway_received = false;
  bool trailers_are_malformed = false;  // those that are being read
  std::size_t trailer_octets = 0;       // names and values of these, each with four octets besides

  // The frame that is being read.
  step awaited = step::preface;
  block_use use = block_use::none;
  bool block_is_last = false;          // the block ends the request
  bool first_settings_came = false;    // section 3.4
  bool settings_acknowledged = false;  // our own
  std::uint8_t padding_octets = 0;
  std::uint8_t gathered_octets = 0;
  std::uint8_t fixed_octets = 0;
  http2::frame_head frame{};
  std::uint32_t left_octets = 0;         // of what is awaited
  std::uint32_t continuations = 0;       // of the block that is being read
  std::int32_t block_id = 0;             // the stream of a block that goes on; 0: none does
  std::uint32_t new_initial_window = 0;  // of the settings that are being read
  http2_stream* current = nullptr;       // whose frame it is; null when nobody cares
  std::array<char, 80> gathered{};       // what has come of something that is read in one piece
  http2::incoming_head head;
  // A priority that came before its stream (RFC 9218, section 7.1). One is enough: it comes right
  // before.
  std::int32_t early_id = 0;
  http2::priority early_priority{};

  // Windows.
  std::int64_t send_window = http2::default_window_octets;
  std::uint32_t initial_send_window = http2::default_window_octets;  // of streams
  std::uint32_t receive_window = 0;
  std::uint32_t received_octets = 0;  // of that window

  // Output that waits to be taken: all but DATA, which waits in the streams.
  std::string pending;
  std::size_t pending_taken = 0;
  std::uint64_t pending_begin = 0;  // which octet of the output its first one is
  std::uint64_t content_sent = 0;
  std::size_t content_waiting = 0;  // in all streams
  std::size_t shared_waiting = 0;   // of that, what has an owner
  std::uint32_t answers_waiting = 0;
};

}  // namespace tidegate::wire
