// SPDX-License-Identifier: Apache-2.0
//
// What is sent when: windows (RFC 9113, section 6.9), priorities (RFC 9218), the end.
#include "http2_server.hpp"

#include "support/allocations.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace {

using namespace tidegate::wire;
using namespace tidegate::wire::test;
using namespace std::string_literals;
using testing::ElementsAre;
using testing::IsEmpty;

// ---- windows ----

TEST(wire_http2_flow, lets_a_client_send_as_much_as_its_windows_say) {
  http2_limits limits;
  limits.stream_window_octets = 100'000;
  limits.connection_window_octets = 150'000;
  auto const large = std::string(10'000, 'x');
  server under_test(limits);
  under_test.takes_content = false;
  ASSERT_TRUE(under_test.take(hello + frame(settings, ack, 0) + post(1)));
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(under_test.take(frame(data, 0, 1, large)));
  }
  EXPECT_EQ(under_test.received.size(), 100'000U);
  // The connection's window opens whatever becomes of the content, that of the stream does not.
  EXPECT_THAT(under_test.said_of({window_update, rst_stream}),
              ElementsAre("8 0 84465", "8 0 80000"));
  ASSERT_TRUE(under_test.take(frame(data, 0, 1, "x")));
  EXPECT_THAT(under_test.said_of({window_update, rst_stream}), ElementsAre("3 1 3"));
  EXPECT_EQ(under_test.received.size(), 100'000U) << "nothing of it is handed on";
}

TEST(wire_http2_flow, opens_the_window_of_a_stream_in_large_steps) {
  http2_limits limits;
  limits.stream_window_octets = 100'000;
  server under_test(limits);
  ASSERT_TRUE(under_test.take(hello + post(1)));
  for (int i = 0; i < 12; ++i) {  // 10,000 octets with padding each
    ASSERT_TRUE(under_test.take(
        frame(data, padded, 1, "\x0f" + std::string(9984, 'x') + std::string(15, '\0'))));
  }
  EXPECT_EQ(under_test.received.size(), 12U * 9984);
  EXPECT_THAT(under_test.said_of({window_update}),
              ElementsAre("8 0 983041", "8 1 50000", "8 1 50000"));
  // What was not passed on does not count until it is.
  under_test.takes_content = false;
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(under_test.take(frame(data, 0, 1, std::string(10'000, 'x'))));
  }
  EXPECT_THAT(under_test.said_of({window_update}), IsEmpty());
  under_test.session.let_send(under_test.stream(1));
  EXPECT_THAT(under_test.said_of({window_update}), ElementsAre("8 1 60000"));
}

TEST(wire_http2_flow, opens_the_window_of_the_connection_when_half_of_it_is_used) {
  http2_limits limits;
  limits.connection_window_octets = 1;  // which is less than every connection has
  server under_test(limits);
  ASSERT_TRUE(under_test.take(hello + post(1) + frame(data, 0, 1, std::string(16'384, 'x')) +
                              frame(data, 0, 1, std::string(16'382, 'x'))));
  EXPECT_THAT(under_test.said_of({window_update}), IsEmpty());
  // Also for a stream that is closed.
  ASSERT_TRUE(under_test.take(reset_by_client(1) + frame(data, 0, 1, "x")));
  EXPECT_THAT(under_test.said_of({window_update}), ElementsAre("8 0 32767"));
}

TEST(wire_http2_flow, takes_the_default_window_until_ours_is_acknowledged) {
  for (bool const acknowledged : {false, true}) {
    http2_limits limits;
    limits.stream_window_octets = 1000;
    server under_test(limits);
    under_test.takes_content = false;
    ASSERT_TRUE(under_test.take(hello + (acknowledged ? frame(settings, ack, 0) : "") + post(1) +
                                frame(data, 0, 1, std::string(1001, 'x'))));
    EXPECT_EQ(under_test.received.size(), acknowledged ? 0U : 1001U);
  }
}

TEST(wire_http2_flow, keeps_to_the_windows_of_streams) {
  server under_test;
  ASSERT_TRUE(under_test.take(hello + set(4, 50) + get(1) + get(3)));
  for (auto const id : {1, 3}) {
    under_test.session.send_head(under_test.stream(id), 200, "", false);
    under_test.session.send_content(under_test.stream(id), std::string(100, 'x'));
    under_test.session.send_end(under_test.stream(id));
  }
  EXPECT_TRUE(under_test.session.wants_output());
  EXPECT_THAT(server::content_of(under_test.said()), ElementsAre("1: 50", "3: 50"));
  EXPECT_FALSE(under_test.session.wants_output());
  // A smaller initial window makes those of open streams less than nothing (section 6.9.2).
  ASSERT_TRUE(under_test.take(set(4, 10) + open_window(1, 40)));
  EXPECT_THAT(server::content_of(under_test.said()), IsEmpty());
  ASSERT_TRUE(under_test.take(open_window(1, 1)));
  EXPECT_THAT(server::content_of(under_test.said()), ElementsAre("1: 1"));
  ASSERT_TRUE(under_test.take(set(4, 30)));
  EXPECT_THAT(server::content_of(under_test.said()), ElementsAre("1: 20"));
  ASSERT_TRUE(under_test.take(set(4, 1000)));
  auto const rest = under_test.said();
  EXPECT_THAT(server::content_of(rest), ElementsAre("1: 29", "3: 50"));
  EXPECT_EQ(rest.back().flags, end_stream);
  EXPECT_EQ(under_test.session.streams_count(), 0U);
}

TEST(wire_http2_flow, keeps_to_the_window_of_the_connection) {
  server under_test;
  ASSERT_TRUE(under_test.take(hello + set(4, 1'000'000) + get(1) + get(3) + get(5)));
  under_test.session.send_whole(under_test.stream(1), 200, "", std::string(65'535, 'x'));
  under_test.session.send_whole(under_test.stream(3), 200, "", "hello");
  EXPECT_EQ(server::content_of(under_test.said()).size(), 4U);
  EXPECT_FALSE(under_test.session.wants_output());
  // What has no content needs no window.
  under_test.session.send_head(under_test.stream(5), 200, "", false);
  under_test.session.send_end(under_test.stream(5));
  EXPECT_THAT(server::content_of(under_test.said()), ElementsAre("5: 0"));
  ASSERT_TRUE(under_test.take(open_window(0, 4)));
  EXPECT_THAT(server::content_of(under_test.said()), ElementsAre("3: 4"));
  ASSERT_TRUE(under_test.take(open_window(0, 4)));
  EXPECT_THAT(server::content_of(under_test.said()), ElementsAre("3: 1"));
  EXPECT_EQ(under_test.session.streams_count(), 0U);
}

TEST(wire_http2_flow, lets_the_rest_of_a_request_come_when_it_is_answered_while_some_was_held) {
  http2_limits limits;
  limits.stream_window_octets = 100'000;
  auto const large = frame(data, 0, 1, std::string(10'000, 'x'));
  for (bool const takes_response : {true, false}) {
    SCOPED_TRACE(takes_response);
    server under_test(limits);
    under_test.takes_content = false;
    ASSERT_TRUE(under_test.take(hello + frame(settings, ack, 0) +
                                (takes_response ? "" : set(4, 0)) + post(1) + repeat(large, 10)));
    (void)under_test.said();
    auto& stream = under_test.stream(1);
    under_test.session.send_head(stream, 413, "", false);
    under_test.session.send_content(stream, "too much");
    EXPECT_THAT(under_test.said_of({window_update}), IsEmpty());
    under_test.session.send_end(stream);
    EXPECT_THAT(under_test.said_of({window_update}), ElementsAre("8 1 100000"));
    // Nothing is held from now on, whatever becomes of it.
    ASSERT_TRUE(under_test.take(repeat(large, 5)));
    EXPECT_THAT(under_test.said_of({window_update}), ElementsAre("8 1 50000"));
    ASSERT_TRUE(under_test.take(repeat(large, 6)));
    EXPECT_EQ(under_test.said_of({rst_stream}),
              (takes_response ? std::vector{"3 1 0"s} : std::vector<std::string>{}));
  }
}

TEST(wire_http2_flow, lets_the_rest_of_a_request_come_when_all_of_the_response_is_there_at_once) {
  for (auto const* const content : {"", "too much"}) {
    server under_test;
    under_test.takes_content = false;
    ASSERT_TRUE(under_test.take(hello + frame(settings, ack, 0) + post(1) +
                                repeat(frame(data, 0, 1, std::string(16'384, 'x')), 8)));
    (void)under_test.said();
    under_test.session.send_whole(under_test.stream(1), 413, "", content);
    EXPECT_THAT(under_test.said_of({window_update}), ElementsAre("8 1 131072"));
  }
}

TEST(wire_http2_flow, sends_one_text_on_many_streams_without_a_copy) {
  server under_test;
  auto const text = std::make_shared<std::string const>(1'000'000, 'x');
  ASSERT_TRUE(under_test.take(hello + set(4, 0)));
  for (std::uint32_t id = 1; id <= 255; id += 2) {
    ASSERT_TRUE(under_test.take(get(id)));
    under_test.session.send_whole(under_test.stream(static_cast<std::int32_t>(id)), 200, "",
                                  http2_content{.begin = "begin", .rest = *text, .owner = text});
  }
  (void)under_test.said();
  EXPECT_EQ(under_test.session.waiting_octets(), 128U * 1'000'005);
  EXPECT_EQ(under_test.session.own_waiting_octets(), 128U * 5);
  EXPECT_EQ(text.use_count(), 129);
  // Its end and a reset let go of it.
  ASSERT_TRUE(under_test.take(reset_by_client(1)));
  under_test.session.reset(under_test.stream(3), http2_error::cancel);
  ASSERT_TRUE(under_test.take(open_window(0, 2'000'000) + open_window(5, 1'000'004)));
  std::size_t octets = 0;
  auto const take_all = [&] {
    for (auto const& each : under_test.said(std::size_t{1} << 30)) {
      if (each.type == data) {
        octets += each.payload.size();
        EXPECT_EQ(each.stream, 5U);
        EXPECT_TRUE(each.payload == "begin" ||
                    each.payload == std::string(each.payload.size(), 'x'));
      }
    }
  };
  take_all();
  EXPECT_EQ(octets, 1'000'004U);
  EXPECT_EQ(text.use_count(), 127);
  ASSERT_TRUE(under_test.take(open_window(5, 1)));
  take_all();
  EXPECT_EQ(octets, 1'000'005U);
  EXPECT_EQ(text.use_count(), 126);
  EXPECT_EQ(under_test.session.waiting_octets(), 125U * 1'000'005);
}

// ---- order ----

TEST(wire_http2_flow, follows_priority_update) {
  server under_test;
  auto const priority_of = [](std::uint32_t id, std::string const& value) {
    return frame(priority_update, 0, 0, number(4, id) + value);
  };
  ASSERT_TRUE(under_test.take(hello + open_window(0, 1'000'000) + get(1) + get(3) +
                              priority_of(5, "u=1") + get(5)));
  for (auto const id : {1, 3, 5}) {
    under_test.session.send_whole(under_test.stream(id), 200, "", std::string(40'000, 'x'));
  }
  EXPECT_THAT(server::content_of(under_test.said(10'000)), ElementsAre("5: 16384"));
  ASSERT_TRUE(under_test.take(priority_of(3, "u=0")));
  EXPECT_THAT(server::content_of(under_test.said(10'000)), ElementsAre("3: 16384"));
  ASSERT_TRUE(under_test.take(priority_of(3, "u=3, i") + priority_of(5, "u=3, i")));
  EXPECT_THAT(
      server::content_of(under_test.said(150'000)),
      ElementsAre("1: 16384", "1: 16384", "1: 7232", "3: 16384", "5: 16384", "3: 7232", "5: 7232"));
}

TEST(wire_http2_flow, lets_small_responses_wait_behind_what_is_as_urgent) {
  server under_test;
  ASSERT_TRUE(under_test.take(hello + get(1) + get(3)));
  under_test.session.send_whole(under_test.stream(1), 200, "", std::string(20'000, 'x'));
  under_test.session.send_whole(under_test.stream(3), 200, "", "hello");
  EXPECT_THAT(server::content_of(under_test.said()), ElementsAre("1: 16384", "1: 3616", "3: 5"));
}

TEST(wire_http2_flow, closes_a_stream_as_soon_as_the_last_of_it_is_taken) {
  http2_limits limits;
  limits.concurrent_streams_max = 2;
  server under_test(limits);
  ASSERT_TRUE(under_test.take(hello + get(1) + get(3)));
  (void)under_test.said();
  for (auto const id : {1, 3}) {
    under_test.session.send_whole(under_test.stream(id), 429, "x-a: 1\r\n", "no");
  }
  EXPECT_EQ(under_test.session.streams_count(), 2U);
  (void)under_test.said(30);  // the first response
  EXPECT_EQ(under_test.session.streams_count(), 1U);
  ASSERT_TRUE(under_test.take(get(5)));
  ASSERT_TRUE(under_test.take(get(7)));
  EXPECT_THAT(under_test.said_of({rst_stream}), ElementsAre("3 7 7"));
  EXPECT_THAT(under_test.log,
              ElementsAre("request 1", "request 3", "closed 1", "request 5", "closed 3"));
}

TEST(wire_http2_flow, counts_no_stream_that_is_over_for_the_client) {
  http2_limits limits;
  limits.concurrent_streams_max = 1;
  auto const question = frame(ping, 0, 0, "12345678");
  {
    // Its response was taken, and then its request comes to an end while other output waits.
    server under_test(limits);
    ASSERT_TRUE(under_test.take(hello + post(1)));
    under_test.session.send_head(under_test.stream(1), 429, "", true);
    (void)under_test.said();
    ASSERT_TRUE(under_test.take(question + frame(data, end_stream, 1) + get(3)));
    EXPECT_THAT(under_test.log, ElementsAre("request 1", "end 1", "closed 1", "request 3"));
    EXPECT_THAT(under_test.said_of({rst_stream}), IsEmpty());
  }
  {
    // The client resets it before its response is taken.
    server under_test(limits);
    ASSERT_TRUE(under_test.take(hello + get(1)));
    under_test.session.send_head(under_test.stream(1), 429, "", true);
    ASSERT_TRUE(under_test.take(reset_by_client(1) + get(3)));
    EXPECT_THAT(under_test.log, ElementsAre("request 1", "closed 1", "request 3"));
    EXPECT_THAT(under_test.said_of({rst_stream}), IsEmpty());
  }
}

TEST(wire_http2_flow, closes_streams_in_the_order_of_their_output) {
  server under_test;
  ASSERT_TRUE(under_test.take(hello + post(1) + get(3) + post(5)));
  (void)under_test.said();
  for (auto const id : {1, 3, 5}) {
    under_test.session.send_head(under_test.stream(id), 429, "x-a: 1\r\n", true);
  }
  ASSERT_TRUE(under_test.take(frame(data, end_stream, 5) + frame(data, end_stream, 1)));
  EXPECT_EQ(under_test.session.streams_count(), 3U);
  std::vector<std::string> const before = under_test.log;
  for (auto const* const expected : {"closed 1", "closed 3", "closed 5"}) {
    EXPECT_EQ(under_test.said(1).size(), 1U);
    EXPECT_EQ(under_test.log.back(), expected);
  }
  EXPECT_EQ(under_test.log.size(), before.size() + 3);
}

// ---- the end ----

TEST(wire_http2_flow, ignores_new_streams_after_goaway) {
  server under_test;
  ASSERT_TRUE(under_test.take(hello + get(1)));
  under_test.session.drain();
  // Its block is read nevertheless: it puts a field into the table that the next one uses.
  auto const indexed =
      "\x83\x86\x84\x41\x01"
      "a"
      "\x40\x03"
      "x-a\x01y"s;
  ASSERT_TRUE(under_test.take(frame(headers, end_headers, 3, indexed) + frame(data, 0, 3, "x") +
                              frame(window_update, 0, 3, number(4, 1)) + reset_by_client(3)));
  EXPECT_THAT(under_test.log, ElementsAre("request 1"));
  EXPECT_THAT(under_test.said_of({goaway, rst_stream}), ElementsAre("7 0 0"));
  under_test.session.send_head(under_test.stream(1), 204, "", true);
  EXPECT_FALSE(under_test.session.is_over());
  (void)under_test.said();
  EXPECT_TRUE(under_test.session.is_over());
}

TEST(wire_http2_flow, reads_the_fields_of_streams_that_it_refuses) {
  http2_limits limits;
  limits.concurrent_streams_max = 1;
  server under_test(limits);
  auto const indexed = get_block + "\x40\x03x-a\x01y";
  ASSERT_TRUE(
      under_test.take(hello + get(1) + frame(headers, end_headers | end_stream, 3, indexed)));
  EXPECT_THAT(under_test.said_of({rst_stream}), ElementsAre("3 3 7"));
  ASSERT_TRUE(under_test.take(reset_by_client(1)));
  ASSERT_TRUE(under_test.take(frame(headers, end_headers | end_stream, 5, get_block + "\xbf")));
  EXPECT_EQ(under_test.log.back(), "request 5");
}

TEST(wire_http2_flow, is_over_when_the_client_goes_away_and_all_is_done) {
  server under_test;
  ASSERT_TRUE(under_test.take(hello + get(1) + frame(goaway, 0, 0, number(8, 0))));
  (void)under_test.said();
  EXPECT_FALSE(under_test.session.is_over());
  under_test.session.send_head(under_test.stream(1), 204, "", true);
  (void)under_test.said();
  EXPECT_TRUE(under_test.session.is_over());
}

TEST(wire_http2_flow, ignores_what_comes_after_a_reset) {
  server under_test;
  ASSERT_TRUE(under_test.take(hello + post(1)));
  under_test.session.reset(under_test.stream(1), http2_error::cancel);
  // What the client sent before it knows: before and after the reset is on its way.
  ASSERT_TRUE(under_test.take(frame(data, 0, 1, "x") + open_window(1, 5)));
  EXPECT_THAT(under_test.said_of({rst_stream}), ElementsAre("3 1 8"));
  ASSERT_TRUE(under_test.take(frame(data, 0, 1, "x") + frame(data, end_stream, 1, "x") +
                              frame(headers, end_headers | end_stream, 1, "")));
  EXPECT_EQ(under_test.received, "");
  EXPECT_THAT(under_test.log, ElementsAre("request 1", "closed 1"));
  EXPECT_THAT(under_test.said_of({rst_stream, goaway}), IsEmpty());
}

TEST(wire_http2_flow, answers_data_on_a_closed_stream_once_by_stream_closed) {
  server under_test;
  ASSERT_TRUE(under_test.take(hello + get(1) + post(3)));
  under_test.session.send_whole(under_test.stream(1), 200, "", "hello");
  (void)under_test.said();
  ASSERT_TRUE(under_test.take(reset_by_client(3)));
  ASSERT_EQ(under_test.session.streams_count(), 0U);
  // Ended by both, and reset by the client: neither can have anything on its way (RFC 9113, section
  // 6.1).
  ASSERT_TRUE(under_test.take(frame(data, 0, 1, "x") + frame(data, end_stream, 3, "x")));
  EXPECT_THAT(under_test.said_of({rst_stream, goaway}), ElementsAre("3 1 5", "3 3 5"));
  ASSERT_TRUE(under_test.take(repeat(frame(data, 0, 1, "x"), 1000)));
  EXPECT_THAT(under_test.said_of({rst_stream, goaway}), IsEmpty());
  EXPECT_EQ(under_test.received, "");
}

TEST(wire_http2_flow, counts_data_on_closed_streams_as_resets) {
  http2_limits limits;
  limits.resets = {4, 0};
  server under_test(limits);
  std::string bytes = hello;
  for (std::uint32_t id = 1; id < 20; id += 2) {
    bytes += get(id);
  }
  ASSERT_TRUE(under_test.take(bytes));
  for (std::int32_t id = 1; id < 20; id += 2) {
    under_test.session.send_whole(under_test.stream(id), 200, "", "hello");
  }
  (void)under_test.said();
  bytes.clear();
  for (std::uint32_t id = 1; id < 20; id += 2) {
    bytes += frame(data, 0, id, "x");
  }
  EXPECT_FALSE(under_test.take(bytes));
  EXPECT_THAT(under_test.said_of({goaway}), ElementsAre("7 0 11"));
}

TEST(wire_http2_flow, waits_only_so_long_for_a_client_that_takes_no_answers) {
  for (auto const& question : {frame(ping, 0, 0, "12345678"), frame(settings, 0, 0)}) {
    http2_limits limits;
    limits.control_frames = {1'000'000, 1'000'000};
    server under_test(limits);
    ASSERT_TRUE(under_test.take(hello));
    ASSERT_TRUE(under_test.take(repeat(question, 900)));
    (void)under_test.said();
    ASSERT_TRUE(under_test.take(repeat(question, 900)));
    EXPECT_FALSE(under_test.take(repeat(question, 900)));
    EXPECT_EQ(under_test.said_of({goaway}), (std::vector<std::string>{"7 0 11"}));
  }
}

TEST(wire_http2_flow, keeps_only_so_much_for_a_client_that_takes_nothing) {
  http2_limits limits;
  limits.resets = {1'000'000, 1'000'000};
  auto const lines = "x-a: " + std::string(8000, '!') + "\r\n";
  // Heads of responses that the client resets.
  server under_test(limits);
  ASSERT_TRUE(under_test.take(hello));
  std::uint32_t id = 1;
  while (id < 1000 && under_test.take(get(id))) {
    under_test.session.send_head(under_test.stream(static_cast<std::int32_t>(id)), 200, lines,
                                 false);
    if (!under_test.take(reset_by_client(id))) {
      break;
    }
    id += 2;
  }
  EXPECT_GT(id, 2U * 200);
  EXPECT_LT(id, 2U * 300);
  std::string out;
  EXPECT_FALSE(under_test.session.take_output(out, 10'000'000));
  EXPECT_LT(out.size(), 2'200'000U);
  // Interim responses, for which nothing need come.
  server other(limits);
  ASSERT_TRUE(other.take(hello + get(1)));
  for (int i = 0; i < 1000; ++i) {
    other.session.send_interim(other.stream(1), 103, lines);
  }
  out.clear();
  EXPECT_FALSE(other.session.take_output(out, 10'000'000));
  EXPECT_LT(out.size(), 2'200'000U);
}

TEST(wire_http2_flow, ignores_calls_on_a_stream_that_is_being_closed) {
  server under_test;
  under_test.when_closed = [&](http2_stream& on) {
    EXPECT_TRUE(on.is_over());
    under_test.session.let_send(on);
    under_test.session.send_whole(on, 200, "", "hello");
    under_test.session.reset(on, http2_error::cancel);
  };
  ASSERT_TRUE(under_test.take(hello));
  (void)under_test.said();
  under_test.takes_content = false;
  ASSERT_TRUE(under_test.take(post(1) + repeat(frame(data, 0, 1, std::string(16'384, 'x')), 5) +
                              reset_by_client(1)));
  EXPECT_THAT(under_test.log, ElementsAre("request 1", "closed 1"));
  EXPECT_THAT(under_test.said(), IsEmpty());
  EXPECT_EQ(under_test.session.streams_count(), 0U);
}

TEST(wire_http2_flow, says_nothing_after_the_end) {
  server under_test;
  ASSERT_TRUE(under_test.take(hello + get(1) + post(3)));
  under_test.session.send_head(under_test.stream(1), 200, "", false);
  under_test.session.send_content(under_test.stream(1), "never sent");
  under_test.session.terminate(http2_error::no_error);
  under_test.session.send_end(under_test.stream(1));
  under_test.session.send_whole(under_test.stream(3), 200, "", "nor this");
  under_test.session.reset(under_test.stream(3), http2_error::cancel);
  under_test.session.let_send(under_test.stream(3));
  under_test.session.drain();
  EXPECT_FALSE(under_test.take(get(5)));
  auto const said = under_test.said();
  EXPECT_EQ(said.back().type, goaway);
  EXPECT_THAT(server::content_of(said), IsEmpty());
  EXPECT_TRUE(under_test.session.is_over());
}

// ---- cost ----

TEST(wire_http2_flow, allocates_nothing_for_a_refusal_once_it_is_warm) {
  server under_test;
  ASSERT_TRUE(under_test.take(hello));
  under_test.log.reserve(1000);
  std::string out;
  std::size_t allocated = 0;
  for (std::uint32_t id = 1; id < 100; id += 2) {
    auto const in = get(id);
    out.clear();
    auto const before = tidegate::test::allocations();
    EXPECT_TRUE(under_test.session.receive(in, under_test.now));
    under_test.session.send_whole(under_test.stream(static_cast<std::int32_t>(id)), 429,
                                  "content-type: text/plain\r\ncontent-length: 2\r\n", "no");
    EXPECT_TRUE(under_test.session.take_output(out, 10'000));
    if (id > 20) {
      allocated += tidegate::test::allocations() - before;
    }
  }
  EXPECT_EQ(allocated, 0U);
}

TEST(wire_http2_flow, keeps_no_output_that_is_taken_while_there_is_always_more) {
  server under_test;
  ASSERT_TRUE(under_test.take(hello + open_window(0, 1'000'000'000)));
  (void)under_test.said();
  under_test.log.reserve(50'000);
  std::string const content(1000, 'x');
  std::string out;
  std::size_t allocated = 0;
  for (std::uint32_t i = 0; i < 10'000; ++i) {
    auto const in = get(2 * i + 1);
    out.clear();
    auto const before = tidegate::test::allocations();
    EXPECT_TRUE(under_test.session.receive(in, under_test.now));
    under_test.session.send_whole(under_test.stream(static_cast<std::int32_t>(2 * i + 1)), 429,
                                  "content-length: 1000\r\n", content);
    if (i >= 40) {
      EXPECT_TRUE(under_test.session.take_output(out, 1));               // a head
      EXPECT_TRUE(under_test.session.take_output(out, out.size() + 1));  // and its content
      ASSERT_EQ(under_test.session.streams_count(), 40U);
    }
    if (i >= 2000) {
      allocated += tidegate::test::allocations() - before;
    }
  }
  EXPECT_EQ(allocated, 0U);
}

}  // namespace
