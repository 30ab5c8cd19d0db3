// SPDX-License-Identifier: Apache-2.0
#include <tidegate/wire/http1_head.hpp>

#include <tidegate/http/target.hpp>

#include "support/allocations.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace tidegate::TIDEGATE_ABI::wire {
namespace {

auto complete(std::size_t size) -> head_status {
  return {head_state::complete, head_fault::none, size};
}

auto refused(head_fault fault, std::size_t offset) -> head_status {
  return {head_state::refused, fault, offset};
}

TEST(wire_request_head, reads_line_and_fields) {
  std::string_view const bytes =
      "POST /orders?limit=5 HTTP/1.1\r\n"
      "Host: a.example:8080\r\n"
      "content-length:  12 \r\n"
      "X-Other:\t a b\t\r\n"
      "Cookie: \r\n"
      "\r\n"
      "and the body";
  request_head head;
  ASSERT_EQ(parse_request_head(bytes, 0, {}, head), complete(bytes.size() - 12));
  EXPECT_EQ(head.method(), method::post);
  EXPECT_EQ(head.method_text(), "POST");
  EXPECT_EQ(head.target(), "/orders?limit=5");
  EXPECT_EQ(head.path(), "/orders");
  EXPECT_EQ(head.query(), "?limit=5");
  EXPECT_EQ(head.authority(), "a.example:8080");
  EXPECT_EQ(head.minor_version(), 1);
  ASSERT_EQ(head.fields().size(), 4U);
  EXPECT_EQ(head.fields()[1].name, "content-length");
  EXPECT_EQ(head.fields()[1].value, "12");
  EXPECT_EQ(head.fields()[1].known, known_field::content_length);
  EXPECT_EQ(head.fields()[2].value, "a b");
  EXPECT_EQ(head.fields()[2].known, known_field::other);
  EXPECT_EQ(head.fields()[3].value, "");
  EXPECT_EQ(head.value_of(known_field::host), "a.example:8080");
  EXPECT_TRUE(head.has(known_field::cookie));
  EXPECT_FALSE(head.has(known_field::via));
  EXPECT_EQ(head.find(known_field::via), nullptr);
  EXPECT_EQ(head.body(), (body_framing{body_kind::content_length, 12}));
  EXPECT_TRUE(head.keep_alive());
  EXPECT_FALSE(head.expects_continue());
  EXPECT_FALSE(head.upgrade_asked());
}

TEST(wire_request_head, knows_the_forms_of_a_target) {
  struct row {
    std::string_view request_line, path, query, authority;
  };
  for (auto const& row : {
           row{"GET / HTTP/1.1", "/", "", "h"},
           {"GET /a/b?c?d HTTP/1.1", "/a/b", "?c?d", "h"},
           {"GET //x HTTP/1.1", "//x", "", "h"},
           {"GET http://h HTTP/1.1", "/", "", "h"},
           {"GET http://h? HTTP/1.1", "/", "?", "h"},
           {"GET https://H/a?b HTTP/1.1", "/a", "?b", "h"},
           {"OPTIONS * HTTP/1.1", "*", "", "h"},
       }) {
    auto const bytes = std::string(row.request_line) + "\r\nHost: h\r\n\r\n";
    request_head head;
    ASSERT_EQ(parse_request_head(bytes, 0, {}, head), complete(bytes.size())) << row.request_line;
    EXPECT_EQ(head.path(), row.path) << row.request_line;
    EXPECT_EQ(head.query(), row.query) << row.request_line;
    EXPECT_EQ(head.authority(), row.authority) << row.request_line;
  }
  request_head head;
  ASSERT_EQ(parse_request_head("CONNECT h:443 HTTP/1.1\r\nHost: h:443\r\n\r\n", 0, {}, head),
            complete(39));
  EXPECT_EQ(head.path(), "");
  EXPECT_EQ(head.authority(), "h:443");
  ASSERT_EQ(parse_request_head("GET http://old/x HTTP/1.0\r\n\r\n", 0, {}, head), complete(29));
  EXPECT_EQ(head.authority(), "old");
}

TEST(wire_request_head, takes_just_the_authorities_that_the_parser_of_hosts_takes) {
  // Every text of up to five of these, so that the quick way and the parser cannot differ.
  constexpr std::string_view octets = "a.:09[]%,-";
  std::vector<std::string> texts = {""};
  for (std::size_t i = 0; i < texts.size(); ++i) {
    auto const text = texts[i];
    EXPECT_EQ(is_authority(text), http::parse_host(text).has_value()) << text;
    for (char const c : text.size() < 5 ? octets : std::string_view()) {
      texts.push_back(text + c);
    }
  }
  for (auto const* const text :
       {"a.example:0", "a.example:65535", "a.example:65536", "secret%2eexample", "a.example%00",
        "a_host-of.21.letters:1", "[::1]:0", "[::1]:1", "[0:0:0:0:0:0:0:1]", "[1:2]", "a,b:1"}) {
    EXPECT_EQ(is_authority(text), http::parse_host(text).has_value()) << text;
  }
}

TEST(wire_request_head, knows_the_usual_methods) {
  EXPECT_EQ(find_method("GET"), method::get);
  EXPECT_EQ(find_method("HEAD"), method::head);
  EXPECT_EQ(find_method("POST"), method::post);
  EXPECT_EQ(find_method("PUT"), method::put);
  EXPECT_EQ(find_method("DELETE"), method::delete_);
  EXPECT_EQ(find_method("PATCH"), method::patch);
  EXPECT_EQ(find_method("OPTIONS"), method::options);
  EXPECT_EQ(find_method("CONNECT"), method::connect);
  EXPECT_EQ(find_method("TRACE"), method::trace);
  EXPECT_EQ(find_method("get"), method::other);
  EXPECT_EQ(find_method(""), method::other);
}

TEST(wire_request_head, says_what_becomes_of_the_connection) {
  struct row {
    int minor;
    std::string_view fields;
    bool keep_alive, upgrade, end_to_end, other;
  };
  for (auto const& row : {
           row{1, "", true, false, false, false},
           {1, "Connection: close\r\n", false, false, false, false},
           {1, "Connection: Keep-Alive\r\n", true, false, false, false},
           {1, "Connection: keep-alive\r\nConnection: CLOSE\r\n", false, false, false, false},
           {1, "Connection: upgrade\r\n", true, false, false, false},
           {1, "Connection: x, Upgrade\r\nUpgrade: websocket\r\n", true, true, false, true},
           {1, "Upgrade: websocket\r\n", true, false, false, false},
           {1, "Connection: Cookie\r\n", true, false, true, false},
           {1, "Connection: X-Mine\r\n", true, false, false, true},
           {1, "Connection: te, Keep-Alive\r\n", true, false, false, false},
           {0, "", false, false, false, false},
           {0, "Connection: keep-alive\r\n", true, false, false, false},
           {0, "Connection: keep-alive, close\r\n", false, false, false, false},
           {0, "Connection: upgrade\r\nUpgrade: h2c\r\n", false, false, false, false},
           {0, "Proxy-Connection: keep-alive\r\n", false, false, false, false},
       }) {
    auto const bytes = "GET / HTTP/1." + std::to_string(row.minor) + "\r\nHost: h\r\n" +
                       std::string(row.fields) + "\r\n";
    request_head head;
    ASSERT_EQ(parse_request_head(bytes, 0, {}, head), complete(bytes.size())) << row.fields;
    EXPECT_EQ(head.minor_version(), row.minor);
    EXPECT_EQ(head.keep_alive(), row.keep_alive) << row.fields;
    EXPECT_EQ(head.upgrade_asked(), row.upgrade) << row.fields;
    EXPECT_EQ(head.connection_names_end_to_end_field(), row.end_to_end) << row.fields;
    EXPECT_EQ(head.connection_names_other_fields(), row.other) << row.fields;
  }
}

TEST(wire_request_head, forgets_the_request_before) {
  request_head head;
  std::string_view const first =
      "POST /a?b HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nTE: trailers\r\n"
      "Connection: x, cookie, upgrade\r\nUpgrade: y\r\nTransfer-Encoding: chunked\r\n\r\n";
  ASSERT_EQ(parse_request_head(first, 0, {}, head), complete(first.size()));
  EXPECT_TRUE(head.expects_continue());
  EXPECT_TRUE(head.accepts_trailers());
  EXPECT_TRUE(head.upgrade_asked());
  EXPECT_EQ(head.body().kind, body_kind::chunked);
  std::string_view const second = "GET / HTTP/1.0\r\n\r\n";
  ASSERT_EQ(parse_request_head(second, 0, {}, head), complete(second.size()));
  EXPECT_FALSE(head.expects_continue());
  EXPECT_FALSE(head.accepts_trailers());
  EXPECT_FALSE(head.upgrade_asked());
  EXPECT_FALSE(head.connection_names_end_to_end_field());
  EXPECT_FALSE(head.connection_names_other_fields());
  EXPECT_EQ(head.body(), body_framing{});
  EXPECT_EQ(head.query(), "");
  EXPECT_EQ(head.authority(), "");
  EXPECT_TRUE(head.fields().empty());
  EXPECT_FALSE(head.has(known_field::host));
}

TEST(wire_request_head, obeys_the_limits_it_is_given) {
  struct row {
    std::string_view bytes;
    head_limits limits;
    head_status status;
  };
  std::string_view const get = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";  // 16 + 9 + 2
  for (auto const& [bytes, limits, status] : {
           row{get, {16, 27, 1}, complete(27)},
           {get, {15, 27, 1}, refused(head_fault::request_line_too_long, 15)},
           {get, {16, 26, 1}, refused(head_fault::head_too_large, 26)},
           {get, {16, 27, 0}, refused(head_fault::too_many_fields, 16)},
           {get, {100, 10, 1}, refused(head_fault::request_line_too_long, 10)},
           {get, {16, 16, 1}, refused(head_fault::head_too_large, 16)},
           {get, {1000, 1000, 1000}, complete(27)},
           {"GET /too/long", {10, 100, 1}, refused(head_fault::request_line_too_long, 10)},
           {"GET / HTTP/1.1\r\nX: too long", {16, 20, 9}, refused(head_fault::head_too_large, 20)},
           // What is wrong in a line counts only when the whole line is within the limits.
           {"GET /a#b HTTP/1.1\r\n", {19, 100, 1}, refused(head_fault::invalid_target, 6)},
           {"GET /a#b HTTP/1.1\r\n", {18, 100, 1}, refused(head_fault::request_line_too_long, 18)},
           {"GET / HTTP/1.1\r\nX Y: 1\r\n", {16, 24, 9}, refused(head_fault::invalid_name, 17)},
           {"GET / HTTP/1.1\r\nX Y: 1\r\n", {16, 23, 9}, refused(head_fault::head_too_large, 23)},
       }) {
    request_head head;
    EXPECT_EQ(parse_request_head(bytes, 0, limits, head), status) << bytes;
    for (std::size_t split = 1; split < bytes.size(); ++split) {
      auto const before = parse_request_head(bytes.substr(0, split), 0, limits, head);
      auto const last = before.state == head_state::incomplete
                            ? parse_request_head(bytes, before.size, limits, head)
                            : before;
      EXPECT_EQ(last, status) << bytes << " split at " << split;
    }
  }
}

TEST(wire_request_head, holds_as_many_fields_as_it_has_room_for) {
  std::string bytes = "GET / HTTP/1.1\r\nHost: h\r\n";
  for (std::size_t i = 1; i < fields_capacity; ++i) {
    bytes += "X: 1\r\n";
  }
  auto const one_more = bytes + "X: 1\r\n\r\n";
  bytes += "\r\n";
  head_limits const limits{.fields_max = 1'000'000};
  request_head head;
  EXPECT_EQ(parse_request_head(bytes, 0, limits, head), complete(bytes.size()));
  EXPECT_EQ(head.fields().size(), fields_capacity);
  EXPECT_EQ(parse_request_head(one_more, 0, limits, head).fault, head_fault::too_many_fields);
}

TEST(wire_request_head, waits_for_more) {
  request_head head;
  std::string_view const bytes = "\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n";
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_EQ(parse_request_head(bytes.substr(0, size), 0, {}, head),
              (head_status{head_state::incomplete, head_fault::none, size}));
  }
}

TEST(wire_request_head, takes_a_slow_head_of_many_bytes_in_its_stride) {
  // Byte by byte, with every line read again only when the next one is complete.
  std::string bytes = "GET / HTTP/1.1\r\nHost: h\r\n";
  for (int i = 0; i < 60; ++i) {
    bytes += "X-" + std::to_string(i) + ": " + std::string(500, 'x') + "\r\n";
  }
  bytes += "\r\n";
  request_head head;
  std::size_t seen = 0;
  for (std::size_t size = 1; size < bytes.size(); ++size) {
    auto const status = parse_request_head({bytes.data(), size}, seen, {}, head);
    ASSERT_EQ(status.state, head_state::incomplete);
    seen = status.size;
  }
  EXPECT_EQ(parse_request_head(bytes, seen, {}, head), complete(bytes.size()));
}

TEST(wire_request_head, needs_nothing_behind_the_last_byte) {
  std::string_view const bytes =
      "GET /some/path HTTP/1.1\r\nHost: example\r\nAccept: */*\r\nX-Y: z\r\n\r\n";
  request_head head;
  for (std::size_t size = 0; size <= bytes.size(); ++size) {
    // The sanitizer sees a look behind it.
    std::vector<char> const exact(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
    auto const status = parse_request_head({exact.data(), exact.size()}, 0, {}, head);
    EXPECT_EQ(status.state == head_state::complete, size == bytes.size());
  }
}

TEST(wire_request_head, allocates_nothing) {
  std::string_view const bytes =
      "POST /a?b HTTP/1.1\r\nHost: h\r\nConnection: a, b, close\r\nTransfer-Encoding: "
      "chunked\r\n\r\n";
  request_head head;
  auto const before = tidegate::test::allocations();
  auto const good = parse_request_head(bytes, 0, {}, head);
  auto const bad = parse_request_head("GET / HTTP/1.1\r\nX Y: 1\r\n\r\n", 0, {}, head);
  EXPECT_EQ(tidegate::test::allocations(), before);
  EXPECT_EQ(good.state, head_state::complete);
  EXPECT_EQ(bad.state, head_state::refused);
}

TEST(wire_response_head, reads_line_and_fields) {
  std::string_view const bytes =
      "HTTP/1.1 404 Not Found\r\nContent-Length: 3\r\nServer: x\r\n\r\nabc";
  response_head head;
  ASSERT_EQ(parse_response_head(bytes, 0, {}, method::get, head), complete(bytes.size() - 3));
  EXPECT_EQ(head.status(), 404);
  EXPECT_EQ(head.reason(), "Not Found");
  EXPECT_EQ(head.minor_version(), 1);
  EXPECT_EQ(head.value_of(known_field::server), "x");
  EXPECT_EQ(head.body(), (body_framing{body_kind::content_length, 3}));
  EXPECT_TRUE(head.keep_alive());
  EXPECT_FALSE(head.interim());
}

TEST(wire_response_head, says_how_long_the_body_is) {
  struct row {
    std::string_view head;
    method asked;
    body_framing body;
    bool keep_alive;
  };
  body_framing const none{};
  body_framing const chunked{body_kind::chunked, 0};
  body_framing const until_close{body_kind::until_close, 0};
  body_framing const seven{body_kind::content_length, 7};
  using enum method;
  for (auto const& row : {
           row{"HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n", get, seven, true},
           {"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", get, none, true},
           {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", get, chunked, true},
           {"HTTP/1.1 200 OK\r\n\r\n", get, until_close, false},
           {"HTTP/1.1 200\r\nContent-Length: 7\r\n\r\n", get, seven, true},
           {"HTTP/1.1 200 \r\nContent-Length: 7\r\n\r\n", get, seven, true},
           {"HTTP/1.0 200 OK\r\nContent-Length: 7\r\n\r\n", get, seven, false},
           {"HTTP/1.0 200 OK\r\nContent-Length: 7\r\nConnection: keep-alive\r\n\r\n", get, seven,
            true},
           {"HTTP/1.1 200 OK\r\nContent-Length: 7\r\nConnection: close\r\n\r\n", get, seven, false},
           {"HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n", head, none, true},
           {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", head, none, true},
           {"HTTP/1.1 200 OK\r\n\r\n", head, none, true},
           {"HTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\n\r\n", get, none, true},
           {"HTTP/1.1 304 Not Modified\r\n\r\n", get, none, true},
           {"HTTP/1.1 204 No Content\r\n\r\n", get, none, true},
           {"HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n", get, none, true},
           // Whether the body comes is not known: so the connection is not used again.
           {"HTTP/1.1 204 No Content\r\nContent-Length: 7\r\n\r\n", get, none, false},
           {"HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n", get, none, false},
           {"HTTP/1.1 100 Continue\r\n\r\n", post, none, true},
           {"HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n", get, none, true},
           {"HTTP/1.1 200 OK\r\n\r\n", connect, none, true},
           {"HTTP/1.1 403 Forbidden\r\nContent-Length: 7\r\n\r\n", connect, seven, true},
       }) {
    response_head out;
    ASSERT_EQ(parse_response_head(row.head, 0, {}, row.asked, out), complete(row.head.size()))
        << row.head;
    EXPECT_EQ(out.body(), row.body) << row.head;
    EXPECT_EQ(out.keep_alive(), row.keep_alive) << row.head;
  }
}

TEST(wire_response_head, refuses_with_the_place) {
  struct row {
    std::string_view bytes;
    head_fault fault;
    std::size_t offset;
  };
  using enum head_fault;
  for (auto const& [bytes, fault, offset] : {
           row{"hello", malformed_status_line, 0},
           {"\r\nHTTP/1.1 200 OK\r\n\r\n", malformed_status_line, 0},
           {"HTML\r\n", malformed_status_line, 2},
           {"HTTP/1.1\r\n", malformed_status_line, 8},
           {"HTTP/1.1  200 OK\r\n", malformed_status_line, 9},
           {"HTTP/1.1 20 OK\r\n", malformed_status_line, 11},
           {"HTTP/1.1 2000 OK\r\n", malformed_status_line, 12},
           {"HTTP/1.1 +20 OK\r\n", malformed_status_line, 9},
           {"HTTP/1.1 200 OK\n", bare_lf, 15},
           {"HTTP/1.1 200 O\rK\r\n", bare_cr, 14},
           {"HTTP/1.1 200 O\x01K\r\n", malformed_status_line, 14},
           {"HTTP/1.1 099 X\r\n", invalid_status, 9},
           {"HTTP/1.1 600 X\r\n", invalid_status, 9},
           {"HTTP/2.0 200 OK\r\n", unsupported_version, 0},
           {"HTTP/1.1 200 OK\r\nA : 1\r\n", space_before_colon, 18},
           {"HTTP/1.1 200 OK\r\nA: 1\r\n 2\r\n", obs_fold, 23},
           {"HTTP/1.1 200 OK\r\nA: 1\nB: 2\r\n", bare_lf, 21},
           {"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n",
            repeated_content_length, 52},
           {"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n",
            content_length_and_transfer_encoding, 55},
           {"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n", unknown_transfer_coding, 36},
           {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, chunked\r\n", misplaced_chunked, 36},
           {"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n", transfer_encoding_in_http_1_0, 36},
           {"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n", invalid_content_length, 33},
           {"HTTP/1.1 100 X\r\nContent-Length: 1\r\n\r\n", body_in_interim_response, 35},
           {"HTTP/1.1 101 X\r\nTransfer-Encoding: chunked\r\n\r\n", body_in_interim_response, 44},
       }) {
    response_head head;
    EXPECT_EQ(parse_response_head(bytes, 0, {}, method::get, head), refused(fault, offset))
        << bytes;
    for (std::size_t split = 1; split < bytes.size(); ++split) {
      auto const before = parse_response_head(bytes.substr(0, split), 0, {}, method::get, head);
      auto const last = before.state == head_state::incomplete
                            ? parse_response_head(bytes, before.size, {}, method::get, head)
                            : before;
      EXPECT_EQ(last, refused(fault, offset)) << bytes << " split at " << split;
    }
  }
}

TEST(wire_head_fault, has_a_name_and_a_status) {
  for (int i = 0; i <= static_cast<int>(head_fault::body_in_interim_response); ++i) {
    auto const fault = static_cast<head_fault>(i);
    EXPECT_FALSE(to_string(fault).empty()) << i;
    auto const status = status_of(fault);
    EXPECT_TRUE(status >= 400 && status < 600) << i;
  }
}

}  // namespace
}  // namespace tidegate::TIDEGATE_ABI::wire
