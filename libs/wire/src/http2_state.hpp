// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/wire/http2_session.hpp>

#include "http2_fields.hpp"
#include "http2_frame.hpp"
#include "http2_request.hpp"
#include "http2_sender.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tidegate::TIDEGATE_ABI::wire {

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

/// A block of fields, in HEADERS and the CONTINUATIONs behind it.
struct field_block {
  /// What becomes of it. All are decoded, or those after them could not be.
  enum class purpose : std::uint8_t { request, trailers, none };

  purpose use = purpose::none;
  bool is_last = false;                 // it ends the request
  bool trailers_are_malformed = false;  // as far as they are read
  std::int32_t stream = 0;              // whose block is to be continued; 0: none is
  std::uint32_t continuations = 0;
  std::size_t trailer_octets = 0;  // names and values, each with four octets besides
};

/// A priority that came before its stream (RFC 9218, section 7.1). One is enough: it comes right
/// before.
struct early_priority {
  std::int32_t stream = 0;
  priority value{};
};

}  // namespace http2

/// A session: what comes, on top of what goes. http2_receive.cpp has the frames,
/// http2_receive_request.cpp those that make requests; http2_sender.cpp has what goes, and
/// http2_stream_table.cpp the streams.
struct http2_session::state : sender {
  state(http2_limits const& given, http2_events& events_to, request_head& head_for);

  /// What is awaited.
  enum class step : std::uint8_t {
    preface,
    frame_head,
    fixed,    // `fixed_octets` of the payload in one piece
    content,  // of DATA
    block,    // of fields
    skipped,  // padding, and what is ignored
  };

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
  void set_initial_window(std::uint32_t octets);
  void set_priority(http2_stream& stream, http2::priority to);

  /// Ends the connection when there is nothing left.
  void note(http2::allowance& of);
  /// Resets a stream for what the client did.
  void refuse(http2_stream& stream, http2_error why);
  /// As that, for a number that perhaps has no stream.
  void refuse(std::int32_t id, http2_error why);

  request_head& request;
  instant now{};
  http2::allowance resets;
  http2::allowance control_frames;
  http2::field_decoder decoder;

  // The frame that is being read.
  step awaited = step::preface;
  bool first_settings_came = false;    // section 3.4
  bool settings_acknowledged = false;  // our own
  std::uint8_t padding_octets = 0;
  std::uint8_t gathered_octets = 0;
  std::uint8_t fixed_octets = 0;
  http2::frame_head frame{};
  std::uint32_t left_octets = 0;         // of what is awaited
  std::uint32_t new_initial_window = 0;  // of the settings that are being read
  std::array<char, 80> gathered{};       // what has come of something that is read in one piece
  http2::field_block block;
  http2::incoming_head head;
  http2::early_priority early;

  // Our window.
  std::uint32_t receive_window = 0;
  std::uint32_t received_octets = 0;  // of that window
};

}  // namespace tidegate::TIDEGATE_ABI::wire
