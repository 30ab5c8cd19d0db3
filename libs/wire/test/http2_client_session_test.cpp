// SPDX-License-Identifier: Apache-2.0
#include "http2_client_pair.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace tidegate::wire;
using namespace tidegate::wire::test;
using testing::Contains;
using testing::ElementsAre;

TEST(wire_http2_client, takes_a_head_of_http_1_apart) {
  std::string_view const bytes =
      "POST /a?b=c HTTP/1.1\r\nHost: api.example\r\nX: 1\r\n"
      "Transfer-Encoding: chunked\r\n\r\nbody";
  auto const text = split_request_text(bytes);
  EXPECT_EQ(bytes.substr(text.size), "body");
  EXPECT_EQ(text.request.method, "POST");
  EXPECT_EQ(text.request.path, "/a?b=c");
  EXPECT_EQ(text.request.authority, "api.example");
  EXPECT_EQ(text.request.field_lines, "X: 1\r\nTransfer-Encoding: chunked\r\n");
  EXPECT_EQ(split_request_text("GET / HTTP/1.1\r\nHost: a\r\n").size, 0U) << "not whole";
  EXPECT_EQ(split_request_text("GET / HTTP/1.1\r\nHost: a\r\n\r\n").request.field_lines, "");
}

TEST(wire_http2_client, says_its_limits_and_wants_no_pushes) {
  http2_client_pair pair;
  pair.talk();
  EXPECT_EQ(pair.server.settings[NGHTTP2_SETTINGS_ENABLE_PUSH], 0U);
  EXPECT_EQ(pair.server.settings[NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE], 128U * 1024);
  EXPECT_EQ(pair.server.settings[NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE], 32U * 1024);
  EXPECT_TRUE(pair.alive);
}

TEST(wire_http2_client, sends_a_request_without_what_is_http_1s_own) {
  http2_client_pair pair;
  auto const id = pair.ask("GET",
                           "Accept: */*\r\nConnection: te\r\nTE: trailers\r\nHost: no\r\n"
                           "Authorization: secret\r\n");
  EXPECT_EQ(pair.body_of[id].kind, body_kind::none);
  pair.talk();
  EXPECT_THAT(pair.server.requests[id].fields,
              ElementsAre(std::pair(":method", "GET"), std::pair(":scheme", "http"),
                          std::pair(":authority", "api"), std::pair(":path", "/a"),
                          std::pair("accept", "*/*"), std::pair("te", "trailers"),
                          std::pair("authorization", "secret")));
  EXPECT_TRUE(pair.server.requests[id].complete);
}

TEST(wire_http2_client, shows_a_response_as_http_1_would_have_it) {
  http2_client_pair pair;
  auto const id = pair.ask("GET");
  pair.talk();
  pair.server.send_interim(id, {{":status", "103"}, {"link", "</a>"}});
  pair.server.answer(id, {{":status", "200"}, {"x-a", "b"}}, {"hello", true, {{"x-sum", "1"}}});
  pair.talk();
  EXPECT_THAT(pair.log,
              ElementsAre("interim 1 103", "response 1 200", "end 1", "closed 1 complete"));
  EXPECT_EQ(pair.head_of[id], "x-a: b\n");
  EXPECT_EQ(pair.response_body_of[id].kind, body_kind::until_close);
  EXPECT_EQ(pair.content_of[id], "hello");
  EXPECT_EQ(pair.trailers_of[id], "x-sum: 1\r\n");
  EXPECT_EQ(pair.session.streams_count(), 0U);
}

TEST(wire_http2_client, sends_content_and_trailers) {
  http2_client_pair pair;
  auto const id = pair.ask("POST", "Transfer-Encoding: chunked\r\n");
  EXPECT_EQ(pair.body_of[id].kind, body_kind::chunked);
  pair.session.send_content(pair.stream(id), std::string(200'000, 'x'));
  pair.session.send_end(pair.stream(id), "X-Sum: 1\r\n");
  pair.talk();
  EXPECT_EQ(pair.server.requests[id].content, std::string(200'000, 'x'));
  EXPECT_EQ(pair.server.requests[id].field("x-sum"), "1");
  EXPECT_EQ(pair.server.requests[id].field("transfer-encoding"), "(none)");
  EXPECT_TRUE(pair.server.requests[id].complete);
  auto const counted = pair.ask("POST", "Content-Length: 5\r\n");
  EXPECT_EQ(pair.body_of[counted], (body_framing{body_kind::content_length, 5}));
}

TEST(wire_http2_client, knows_which_responses_have_no_content) {
  struct row {
    std::string_view method;
    field_texts fields;
    body_kind kind;
  };
  for (auto const& [method, fields, kind] :
       {row{"HEAD", {{":status", "200"}, {"content-length", "5"}}, body_kind::none},
        {"GET", {{":status", "204"}}, body_kind::none},
        {"GET", {{":status", "304"}, {"content-length", "5"}}, body_kind::none},
        {"GET", {{":status", "200"}}, body_kind::none},
        {"GET", {{":status", "200"}, {"content-length", "0"}}, body_kind::none}}) {
    http2_client_pair pair;
    auto const id = pair.ask(method);
    pair.talk();
    pair.server.answer(id, fields);
    pair.talk();
    EXPECT_EQ(pair.response_body_of[id].kind, kind) << method;
    EXPECT_THAT(pair.log, Contains("closed 1 complete")) << method;
  }
}

TEST(wire_http2_client, resets_a_stream_whose_response_breaks_the_rules) {
  struct row {
    std::string_view name;
    field_texts fields;
    response_body body = {};
  };
  for (auto const& [name, fields, body] :
       {row{"no status", {{"x", "1"}}},
        {"two of them", {{":status", "200"}, {":status", "200"}}},
        {"a status of four digits", {{":status", "2000"}}},
        {"a status that is none", {{":status", "099"}}},
        {"a status behind a field", {{"x", "1"}, {":status", "200"}}},
        {"a pseudo-header field of requests", {{":status", "200"}, {":path", "/"}}},
        {"switching protocols", {{":status", "101"}}},
        {"an interim response that ends", {{":status", "103"}}},
        {"a field of the connection", {{":status", "200"}, {"connection", "close"}}},
        {"chunked", {{":status", "200"}, {"transfer-encoding", "chunked"}}},
        {"a line break in a value", {{":status", "200"}, {"x", "1\r\ny: 2"}}},
        {"a space in a name", {{":status", "200"}, {"x y", "1"}}},
        {"two lengths", {{":status", "200"}, {"content-length", "1"}, {"content-length", "1"}}},
        {"less than its length", {{":status", "200"}, {"content-length", "6"}}, {"hello"}},
        {"more than its length", {{":status", "200"}, {"content-length", "4"}}, {"hello"}},
        {"content of a 204", {{":status", "204"}}, {"hello"}},
        {"a trailer that begins with a colon", {{":status", "200"}}, {"a", true, {{":x", "1"}}}},
        {"a trailer of the connection", {{":status", "200"}}, {"a", true, {{"upgrade", "x"}}}},
        {"a head that is too large", {{":status", "200"}, {"x", std::string(33'000, 'x')}}}}) {
    SCOPED_TRACE(name);
    http2_client_pair pair;
    auto const id = pair.ask("POST", "Transfer-Encoding: chunked\r\n");
    auto const other = pair.ask("GET");
    pair.talk();
    pair.server.answer(id, fields, body);
    pair.server.answer(other, {{":status", "200"}}, {"hello"});
    pair.talk();
    EXPECT_THAT(pair.log, Contains("closed 1 malformed"));
    EXPECT_EQ(std::ranges::count(pair.log, "end 1"), 0);
    EXPECT_EQ(pair.server.requests[id].reset, std::uint32_t{NGHTTP2_PROTOCOL_ERROR});
    EXPECT_THAT(pair.log, Contains("closed 3 complete")) << "others are not harmed";
    EXPECT_TRUE(pair.alive);
  }
}

TEST(wire_http2_client, does_not_take_interim_responses_for_ever) {
  http2_client_pair pair;
  auto const id = pair.ask("GET");
  pair.talk();
  for (int i = 0; i < 100; ++i) {
    pair.server.send_interim(id, {{":status", "103"}});
  }
  pair.talk();
  EXPECT_THAT(pair.log, Contains("closed 1 malformed"));
  EXPECT_TRUE(pair.alive);
}

TEST(wire_http2_client, lets_a_server_send_no_more_than_was_taken) {
  http2_client_pair pair;
  auto const slow = pair.ask("GET");
  auto const quick = pair.ask("GET");
  pair.talk();
  pair.takes_content = false;
  pair.server.answer(slow, {{":status", "200"}}, {std::string(500'000, 'x')});
  pair.talk();
  EXPECT_EQ(pair.content_of[slow].size(), 128U * 1024) << "its window";
  pair.takes_content = true;
  pair.server.answer(quick, {{":status", "200"}}, {std::string(500'000, 'y')});
  pair.talk();
  EXPECT_EQ(pair.content_of[quick].size(), 500'000U) << "it has a window of its own";
  EXPECT_EQ(pair.content_of[slow].size(), 128U * 1024);
  pair.session.let_send(pair.stream(slow));
  pair.talk();
  EXPECT_EQ(pair.content_of[slow], std::string(500'000, 'x'));
}

TEST(wire_http2_client, sends_no_more_than_the_server_takes) {
  http2_client_pair pair({}, {{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 1000}}, false);
  pair.talk();
  auto const id = pair.ask("POST", "Content-Length: 3000\r\n");
  pair.session.send_content(pair.stream(id), std::string(3000, 'x'));
  pair.session.send_end(pair.stream(id));
  pair.talk();
  EXPECT_EQ(pair.server.requests[id].content.size(), 1000U);
  EXPECT_EQ(pair.stream(id).waiting_octets(), 2000U);
  nghttp2_submit_window_update(pair.server.session, NGHTTP2_FLAG_NONE, id, 5000);
  pair.talk();
  EXPECT_EQ(pair.server.requests[id].content.size(), 3000U);
  EXPECT_TRUE(pair.server.requests[id].complete);
}

TEST(wire_http2_client, opens_as_many_streams_as_the_server_lets_it) {
  http2_client_pair pair({}, {{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, 3}});
  EXPECT_EQ(pair.session.streams_max(), 128U) << "before it has said so";
  pair.talk();
  EXPECT_EQ(pair.session.streams_max(), 3U);
  http2_client_pair wide({}, {{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, 1'000'000}});
  wide.talk();
  EXPECT_EQ(wide.session.streams_max(), 128U) << "our own limit";
}

TEST(wire_http2_client, knows_whether_extended_connect_is_taken) {
  http2_client_pair without;
  without.talk();
  EXPECT_FALSE(without.session.takes_extended_connect());
  http2_client_pair with({}, {{8, 1}});
  with.talk();
  EXPECT_TRUE(with.session.takes_extended_connect());
  auto const [stream, body] = with.session.open({.method = "CONNECT",
                                                 .scheme = "http",
                                                 .authority = "a",
                                                 .path = "/",
                                                 .protocol = "websocket"},
                                                method::connect, with.now);
  auto const id = stream.id();
  with.talk();
  EXPECT_EQ(with.server.requests[id].field(":protocol"), "websocket");
  EXPECT_FALSE(with.server.requests[id].complete) << "bytes follow";
}

TEST(wire_http2_client, tells_a_request_that_was_refused_from_one_that_was_reset) {
  http2_client_pair pair;
  auto const refused = pair.ask("GET");
  auto const reset = pair.ask("GET");
  auto const begun = pair.ask("GET");
  pair.talk();
  pair.server.answer(begun, {{":status", "200"}}, {"hello", false, {}});
  pair.talk();
  nghttp2_submit_rst_stream(pair.server.session, 0, refused, NGHTTP2_REFUSED_STREAM);
  nghttp2_submit_rst_stream(pair.server.session, 0, reset, NGHTTP2_INTERNAL_ERROR);
  nghttp2_submit_rst_stream(pair.server.session, 0, begun, NGHTTP2_REFUSED_STREAM);
  pair.talk();
  EXPECT_THAT(pair.log, ElementsAre("response 5 200", "closed 1 refused", "closed 3 reset",
                                    "closed 5 reset"));
}

TEST(wire_http2_client, tells_what_the_server_has_not_seen_before_it_goes_away) {
  http2_client_pair pair;
  auto const seen = pair.ask("GET");
  (void)pair.ask("GET");
  (void)pair.ask("GET");
  pair.talk();
  EXPECT_TRUE(pair.session.takes_requests());
  nghttp2_submit_goaway(pair.server.session, 0, seen, NGHTTP2_NO_ERROR, nullptr, 0);
  pair.talk();
  EXPECT_FALSE(pair.session.takes_requests());
  std::ranges::sort(pair.log);
  EXPECT_THAT(pair.log, ElementsAre("closed 3 refused", "closed 5 refused"));
  pair.server.answer(seen, {{":status", "200"}}, {"hello"});
  pair.talk();
  EXPECT_EQ(pair.content_of[seen], "hello") << "what is under way goes on";
}

TEST(wire_http2_client, can_be_cancelled) {
  http2_client_pair pair;
  auto const id = pair.ask("GET");
  pair.talk();
  pair.server.answer(id, {{":status", "200"}}, {"hello", false, {}});
  pair.talk();
  pair.session.reset(pair.stream(id), http2_error::cancel);
  pair.talk();
  EXPECT_EQ(pair.server.requests[id].reset, std::uint32_t{NGHTTP2_CANCEL});
  EXPECT_EQ(pair.log.back(), "closed 1 cancelled");
  EXPECT_EQ(pair.session.streams_count(), 0U);
}

TEST(wire_http2_client, takes_an_answer_before_the_end_of_the_request) {
  http2_client_pair pair;
  auto const id = pair.ask("POST", "Transfer-Encoding: chunked\r\n");
  pair.talk();
  pair.server.answer(id, {{":status", "200"}}, {"hello"});
  pair.talk();
  EXPECT_THAT(pair.log, ElementsAre("response 1 200", "end 1"));
  EXPECT_TRUE(pair.stream(id).is_received());
  pair.session.reset(pair.stream(id), http2_error::no_error);
  pair.talk();
  EXPECT_EQ(pair.log.back(), "closed 1 complete");
}

TEST(wire_http2_client, asks_whether_the_server_is_there) {
  http2_client_pair pair;
  pair.talk();
  pair.session.send_ping();
  pair.talk();
  EXPECT_EQ(pair.server.pings, 1);
  EXPECT_TRUE(pair.alive);
}

TEST(wire_http2_client, says_the_same_trailers_again_after_other_requests) {
  http2_client_pair pair;
  pair.talk();
  std::vector<std::int32_t> ids;
  for (auto const* const others : {"X-A: 1\r\n", "X-B: 2\r\n", "X-C: 3\r\n", "X-D: 4\r\n"}) {
    auto const id = pair.ask("POST", "Transfer-Encoding: chunked\r\n" + std::string(others));
    pair.session.send_end(pair.stream(id), "X-Sum: 1\r\n");
    pair.talk();
    EXPECT_EQ(pair.server.requests[id].fields.back(),
              (std::pair<std::string, std::string>("x-sum", "1")))
        << id;
  }
}

TEST(wire_http2_client, takes_a_server_that_stops_every_request) {
  http2_client_pair pair;
  pair.talk();
  for (int i = 0; i < 1000 && pair.alive; ++i) {
    auto const id = pair.ask("POST", "Transfer-Encoding: chunked\r\n");
    pair.talk();
    pair.server.answer(id, {{":status", "401"}});
    pair.alive = pair.session.receive(pair.server.output(), pair.now);
    pair.session.reset(pair.stream(id), http2_error::cancel);
    // Section 8.1: it asks for no more of the request, before it hears that none comes.
    nghttp2_submit_rst_stream(pair.server.session, 0, id, NGHTTP2_NO_ERROR);
    pair.talk();
  }
  EXPECT_TRUE(pair.alive) << pair.log.size();
}

TEST(wire_http2_client, keeps_a_connection_on_which_many_responses_are_malformed) {
  http2_client_pair pair;
  auto const other = pair.ask("GET");
  for (int i = 0; i < 1000 && pair.alive; ++i) {
    auto const id = pair.ask("GET");
    pair.talk();
    pair.server.answer(id, {{":status", "200"}, {"connection", "x"}});
    pair.talk();
  }
  EXPECT_EQ(pair.log.back(), "closed 2001 malformed");
  pair.server.answer(other, {{":status", "200"}}, {"hello"});
  pair.talk();
  EXPECT_EQ(pair.content_of[other], "hello");
}

TEST(wire_http2_client, takes_what_is_on_its_way_for_many_streams_that_it_has_reset) {
  http2_client_pair pair;
  std::vector<std::int32_t> ids(600);
  std::ranges::generate(ids, [&] { return pair.ask("GET"); });
  pair.talk();
  for (auto const id : ids) {
    pair.server.answer(id, {{":status", "200"}}, {"hello"});
  }
  auto const on_its_way = pair.server.output();
  for (auto const id : ids) {
    pair.session.reset(pair.stream(id), http2_error::cancel);
  }
  EXPECT_TRUE(pair.session.receive(on_its_way, pair.now));
}

TEST(wire_http2_client, lets_heads_wait_for_a_server_that_is_slow) {
  http2_client_pair pair;
  pair.talk();
  // A cookie is in no table, so that each head is as large as it looks.
  auto const lines = "Cookie: " + std::string(32'000, 'c') + "\r\n";
  for (int i = 0; i < 128; ++i) {
    (void)pair.ask("GET", lines);
  }
  EXPECT_GT(pair.session.pending_octets(), 2U << 20U);
  nghttp2_submit_ping(pair.server.session, 0, nullptr);
  EXPECT_TRUE(pair.session.receive(pair.server.output(), pair.now)) << "it has done nothing wrong";
  pair.talk();
  EXPECT_EQ(pair.server.requests.size(), 128U);
}

TEST(wire_http2_client, answers_a_server_that_measures_the_way_of_what_it_is_sent) {
  http2_client_pair pair;
  auto const id = pair.ask("POST", "Transfer-Encoding: chunked\r\n");
  for (int i = 0; i < 5000 && pair.alive; ++i) {
    pair.session.send_content(pair.stream(id), "hello");
    pair.talk();
    nghttp2_submit_ping(pair.server.session, 0, nullptr);
  }
  EXPECT_TRUE(pair.alive) << "one for each piece is not a flood";
}

}  // namespace
