// SPDX-License-Identifier: Apache-2.0
//
// Servers that are spoken to by HTTP/2. They send frames one by one, so that a test decides what
// comes when.
#include "gateway.hpp"
#include "keyed.hpp"
#include "process.hpp"
#include "raw_http2.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

namespace tidegate::e2e {
namespace {

using namespace std::chrono_literals;
using namespace std::string_view_literals;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr std::string_view get_request = "GET /a HTTP/1.1\r\nHost: a.example\r\n\r\n";
/// `x-sum: 1`, as HPACK writes it.
constexpr auto sum_block = "\x40\x05x-sum\x01\x31"sv;

auto config_of(origin const& api, std::string const& more = "") -> std::string {
  return "upstreams: {api: {servers: [\"" + api.url() + "\"], http2: true" + more +
         "}}\nroutes: [{name: all, match: {path: /**}, upstream: api}]\n";
}

class gateway_http2_upstream : public testing::Test {
 protected:
  auto connected(std::string_view settings = {}) -> raw_server {
    return raw_server(api_.accept(), settings);
  }

  origin api_;
  gateway gateway_{config_of(api_)};
};

TEST_F(gateway_http2_upstream, gets_a_request_of_http_1_and_answers_it) {
  auto client = gateway_.connect();
  client.send(
      "GET /a?b=c HTTP/1.1\r\nHost: a.example\r\nX-A: 1\r\nConnection: X-Hop\r\nX-Hop: 1\r\n\r\n");
  auto server = connected();
  auto const request = server.read_request();
  EXPECT_TRUE(request.is_last);
  EXPECT_THAT(request.fields,
              StartsWith(":method: GET\n:scheme: http\n:authority: a.example\n:path: /a?b=c\n"));
  EXPECT_THAT(request.fields, HasSubstr("x-a: 1\n"));
  EXPECT_THAT(request.fields, HasSubstr("x-forwarded-for: 127.0.0.1\n"));
  EXPECT_THAT(request.fields, Not(HasSubstr("x-hop")));
  EXPECT_THAT(request.fields, Not(HasSubstr("connection")));
  server.answer(request.stream);
  server.send(data, 0, request.stream, "hel");
  server.send(data, 1, request.stream, "lo");
  auto const answer = client.read_response();
  EXPECT_EQ(answer.status(), 200);
  EXPECT_EQ(answer.body, "hello");
  EXPECT_EQ(answer.field("Transfer-Encoding"), "chunked");
  // The connection of the client is good for more, and so is that of the server.
  client.send(get_request);
  auto const next = server.read_request();
  EXPECT_EQ(next.stream, request.stream + 2);
  server.answer(next.stream, true);
  auto const empty = client.read_response();
  EXPECT_EQ(empty.status(), 200);
  EXPECT_EQ(empty.field("Content-Length"), "0");
}

TEST_F(gateway_http2_upstream, gets_chunks_and_trailers_of_http_1_and_sends_its_own) {
  auto client = gateway_.connect();
  client.send(
      "POST /a HTTP/1.1\r\nHost: a.example\r\nTE: trailers\r\nTransfer-Encoding: chunked\r\n\r\n"
      "3\r\nhel\r\n2\r\nlo\r\n0\r\nX-Sum: 1\r\nContent-Length: 9\r\n\r\n");
  auto server = connected();
  auto const request = server.read_request();
  EXPECT_FALSE(request.is_last);
  EXPECT_THAT(request.fields, HasSubstr("te: trailers\n"));
  EXPECT_THAT(request.fields, Not(HasSubstr("transfer-encoding")));
  std::string content;
  while (content.size() < 5) {
    content += server.read(data).payload;
  }
  EXPECT_EQ(content, "hello");
  auto const trailers = server.read_request();
  EXPECT_TRUE(trailers.is_last);
  EXPECT_EQ(trailers.fields, "x-sum: 1\n");
  server.send(headers, 4, 1,
              "\x08\x03"
              "103");
  server.answer(1);
  server.send(data, 0, 1, "hi");
  server.send(headers, 5, 1, std::string(sum_block) + "\x40\x09ratelimit\x01\x31");
  EXPECT_EQ(client.read_response().status(), 103);
  auto const answer = client.read_response();
  EXPECT_EQ(answer.body, "hi");
  EXPECT_EQ(answer.trailers, "x-sum: 1\r\n");
}

TEST_F(gateway_http2_upstream, gets_a_request_of_http_2_and_answers_it) {
  raw_client client(gateway_.connect());
  client.post(1);
  client.send(data, 0, 1, "hello");
  client.send(headers, 5, 1, sum_block);
  auto server = connected();
  auto const request = server.read_request();
  EXPECT_THAT(request.fields,
              StartsWith(":method: POST\n:scheme: http\n:authority: a\n:path: /\n"));
  EXPECT_EQ(server.read(data).payload, "hello");
  EXPECT_EQ(server.read_request().fields, "x-sum: 1\n");
  server.answer(request.stream);
  server.send(data, 0, request.stream, "hi");
  server.send(headers, 5, request.stream, sum_block);
  EXPECT_EQ(client.read(headers).flags & 1U, 0U);
  EXPECT_EQ(client.read(data).payload, "hi");
  EXPECT_EQ(client.read(headers).flags & 1U, 1U);
}

TEST_F(gateway_http2_upstream, serves_many_clients_by_one_connection) {
  std::vector<connection> clients;
  clients.push_back(gateway_.connect());
  clients.back().send(get_request);
  auto server = connected();
  EXPECT_EQ(server.read_request().stream, 1U);
  for (std::uint32_t i = 1; i < 20; ++i) {
    clients.push_back(gateway_.connect());
    clients.back().send(get_request);
    EXPECT_EQ(server.read_request().stream, 2 * i + 1);
  }
  for (std::uint32_t i = 20; i-- > 0;) {
    server.answer_whole(2 * i + 1, std::to_string(i));
    EXPECT_EQ(clients[i].read_response().body, std::to_string(i));
  }
  EXPECT_TRUE(api_.is_untouched());
}

TEST_F(gateway_http2_upstream, gets_another_connection_when_one_is_full) {
  auto first = gateway_.connect();
  first.send(get_request);
  auto server = connected("\0\3\0\0\0\1"sv);  // SETTINGS_MAX_CONCURRENT_STREAMS 1
  EXPECT_EQ(server.read_request().stream, 1U);
  // The settings are known when they are acknowledged.
  while (server.read(settings).flags == 0) {
  }
  auto second = gateway_.connect();
  second.send(get_request);
  auto other = connected();
  other.answer_whole(other.read_request().stream, "two");
  EXPECT_EQ(second.read_response().body, "two");
  server.answer_whole(1, "one");
  EXPECT_EQ(first.read_response().body, "one");
}

TEST_F(gateway_http2_upstream, is_sent_again_what_it_refuses) {
  for (std::string_view const request :
       {get_request, "POST /a HTTP/1.1\r\nHost: a.example\r\nContent-Length: 5\r\n\r\nhello"sv,
        "POST /a HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\n\r\n"
        "5\r\nhello\r\n0\r\n\r\n"sv}) {
    origin api;
    gateway const with(config_of(api));
    auto client = with.connect();
    client.send(request);
    raw_server server(api.accept());
    server.reset(server.read_request().stream, 7);  // REFUSED_STREAM
    raw_server other(api.accept());
    auto const again = other.read_request();
    if (!again.is_last) {
      EXPECT_EQ(other.read(data).payload, "hello");
    }
    other.answer_whole(again.stream, "done");
    EXPECT_EQ(client.read_response().body, "done");
  }
}

TEST_F(gateway_http2_upstream, is_not_sent_again_what_it_may_have_seen) {
  auto client = gateway_.connect();
  client.send("POST /a HTTP/1.1\r\nHost: a.example\r\nContent-Length: 5\r\n\r\nhello");
  auto server = connected();
  server.reset(server.read_request().stream, 2);  // INTERNAL_ERROR
  EXPECT_EQ(client.read_response().status(), 502);
  EXPECT_TRUE(api_.is_untouched());
}

TEST_F(gateway_http2_upstream, that_goes_away_gets_no_more_and_may_finish) {
  auto seen = gateway_.connect();
  seen.send(get_request);
  auto server = connected();
  EXPECT_EQ(server.read_request().stream, 1U);
  auto unseen = gateway_.connect();
  unseen.send(get_request);
  EXPECT_EQ(server.read_request().stream, 3U);
  server.send(goaway, 0, 0, "\0\0\0\1\0\0\0\0"sv);
  auto other = connected();
  other.answer_whole(other.read_request().stream, "two");
  EXPECT_EQ(unseen.read_response().body, "two");
  server.answer_whole(1, "one");
  EXPECT_EQ(seen.read_response().body, "one");
  (void)server.socket().read_to_end();  // it is closed when nothing is left
}

TEST_F(gateway_http2_upstream, is_told_when_a_client_has_gone) {
  auto client = gateway_.connect();
  client.send(get_request);
  auto server = connected();
  auto const request = server.read_request();
  server.answer(request.stream);
  EXPECT_EQ(client.read_head().start_line, "HTTP/1.1 200 OK");
  client.abort();
  auto const reset = server.read(rst_stream);
  EXPECT_EQ(reset.stream, request.stream);
  EXPECT_EQ(number_of(reset.payload), 8U) << "CANCEL";
  // The connection goes on.
  auto next = gateway_.connect();
  next.send(get_request);
  auto const other = server.read_request();
  server.answer_whole(other.stream, "hello");
  EXPECT_EQ(next.read_response().body, "hello");
}

TEST_F(gateway_http2_upstream, waits_for_a_slow_client_and_serves_others) {
  auto slow = gateway_.connect();
  slow.send(get_request);
  auto server = connected();
  auto const first = server.read_request();
  server.answer(first.stream);
  EXPECT_EQ(slow.read_head().status(), 200);
  // As much as its window takes, as often as it is opened: until the client has too much.
  std::size_t sent = 0;
  std::size_t window = 128 * 1024;
  std::string const piece(16'384, 'x');
  auto const push = [&] {
    for (; window >= piece.size(); window -= piece.size(), sent += piece.size()) {
      server.send(data, 0, first.stream, piece);
    }
  };
  push();
  auto quick = gateway_.connect();
  for (int turn = 0; turn < 200; ++turn) {
    quick.send(get_request);
    auto const other = [&] {
      for (;;) {
        auto const each = server.read();
        if (each.type == window_update && each.stream == first.stream) {
          window += number_of(each.payload);
        } else if (each.type == headers) {
          return each.stream;
        }
      }
    }();
    server.answer_whole(other, "hello");
    EXPECT_EQ(quick.read_response().body, "hello") << "while " << sent << " wait for the other";
    push();
  }
  EXPECT_LT(sent, 16U << 20U) << "it was stopped";
  EXPECT_LT(window, piece.size());
  server.send(data, 1, first.stream, "");
  slow.close();
}

TEST_F(gateway_http2_upstream, that_breaks_a_response_harms_no_other) {
  auto good = gateway_.connect();
  good.send(get_request);
  auto server = connected();
  EXPECT_EQ(server.read_request().stream, 1U);
  for (auto const block : {"\x88\x0f\x0d\x01\x35"sv,
                           "\x89\x40\x0a"
                           "connection\x01x"sv,
                           "\x82"sv}) {
    auto bad = gateway_.connect();
    bad.send(get_request);
    server.send(headers, 5, server.read_request().stream, block);
    EXPECT_EQ(bad.read_response().status(), 502);
  }
  auto cut = gateway_.connect();
  cut.send(get_request);
  auto const request = server.read_request();
  server.answer(request.stream);
  server.send(data, 0, request.stream, "hel");
  EXPECT_EQ(cut.read_head().status(), 200);
  server.reset(request.stream, 2);
  EXPECT_THAT(cut.read_to_end(), Not(testing::EndsWith("0\r\n\r\n"))) << "it is not whole";
  server.answer_whole(1, "hello");
  EXPECT_EQ(good.read_response().body, "hello");
}

TEST_F(gateway_http2_upstream, that_breaks_the_protocol_is_left) {
  for (auto const& [type, payload] : std::vector<std::pair<std::uint8_t, std::string_view>>{
           {5, "\0\0\0\2\x88"sv}, {9, ""sv}, {6, "x"sv}, {8, "\0\0\0\0"sv}}) {
    auto client = gateway_.connect();
    client.send(get_request);
    auto server = connected();
    auto const request = server.read_request();
    server.send(type, 4, type == 5 ? request.stream : 0, payload);
    EXPECT_EQ(server.read(goaway).stream, 0U);
    EXPECT_EQ(client.read_response().status(), 502);
    EXPECT_TRUE(server.socket().is_closed());
  }
  auto client = gateway_.connect();
  client.send(get_request);
  auto not_http2 = api_.accept();
  not_http2.send("HTTP/1.1 400 Bad Request\r\n\r\n");
  EXPECT_EQ(client.read_response().status(), 502);
}

TEST_F(gateway_http2_upstream, cannot_flood_the_gateway) {
  std::string ping_frame;
  auto client = gateway_.connect();
  client.send(get_request);
  auto server = connected();
  (void)server.read_request();
  auto const before = gateway_.memory();
  std::string const pings = [] {
    std::string out;
    for (int i = 0; i < 1000; ++i) {
      out.append("\0\0\x08\x06\0\0\0\0\0"sv).append("12345678");
    }
    return out;
  }();
  for (int i = 0; i < 50; ++i) {
    (void)server.socket().send_until_blocked(pings);
  }
  EXPECT_EQ(client.read_response().status(), 502);
  EXPECT_LT(gateway_.memory(), before + (32U << 20U));
}

/// One that knows that its settings were taken.
void read_acknowledged(raw_server& server) {
  while (server.read(settings).flags == 0) {
  }
}

TEST_F(gateway_http2_upstream, that_answers_before_it_takes_the_content_is_sent_none_of_it) {
  auto client = gateway_.connect();
  client.send(get_request);
  auto server = connected("\0\4\0\0\0\0"sv);  // SETTINGS_INITIAL_WINDOW_SIZE 0
  auto const first = server.read_request();
  read_acknowledged(server);
  server.answer_whole(first.stream, "one");
  EXPECT_EQ(client.read_response().body, "one");
  client.send("POST /a HTTP/1.1\r\nHost: a.example\r\nContent-Length: 5\r\n\r\nhello");
  auto const request = server.read_request();
  EXPECT_FALSE(request.is_last);
  server.answer_whole(request.stream, "two");
  EXPECT_EQ(client.read_response().body, "two");
  // Else it would wait for a window for ever, and for the server the request would not be over.
  EXPECT_EQ(server.read(rst_stream).stream, request.stream);
}

TEST_F(gateway_http2_upstream, that_sends_many_interim_responses_does_not_end_a_slow_client) {
  raw_client client(gateway_.connect());
  client.get(1);
  auto server = connected();
  (void)server.read_request();
  constexpr std::uint32_t last = 19;
  for (std::uint32_t stream = 3; stream <= last; stream += 2) {
    client.get(stream);
    (void)server.read_request();
  }
  // A field of 3,000 octets, which is then named ten times in a few octets.
  constexpr auto early_hints =
      "\x08\x03"
      "103"sv;
  server.send(headers, 4, 1,
              std::string(early_hints) + "\x40\x03x-a\x7f\xb9\x16" + std::string(3000, 'v'));
  auto const large = std::string(early_hints) + std::string(10, '\xbe');
  for (std::uint32_t stream = 1; stream <= last; stream += 2) {
    for (int i = 0; i < 60; ++i) {
      server.send(headers, 4, stream, large);
    }
  }
  for (std::uint32_t stream = 1; stream <= last; stream += 2) {
    server.answer(stream, true);
  }
  auto quick = gateway_.connect();  // when this one is answered, all of that was read
  quick.send(get_request);
  server.answer_whole(server.read_request().stream, "hello");
  EXPECT_EQ(quick.read_response().body, "hello");
  for (std::uint32_t ended = 0; ended < last / 2 + 1;) {
    auto const each = client.read();
    ASSERT_NE(each.type, goaway) << "after " << ended;
    ended += each.type == headers && (each.flags & 1U) != 0 ? 1 : 0;
  }
}

TEST_F(gateway_http2_upstream, gets_more_of_an_upload_when_another_one_breaks) {
  constexpr auto head =
      "POST /a HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\n\r\n"sv;
  std::string const chunk = "2710\r\n" + std::string(10'000, 'x') + "\r\n";
  auto breaks = gateway_.connect();
  breaks.send(head);
  auto server = connected();
  auto const first = server.read_request().stream;
  for (int i = 0; i < 42; ++i) {  // more than may wait to be sent, and little more
    breaks.send(chunk);
  }
  breaks.send("no size\r\n");
  auto large = gateway_.connect();
  large.send(head);
  auto const second = server.read_request().stream;
  std::string chunks;
  for (int i = 0; i < 100; ++i) {
    chunks += chunk;
  }
  EXPECT_GT(large.send_until_blocked(chunks), 0U) << "both wait for the server";
  constexpr auto more = "\x00\x10\x00\x00"sv;  // 1 MiB
  for (auto const stream : {first, second, 0U}) {
    server.send(window_update, 0, stream, more);
  }
  for (std::size_t got = 0; got < 600'000;) {
    auto const each = server.read(data);
    got += each.stream == second ? each.payload.size() : 0;
  }
  EXPECT_EQ(breaks.read_response().status(), 400);
}

TEST(gateway_http2_upstream_memory, counts_what_is_kept_to_be_sent_again) {
  origin api;
  gateway const with("http: {max-buffered: 4MiB}\n" + config_of(api));
  auto const body = std::string(60'000, 'x');
  std::vector<connection> clients;
  std::optional<raw_server> server;
  std::vector<std::uint32_t> streams;
  for (int i = 0; i < 80; ++i) {
    clients.push_back(with.connect());
    clients.back().send("POST /a HTTP/1.1\r\nHost: a.example\r\nContent-Length: 60000\r\n\r\n" +
                        body);
    if (!server) {
      server.emplace(api.accept());
      server->send(window_update, 0, 0, "\x10\x00\x00\x00"sv);
    }
    auto const head = server->read(headers);
    streams.push_back(head.stream);
    for (std::size_t got = 0; got < body.size();) {
      got += server->read(data).payload.size();
    }
  }
  auto const buffered = [&] { return with.metric("tidegate_buffered_bytes"); };
  EXPECT_GT(buffered(), 1.5 * 1024 * 1024) << "that of so many as there is room for";
  EXPECT_LT(buffered(), 2.5 * 1024 * 1024) << "about half of max-buffered";
  for (std::size_t i = 0; i < clients.size(); ++i) {
    server->answer_whole(streams[i], "hello");
    EXPECT_EQ(clients[i].read_response().body, "hello");
  }
  expect_eventually([&] { return buffered() < 100'000; }, "it counts what is over");
}

TEST(gateway_http2_upstream_retry, gets_all_of_an_upload_that_waited_for_another_server) {
  origin silent;  // takes connections, and says nothing in the handshake of TLS
  origin api;
  gateway const with("upstreams: {api: {servers: [\"https://" +
                     silent.url().substr(std::size("http://") - 1) + "\", \"" + api.url() +
                     "\"], http2: true, connect-timeout: 500ms, retries: 1}}\n"
                     "routes: [{name: all, match: {path: /**}, upstream: api}]\n");
  auto client = with.connect();
  client.send("POST /a HTTP/1.1\r\nHost: a.example\r\nContent-Length: 600000\r\n\r\n" +
              std::string(600'000, 'x'));
  raw_server server(api.accept());
  auto const request = server.read_request();
  for (auto const stream : {request.stream, 0U}) {
    server.send(window_update, 0, stream, "\x00\x10\x00\x00"sv);
  }
  for (std::size_t got = 0; got < 600'000;) {
    got += server.read(data).payload.size();
  }
  server.answer(request.stream, true);
  EXPECT_EQ(client.read_response().status(), 200);
}

TEST(gateway_http2_upstream_keyed, ends_a_204_with_trailers_where_http_1_ends_it) {
  data_folder const folder;
  origin api;
  gateway const with("data: " + folder.path() + "\n" + "upstreams: {api: {servers: [\"" +
                     api.url() + "\"], http2: true}}\n" +
                     "routes: [{match: {path: /**}, upstream: api, "
                     "idempotency: {mode: optional, anonymous: allow}}]\n");
  auto client = with.connect();
  client.send(
      "POST /a HTTP/1.1\r\nHost: a.example\r\nIdempotency-Key: \"k\"\r\n"
      "Content-Length: 5\r\n\r\nhello");
  raw_server server(api.accept());
  auto const request = server.read_request();
  server.send(headers, 4, request.stream, "\x89");  // :status: 204
  server.send(headers, 5, request.stream, sum_block);
  auto const answer = client.read_head();
  EXPECT_EQ(answer.status(), 204);
  EXPECT_EQ(answer.field("Transfer-Encoding"), "(none)");
  client.send(get_request);
  server.answer_whole(server.read_request().stream, "next");
  EXPECT_EQ(client.read_response().body, "next") << "nothing is left of the first";
}

TEST(gateway_http2_upstream_times, asks_a_silent_server_whether_it_is_there) {
  origin api;
  gateway const with(config_of(api, ", idle-timeout: 2s, timeout: 20s"));
  auto client = with.connect();
  client.send(get_request);
  raw_server server(api.accept());
  auto const request = server.read_request();
  auto const asked = server.read(ping);
  server.send(ping, 1, 0, asked.payload);
  server.answer_whole(request.stream, "hello");
  EXPECT_EQ(client.read_response().body, "hello");
  client.send(get_request);
  (void)server.read_request();
  EXPECT_EQ(client.read_response().status(), 502) << "it does not answer";
  (void)server.read(ping);
  EXPECT_TRUE(server.socket().is_closed());
}

TEST(gateway_http2_upstream_times, bounds_the_wait_for_a_head_and_between_bytes) {
  origin api;
  gateway const with(config_of(api, ", timeout: 100ms, idle-timeout: 300ms, retries: 0"));
  auto client = with.connect();
  client.send(get_request);
  raw_server server(api.accept());
  auto const request = server.read_request();
  EXPECT_EQ(client.read_response().status(), 504);
  EXPECT_EQ(server.read(rst_stream).stream, request.stream);
  client.send(get_request);
  auto const cut = server.read_request();
  server.answer(cut.stream);
  server.send(data, 0, cut.stream, "hel");
  EXPECT_THAT(client.read_to_end(), Not(testing::EndsWith("0\r\n\r\n")));
}

// ---- TLS ----

/// A gateway with TLS as the server, which echoes, and one before it.
class gateway_http2_upstream_tls : public testing::Test {
 protected:
  gateway_http2_upstream_tls() {
    std::string pattern = (std::filesystem::temp_directory_path() / "tidegate_h2_XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) {
      throw std::runtime_error("mkdtemp failed");
    }
    folder_ = pattern;
    auto const made = run({"/usr/bin/env", "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                           "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj",
                           "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout",
                           file("key.pem"), "-out", file("cert.pem")});
    if (made.status != 0) {
      throw std::runtime_error("openssl: " + made.err);
    }
  }
  ~gateway_http2_upstream_tls() override { std::filesystem::remove_all(folder_); }

  [[nodiscard]] auto file(std::string const& name) const -> std::string {
    return (folder_ / name).string();
  }
  /// What the server writes to its access log of a request by a gateway with `http2`; the status
  /// of the response comes first.
  auto asked(std::string const& http2, std::string const& offered) -> std::string {
    gateway behind(
        "access-log: {file: " + file("log") + "}\nroutes: [{match: {path: /**}, service: echo}]\n",
        gateway_options{.listen =
                            "{address: \"127.0.0.1:0\", tls: {certificate: " + file("cert.pem") +
                            ", key: " + file("key.pem") + "}, http2: " + offered + "}"});
    gateway const with("upstreams: {api: {servers: [\"https://" + behind.authority() +
                       "\"], http2: " + http2 + ", tls: {ca: " + file("cert.pem") +
                       "}}}\nroutes: [{match: {path: /**}, upstream: api}]\n");
    std::string out;
    for (int i = 0; i < 2; ++i) {
      out += std::to_string(with.get("/a").status()) + " ";
    }
    behind.signal(SIGTERM);
    (void)behind.wait();
    std::ifstream log(file("log"));
    out.append(std::istreambuf_iterator<char>(log), {});
    std::filesystem::remove(file("log"));
    return out;
  }

 private:
  std::filesystem::path folder_;
};

TEST_F(gateway_http2_upstream_tls, is_spoken_to_as_was_agreed_upon) {
  for (auto const& [http2, offered, protocol] :
       std::vector<std::tuple<std::string, std::string, std::string>>{
           {"true", "true", "HTTP/2"},
           {"auto", "true", "HTTP/2"},
           {"auto", "false", "HTTP/1.1"},
           {"false", "true", "HTTP/1.1"}}) {
    auto const seen = asked(http2, offered);
    EXPECT_THAT(seen, StartsWith("200 200 ")) << http2;
    EXPECT_THAT(seen, HasSubstr("\"" + protocol + "\"")) << http2;
  }
}

TEST_F(gateway_http2_upstream_tls, is_refused_when_it_does_not_agree_to_it) {
  EXPECT_THAT(asked("true", "false"), StartsWith("502 502 "));
}

// ---- all of it ----

TEST(gateway_http2_upstream_chain, takes_large_bodies_both_ways) {
  origin api;
  gateway const behind(proxy_config(api.url()));
  gateway const with("upstreams: {api: {servers: [\"http://" + behind.authority() +
                     "\"], http2: true}}\n"
                     "routes: [{match: {path: /**}, upstream: api}]\n");
  std::string body(4U << 20U, 'x');
  for (std::size_t i = 0; i < body.size(); i += 1000) {
    body[i] = static_cast<char>('a' + i / 1000 % 26);
  }
  auto client = with.connect();
  std::thread sending([&] {
    client.send("POST /a HTTP/1.1\r\nHost: a.example\r\nContent-Length: " +
                std::to_string(body.size()) + "\r\n\r\n" + body);
  });
  auto server = api.accept();
  EXPECT_TRUE(server.read_request().body == body);
  sending.join();
  std::thread answering([&] { server.send(response("200 OK", body)); });
  EXPECT_TRUE(client.read_response().body == body);
  answering.join();
}

}  // namespace
}  // namespace tidegate::e2e
