// SPDX-License-Identifier: Apache-2.0
#include "http2_pair.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using namespace tidegate;
using namespace tidegate::wire;
using namespace tidegate::wire::test;
using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;

// ---- requests ----

TEST(wire_http2, shows_a_request_as_http_1_1_would_have_it) {
  http2_pair pair;
  auto const id = pair.client.ask(with(get_request, {{"accept", "*/*"}, {"te", "trailers"}}));
  pair.talk();
  EXPECT_THAT(pair.log, ElementsAre("request 1"));
  EXPECT_EQ(pair.head_of[id], "GET /a?b=c\nhost: api.example\naccept: */*\nte: trailers\n");
  EXPECT_EQ(pair.body_of[id], body_framing{});
  EXPECT_TRUE(pair.stream(id).is_received());
}

TEST(wire_http2, joins_the_crumbs_of_a_cookie) {
  http2_pair pair;
  auto const id = pair.client.ask(
      with(get_request, {{"cookie", "a=1"}, {"x", "y"}, {"cookie", "b=2"}, {"cookie", "c=3"}}));
  pair.talk();
  EXPECT_THAT(pair.head_of[id], HasSubstr("\ncookie: a=1; b=2; c=3\n"));
}

TEST(wire_http2, takes_the_host_where_there_is_no_authority) {
  http2_pair pair;
  auto const id = pair.client.ask(
      {{":method", "GET"}, {":scheme", "http"}, {":path", "/"}, {"host", "api.example"}});
  pair.talk();
  EXPECT_EQ(pair.head_of[id], "GET /\nhost: api.example\n");
}

TEST(wire_http2, says_host_once_when_both_say_the_same) {
  http2_pair pair;
  auto const id = pair.client.ask(with(get_request, {{"host", "api.example"}}));
  pair.talk();
  EXPECT_EQ(pair.head_of[id], "GET /a?b=c\nhost: api.example\n");
}

TEST(wire_http2, refuses_a_host_that_differs_from_the_authority) {
  http2_pair pair;
  pair.client.ask(with(get_request, {{"host", "other.example"}}));
  pair.talk();
  EXPECT_THAT(pair.log, ElementsAre("refused 1 repeated_host"));
}

TEST(wire_http2, frames_a_body_by_its_length_when_the_client_says_one) {
  http2_pair pair;
  auto const id = pair.client.ask(with(post_request, {{"content-length", "5"}}), "hello");
  pair.talk();
  EXPECT_THAT(pair.log, ElementsAre("request 1", "end 1"));
  EXPECT_EQ(pair.body_of[id], (body_framing{body_kind::content_length, 5}));
  EXPECT_EQ(pair.content_of[id], "hello");
}

TEST(wire_http2, frames_a_body_in_chunks_when_the_client_says_no_length) {
  http2_pair pair;
  auto const id = pair.client.ask(post_request, "hello");
  pair.talk();
  EXPECT_EQ(pair.body_of[id].kind, body_kind::chunked);
  EXPECT_EQ(pair.content_of[id], "hello");
}

TEST(wire_http2, takes_the_same_from_bytes_one_by_one) {
  http2_pair pair;
  auto const id =
      pair.client.ask(with(post_request, {{"cookie", "a=1"}, {"cookie", "b=2"}}), "hello");
  for (char const c : pair.client.output()) {
    EXPECT_TRUE(pair.session.receive({&c, 1}, pair.now));
  }
  EXPECT_THAT(pair.log, ElementsAre("request 1", "end 1"));
  EXPECT_EQ(pair.content_of[id], "hello");
  EXPECT_THAT(pair.head_of[id], HasSubstr("cookie: a=1; b=2\n"));
}

struct malformed_row {
  char const* name;
  field_texts fields;
  std::string body{};
};

TEST(wire_http2, resets_a_stream_whose_request_breaks_the_rules) {
  std::vector<malformed_row> const rows = {
      {"no method", {{":scheme", "http"}, {":path", "/"}, {":authority", "a"}}},
      {"no path", {{":method", "GET"}, {":scheme", "http"}, {":authority", "a"}}},
      {"no scheme", {{":method", "GET"}, {":path", "/"}, {":authority", "a"}}},
      {"empty path", {{":method", "GET"}, {":scheme", "http"}, {":path", ""}, {":authority", "a"}}},
      {"path twice", with(get_request, {{":path", "/b"}})},
      {"pseudo-header behind a field", with(with({}, {{"x", "y"}}), get_request)},
      {"unknown pseudo-header", with({{":wrong", "x"}}, get_request)},
      {"pseudo-header of a response", with({{":status", "200"}}, get_request)},
      {"connection", with(get_request, {{"connection", "close"}})},
      {"keep-alive", with(get_request, {{"keep-alive", "x"}})},
      {"proxy-connection", with(get_request, {{"proxy-connection", "x"}})},
      {"transfer-encoding", with(get_request, {{"transfer-encoding", "chunked"}})},
      {"upgrade", with(get_request, {{"upgrade", "x"}})},
      {"te", with(get_request, {{"te", "gzip"}})},
      {"line feed in a value", with(get_request, {{"x", "a\nb: c"}})},
      {"carriage return in a value", with(get_request, {{"x", "a\r\nb: c"}})},
      {"zero in a value", with(get_request, {{"x", std::string("a\0b", 3)}})},
      {"space in a name", with(get_request, {{"x y", "a"}})},
      {"colon in a name", with(get_request, {{"x:y", "a"}})},
      {"empty name", with(get_request, {{"", "a"}})},
      {"capital letter in a name", with(get_request, {{"x-Y", "a"}})},
      {"delete in a value", with(get_request, {{"x", "a\x7f"}})},
      {"space before a value", with(get_request, {{"x", " a"}})},
      {"tab behind a value", with(get_request, {{"x", "a\t"}})},
      {"absolute path",
       {{":method", "GET"}, {":scheme", "http"}, {":path", "http://a/"}, {":authority", "a"}}},
      {"empty authority",
       {{":method", "GET"},
        {":scheme", "http"},
        {":path", "/"},
        {":authority", ""},
        {"host", "a"}}},
      {"empty scheme", {{":method", "GET"}, {":scheme", ""}, {":path", "/"}, {":authority", "a"}}},
      {"line feed in the scheme",
       {{":method", "GET"}, {":scheme", "h\nx"}, {":path", "/"}, {":authority", "a"}}},
      {"host twice", with(get_request, {{"host", "api.example"}, {"host", "api.example"}})},
      {"space before a crumb", with(get_request, {{"cookie", " a=1"}, {"cookie", "b=2"}})},
      {"extended CONNECT", with({{":protocol", "websocket"}}, get_request)},
      {"CONNECT with a path",
       {{":method", "CONNECT"}, {":scheme", "http"}, {":path", "/"}, {":authority", "a:1"}}},
      {"CONNECT without an authority", {{":method", "CONNECT"}}},
      {"line feed in the path",
       {{":method", "GET"}, {":scheme", "http"}, {":path", "/\r\nx: y"}, {":authority", "a"}}},
      {"space in the method",
       {{":method", "GE T"}, {":scheme", "http"}, {":path", "/"}, {":authority", "a"}}},
      {"line feed in the authority",
       {{":method", "GET"}, {":scheme", "http"}, {":path", "/"}, {":authority", "a\r\nx: y"}}},
      {"length twice", with(post_request, {{"content-length", "5"}, {"content-length", "5"}}),
       "hello"},
      {"length that is not a number", with(post_request, {{"content-length", "+5"}}), "hello"},
      {"body longer than its length", with(post_request, {{"content-length", "4"}}), "hello"},
      {"body shorter than its length", with(post_request, {{"content-length", "6"}}), "hello"},
      {"length without a body", with(post_request, {{"content-length", "6"}})},
      {"body where the length is 0", with(post_request, {{"content-length", "0"}}), "hello"},
      {"length that no number has",
       with(post_request, {{"content-length", "99999999999999999999"}}), "hello"},
  };
  for (auto const& row : rows) {
    SCOPED_TRACE(row.name);
    http2_pair pair;
    auto const id = pair.client.ask(row.fields, row.body);
    pair.talk();
    EXPECT_TRUE(pair.client.responses[id].closed);
    EXPECT_EQ(pair.client.responses[id].reset, std::uint32_t{NGHTTP2_PROTOCOL_ERROR});
    EXPECT_EQ(std::ranges::count(pair.log, "end 1"), 0);
    EXPECT_EQ(pair.session.streams_count(), 0U);
    // The connection goes on.
    EXPECT_TRUE(pair.alive);
    pair.client.ask(get_request);
    pair.talk();
    EXPECT_EQ(pair.log.back(), "request 3");
  }
}

TEST(wire_http2, resets_a_stream_whose_trailers_break_the_rules) {
  for (auto const* const name : {":path", "x y", "transfer-encoding", "x\n"}) {
    SCOPED_TRACE(name);
    http2_pair pair;
    pair.client.trailer_name = name;
    auto const id = pair.client.ask(post_request, "hello");
    pair.talk();
    EXPECT_EQ(pair.client.responses[id].reset, std::uint32_t{NGHTTP2_PROTOCOL_ERROR});
    EXPECT_EQ(std::ranges::count(pair.log, "end 1"), 0);
    pair.client.trailer_name = "x-sum";
    pair.client.ask(post_request, "hello");
    pair.talk();
    EXPECT_EQ(std::ranges::count(pair.log, "end 3"), 1);
  }
}

TEST(wire_http2, leaves_out_crumbs_of_a_cookie_that_say_nothing) {
  http2_pair pair;
  auto const id = pair.client.ask(
      with(get_request,
           {{"cookie", ""}, {"cookie", "a=1"}, {"cookie", ""}, {"cookie", "b=2"}, {"cookie", ""}}));
  pair.talk();
  EXPECT_THAT(pair.head_of[id], HasSubstr("\ncookie: a=1; b=2\n"));
}

/// The number of the stream whose content comes first when both have as much to say.
auto first_to_come(std::string const& priority_of_1, std::string const& priority_of_3)
    -> std::int32_t {
  http2_pair pair;
  auto const one = pair.client.ask(with(get_request, {{"priority", priority_of_1}}));
  auto const three = pair.client.ask(with(get_request, {{"priority", priority_of_3}}));
  pair.talk();
  for (auto const id : {one, three}) {
    pair.session.send_whole(pair.stream(id), 200, "", std::string(40'000, 'x'));
  }
  std::string out;
  EXPECT_TRUE(pair.session.take_output(out, 30'000));
  pair.client.input(out);
  auto const of_one = pair.client.responses[one].content.size();
  auto const of_three = pair.client.responses[three].content.size();
  return of_one > 0 && of_three > 0 ? 0 : of_three > 0 ? three : one;
}

TEST(wire_http2, sends_what_is_urgent_first) {  // RFC 9218
  EXPECT_EQ(first_to_come("u=7", "u=0"), 3);
  EXPECT_EQ(first_to_come("u=0", "u=7"), 1);
  EXPECT_EQ(first_to_come("u=3", "x, u=2"), 3);
  EXPECT_EQ(first_to_come("u=9", "u=wrong"), 1) << "what is not understood sets no priority";
  EXPECT_EQ(first_to_come("u=4", "u=0,,"), 3) << "the default is 3";
  EXPECT_EQ(first_to_come("i", "i"), 0) << "they take turns";
}

TEST(wire_http2, resets_a_stream_with_a_head_in_the_midst_of_its_content) {
  http2_pair pair;
  auto const id = pair.client.ask(post_request, "hello", false);
  pair.talk();
  EXPECT_EQ(pair.content_of[id], "hello");
  std::string name = "x";
  auto* const octets = reinterpret_cast<std::uint8_t*>(name.data());
  nghttp2_nv const field{octets, octets, 1, 1, NGHTTP2_NV_FLAG_NONE};
  nghttp2_submit_headers(pair.client.session, NGHTTP2_FLAG_NONE, id, nullptr, &field, 1, nullptr);
  pair.talk();
  EXPECT_EQ(pair.client.responses[id].reset, std::uint32_t{NGHTTP2_PROTOCOL_ERROR});
  EXPECT_EQ(std::ranges::count(pair.log, "end 1"), 0);
}

TEST(wire_http2, hands_nothing_on_of_a_body_beyond_its_length) {
  http2_pair pair;
  auto const id = pair.client.ask(with(post_request, {{"content-length", "4"}}), "hello");
  pair.talk();
  EXPECT_EQ(pair.content_of[id], "");
}

TEST(wire_http2, refuses_what_http_1_1_would_refuse) {
  std::vector<std::pair<field_texts, std::string>> const rows = {
      {{{":method", "GET"}, {":scheme", "http"}, {":path", "/a b"}, {":authority", "a"}}, "path"},
      {{{":method", "GET"}, {":scheme", "http"}, {":path", "*"}, {":authority", "a"}}, "form"},
      {{{":method", "GET"}, {":scheme", "http"}, {":path", "/"}, {":authority", "a@b"}},
       "userinfo"},
      {{{":method", "GET"}, {":scheme", "http"}, {":path", "/"}, {":authority", "a:0"}}, "port 0"},
      {{{":method", "GET"}, {":scheme", "http"}, {":path", "/"}, {":authority", "%61"}}, "escape"},
      {with(get_request, {{"expect", "more"}}), "expectation"},
  };
  for (auto const& [fields, name] : rows) {
    SCOPED_TRACE(name);
    http2_pair pair;
    auto const id = pair.client.ask(fields);
    pair.talk();
    bool const refused = !pair.log.empty() && pair.log[0].starts_with("refused 1");
    EXPECT_TRUE(refused || pair.client.responses[id].reset == NGHTTP2_PROTOCOL_ERROR);
    EXPECT_TRUE(pair.head_of.empty());
  }
}

TEST(wire_http2, resets_a_stream_with_a_name_in_upper_case) {
  using namespace std::string_literals;
  using namespace std::string_view_literals;
  // nghttp2's client writes all names in lower case, so here are the octets themselves.
  http2_pair pair;
  auto const fields =
      "\x82\x86\x84\x41\x01"
      "a"
      "\x00\x06"
      "Accept"
      "\x01x"sv;
  std::string in = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
  in.append("\0\0\0\4\0\0\0\0\0"sv);
  in.append("\0\0"sv).append(1, static_cast<char>(fields.size())).append("\1\5\0\0\0\1"sv);
  in.append(fields);
  EXPECT_TRUE(pair.session.receive(in, pair.now));
  std::string out;
  EXPECT_TRUE(pair.session.take_output(out, 1000));
  EXPECT_TRUE(pair.head_of.empty());
  EXPECT_THAT(out, testing::EndsWith("\0\0\4\3\0\0\0\0\1\0\0\0\1"s));  // RST_STREAM, PROTOCOL_ERROR
}

TEST(wire_http2, tells_trailers_with_the_end) {
  http2_pair pair;
  pair.client.trailer_name = "x-sum";
  auto const id = pair.client.ask(post_request, "hello");
  pair.talk();
  EXPECT_THAT(pair.log, ElementsAre("request 1", "end 1"));
  EXPECT_EQ(pair.content_of[id], "hello");
  EXPECT_EQ(pair.trailers_of[id], "x-sum: x-sum\r\n");
  EXPECT_TRUE(pair.stream(id).is_received());
}

TEST(wire_http2, leaves_out_trailers_that_frame_route_or_authenticate) {
  for (auto const* const name :
       {"content-length", "host", "authorization", "ratelimit", "ratelimit-policy", "trailer"}) {
    SCOPED_TRACE(name);
    http2_pair pair;
    pair.client.trailer_name = name;
    auto const id = pair.client.ask(post_request, "hello");
    pair.talk();
    EXPECT_THAT(pair.log, ElementsAre("request 1", "end 1"));
    EXPECT_EQ(pair.trailers_of[id], "");
  }
}

TEST(wire_http2, sends_trailers_behind_all_content) {
  http2_pair pair({}, 1000);  // so that content has to wait
  auto const id = pair.client.ask(get_request);
  auto const empty = pair.client.ask(get_request);
  pair.talk();
  for (auto const each : {id, empty}) {
    pair.session.send_head(pair.stream(each), 200, "A: 1\r\n", false);
    if (each == id) {
      pair.session.send_content(pair.stream(each), std::string(3000, 'x'));
    }
    pair.session.send_end(pair.stream(each), "Grpc-Status: 0\r\nX-Sum: 1\r\n");
  }
  pair.talk();
  EXPECT_FALSE(pair.client.responses[id].complete);
  EXPECT_EQ(pair.client.responses[id].field("x-sum"), "(none)");
  EXPECT_TRUE(pair.client.responses[empty].complete);
  nghttp2_submit_window_update(pair.client.session, NGHTTP2_FLAG_NONE, id, 10'000);
  pair.talk();
  EXPECT_EQ(pair.client.responses[id].content, std::string(3000, 'x'));
  for (auto const each : {id, empty}) {
    EXPECT_TRUE(pair.client.responses[each].complete);
    EXPECT_EQ(pair.client.responses[each].field("grpc-status"), "0");
    EXPECT_EQ(pair.client.responses[each].field("x-sum"), "1");
  }
  EXPECT_EQ(pair.session.streams_count(), 0U);
}

// ---- limits ----

TEST(wire_http2, tells_its_limits) {
  http2_limits limits;
  limits.head.head_octets_max = 16 * 1024;
  http2_pair pair(limits);
  pair.talk();
  EXPECT_EQ(pair.client.settings[NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS], 128U);
  EXPECT_EQ(pair.client.settings[NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE], 16U * 1024);
  EXPECT_EQ(pair.client.settings[NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE], 128U * 1024);
}

TEST(wire_http2, refuses_a_head_that_is_too_large) {
  http2_limits limits;
  limits.head.head_octets_max = 1000;
  http2_pair pair(limits);
  pair.client.ask(with(get_request, {{"x", std::string(2000, 'x')}}));
  pair.client.ask(
      with(get_request, {{"x", std::string(500, 'x')}, {"cookie", std::string(500, 'x')}}));
  pair.client.ask(with(get_request, {{"x", std::string(500, 'x')}}));
  pair.talk();
  EXPECT_THAT(pair.log,
              ElementsAre("refused 1 head_too_large", "refused 3 head_too_large", "request 5"));
}

TEST(wire_http2, refuses_too_many_fields_and_a_target_that_is_too_long) {
  http2_limits limits;
  limits.head.fields_max = 10;
  limits.head.request_line_octets_max = 100;
  http2_pair pair(limits);
  field_texts many = get_request;
  for (int i = 0; i < 11; ++i) {
    many.emplace_back("x", "y");
  }
  pair.client.ask(many);
  pair.client.ask({{":method", "GET"},
                   {":scheme", "http"},
                   {":path", "/" + std::string(100, 'x')},
                   {":authority", "a"}});
  pair.talk();
  EXPECT_THAT(pair.log,
              ElementsAre("refused 1 too_many_fields", "refused 3 request_line_too_long"));
}

TEST(wire_http2, refuses_more_streams_than_it_allows) {
  http2_limits limits;
  limits.concurrent_streams_max = 4;
  http2_pair pair(limits);
  for (int i = 0; i < 6; ++i) {  // before the settings have come to the client
    pair.client.ask(get_request);
  }
  auto const in = pair.client.output();
  EXPECT_TRUE(pair.session.receive(in, pair.now));
  pair.talk();
  EXPECT_EQ(pair.session.streams_count(), 4U);
  EXPECT_EQ(pair.client.responses[9].reset, std::uint32_t{NGHTTP2_REFUSED_STREAM});
  EXPECT_EQ(pair.client.responses[11].reset, std::uint32_t{NGHTTP2_REFUSED_STREAM});
}

TEST(wire_http2, ends_a_connection_that_resets_streams_in_a_burst) {
  http2_limits limits;
  limits.resets = {10, 1};
  http2_pair pair(limits);
  for (int i = 0; i < 12; ++i) {
    auto const id = pair.client.ask(get_request);
    pair.talk();
    if (!pair.alive) {
      break;
    }
    nghttp2_submit_rst_stream(pair.client.session, NGHTTP2_FLAG_NONE, id, NGHTTP2_CANCEL);
    pair.talk();
  }
  EXPECT_FALSE(pair.alive);
  EXPECT_EQ(std::ranges::count_if(pair.log, [](auto const& l) { return l.starts_with("request"); }),
            11);
  EXPECT_TRUE(pair.client.gone);
  EXPECT_EQ(pair.client.goaway, std::uint32_t{NGHTTP2_ENHANCE_YOUR_CALM});
  EXPECT_TRUE(pair.session.is_over());
}

TEST(wire_http2, lets_a_client_reset_streams_now_and_then) {
  http2_limits limits;
  limits.resets = {10, 1};
  http2_pair pair(limits);
  for (int i = 0; i < 50; ++i) {
    auto const id = pair.client.ask(get_request);
    pair.talk();
    nghttp2_submit_rst_stream(pair.client.session, NGHTTP2_FLAG_NONE, id, NGHTTP2_CANCEL);
    pair.talk();
    pair.now += 1s;
  }
  EXPECT_TRUE(pair.alive);
}

TEST(wire_http2, counts_streams_that_the_client_makes_it_reset) {
  http2_limits limits;
  limits.resets = {10, 1};
  http2_pair pair(limits);
  for (int i = 0; i < 12 && pair.alive; ++i) {
    pair.client.ask(with(get_request, {{"connection", "close"}}));
    pair.talk();
  }
  EXPECT_FALSE(pair.alive);
  EXPECT_EQ(pair.client.goaway, std::uint32_t{NGHTTP2_ENHANCE_YOUR_CALM});
}

TEST(wire_http2, ends_a_connection_that_floods_with_pings_or_settings) {
  for (bool const pings : {true, false}) {
    http2_limits limits;
    limits.control_frames = {20, 1};
    http2_pair pair(limits);
    pair.talk();
    for (int i = 0; i < 25 && pair.alive; ++i) {
      if (pings) {
        nghttp2_submit_ping(pair.client.session, NGHTTP2_FLAG_NONE, nullptr);
      } else {
        nghttp2_submit_settings(pair.client.session, NGHTTP2_FLAG_NONE, nullptr, 0);
      }
      pair.talk();
    }
    EXPECT_FALSE(pair.alive);
    EXPECT_EQ(pair.client.goaway, std::uint32_t{NGHTTP2_ENHANCE_YOUR_CALM});
  }
}

TEST(wire_http2, ends_a_connection_that_is_none) {
  http2_pair pair;
  EXPECT_FALSE(pair.session.receive("GET / HTTP/1.1\r\nHost: a\r\n\r\n", pair.now));
}

// ---- responses ----

TEST(wire_http2, sends_a_head_in_lower_case_and_content) {
  http2_pair pair;
  auto const id = pair.client.ask(get_request);
  pair.talk();
  pair.session.send_head(pair.stream(id), 429, "Content-Type:text/plain \r\nX-A: \r\n", false);
  pair.session.send_content(pair.stream(id), "hello ");
  pair.talk();
  pair.session.send_content(pair.stream(id), "world");
  pair.session.send_end(pair.stream(id));
  pair.talk();
  auto const& response = pair.client.responses[id];
  EXPECT_EQ(response.fields,
            (field_texts{{":status", "429"}, {"content-type", "text/plain"}, {"x-a", ""}}));
  EXPECT_EQ(response.content, "hello world");
  EXPECT_TRUE(response.complete);
  EXPECT_THAT(pair.log, ElementsAre("request 1", "closed 1"));
  EXPECT_EQ(pair.session.streams_count(), 0U);
}

TEST(wire_http2, ends_a_response_without_content_with_its_head) {
  http2_pair pair;
  auto const id = pair.client.ask(get_request);
  pair.talk();
  pair.session.send_head(pair.stream(id), 204, "", true);
  pair.talk();
  EXPECT_EQ(pair.client.responses[id].field(":status"), "204");
  EXPECT_TRUE(pair.client.responses[id].complete);
}

TEST(wire_http2, sends_interim_responses_before_the_last) {
  http2_pair pair;
  auto const id = pair.client.ask(get_request);
  pair.talk();
  pair.session.send_interim(pair.stream(id), 103, "Link: </a>\r\n");
  pair.session.send_head(pair.stream(id), 200, "", true);
  pair.talk();
  EXPECT_THAT(pair.client.responses[id].interim, ElementsAre("103"));
  EXPECT_EQ(pair.client.responses[id].field(":status"), "200");
}

TEST(wire_http2, sends_no_more_than_the_client_has_room_for) {
  http2_pair pair({}, 1000);
  auto const id = pair.client.ask(get_request);
  pair.talk();
  pair.session.send_head(pair.stream(id), 200, "", false);
  pair.session.send_content(pair.stream(id), std::string(5000, 'x'));
  pair.session.send_end(pair.stream(id));
  pair.talk();
  EXPECT_EQ(pair.client.responses[id].content.size(), 1000U);
  EXPECT_EQ(pair.stream(id).waiting_octets(), 4000U);
  nghttp2_submit_window_update(pair.client.session, NGHTTP2_FLAG_NONE, id, 4000);
  pair.talk();
  EXPECT_EQ(pair.client.responses[id].content.size(), 5000U);
  EXPECT_TRUE(pair.client.responses[id].complete);
}

TEST(wire_http2, lets_a_client_send_no_more_than_its_window_until_it_may_go_on) {
  http2_pair pair;
  pair.takes_content = false;
  auto const id = pair.client.ask(post_request, std::string(1'000'000, 'x'));
  pair.talk();
  EXPECT_EQ(pair.content_of[id].size(), 128U * 1024);
  // Others are not held up by it.
  pair.takes_content = true;
  auto const other = pair.client.ask(post_request, std::string(2'000'000, 'y'));
  pair.talk();
  EXPECT_EQ(pair.content_of[other].size(), 2'000'000U);
  EXPECT_EQ(pair.content_of[id].size(), 128U * 1024);
  pair.session.let_send(pair.stream(id));
  pair.talk();
  EXPECT_EQ(pair.content_of[id].size(), 1'000'000U);
  EXPECT_TRUE(pair.stream(id).is_received());
}

TEST(wire_http2, lets_a_short_body_come_to_its_end_after_an_early_response) {
  http2_pair pair;
  auto const id = pair.client.ask(post_request, std::string(1000, 'x'), false);
  pair.talk();
  pair.session.send_head(pair.stream(id), 429, "", true);
  pair.talk();
  EXPECT_FALSE(pair.client.responses[id].closed);
  pair.client.bodies[id] = {"end", true};
  nghttp2_session_resume_data(pair.client.session, id);
  pair.talk();
  EXPECT_EQ(pair.client.responses[id].field(":status"), "429");
  EXPECT_EQ(pair.client.responses[id].reset, std::uint32_t{NGHTTP2_NO_ERROR});
  EXPECT_THAT(pair.log, ElementsAre("request 1", "end 1", "closed 1"));
}

TEST(wire_http2, stops_a_long_body_after_an_early_response) {
  http2_pair pair;
  auto const id = pair.client.ask(post_request, "x", false);
  pair.talk();
  pair.session.send_head(pair.stream(id), 429, "", true);
  pair.talk();
  pair.client.bodies[id] = {std::string(3'000'000, 'x'), true};
  nghttp2_session_resume_data(pair.client.session, id);
  pair.talk();
  EXPECT_LT(pair.content_of[id].size(), 512U * 1024);
  EXPECT_EQ(pair.client.responses[id].field(":status"), "429");
  EXPECT_EQ(pair.client.responses[id].reset, std::uint32_t{NGHTTP2_NO_ERROR});
  EXPECT_EQ(pair.log.back(), "closed 1");
}

TEST(wire_http2, tells_when_the_client_resets_a_stream) {
  http2_pair pair;
  auto const id = pair.client.ask(get_request);
  pair.talk();
  pair.session.send_head(pair.stream(id), 200, "", false);
  nghttp2_submit_rst_stream(pair.client.session, NGHTTP2_FLAG_NONE, id, NGHTTP2_CANCEL);
  pair.talk();
  EXPECT_THAT(pair.log, ElementsAre("request 1", "closed 1"));
  EXPECT_EQ(pair.session.streams_count(), 0U);
}

TEST(wire_http2, resets_a_stream_when_asked_to) {
  http2_pair pair;
  auto const id = pair.client.ask(get_request);
  pair.talk();
  pair.session.send_head(pair.stream(id), 200, "", false);
  pair.session.send_content(pair.stream(id), "half of i");
  pair.session.reset(pair.stream(id), http2_error::internal_error);
  pair.talk();
  EXPECT_EQ(pair.client.responses[id].reset, std::uint32_t{NGHTTP2_INTERNAL_ERROR});
  EXPECT_FALSE(pair.client.responses[id].complete);
  EXPECT_EQ(pair.log.back(), "closed 1");
}

// ---- the end ----

TEST(wire_http2, drains_when_what_is_under_way_is_done) {
  http2_pair pair;
  auto const id = pair.client.ask(get_request);
  pair.talk();
  pair.session.drain();
  pair.talk();
  EXPECT_TRUE(pair.client.gone);
  EXPECT_EQ(pair.client.goaway, std::uint32_t{NGHTTP2_NO_ERROR});
  EXPECT_EQ(pair.client.last_stream, id);
  EXPECT_FALSE(pair.session.is_over());
  pair.session.send_head(pair.stream(id), 200, "", true);
  pair.talk();
  EXPECT_TRUE(pair.client.responses[id].complete);
  EXPECT_TRUE(pair.session.is_over());
}

TEST(wire_http2, gives_its_output_in_parts) {
  http2_pair pair({}, 1'000'000);
  auto const id = pair.client.ask(get_request);
  nghttp2_session_set_local_window_size(pair.client.session, NGHTTP2_FLAG_NONE, 0, 1'000'000);
  pair.talk();
  pair.session.send_head(pair.stream(id), 200, "", false);
  pair.session.send_content(pair.stream(id), std::string(300'000, 'x'));
  pair.session.send_end(pair.stream(id));
  int parts = 0;
  while (pair.session.wants_output()) {
    std::string out;
    EXPECT_TRUE(pair.session.take_output(out, 64 * 1024));
    EXPECT_LT(out.size(), 96U * 1024);
    pair.client.input(out);
    ++parts;
  }
  EXPECT_GE(parts, 4);
  EXPECT_EQ(pair.client.responses[id].content.size(), 300'000U);
}

TEST(wire_http2, keeps_what_sessions_say_apart_when_they_take_turns) {
  std::array<http2_pair, 2> pairs{{http2_pair({}, 1'000'000), http2_pair({}, 1'000'000)}};
  std::array<std::int32_t, 2> ids{};
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    auto& pair = pairs[i];
    ids[i] = pair.client.ask(get_request);
    nghttp2_session_set_local_window_size(pair.client.session, NGHTTP2_FLAG_NONE, 0, 1'000'000);
    pair.talk();
    // A head of several frames, and content of more.
    pair.session.send_head(pair.stream(ids[i]), 200,
                           "x-a: " + std::string(40'000, i == 0 ? '!' : '$') + "\r\n", false);
    pair.session.send_content(pair.stream(ids[i]), std::string(300'000, i == 0 ? 'a' : 'b'));
    pair.session.send_end(pair.stream(ids[i]));
  }
  while (pairs[0].session.wants_output() || pairs[1].session.wants_output()) {
    for (auto& pair : pairs) {
      std::string out;
      ASSERT_TRUE(pair.session.take_output(out, 1));  // one frame
      pair.client.input(out);
    }
  }
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    auto const& got = pairs[i].client.responses[ids[i]];
    EXPECT_EQ(got.field("x-a"), std::string(40'000, i == 0 ? '!' : '$'));
    EXPECT_EQ(got.content, std::string(300'000, i == 0 ? 'a' : 'b'));
    EXPECT_TRUE(got.complete);
  }
}

TEST(wire_http2, rests_between_streams) {
  http2_pair pair;
  for (int i = 1; i <= 3; ++i) {
    auto const id = pair.client.ask(with(get_request, {{"x-a", std::string(1000, 'a')}}));
    pair.talk();
    pair.session.send_head(pair.stream(id), 200, "x-b: 1\r\n", true);
    pair.talk();
    EXPECT_EQ(pair.client.responses[id].field("x-b"), "1");
    EXPECT_EQ(pair.session.streams_count(), 0U);
    pair.session.rest();
  }
}

TEST(wire_http2, forgets_a_head_that_a_reset_overtakes) {
  http2_pair pair;
  auto const first = pair.client.ask(get_request);
  auto const second = pair.client.ask(get_request);
  pair.talk();
  pair.session.send_head(pair.stream(first), 200, "x-a: first\r\n", true);
  nghttp2_submit_rst_stream(pair.client.session, NGHTTP2_FLAG_NONE, first, NGHTTP2_CANCEL);
  EXPECT_TRUE(pair.session.receive(pair.client.output(), pair.now));
  auto const third = pair.client.ask(get_request);
  pair.talk();
  pair.session.send_head(pair.stream(third), 200, "x-a: third\r\n", true);
  pair.session.send_head(pair.stream(second), 200, "x-a: second\r\n", true);
  pair.talk();
  EXPECT_EQ(pair.client.responses[first].field("x-a"), "(none)");
  EXPECT_EQ(pair.client.responses[second].field("x-a"), "second");
  EXPECT_EQ(pair.client.responses[third].field("x-a"), "third");
}

}  // namespace
