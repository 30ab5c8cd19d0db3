// SPDX-License-Identifier: Apache-2.0
#include "gateway.hpp"
#include "process.hpp"
#include "raw_http2.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <future>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace tidegate::e2e {

namespace {

using namespace std::chrono_literals;
using namespace std::string_view_literals;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

/// Starts curl with prior knowledge of HTTP/2; it prints the head and the content of the response.
auto curl(std::vector<std::string> const& arguments, std::string const& input = {})
    -> std::future<outcome> {
  std::vector<std::string> all{"/usr/bin/env", "curl", "-sSi",
                               "--max-time",   "10",   "--http2-prior-knowledge"};
  all.insert(all.end(), arguments.begin(), arguments.end());
  return std::async(std::launch::async, [all, input] { return run(all, input); });
}

auto url(gateway const& at, std::string const& path = "/") -> std::string {
  return "http://" + at.authority() + path;
}

auto h2load(std::vector<std::string> const& arguments) -> std::string {
  std::vector<std::string> all{"/usr/bin/env", "h2load", "-T", "10"};
  all.insert(all.end(), arguments.begin(), arguments.end());
  return run(all).out;
}

TEST(gateway_http2, answers_a_client_with_prior_knowledge) {
  origin upstream;
  gateway const under_test(proxy_config(upstream.url()));
  auto asked = curl({url(under_test, "/a/b?c=d"), "-H", "X-A: 1", "-H", "Cookie: a=1"});
  auto to_gateway = upstream.accept();
  auto const request = to_gateway.read_request();
  EXPECT_EQ(request.start_line, "GET /a/b?c=d HTTP/1.1");
  EXPECT_EQ(request.field("Host"), under_test.authority());
  EXPECT_EQ(request.field("X-A"), "1");
  EXPECT_EQ(request.field("Cookie"), "a=1");
  EXPECT_EQ(request.field("X-Forwarded-Proto"), "http");
  EXPECT_EQ(request.field("Transfer-Encoding"), "(none)");
  to_gateway.send(
      response("200 Fine", "hello", "X-B: 2\r\nKeep-Alive: x\r\nConnection: X-C\r\nX-C: 3\r\n"));
  auto const answer = asked.get();
  EXPECT_THAT(answer.out, StartsWith("HTTP/2 200"));
  EXPECT_THAT(answer.out, HasSubstr("\r\nx-b: 2\r\n"));
  EXPECT_THAT(answer.out, HasSubstr("\r\ncontent-length: 5\r\n"));
  EXPECT_THAT(answer.out, HasSubstr("\r\ndate: "));
  EXPECT_THAT(answer.out, HasSubstr("\r\n\r\nhello"));
  EXPECT_THAT(answer.out, Not(HasSubstr("x-c")));
  EXPECT_THAT(answer.out, Not(HasSubstr("keep-alive")));
  EXPECT_THAT(answer.out, Not(HasSubstr("\r\nconnection")));
}

TEST(gateway_http2, answers_429_once_the_quota_is_spent) {
  gateway const under_test(
      "policies: {p: {quota: 1, window: 1m}}\n"
      "routes: [{match: {path: /**}, service: echo, limits: [p]}]\n");
  auto const first = curl({url(under_test)}).get().out;
  EXPECT_THAT(first, StartsWith("HTTP/2 200"));
  EXPECT_THAT(first, HasSubstr("\r\nratelimit-policy: \"p\";q=1;w=60\r\n"));
  auto const second = curl({url(under_test)}).get().out;
  EXPECT_THAT(second, StartsWith("HTTP/2 429"));
  EXPECT_THAT(second, HasSubstr("\r\ncontent-type: application/problem+json\r\n"));
  EXPECT_THAT(second, HasSubstr("\r\nretry-after: "));
  EXPECT_THAT(second, HasSubstr("#quota-exceeded"));
}

TEST(gateway_http2, answers_429_to_a_body_that_is_still_coming) {
  gateway const under_test(
      "policies: {p: {quota: 1, window: 1m}}\n"
      "routes: [{match: {path: /**}, service: echo, limits: [p]}]\n");
  std::string const body(100'000, 'x');
  EXPECT_THAT(curl({url(under_test), "--data-binary", "@-"}, body).get().out,
              StartsWith("HTTP/2 200"));
  EXPECT_THAT(curl({url(under_test), "--data-binary", "@-"}, body).get().out,
              StartsWith("HTTP/2 429"));
}

/// `x-sum: 1`, and `content-length: 9`, as HPACK writes them.
constexpr auto trailers_block = "\x40\x05x-sum\x01\x31\x0f\x0d\x01\x39"sv;

TEST(gateway_http2, sends_trailers_of_a_client_on_without_those_that_frame) {
  origin upstream;
  gateway const under_test(proxy_config(upstream.url()));
  raw_client client(under_test.connect());
  client.post(1);
  client.send(data, 0, 1, "hello");
  client.send(headers, 5, 1, trailers_block);
  auto to_gateway = upstream.accept();
  auto const request = to_gateway.read_request();
  EXPECT_EQ(request.body, "hello");
  EXPECT_EQ(request.trailers, "x-sum: 1\r\n");
  to_gateway.send(
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nX-Sum: 2\r\n\r\n");
  EXPECT_THAT(client.read(headers).payload, Not(HasSubstr("x-sum")));
  EXPECT_EQ(client.read(data).payload, "hi");
  auto const end = client.read(headers);
  EXPECT_EQ(end.stream, 1U);
}

TEST(gateway_http2, sends_a_body_on_with_the_length_that_the_client_said) {
  origin upstream;
  gateway const under_test(proxy_config(upstream.url()));
  auto asked = curl({url(under_test), "-d", "hello"});
  auto to_gateway = upstream.accept();
  auto const request = to_gateway.read_request();
  EXPECT_EQ(request.start_line, "POST / HTTP/1.1");
  EXPECT_EQ(request.field("Content-Length"), "5");
  EXPECT_EQ(request.field("Transfer-Encoding"), "(none)");
  EXPECT_EQ(request.body, "hello");
  to_gateway.send(response("201 Created", ""));
  EXPECT_THAT(asked.get().out, StartsWith("HTTP/2 201"));
}

TEST(gateway_http2, sends_a_body_on_in_chunks_when_the_client_said_no_length) {
  origin upstream;
  gateway const under_test(proxy_config(upstream.url()));
  auto asked = curl({url(under_test), "-T", "-"}, "hello");
  auto to_gateway = upstream.accept();
  auto const request = to_gateway.read_request();
  EXPECT_EQ(request.start_line, "PUT / HTTP/1.1");
  EXPECT_EQ(request.field("Transfer-Encoding"), "chunked");
  EXPECT_EQ(request.field("Content-Length"), "(none)");
  EXPECT_EQ(request.body, "hello");
  to_gateway.send(
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n");
  auto const answer = asked.get().out;
  EXPECT_THAT(answer, HasSubstr("\r\n\r\nabcde"));
  EXPECT_THAT(answer, Not(HasSubstr("transfer-encoding")));
}

TEST(gateway_http2, passes_large_bodies_both_ways) {
  origin upstream;
  gateway const under_test(proxy_config(upstream.url()));
  std::string up;
  for (int i = 0; up.size() < 3'000'000; ++i) {
    up.append(std::to_string(i)).append(",");
  }
  auto asked = curl({url(under_test), "--data-binary", "@-"}, up);
  auto to_gateway = upstream.accept();
  auto const request = to_gateway.read_request();
  EXPECT_TRUE(request.body == up);
  to_gateway.send(response("200 OK", up));
  auto const answer = asked.get().out;
  EXPECT_TRUE(answer.ends_with("\r\n\r\n" + up));
}

TEST(gateway_http2, answers_head_without_content) {
  serving_origin const upstream("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n");
  gateway const under_test(proxy_config(upstream.url()));
  auto const answer = curl({"-I", url(under_test)}).get();
  EXPECT_EQ(answer.status, 0);
  EXPECT_THAT(answer.out, HasSubstr("\r\ncontent-length: 5\r\n"));
}

TEST(gateway_http2, passes_interim_responses_on) {
  origin upstream;
  gateway const under_test(proxy_config(upstream.url()));
  auto asked = curl({url(under_test)});
  auto to_gateway = upstream.accept();
  (void)to_gateway.read_request();
  to_gateway.send("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + response("200 OK", "x"));
  auto const answer = asked.get().out;
  EXPECT_THAT(answer, StartsWith("HTTP/2 103"));
  EXPECT_THAT(answer, HasSubstr("HTTP/2 200"));
}

TEST(gateway_http2, serves_many_streams_of_many_connections) {
  serving_origin const upstream(response("200 OK", std::string(2000, 'x')));
  gateway const under_test(proxy_config(upstream.url()), 2);
  auto const said = h2load({"-n", "2000", "-c", "8", "-m", "32", url(under_test)});
  EXPECT_THAT(said, HasSubstr("2000 succeeded, 0 failed"));
  EXPECT_THAT(said, HasSubstr("2000 2xx"));
}

TEST(gateway_http2, admits_exactly_the_quota_to_many_streams) {
  gateway const under_test(
      "policies: {p: {quota: 100, window: 1h}}\n"
      "routes: [{match: {path: /**}, service: echo, limits: [p]}]\n",
      2);
  auto const said = h2load({"-n", "500", "-c", "4", "-m", "25", url(under_test)});
  EXPECT_THAT(said, HasSubstr("status codes: 100 2xx, 0 3xx, 400 4xx, 0 5xx"));
}

TEST(gateway_http2, gives_the_upstream_up_when_the_client_resets_a_stream) {
  origin upstream;
  gateway const under_test(proxy_config(upstream.url()));
  raw_client client(under_test.connect());
  client.get(1);
  auto to_gateway = upstream.accept();
  (void)to_gateway.read_request();
  client.reset(1);
  EXPECT_TRUE(to_gateway.is_closed());
  // The connection stays usable.
  client.get(3);
  auto again = upstream.accept();
  (void)again.read_request();
  again.send(response("200 OK", "hello"));
  auto const answer = client.read(data);
  EXPECT_EQ(answer.stream, 3U);
  EXPECT_EQ(answer.payload, "hello");
}

TEST(gateway_http2, gives_all_upstreams_up_when_the_client_is_gone) {
  origin upstream;
  gateway const under_test(proxy_config(upstream.url()));
  raw_client client(under_test.connect());
  client.get(1);
  auto first = upstream.accept();
  (void)first.read_request();
  client.post(3);
  auto second = upstream.accept();
  (void)second.read_head();
  client.socket().close();
  EXPECT_TRUE(first.is_closed());
  EXPECT_TRUE(second.is_closed());
}

TEST(gateway_http2, ends_a_connection_that_resets_streams_in_a_burst) {
  serving_origin const upstream(response("200 OK", "x"));
  gateway const under_test(proxy_config(upstream.url()));
  raw_client client(under_test.connect());
  for (std::uint32_t i = 0; i < 300; ++i) {
    client.get(2 * i + 1);
    client.reset(2 * i + 1);
  }
  EXPECT_EQ(number_of(client.read(goaway).payload.substr(4, 4)), 0xbU);  // ENHANCE_YOUR_CALM
  EXPECT_EQ(under_test.get("/").status(), 200);
}

TEST(gateway_http2, resets_a_stream_whose_response_is_cut) {
  origin upstream;
  gateway const under_test(proxy_config(upstream.url()));
  raw_client client(under_test.connect());
  client.get(1);
  {
    auto to_gateway = upstream.accept();
    (void)to_gateway.read_request();
    to_gateway.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf");
    EXPECT_EQ(client.read(data).payload, "half");
  }
  auto const reset = client.read(rst_stream);
  EXPECT_EQ(reset.stream, 1U);
  EXPECT_EQ(number_of(reset.payload), 2U);  // INTERNAL_ERROR
}

TEST(gateway_http2, stops_reading_from_the_upstream_while_the_client_takes_nothing) {
  origin upstream;
  gateway const under_test(proxy_config(upstream.url()));
  raw_client client(under_test.connect());  // whose windows are 65535 octets, and are never opened
  client.get(1);
  auto to_gateway = upstream.accept();
  (void)to_gateway.read_request();
  to_gateway.send("HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n");
  EXPECT_LT(to_gateway.send_until_blocked(std::string(100'000'000, 'x')), 20'000'000U);
}

TEST(gateway_http2, refuses_a_head_that_is_too_large) {
  gateway const under_test(
      "http: {max-header-size: 4KiB}\n"
      "routes: [{match: {path: /**}, service: echo}]\n");
  EXPECT_THAT(curl({url(under_test), "-H", "X-A: " + std::string(8000, 'x')}).get().out,
              StartsWith("HTTP/2 431"));
  EXPECT_THAT(curl({url(under_test)}).get().out, StartsWith("HTTP/2 200"));
}

TEST(gateway_http2, refuses_a_body_that_is_too_large) {
  origin upstream;
  gateway const under_test(proxy_config(upstream.url(), "http: {max-body: 1KiB}\n"));
  EXPECT_THAT(curl({url(under_test), "--data-binary", "@-"}, std::string(2000, 'x')).get().out,
              StartsWith("HTTP/2 413"));
  auto asked = curl({url(under_test), "-T", "-"}, std::string(2000, 'x'));
  auto to_gateway = upstream.accept();
  EXPECT_THAT(asked.get().out, StartsWith("HTTP/2 413"));
}

TEST(gateway_http2, says_goodbye_to_an_idle_client) {
  gateway const under_test(
      "http: {idle-timeout: 200ms, header-timeout: 200ms}\n"
      "routes: [{match: {path: /**}, service: echo}]\n");
  raw_client client(under_test.connect());
  client.get(1);
  EXPECT_EQ(client.read(data).stream, 1U);
  EXPECT_EQ(number_of(client.read(goaway).payload.substr(4, 4)), 0U);  // NO_ERROR
  EXPECT_TRUE(client.socket().is_closed());
}

TEST(gateway_http2, gives_up_a_head_that_does_not_come_to_an_end) {
  gateway const under_test(
      "http: {header-timeout: 200ms}\n"
      "routes: [{match: {path: /**}, service: echo}]\n");
  raw_client client(under_test.connect());
  client.send(headers, 1, 1, "\x82\x86");  // END_STREAM, but not END_HEADERS
  (void)client.socket().read_to_end();     // it is closed, or this test does not end
}

TEST(gateway_http2, gives_up_a_body_that_does_not_come) {
  origin upstream;
  gateway const under_test(proxy_config(upstream.url(), "http: {body-timeout: 200ms}\n"));
  raw_client client(under_test.connect());
  client.post(1);
  auto to_gateway = upstream.accept();
  (void)to_gateway.read_head();
  EXPECT_THAT(client.read(data).payload, HasSubstr("\"status\":408"));
  EXPECT_TRUE(to_gateway.is_closed());
}

TEST(gateway_http2, counts_a_body_that_does_not_come_once) {
  origin upstream;
  gateway const under_test(proxy_config(upstream.url(), "http: {body-timeout: 200ms}\n"));
  raw_client client(under_test.connect());
  client.post(1);
  EXPECT_THAT(client.read(data).payload, HasSubstr("\"status\":408"));
  // Its rest is waited for as long again.
  EXPECT_EQ(client.read(rst_stream).stream, 1U);
  EXPECT_EQ(under_test.metric("tidegate_requests_malformed_total"), 1);
}

TEST(gateway_http2, closes_a_connection_on_which_the_client_takes_nothing) {
  origin upstream;
  gateway const under_test(proxy_config(upstream.url(), "http: {idle-timeout: 200ms}\n"));
  raw_client client(under_test.connect());
  client.send(settings, 0, 0, "\0\4\x7f\xff\xff\xff"sv);
  client.send(window_update, 0, 0, "\x7f\0\0\0"sv);
  client.get(1);
  auto to_gateway = upstream.accept();
  (void)to_gateway.read_request();
  to_gateway.send("HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n");
  EXPECT_LT(to_gateway.send_until_blocked(std::string(100'000'000, 'x')), 100'000'000U);
  expect_eventually([&] { return under_test.metric("tidegate_connections_open") == 0; },
                    "the connection is closed");
}

TEST(gateway_http2, resets_a_response_that_is_not_taken_though_the_client_sends_pings) {
  origin upstream;
  gateway const under_test(proxy_config(upstream.url(), "http: {idle-timeout: 200ms}\n"));
  raw_client client(under_test.connect());
  client.send(settings, 0, 0, "\0\4\0\0\0\0"sv);  // no window
  client.get(1);
  auto to_gateway = upstream.accept();
  (void)to_gateway.read_request();
  to_gateway.send(response("200 OK", "hello"));
  EXPECT_EQ(client.read(headers).stream, 1U);
  frame last;
  for (int i = 0; i < 200 && last.type != rst_stream; ++i) {
    std::this_thread::sleep_for(20ms);
    client.send(ping, 0, 0, "12345678");
    last = client.read();
  }
  EXPECT_EQ(last.type, rst_stream);
  EXPECT_EQ(last.stream, 1U);
}

TEST(gateway_http2, drains_with_goaway_after_what_is_under_way) {
  origin upstream;
  gateway under_test(proxy_config(upstream.url()));
  raw_client client(under_test.connect());
  client.get(1);
  auto to_gateway = upstream.accept();
  (void)to_gateway.read_request();
  under_test.signal(SIGTERM);
  auto const bye = client.read(goaway);
  EXPECT_EQ(number_of(bye.payload.substr(0, 4)), 1U);
  EXPECT_EQ(number_of(bye.payload.substr(4, 4)), 0U);
  to_gateway.send(response("200 OK", "hello"));
  EXPECT_EQ(client.read(data).payload, "hello");
  EXPECT_TRUE(client.socket().is_closed());
}

TEST(gateway_http2, takes_no_preface_behind_a_request) {
  gateway const under_test("routes: [{match: {path: /**}, service: echo}]\n");
  auto client = under_test.connect();
  client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\nPRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
  EXPECT_EQ(client.read_response().status(), 200);
  EXPECT_EQ(client.read_response().status(), 505);
}

}  // namespace
}  // namespace tidegate::e2e
