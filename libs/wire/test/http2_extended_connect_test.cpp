// SPDX-License-Identifier: Apache-2.0
//
// Extended CONNECT (RFC 8441), at both ends of a connection.
#include "http2_client_pair.hpp"
#include "http2_pair.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace tidegate::wire;
using namespace tidegate::wire::test;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

field_texts const connect_request = {
    {":method", "CONNECT"}, {":protocol", "websocket"},    {":scheme", "https"},
    {":path", "/chat?a=b"}, {":authority", "api.example"}, {"sec-websocket-version", "13"}};

/// All but the field of that name.
auto without(std::string_view name) -> field_texts {
  auto fields = connect_request;
  std::erase_if(fields, [&](auto const& field) { return field.first == name; });
  return fields;
}

// ---- the server's side ----

TEST(wire_http2_extended_connect, is_announced_where_it_is_taken) {
  for (bool const takes : {false, true}) {
    http2_limits limits;
    limits.extended_connect = takes;
    http2_pair pair(limits);
    pair.talk();
    EXPECT_EQ(pair.client.settings.contains(NGHTTP2_SETTINGS_ENABLE_CONNECT_PROTOCOL), takes);
    if (takes) {
      EXPECT_EQ(pair.client.settings[NGHTTP2_SETTINGS_ENABLE_CONNECT_PROTOCOL], 1U);
    }
  }
}

TEST(wire_http2_extended_connect, is_shown_as_the_upgrade_that_http_1_1_would_have) {
  http2_pair pair;
  auto const id = pair.client.ask(with(connect_request, {{"sec-websocket-key", "theirs"},
                                                         {"sec-websocket-accept", "theirs"},
                                                         {"cookie", "a=1"},
                                                         {"cookie", "b=2"}}),
                                  {}, false);
  pair.talk();
  EXPECT_THAT(pair.log, ElementsAre("request 1"));
  EXPECT_EQ(pair.head_of[id],
            "GET /chat?a=b\nhost: api.example\nsec-websocket-version: 13\ncookie: a=1; b=2\n"
            "connection: upgrade\nupgrade: websocket\n");
  EXPECT_EQ(pair.body_of[id], body_framing{});
  EXPECT_FALSE(pair.stream(id).is_received());
}

TEST(wire_http2_extended_connect, may_ask_for_any_protocol) {
  http2_pair pair;
  auto const id = pair.client.ask(with(without(":protocol"), {}), {}, false);
  auto fields = connect_request;
  fields[1].second = "connect-udp";
  auto const udp = pair.client.ask(fields, {}, false);
  pair.talk();
  EXPECT_THAT(pair.head_of[udp], HasSubstr("upgrade: connect-udp\n"));
  // Without a protocol it is the old CONNECT, which has no path.
  EXPECT_EQ(pair.client.responses[id].reset, std::uint32_t{NGHTTP2_PROTOCOL_ERROR});
}

TEST(wire_http2_extended_connect, is_reset_when_it_breaks_the_rules) {
  struct row {
    std::string_view name;
    field_texts fields;
  };
  auto const first = [](field_texts const& more) { return with(more, connect_request); };
  for (auto const& [name, fields] :
       {row{"another method", first({{":method", "GET"}})},
        {"no scheme", without(":scheme")},
        {"no path", without(":path")},
        {"no authority", without(":authority")},
        {"host in place of the authority", with(without(":authority"), {{"host", "a"}})},
        {"two protocols", first({{":protocol", "websocket"}})},
        {"an empty protocol", with({{":protocol", ""}}, without(":protocol"))},
        {"a list of protocols", with({{":protocol", "websocket, h2c"}}, without(":protocol"))},
        {"a line in the protocol", with({{":protocol", "a\r\nb: c"}}, without(":protocol"))},
        {"a protocol behind a field", with(without(":protocol"), {{":protocol", "websocket"}})},
        {"Content-Length", with(connect_request, {{"content-length", "5"}})},
        {"Content-Length of nothing", with(connect_request, {{"content-length", "0"}})},
        {"Transfer-Encoding", with(connect_request, {{"transfer-encoding", "chunked"}})},
        {"Connection", with(connect_request, {{"connection", "upgrade"}})},
        {"Upgrade", with(connect_request, {{"upgrade", "websocket"}})}}) {
    SCOPED_TRACE(name);
    http2_pair pair;
    auto const id = pair.client.ask(fields, {}, false);
    pair.talk();
    EXPECT_EQ(pair.client.responses[id].reset, std::uint32_t{NGHTTP2_PROTOCOL_ERROR});
    EXPECT_TRUE(pair.head_of.empty());
    EXPECT_TRUE(pair.alive);
  }
}

TEST(wire_http2_extended_connect, lets_each_direction_end_by_itself) {
  http2_pair pair;
  auto const id = pair.client.ask(connect_request, {}, false);
  pair.talk();
  pair.session.send_head(pair.stream(id), 200, "", false);
  pair.session.send_content(pair.stream(id), "last");
  pair.session.send_end(pair.stream(id));
  pair.talk();
  EXPECT_EQ(pair.client.responses[id].content, "last");
  EXPECT_TRUE(pair.client.responses[id].complete);
  // More than a window of it, which a server would not read behind a response.
  std::string const much(400'000, 'x');
  pair.client.bodies[id] = {much, true};
  nghttp2_session_resume_data(pair.client.session, id);
  pair.talk();
  EXPECT_EQ(pair.content_of[id], much);
  EXPECT_THAT(pair.log, Contains("end 1"));
  EXPECT_EQ(pair.client.responses[id].reset, 0U);
  EXPECT_EQ(pair.session.streams_count(), 0U);
}

TEST(wire_http2_extended_connect, holds_the_client_up_also_when_nothing_is_sent_to_it_any_more) {
  http2_pair pair;
  pair.takes_content = false;
  auto const id = pair.client.ask(connect_request, std::string(400'000, 'x'));
  pair.talk();
  auto const window = pair.content_of[id].size();
  EXPECT_LE(window, 128U * 1024);
  pair.session.send_head(pair.stream(id), 200, "", false);
  pair.session.send_end(pair.stream(id));
  pair.talk();
  EXPECT_EQ(pair.content_of[id].size(), window);
  pair.session.let_send(pair.stream(id));
  pair.talk();
  EXPECT_GT(pair.content_of[id].size(), window);
  EXPECT_LE(pair.content_of[id].size(), window + 128U * 1024);
}

TEST(wire_http2_extended_connect, is_read_no_further_than_a_window_when_it_is_refused) {
  http2_pair pair;
  auto const id = pair.client.ask(connect_request, std::string(400'000, 'x'));
  auto const in = pair.client.output();
  EXPECT_TRUE(pair.session.receive(std::string_view(in).substr(0, 200), pair.now));
  pair.session.send_whole(pair.stream(id), 403, "", "no");
  EXPECT_TRUE(pair.session.receive(std::string_view(in).substr(200), pair.now));
  pair.talk();
  EXPECT_EQ(pair.client.responses[id].content, "no");
  EXPECT_TRUE(pair.client.responses[id].closed);
  EXPECT_EQ(pair.client.responses[id].reset, std::uint32_t{NGHTTP2_NO_ERROR});
}

TEST(wire_http2_extended_connect, has_no_trailers) {  // RFC 9113, section 8.5
  for (bool const is_open : {false, true}) {
    http2_pair pair;
    pair.client.trailer_name = "x-sum";
    auto const id = pair.client.ask(connect_request, {}, false);
    pair.talk();
    if (is_open) {
      pair.session.send_head(pair.stream(id), 200, "", false);
    }
    pair.client.bodies[id] = {"x", true};
    nghttp2_session_resume_data(pair.client.session, id);
    pair.talk();
    EXPECT_EQ(pair.client.responses[id].reset, std::uint32_t{NGHTTP2_PROTOCOL_ERROR});
    EXPECT_THAT(pair.log, Not(Contains("end 1")));
  }
}

// ---- the client's side ----

std::vector<nghttp2_settings_entry> const takes_it{{NGHTTP2_SETTINGS_ENABLE_CONNECT_PROTOCOL, 1}};

/// Opens a stream.
auto ask(http2_client_pair& pair) -> http2_stream& {
  return pair.session
      .open({.method = "CONNECT",
             .scheme = "http",
             .authority = "api",
             .path = "/chat",
             .protocol = "websocket"},
            method::connect, pair.now)
      .stream;
}

TEST(wire_http2_extended_connect, waits_for_the_settings_of_the_server) {
  http2_client_pair pair({}, takes_it);
  EXPECT_FALSE(pair.session.has_settings());
  EXPECT_FALSE(pair.session.takes_extended_connect());
  pair.talk();
  EXPECT_TRUE(pair.session.has_settings());
  EXPECT_TRUE(pair.session.takes_extended_connect());
}

TEST(wire_http2_extended_connect, may_not_be_taken_back) {  // RFC 8441, section 3
  http2_client_pair pair({}, takes_it);
  pair.talk();
  nghttp2_settings_entry const off{NGHTTP2_SETTINGS_ENABLE_CONNECT_PROTOCOL, 0};
  std::string const frame("\0\0\6\4\0\0\0\0\0\0\x08\0\0\0\0", 15);
  EXPECT_EQ(off.settings_id, 8);
  EXPECT_FALSE(pair.session.receive(frame, pair.now));
  pair.talk();
  EXPECT_TRUE(pair.server.gone);
  EXPECT_EQ(pair.server.goaway, std::uint32_t{NGHTTP2_PROTOCOL_ERROR});
}

TEST(wire_http2_extended_connect, is_open_for_both_when_a_2xx_answers_it) {
  for (auto const* const status : {"200", "204"}) {
    SCOPED_TRACE(status);
    http2_client_pair pair({}, takes_it);
    pair.talk();
    auto& stream = ask(pair);
    pair.talk();
    EXPECT_EQ(pair.server.requests[1].field(":protocol"), "websocket");
    EXPECT_FALSE(pair.server.requests[1].complete);
    // A length means nothing here (RFC 9110, section 9.3.6).
    pair.server.answer(1, {{":status", status}, {"content-length", "1"}}, {"hello", false});
    pair.talk();
    EXPECT_EQ(pair.content_of[1], "hello");
    pair.session.send_content(stream, "hi");
    pair.talk();
    EXPECT_EQ(pair.server.requests[1].content, "hi");
    pair.server.send_more(1, "bye", true);
    pair.talk();
    EXPECT_THAT(pair.log, Contains("end 1"));
    EXPECT_THAT(pair.log, Not(Contains("closed 1 complete")));
    pair.session.send_content(stream, "more");
    pair.session.send_end(stream);
    pair.talk();
    EXPECT_EQ(pair.server.requests[1].content, "himore");
    EXPECT_TRUE(pair.server.requests[1].complete);
    EXPECT_THAT(pair.log, Contains("closed 1 complete"));
  }
}

TEST(wire_http2_extended_connect, ends_with_a_head_that_says_so) {
  http2_client_pair pair({}, takes_it);
  pair.talk();
  (void)ask(pair);
  pair.talk();
  pair.server.answer(1, {{":status", "200"}});
  pair.talk();
  EXPECT_THAT(pair.log, ElementsAre("response 1 200", "end 1"));
  EXPECT_EQ(pair.session.streams_count(), 1U);
}

TEST(wire_http2_extended_connect, takes_another_answer_for_what_it_is) {
  http2_client_pair pair({}, takes_it);
  pair.talk();
  (void)ask(pair);
  pair.talk();
  pair.server.answer(1, {{":status", "403"}, {"content-length", "2"}}, {"no", true, {{"x", "1"}}});
  pair.talk();
  EXPECT_EQ(pair.content_of[1], "no");
  EXPECT_EQ(pair.trailers_of[1], "x: 1\r\n");
}

TEST(wire_http2_extended_connect, is_reset_when_the_server_sends_trailers) {
  http2_client_pair pair({}, takes_it);
  pair.talk();
  (void)ask(pair);
  pair.talk();
  pair.server.answer(1, {{":status", "200"}}, {"hello", true, {{"x", "1"}}});
  pair.talk();
  EXPECT_THAT(pair.log, Contains("closed 1 malformed"));
  EXPECT_EQ(pair.server.requests[1].reset, std::uint32_t{NGHTTP2_PROTOCOL_ERROR});
}

}  // namespace
