// SPDX-License-Identifier: Apache-2.0
//
// What becomes of frames, one by one: RFC 9113, sections 4 to 6, and RFC 9218, section 7.1.
#include "http2_server.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace {

using namespace tidegate::wire;
using namespace tidegate::wire::test;
using namespace std::string_literals;
using namespace std::string_view_literals;

// ---- rules ----

/// What a row does to the connection or to a stream; the code is of RFC 9113, section 7.
struct outcome {
  bool ends_connection = false;
  std::uint32_t stream = 0;
  std::uint32_t code = 0;

  auto operator==(outcome const&) const -> bool = default;
};

auto goes_away(http2_error why) -> outcome {
  return {true, 0, static_cast<std::uint32_t>(why)};
}
auto resets(std::uint32_t stream, http2_error why) -> outcome {
  return {false, stream, static_cast<std::uint32_t>(why)};
}
outcome const nothing{};

struct row {
  char const* name;
  std::string bytes;
  outcome expected;
};

void check(row const& row, std::string const& bytes, std::size_t piece) {
  SCOPED_TRACE(row.name);
  SCOPED_TRACE(piece);
  server under_test;
  bool const alive = under_test.take(bytes, piece);
  outcome found;
  for (auto const& each : under_test.said()) {
    if (each.type == goaway) {
      found = {true, 0, each.number_at(4)};
      EXPECT_EQ(each.payload.size(), 8U) << "no debug data";
    } else if (each.type == rst_stream && !found.ends_connection) {
      found = {false, each.stream, each.number_at(0)};
    }
  }
  EXPECT_EQ(std::tuple(found.ends_connection, found.stream, found.code),
            std::tuple(row.expected.ends_connection, row.expected.stream, row.expected.code));
  EXPECT_EQ(alive, !row.expected.ends_connection);
  EXPECT_EQ(under_test.session.is_over(), row.expected.ends_connection);
  if (alive) {  // and goes on
    EXPECT_TRUE(under_test.take(frame(ping, 0, 0, "are you?"), piece));
    auto const said = under_test.said();
    ASSERT_FALSE(said.empty());
    EXPECT_EQ(said.back().type, ping);
    EXPECT_EQ(said.back().flags, ack);
    EXPECT_EQ(said.back().payload, "are you?");
  }
}

void check_all(std::vector<row> const& rows) {
  for (auto const& row : rows) {
    check(row, hello + row.bytes, std::string_view::npos);
    check(row, hello + row.bytes, 1);
    check(row, hello + row.bytes, 7);
  }
}

TEST(wire_http2_frames, begin_with_the_preface_and_settings) {
  std::vector<row> const rows = {
      {"another protocol", "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
       goes_away(http2_error::protocol_error)},
      {"one octet of it wrong", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\r" + frame(settings, 0, 0),
       goes_away(http2_error::protocol_error)},
      {"no settings", preface + frame(ping, 0, 0, "12345678"),
       goes_away(http2_error::protocol_error)},
      {"settings that acknowledge", preface + frame(settings, ack, 0),
       goes_away(http2_error::protocol_error)},
      {"settings", hello, nothing},
  };
  for (auto const& row : rows) {
    check(row, row.bytes, std::string_view::npos);
    check(row, row.bytes, 1);
  }
}

TEST(wire_http2_frames, have_a_size_and_a_type) {
  check_all({
      {"DATA that is too large", post(1) + frame(data, 0, 1, std::string(16'385, 'x')),
       goes_away(http2_error::frame_size_error)},
      {"HEADERS that are too large", frame(headers, end_headers, 1, std::string(16'385, 'x')),
       goes_away(http2_error::frame_size_error)},
      {"an unknown frame that is too large", frame(unknown, 0, 0, std::string(16'385, 'x')),
       goes_away(http2_error::frame_size_error)},
      {"an unknown frame", frame(unknown, 0xff, 0, "anything") + frame(unknown, 0, 77), nothing},
      {"an unknown frame that is large", frame(unknown, 0, 1, std::string(16'384, 'x')), nothing},
      {"DATA that is large", post(1) + frame(data, 0, 1, std::string(16'384, 'x')), nothing},
      {"a reserved bit", frame(ping, 0, 0x80000000, "12345678"), nothing},
      {"unknown flags", frame(ping, 0xfe, 0, "12345678"), nothing},
      {"PUSH_PROMISE", get(1) + frame(push_promise, end_headers, 1, number(4, 2) + get_block),
       goes_away(http2_error::protocol_error)},
  });
}

TEST(wire_http2_frames, of_settings_have_rules) {
  check_all({
      {"of a stream", frame(settings, 0, 1), goes_away(http2_error::protocol_error)},
      {"cut", frame(settings, 0, 0, "12345"), goes_away(http2_error::frame_size_error)},
      {"ACK with settings", frame(settings, ack, 0, number(6, 0)),
       goes_away(http2_error::frame_size_error)},
      {"ENABLE_PUSH 0", set(2, 0), nothing},
      {"ENABLE_PUSH 1", set(2, 1), nothing},
      {"ENABLE_PUSH 2", set(2, 2), goes_away(http2_error::protocol_error)},
      {"INITIAL_WINDOW_SIZE, the largest", set(4, 0x7fffffff), nothing},
      {"INITIAL_WINDOW_SIZE, too large", set(4, 0x80000000),
       goes_away(http2_error::flow_control_error)},
      {"INITIAL_WINDOW_SIZE, too large for a moment",
       frame(settings, 0, 0, number(2, 4) + number(4, 0x80000000) + number(2, 4) + number(4, 1)),
       goes_away(http2_error::flow_control_error)},
      {"INITIAL_WINDOW_SIZE, too large for an open stream",
       get(1) + open_window(1, 0x7fffffff - 65'535) + set(4, 65'536),
       goes_away(http2_error::flow_control_error)},
      {"MAX_FRAME_SIZE, the smallest", set(5, 16'384), nothing},
      {"MAX_FRAME_SIZE, too small", set(5, 16'383), goes_away(http2_error::protocol_error)},
      {"MAX_FRAME_SIZE, the largest", set(5, 0xffffff), nothing},
      {"MAX_FRAME_SIZE, too large", set(5, 0x1000000), goes_away(http2_error::protocol_error)},
      {"NO_RFC7540_PRIORITIES 1", set(9, 1), nothing},
      {"NO_RFC7540_PRIORITIES 2", set(9, 2), goes_away(http2_error::protocol_error)},
      {"HEADER_TABLE_SIZE, as large as can be", set(1, 0xffffffff), nothing},
      {"MAX_HEADER_LIST_SIZE 0", set(6, 0), nothing},
      {"unknown ones", set(0, 1) + set(0x7777, 0xffffffff), nothing},
      {"many", frame(settings, 0, 0, repeat(number(6, 0x100000000), 32)), nothing},
      {"too many", frame(settings, 0, 0, repeat(number(6, 0x100000000), 33)),
       goes_away(http2_error::enhance_your_calm)},
      {"ACK that is not expected", repeat(frame(settings, ack, 0), 3), nothing},
  });
}

TEST(wire_http2_frames, of_headers_have_rules) {
  auto const dependency = number(4, 0x80000003) + "\x10";
  // A field of 4061 octets that goes into the table, and the same once more by one octet each.
  auto const large_field =
      "\x40\x01"
      "a\x7f\xdd\x1e" +
      std::string(4060, '\x80');
  check_all({
      {"of no stream", get(0), goes_away(http2_error::protocol_error)},
      {"of a stream of ours", get(2), goes_away(http2_error::protocol_error)},
      {"padded", frame(headers, 0xd, 1, "\2" + get_block + "xx"), nothing},
      {"padded by all there is", frame(headers, 0xd, 1, "\6" + get_block),
       resets(1, http2_error::protocol_error)},
      {"padded by more than there is", frame(headers, 0xd, 1, "\7" + get_block),
       goes_away(http2_error::protocol_error)},
      {"padded without the length of it", frame(headers, 0xd, 1),
       goes_away(http2_error::frame_size_error)},
      {"with a dependency", frame(headers, 0x25, 1, dependency + get_block), nothing},
      {"with half a dependency", frame(headers, 0x25, 1, "\0\0\0\3"sv),
       goes_away(http2_error::frame_size_error)},
      {"padded with a dependency", frame(headers, 0x2d, 1, "\1" + dependency + get_block + "x"),
       nothing},
      {"padded with half a dependency", frame(headers, 0x2d, 1, "\0\0\0\0\3"sv),
       goes_away(http2_error::frame_size_error)},
      {"with a dependency on itself", frame(headers, 0x25, 1, number(4, 1) + "\x10" + get_block),
       resets(1, http2_error::protocol_error)},
      {"that say nothing", frame(headers, end_stream | end_headers, 1),
       resets(1, http2_error::protocol_error)},
      {"with a field that is not in the table", frame(headers, end_headers, 1, "\xff\x7f"),
       goes_away(http2_error::compression_error)},
      {"with field 0", frame(headers, end_headers, 1, "\x80"),
       goes_away(http2_error::compression_error)},
      {"that end within a field",
       frame(headers, end_headers, 1,
             "\x82\x86\x84\x41\x05"
             "a"),
       goes_away(http2_error::compression_error)},
      {"with a table that is too large", frame(headers, end_headers, 1, "\x3f\xe2\x1f"),
       goes_away(http2_error::compression_error)},
      {"with a bad Huffman code",
       frame(headers, end_headers, 1, "\x82\x86\x84\x41\x84\xff\xff\xff\xff"),
       goes_away(http2_error::compression_error)},
      {"of a stream that is closed", get(1) + reset_by_client(1) + get(1), nothing},
      {"of a stream that was skipped", get(3) + get(1), goes_away(http2_error::protocol_error)},
      {"of a stream that was skipped later", get(1) + get(3) + get(9) + get(11) + get(7),
       goes_away(http2_error::protocol_error)},
      {"of a stream that is closed, after some were skipped",
       get(3) + reset_by_client(3) + get(9) + get(3), nothing},
      {"after the end of the request", get(1) + get(1), resets(1, http2_error::stream_closed)},
      {"that cannot be read, of a stream that is closed",
       get(1) + reset_by_client(1) + frame(headers, end_headers, 1, "\x80"),
       goes_away(http2_error::compression_error)},
      {"as trailers without an end", post(1) + frame(headers, end_headers, 1, ""),
       resets(1, http2_error::protocol_error)},
      {"as trailers", post(1) + frame(headers, end_headers | end_stream, 1, "\x10\1x\1y"), nothing},
      {"as trailers that say as much as a head may",
       post(1) + frame(headers, end_headers | end_stream, 1, large_field + std::string(7, '\xbe')),
       nothing},
      {"as trailers that say more than a head may",
       post(1) + frame(headers, end_stream, 1, large_field + std::string(12'000, '\xbe')) +
           frame(continuation, end_headers, 1, std::string(16'000, '\xbe')),
       resets(1, http2_error::protocol_error)},
      {"as trailers with a method", post(1) + frame(headers, end_headers | end_stream, 1, "\x82"),
       resets(1, http2_error::protocol_error)},
  });
}

TEST(wire_http2_frames, of_headers_have_no_controls_among_octets_beyond_ascii) {
  http2_limits limits;
  limits.resets = {1'000'000, 1'000'000};
  server under_test(limits);
  ASSERT_TRUE(under_test.take(hello));
  std::uint32_t id = 1;
  auto const is_taken = [&](std::string const& value) {
    auto const block = get_block + "\x10\x01x" + static_cast<char>(value.size()) + value;
    EXPECT_TRUE(under_test.take(frame(headers, end_headers | end_stream, id, block)));
    bool const taken = under_test.log.back() == "request " + std::to_string(id);
    if (taken) {
      EXPECT_TRUE(under_test.take(reset_by_client(id)));
    }
    (void)under_test.said();
    id += 2;
    return taken;
  };
  for (std::size_t const size : {1U, 15U, 16U, 17U, 33U, 50U}) {
    SCOPED_TRACE(size);
    std::string value(size, '\x80');
    for (std::size_t i = 1; i + 1 < size; i += 3) {
      value[i] = i % 2 == 0 ? '\t' : '\xff';
    }
    EXPECT_TRUE(is_taken(value));
    for (std::size_t at = 0; at < size; ++at) {
      for (char const control : {'\0', '\n', '\r', '\x1f', '\x7f'}) {
        auto broken = value;
        broken[at] = control;
        EXPECT_FALSE(is_taken(broken)) << at;
      }
    }
  }
}

TEST(wire_http2_frames, of_continuation_follow_their_headers) {
  auto const begin = frame(headers, end_stream, 1, get_block.substr(0, 2));
  check_all({
      {"in three parts",
       begin + frame(continuation, 0, 1, get_block.substr(2, 1)) +
           frame(continuation, end_headers, 1, get_block.substr(3)),
       nothing},
      {"that say nothing",
       begin + repeat(frame(continuation, 0, 1), 5) +
           frame(continuation, end_headers, 1, get_block.substr(2)),
       nothing},
      {"of no headers", frame(continuation, end_headers, 1, get_block),
       goes_away(http2_error::protocol_error)},
      {"of complete headers", get(1) + frame(continuation, end_headers, 1, get_block),
       goes_away(http2_error::protocol_error)},
      {"of another stream", begin + frame(continuation, end_headers, 3, get_block),
       goes_away(http2_error::protocol_error)},
      {"of no stream", begin + frame(continuation, end_headers, 0, get_block),
       goes_away(http2_error::protocol_error)},
      {"behind another frame", begin + frame(ping, 0, 0, "12345678"),
       goes_away(http2_error::protocol_error)},
      {"behind an unknown frame", begin + frame(unknown, 0, 1),
       goes_away(http2_error::protocol_error)},
      {"behind other headers", begin + get(3), goes_away(http2_error::protocol_error)},
      {"without end", begin + repeat(frame(continuation, 0, 1), 20),
       goes_away(http2_error::enhance_your_calm)},
      {"without end, of a stream that is closed",
       get(1) + reset_by_client(1) + begin + repeat(frame(continuation, 0, 1), 20),
       goes_away(http2_error::enhance_your_calm)},
  });
}

TEST(wire_http2_frames, of_data_have_rules) {
  auto const large = std::string(16'384, 'x');
  check_all({
      {"of no stream", frame(data, 0, 0, "x"), goes_away(http2_error::protocol_error)},
      {"of an idle stream", frame(data, 0, 1, "x"), goes_away(http2_error::protocol_error)},
      {"of a stream of ours", get(3) + frame(data, 0, 2, "x"),
       goes_away(http2_error::protocol_error)},
      {"of a stream that is closed",
       get(1) + reset_by_client(1) + frame(data, 0, 1, "x") + frame(data, padded, 1, "\1xy"),
       resets(1, http2_error::stream_closed)},
      {"of a stream that was skipped", get(3) + frame(data, 0, 1, "x"),
       resets(1, http2_error::stream_closed)},
      {"after the end of the request", get(1) + frame(data, 0, 1, "x"),
       resets(1, http2_error::stream_closed)},
      {"padded", post(1) + frame(data, padded, 1, "\2abxx"), nothing},
      {"padded by all there is", post(1) + frame(data, padded, 1, "\2xx"), nothing},
      {"padded by more than there is", post(1) + frame(data, padded, 1, "\3xx"),
       goes_away(http2_error::protocol_error)},
      {"padded without the length of it", post(1) + frame(data, padded, 1),
       goes_away(http2_error::frame_size_error)},
      {"that say nothing", post(1) + repeat(frame(data, 0, 1), 100) + frame(data, end_stream, 1),
       nothing},
      {"that say nothing for ever", post(1) + repeat(frame(data, 0, 1), 1100),
       goes_away(http2_error::enhance_your_calm)},
      {"that are padding for ever", post(1) + repeat(frame(data, padded, 1, "\1x"), 1100),
       goes_away(http2_error::enhance_your_calm)},
  });
}

TEST(wire_http2_frames, of_priority_mean_nothing) {
  check_all({
      {"of no stream", frame(priority, 0, 0, "\0\0\0\1\x10"sv),
       goes_away(http2_error::protocol_error)},
      {"of any stream",
       get(1) + frame(priority, 0, 1, "\0\0\0\3\x10"sv) + frame(priority, 0, 9, "\0\0\0\3\x10"sv) +
           frame(priority, 0, 2, "\0\0\0\3\x10"sv),
       nothing},
      {"that are cut", get(1) + frame(priority, 0, 1, "1234"),
       resets(1, http2_error::frame_size_error)},
      {"that are cut, of an idle stream", frame(priority, 0, 1, "1234"),
       goes_away(http2_error::frame_size_error)},
      {"that are cut, of a closed stream",
       get(1) + reset_by_client(1) + frame(priority, 0, 1, "1234"), nothing},
      {"on itself", get(1) + frame(priority, 0, 1, "\0\0\0\1\x10"sv),
       resets(1, http2_error::protocol_error)},
      {"on itself, of an idle stream", frame(priority, 0, 1, "\0\0\0\1\x10"sv),
       goes_away(http2_error::protocol_error)},
  });
}

TEST(wire_http2_frames, of_rst_stream_ping_and_goaway_have_rules) {
  check_all({
      {"RST_STREAM of no stream", reset_by_client(0), goes_away(http2_error::protocol_error)},
      {"RST_STREAM of an idle stream", reset_by_client(1), goes_away(http2_error::protocol_error)},
      {"RST_STREAM that is cut", get(1) + frame(rst_stream, 0, 1, "123"),
       goes_away(http2_error::frame_size_error)},
      {"RST_STREAM of a closed stream", get(1) + repeat(reset_by_client(1), 3), nothing},
      {"PING of a stream", frame(ping, 0, 1, "12345678"), goes_away(http2_error::protocol_error)},
      {"PING that is cut", frame(ping, 0, 0, "1234567"), goes_away(http2_error::frame_size_error)},
      {"PING that is too long", frame(ping, ack, 0, "123456789"),
       goes_away(http2_error::frame_size_error)},
      {"PING that answers", frame(ping, ack, 0, "12345678"), nothing},
      {"GOAWAY of a stream", frame(goaway, 0, 1, "12345678"),
       goes_away(http2_error::protocol_error)},
      {"GOAWAY that is cut", frame(goaway, 0, 0, "1234567"),
       goes_away(http2_error::frame_size_error)},
      {"GOAWAY with more to say",
       get(1) + frame(goaway, 0, 0, number(8, 0) + std::string(500, 'x')), nothing},
  });
}

TEST(wire_http2_frames, of_windows_have_rules) {
  check_all({
      {"that are cut", frame(window_update, 0, 0, "123"), goes_away(http2_error::frame_size_error)},
      {"by nothing", open_window(0, 0), goes_away(http2_error::protocol_error)},
      {"by nothing but the reserved bit", open_window(0, 0x80000000),
       goes_away(http2_error::protocol_error)},
      {"by nothing, of a stream", get(1) + open_window(1, 0),
       resets(1, http2_error::protocol_error)},
      {"of an idle stream", open_window(1, 1), goes_away(http2_error::protocol_error)},
      {"of a stream of ours", get(3) + open_window(2, 1), goes_away(http2_error::protocol_error)},
      {"of a closed stream", get(1) + reset_by_client(1) + open_window(1, 0), nothing},
      {"as large as can be", open_window(0, 0x7fffffff - 65'535), nothing},
      {"too large", open_window(0, 0x7fffffff - 65'534),
       goes_away(http2_error::flow_control_error)},
      {"as large as can be, of a stream", get(1) + open_window(1, 0x7fffffff - 65'535), nothing},
      {"too large, of a stream", get(1) + open_window(1, 0x7fffffff - 65'534),
       resets(1, http2_error::flow_control_error)},
  });
}

TEST(wire_http2_frames, of_priority_update_have_rules) {  // RFC 9218, section 7.1
  check_all({
      {"of a stream", get(1) + frame(priority_update, 0, 1, number(4, 1) + "u=0"),
       goes_away(http2_error::protocol_error)},
      {"that are cut", frame(priority_update, 0, 0, "123"),
       goes_away(http2_error::frame_size_error)},
      {"about no stream", frame(priority_update, 0, 0, number(4, 0) + "u=0"),
       goes_away(http2_error::protocol_error)},
      {"about a stream of ours", frame(priority_update, 0, 0, number(4, 2) + "u=0"),
       goes_away(http2_error::protocol_error)},
      {"about any stream",
       get(3) + frame(priority_update, 0, 0, number(4, 3) + "u=0") +
           frame(priority_update, 0, 0, number(4, 1) + "u=0") +
           frame(priority_update, 0, 0, number(4, 99) + "u=0") +
           frame(priority_update, 0, 0, number(4, 3)),
       nothing},
      {"that are not understood", get(1) + frame(priority_update, 0, 0, number(4, 1) + ",,;"),
       nothing},
      {"that are long", get(1) + frame(priority_update, 0, 0, number(4, 1) + std::string(500, 'u')),
       nothing},
  });
}

}  // namespace
