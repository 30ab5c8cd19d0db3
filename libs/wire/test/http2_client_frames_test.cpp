// SPDX-License-Identifier: Apache-2.0
//
// What a client session says to frames that a server may not send, or not then, or not so many of.
#include "http2_client_pair.hpp"
#include "http2_server.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace tidegate;
using namespace tidegate::wire;
using namespace tidegate::wire::test;
using namespace std::string_literals;

/// `:status: 200`, as HPACK writes it.
auto const ok_block = "\x88"s;

auto ok(std::uint32_t stream, unsigned flags = end_headers) -> std::string {
  return frame(headers, flags, stream, ok_block);
}

/// A session with two requests under way, and what it says last.
class frames_taken final : private http2_client_events {
 public:
  explicit frames_taken(http2_limits const& limits = {}) : session(limits, *this, head_) {
    for (int i = 0; i < 2; ++i) {
      (void)session.open({.method = "GET", .scheme = "http", .authority = "a", .path = "/"},
                         method::get, now);
    }
    std::string out;
    (void)session.take_output(out, 1U << 20U);
  }

  /// False when the connection is over.
  auto take(std::string_view bytes, std::size_t piece = std::string_view::npos) -> bool {
    for (; !bytes.empty(); bytes.remove_prefix(std::min(piece, bytes.size()))) {
      std::string const part(bytes.substr(0, piece));  // so that a look behind it is seen
      if (!session.receive(part, now)) {
        return false;
      }
    }
    return true;
  }

  /// The error of its GOAWAY; nothing when there is none.
  auto goaway_error() -> std::optional<std::uint32_t> { return last_number(goaway, 0); }
  /// The error of its RST_STREAM for the first request.
  auto reset_error() -> std::optional<std::uint32_t> { return last_number(rst_stream, 1); }

  instant now{std::chrono::hours(1)};
  bool is_all = false;  // nothing comes behind what is taken
  std::string log;

 private:
  auto last_number(std::uint8_t type, std::uint32_t stream) -> std::optional<std::uint32_t> {
    (void)session.take_output(said_, 1U << 20U);
    std::optional<std::uint32_t> found;
    for (std::string_view rest = said_; !rest.empty();) {
      said_frame each{
          static_cast<std::uint8_t>(rest[3]), static_cast<std::uint8_t>(rest[4]), 0, {}};
      each.payload = rest.substr(0, 9);
      auto const size = each.number_at(0) >> 8U;
      each.stream = each.number_at(5);
      each.payload = rest.substr(9, size);
      rest.remove_prefix(9 + size);
      if (each.type == type && each.stream == stream) {
        found = each.number_at(each.payload.size() - 4);
      }
    }
    return found;
  }

  void interim(http2_stream& /*on*/, response_head const& /*head*/) override { log += "interim "; }
  void response(http2_stream& on, response_head const& /*head*/) override {
    log += session.breaks_off(on, is_all) ? "broken " : "head ";
  }
  auto content(http2_stream& /*on*/, std::string_view /*bytes*/) -> bool override { return false; }
  void end_of_response(http2_stream& /*on*/, std::string_view /*trailers*/) override {
    log += "end ";
  }
  void closed(http2_stream& /*on*/, http2_stream_end /*how*/) override {}

  response_head head_;
  std::string said_;

 public:
  http2_client_session session;
};

enum class what : std::uint8_t { nothing, stream, connection };

struct row {
  std::string_view name;
  std::string bytes;
  what ends = what::nothing;
  http2_error why = http2_error::no_error;
};

auto const settings_frame = frame(settings, 0, 0);

TEST(wire_http2_client_frames, say_when_a_response_breaks_off) {
  struct look {
    std::string behind;  // the head of a response
    bool breaks_off = false;
    bool breaks_off_at_the_end = true;
  };
  auto const reset = frame(rst_stream, 0, 1, "\0\0\0\2"s);
  std::string many;
  for (int i = 0; i < 100; ++i) {
    many += frame(data, 0, 1);
  }
  for (auto const& [behind, now, at_the_end] : std::vector<look>{
           {""},
           {frame(data, 0, 1, "hel")},
           {frame(data, 0, 1, "hel") + frame(data, end_stream, 1, "lo").substr(0, 5)},
           {frame(data, end_stream, 1, "hello").substr(0, 12)},
           {frame(data, end_stream, 1, "hello"), false, false},
           {frame(data, end_stream, 1, "hello") + reset, false, false},
           {frame(data, 0, 1, "hel") + ok(1, end_headers | end_stream), false, false},
           {reset, true},
           {frame(data, 0, 1, "hel") + reset, true},
           {frame(rst_stream, 0, 3, "\0\0\0\2"s) + frame(data, end_stream, 1), false, false},
           {many + reset, false, false},  // it is not looked at for ever
       }) {
    for (bool const is_all : {false, true}) {
      frames_taken session;
      session.is_all = is_all;
      (void)session.take(settings_frame + ok(1) + behind);
      EXPECT_EQ(session.log.starts_with("broken "), is_all ? at_the_end : now)
          << testing::PrintToString(behind) << is_all;
    }
  }
}

TEST(wire_http2_client_frames, have_rules) {
  using enum http2_error;
  for (auto const& [name, bytes, ends, why] : {
           row{"DATA first", frame(data, 0, 1, "x"), what::connection, protocol_error},
           {"an acknowledgement first", frame(settings, ack, 0), what::connection, protocol_error},
           {"HTTP/1.1", "HTTP/1.1 400 Bad Request\r\n\r\n", what::connection, frame_size_error},
           {"a response", settings_frame + ok(1, end_headers | end_stream)},
           {"a response with content", settings_frame + ok(1) + frame(data, end_stream, 1, "x")},
           {"content before the head", settings_frame + frame(data, 0, 1, "x"), what::stream,
            protocol_error},
           {"an end before the head", settings_frame + frame(data, end_stream, 1), what::stream,
            protocol_error},
           {"HEADERS of a stream that was never opened", settings_frame + ok(5), what::connection,
            protocol_error},
           {"HEADERS of an even stream", settings_frame + ok(2), what::connection, protocol_error},
           {"HEADERS of the connection", settings_frame + ok(0), what::connection, protocol_error},
           {"HEADERS after the end", settings_frame + ok(1, end_headers | end_stream) + ok(1)},
           {"trailers without an end", settings_frame + ok(1) + frame(headers, end_headers, 1),
            what::stream, protocol_error},
           {"a block that cannot be read", settings_frame + frame(headers, end_headers, 1, "\xff"),
            what::connection, compression_error},
           {"CONTINUATION alone", settings_frame + frame(continuation, end_headers, 1),
            what::connection, protocol_error},
           {"another frame in a block",
            settings_frame + frame(headers, 0, 1, ok_block) + frame(ping, 0, 0, "12345678"),
            what::connection, protocol_error},
           {"a block in two frames",
            settings_frame + frame(headers, 0, 1) + frame(continuation, end_headers, 1, ok_block)},
           {"DATA of the connection", settings_frame + frame(data, 0, 0, "x"), what::connection,
            protocol_error},
           {"DATA of a stream that was never opened", settings_frame + frame(data, 0, 7, "x"),
            what::connection, protocol_error},
           {"DATA with too much padding",
            settings_frame + ok(1) + frame(data, padded, 1, "\x05"s + "abc"), what::connection,
            protocol_error},
           {"a frame that is too large", settings_frame + number(3, 16'385) + "\0\0\0\0\0\1"s,
            what::connection, frame_size_error},
           {"PUSH_PROMISE", settings_frame + frame(push_promise, end_headers, 1, "\0\0\0\2\x88"s),
            what::connection, protocol_error},
           {"PRIORITY_UPDATE", settings_frame + frame(priority_update, 0, 0, "\0\0\0\1u=1"s),
            what::connection, protocol_error},
           {"pushes turned on", set(2, 1), what::connection, protocol_error},
           {"a window that is too large", set(4, 0x80000000), what::connection, flow_control_error},
           {"frames that are too small", set(5, 100), what::connection, protocol_error},
           {"a setting that we do not know", set(0x99, 7)},
           {"SETTINGS of a stream", frame(settings, 0, 1), what::connection, protocol_error},
           {"half a setting", frame(settings, 0, 0, "abc"), what::connection, frame_size_error},
           {"PING of a stream", settings_frame + frame(ping, 0, 1, "12345678"), what::connection,
            protocol_error},
           {"a short PING", settings_frame + frame(ping, 0, 0, "1"), what::connection,
            frame_size_error},
           {"GOAWAY of a stream", settings_frame + frame(goaway, 0, 1, "12345678"),
            what::connection, protocol_error},
           {"a window that is opened by nothing", settings_frame + open_window(1, 0), what::stream,
            protocol_error},
           {"a window of the connection that is opened by nothing",
            settings_frame + open_window(0, 0), what::connection, protocol_error},
           {"a window that grows too large", settings_frame + open_window(1, 0x7fffffff),
            what::stream, flow_control_error},
           {"a window of a stream that was never opened", settings_frame + open_window(9, 1),
            what::connection, protocol_error},
           {"RST_STREAM of the connection", settings_frame + frame(rst_stream, 0, 0, number(4, 8)),
            what::connection, protocol_error},
           {"RST_STREAM of a stream that was never opened",
            settings_frame + frame(rst_stream, 0, 9, number(4, 8)), what::connection,
            protocol_error},
           {"PRIORITY", settings_frame + frame(priority, 0, 1, "\0\0\0\0\1"s)},
           {"a frame that we do not know", settings_frame + frame(unknown, 0xff, 3, "anything")},
           {"more than the window",
            settings_frame + frame(settings, ack, 0) + ok(1) +
                repeat(frame(data, 0, 1, std::string(16'384, 'x')), 9),
            what::stream, flow_control_error},
       }) {
    for (std::size_t const piece : {std::string_view::npos, std::size_t{1}}) {
      SCOPED_TRACE(std::string(name) + ", in pieces of " + std::to_string(piece));
      frames_taken under_test;
      EXPECT_EQ(under_test.take(bytes, piece), ends != what::connection);
      auto const error = static_cast<std::uint32_t>(why);
      EXPECT_EQ(under_test.goaway_error(),
                ends == what::connection ? std::optional(error) : std::nullopt);
      EXPECT_EQ(under_test.reset_error(),
                ends == what::stream ? std::optional(error) : std::nullopt);
      if (ends != what::connection) {
        under_test.log.clear();
        EXPECT_TRUE(under_test.take(ok(3, end_headers | end_stream)));
        EXPECT_EQ(under_test.log, "head end ") << "the other request is not harmed";
      }
    }
  }
}

TEST(wire_http2_client_frames, cannot_be_a_flood) {
  for (auto const& [name, bytes] : std::vector<std::pair<std::string_view, std::string>>{
           {"PING", repeat(frame(ping, 0, 0, "12345678"), 3000)},
           {"SETTINGS", repeat(frame(settings, 0, 0), 3000)},
           {"DATA without content", ok(1) + repeat(frame(data, 0, 1), 3000)},
           {"RST_STREAM of a stream that is over",
            repeat(frame(rst_stream, 0, 1, number(4, 8)), 3000)},
           {"HEADERS of a stream that is over", repeat(ok(1, end_headers | end_stream), 3000)},
           {"CONTINUATION", frame(headers, 0, 1) + repeat(frame(continuation, 0, 1), 3000)},
           {"CONTINUATION with fields",
            frame(headers, 0, 1, ok_block) +
                repeat(frame(continuation, 0, 1, std::string(16'000, '\x88')), 100)},
           {"settings in one frame",
            frame(settings, 0, 0, repeat(number(2, 4) + number(4, 1), 40))},
       }) {
    frames_taken under_test;
    EXPECT_FALSE(under_test.take(settings_frame + bytes)) << name;
    EXPECT_EQ(under_test.goaway_error(), static_cast<std::uint32_t>(http2_error::enhance_your_calm))
        << name;
  }
}

TEST(wire_http2_client_frames, that_say_a_field_over_and_over_are_bounded) {
  frames_taken under_test;
  // A field of 1,000 octets, which a small block then names 8,000 times.
  auto const block = ok_block + "\x40\x01x\x7f\xe9\x06"s + std::string(1000, 'v');
  EXPECT_TRUE(under_test.take(settings_frame +
                              frame(headers, end_headers, 1, block + std::string(8000, '\xbe'))));
  EXPECT_EQ(under_test.reset_error(), static_cast<std::uint32_t>(http2_error::protocol_error));
  EXPECT_EQ(under_test.log, "") << "a head that is too large is not shown";
}

}  // namespace
