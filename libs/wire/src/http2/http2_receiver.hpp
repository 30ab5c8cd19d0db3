// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/version.hpp>

#include "http2_request.hpp"
#include "http2_sender.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tidegate::TIDEGATE_ABI::wire::http2 {

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
  /// One more than the rate gives.
  void restore() { left_ = std::min(left_ + 1, rate_.burst); }

 private:
  http2_rate rate_;
  std::uint32_t left_;
  instant filled_{};
};

/// A block of fields, in HEADERS and the CONTINUATIONs behind it.
struct field_block {
  /// What becomes of it. All are decoded, or those after them could not be.
  enum class purpose : std::uint8_t { head, trailers, none };

  purpose use = purpose::none;
  bool is_last = false;                 // it ends the message
  bool trailers_are_malformed = false;  // as far as they are read
  std::int32_t stream = 0;              // whose block is to be continued; 0: none is
  std::uint32_t continuations = 0;
  std::size_t trailer_octets = 0;  // names and values, each with four octets besides
  std::string trailers;            // the lines that go on, as HTTP/1.1 has them
};

/// What comes, on top of what goes: frames, windows, settings and limits, which are the same at
/// both ends of a connection. What a head is and what a message leads to is left to the end.
struct receiver : sender {
  receiver(http2_limits const& given, role as);

  /// What is awaited.
  enum class step : std::uint8_t {
    preface,
    frame_head,
    fixed,    // `fixed_octets` of the payload in one piece
    content,  // of DATA
    block,    // of fields
    skipped,  // padding, and what is ignored
  };

  // For the end of the connection that this is.

  /// HEADERS begin on a stream: says what its block is for, and sets `current`.
  virtual void open_block() = 0;
  virtual void take_head_field(std::string_view name, std::string_view value) = 0;
  virtual void end_of_head(http2_stream& stream, bool last) = 0;
  virtual void take_content(http2_stream& stream, std::string_view piece) = 0;
  /// All of a message has come, with `trailers` behind it.
  virtual void end_of_message(http2_stream& stream, std::string_view trailers) = 0;
  /// `stream` is null when it is not open any more.
  virtual void take_reset(http2_stream* stream, http2_error why);
  virtual void take_goaway(std::int32_t last_stream);
  virtual void take_setting_of_end(setting which, std::uint32_t value);
  /// Only clients send it (RFC 9218, section 7.1).
  virtual void take_priority_update(std::string_view payload);

  /// Takes what came. False when the connection is over.
  [[nodiscard]] auto receive(std::string_view bytes, instant at) -> bool;
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
  void take_window_update(std::uint32_t increment);
  void take_block(std::string_view piece);
  void take_trailer(std::string_view name, std::string_view value);
  void end_frame();
  void end_block();
  void end_settings();
  /// The block that begins is that of the trailers of `stream`.
  void expect_trailers(http2_stream& stream);
  /// Counts content against the length that its head gave. False when there is too much of it, and
  /// the stream was reset.
  [[nodiscard]] auto fits_length(http2_stream& stream, std::string_view piece) -> bool;
  /// Says how our settings are, and how large the window of the connection is.
  void send_settings(std::string_view payload);

  /// Octets of a DATA frame have come, for which the window of the connection is opened again.
  void count_received(std::size_t octets);
  void set_initial_window(std::uint32_t octets);

  /// Ends the connection when there is nothing left.
  void note(allowance& of);
  /// Resets a stream for what the peer did.
  void refuse(http2_stream& stream, http2_error why);
  /// As that, for a number that perhaps has no stream.
  void refuse(std::int32_t id, http2_error why);

  instant now{};
  allowance resets;
  allowance control_frames;
  std::uint64_t content_at_ping = 0;  // what was sent of it when the last one came
  field_decoder decoder;

  // The frame that is being read.
  step awaited = step::preface;
  bool first_settings_came = false;    // section 3.4
  bool settings_acknowledged = false;  // our own
  bool settings_came = false;          // the first ones, as a whole
  std::uint8_t padding_octets = 0;
  std::uint8_t gathered_octets = 0;
  std::uint8_t fixed_octets = 0;
  frame_head frame{};
  std::uint32_t left_octets = 0;         // of what is awaited
  std::uint32_t new_initial_window = 0;  // of the settings that are being read
  std::array<char, 80> gathered{};       // what has come of something that is read in one piece
  field_block block;
  std::string_view const* unread = nullptr;  // what came behind it, while it is taken

  // Our window.
  std::uint32_t receive_window = 0;
  std::uint32_t received_octets = 0;  // of that window
};

}  // namespace tidegate::TIDEGATE_ABI::wire::http2
