// SPDX-License-Identifier: Apache-2.0
//
// Servers that come and go, where they are spoken to by HTTP/2.
#include "gateway.hpp"
#include "raw_http2.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tidegate::e2e {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

constexpr std::string_view get_request = "GET /a HTTP/1.1\r\nHost: a.example\r\n\r\n";

/// A server that answers every request at once; another gateway before it speaks HTTP/2.
class http2_origin {
 public:
  explicit http2_origin(std::string const& answer)
      : behind_(answer), speaks_(proxy_config(behind_.url(), ", outlier: off")) {}
  explicit http2_origin(std::function<std::string(message const&)> const& answer)
      : behind_(answer), speaks_(proxy_config(behind_.url(), ", outlier: off")) {}
  [[nodiscard]] auto url() const -> std::string { return "http://" + speaks_.authority(); }
  [[nodiscard]] auto requests() const -> std::size_t { return behind_.requests(); }

 private:
  [[nodiscard]] static auto proxy_config(std::string const& url, std::string const& more)
      -> std::string {
    return "upstreams: {api: {servers: [\"" + url + "\"]" + more +
           "}}\nroutes: [{match: {path: /**}, upstream: api}]\n";
  }

  serving_origin behind_;
  gateway speaks_;
};

auto upstream(std::string const& servers, std::string const& more = "") -> std::string {
  return "upstreams: {api: {servers: [" + servers + "], http2: true" + more +
         "}}\nroutes: [{match: {path: /**}, upstream: api}]\n";
}

auto both(auto const& one, auto const& two) -> std::string {
  return "\"" + one.url() + "\", \"" + two.url() + "\"";
}

auto up_of(std::string const& server) -> std::string {
  return "tidegate_upstream_up{upstream=\"api\",server=\"" + server + "\"}";
}

TEST(gateway_servers_http2, get_requests_by_their_weight_below_their_path) {
  auto const answer = [](message const& request) { return response("200 OK", request.start_line); };
  http2_origin const three(answer);
  http2_origin const one(answer);
  gateway const with(
      upstream("{url: \"" + three.url() + "/base\", weight: 3}, \"" + one.url() + "/base\""));
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(with.get("/a?b").body, "GET /base/a?b HTTP/1.1");
  }
  EXPECT_EQ(three.requests(), 15U);
  EXPECT_EQ(one.requests(), 5U);
}

TEST(gateway_servers_http2, are_ejected_when_they_answer_500) {
  http2_origin const well(response("200 OK", "well"));
  http2_origin const sick(response("500 Internal Server Error", "sick"));
  gateway const with(upstream(both(sick, well), ", outlier: {failures: 3, eject: 1h}"));
  int failed = 0;
  for (int i = 0; i < 20; ++i) {
    failed += with.get("/").status() == 500 ? 1 : 0;
  }
  EXPECT_EQ(failed, 3);
  EXPECT_EQ(with.metric(up_of(sick.url())), 0);
  EXPECT_EQ(with.metric("tidegate_upstream_requests_total{upstream=\"api\",server=\"" + sick.url() +
                        "\",status=\"500\"}"),
            3);
}

TEST(gateway_servers_http2, are_checked_by_their_own_protocol) {
  std::atomic<bool> is_well = true;
  http2_origin const one([&](message const& request) {
    return request.start_line == "GET /healthz HTTP/1.1" && !is_well
               ? response("503 Service Unavailable", "")
               : response("200 OK", "one");
  });
  http2_origin const two(response("200 OK", "two"));
  gateway with(upstream(both(one, two),
                        ", max-connections: 2, health: {path: /healthz, interval: 100ms, fall: 2, "
                        "rise: 2}"));
  EXPECT_EQ(with.metric(up_of(one.url())), 1) << "before the first check";
  is_well = false;
  (void)with.errors_until("server " + one.url() + " is unhealthy: it answered 503");
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(with.get("/").body, "two");
  }
  is_well = true;
  (void)with.errors_until("server " + one.url() + " is healthy again");
  EXPECT_EQ(with.metric(up_of(one.url())), 1);
}

TEST(gateway_servers_http2, that_refuse_a_stream_have_another_one_asked) {
  origin first_api;
  origin second_api;
  gateway const with(upstream(both(first_api, second_api)));
  auto client = with.connect();
  // The method does not matter: the server says that it has done nothing.
  client.send("POST /a HTTP/1.1\r\nHost: a.example\r\nContent-Length: 5\r\n\r\nhello");
  raw_server first(first_api.accept());
  first.reset(first.read_request().stream, 7);
  raw_server second(second_api.accept());
  auto const request = second.read_request();
  EXPECT_EQ(second.read(data).payload, "hello");
  second.answer_whole(request.stream, "well");
  EXPECT_EQ(client.read_response().body, "well");
  EXPECT_EQ(with.metric(up_of(first_api.url())), 1) << "that is not a failure";
}

TEST(gateway_servers_http2, that_go_away_lose_no_request_above_the_last_one) {
  origin first_api;
  origin second_api;
  gateway const with(upstream(both(first_api, second_api)));
  auto client = with.connect();
  client.send("POST /a HTTP/1.1\r\nHost: a.example\r\nContent-Length: 5\r\n\r\nhello");
  raw_server first(first_api.accept());
  (void)first.read_request();
  first.send(goaway, 0, 0, std::string(8, '\0'));
  raw_server second(second_api.accept());
  auto const request = second.read_request();
  second.answer_whole(request.stream, "well");
  EXPECT_EQ(client.read_response().body, "well");
}

TEST(gateway_servers_http2, that_answer_503_have_another_one_asked_where_that_is_wanted) {
  http2_origin const sick(response("503 Service Unavailable", "sick"));
  http2_origin const well(response("200 OK", "well"));
  gateway const with(
      upstream(both(sick, well), ", outlier: off, retry: {on: [503], backoff: 1ms, budget: 100%}"));
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(with.get("/").body, "well");
  }
  EXPECT_EQ(sick.requests(), 5U) << "every other request";
}

TEST(gateway_servers_http2, that_break_a_response_off_at_once_are_answered_with_502) {
  origin api;
  gateway const with(upstream("\"" + api.url() + "\""));
  auto client = with.connect();
  client.send(get_request);
  raw_server server(api.accept());
  auto const request = server.read_request();
  std::string at_once("\0\0\1\1\4\0\0\0\1\x88", 10);  // 200
  at_once.append("\0\0\3\0\0\0\0\0\1hel", 12).append("\0\0\4\3\0\0\0\0\1\0\0\0\2", 13);
  ASSERT_EQ(request.stream, 1U);
  server.socket().send(at_once);
  EXPECT_EQ(client.read_response().status(), 502);
  client.send(get_request);
  auto const next = server.read_request();
  server.answer_whole(next.stream, "well");
  EXPECT_EQ(client.read_response().body, "well") << "both connections are as good as before";
}

TEST(gateway_servers_http2, have_as_many_connections_as_is_allowed_and_more_requests) {
  origin api;
  gateway const with(upstream("\"" + api.url() + "\"", ", max-connections: 1"));
  auto first = with.connect();
  first.send(get_request);
  std::string const two_streams("\0\3\0\0\0\2", 6);
  raw_server server(api.accept(), two_streams);
  auto const one = server.read_request();
  auto second = with.connect();
  second.send(get_request);
  auto const two = server.read_request();
  EXPECT_GT(two.stream, one.stream) << "on the same connection";
  auto const refused = with.get("/");
  EXPECT_EQ(refused.status(), 503);
  EXPECT_EQ(refused.field("Retry-After"), "1");
  server.answer_whole(one.stream, "one");
  EXPECT_EQ(first.read_response().body, "one");
  first.send(get_request);
  auto const three = server.read_request();
  server.answer_whole(two.stream, "two");
  server.answer_whole(three.stream, "three");
  EXPECT_EQ(second.read_response().body, "two");
  EXPECT_EQ(first.read_response().body, "three");
}

/// Until its settings come it gets one request, whatever it would take.
TEST(gateway_servers_http2, get_no_more_requests_at_once_than_they_take) {
  origin api;
  gateway const with(upstream("\"" + api.url() + "\"", ", retry: {attempts: 0}"));
  std::vector<connection> clients;
  for (int i = 0; i < 4; ++i) {
    clients.push_back(with.connect());
    clients.back().send(get_request);
  }
  clients.push_back(with.connect());
  clients.back().send("POST /a HTTP/1.1\r\nHost: a.example\r\nContent-Length: 5\r\n\r\nhello");
  std::string const two_streams("\0\3\0\0\0\2", 6);
  auto accepted = api.accept();
  auto const in_flight =
      "tidegate_upstream_in_flight{upstream=\"api\",server=\"" + api.url() + "\"}";
  expect_eventually([&] { return with.metric(in_flight) == 5; }, "all requests wait");
  raw_server first(std::move(accepted), two_streams);
  std::vector<std::uint32_t> streams = {first.read_request().stream, first.read_request().stream};
  raw_server second(api.accept(), two_streams);
  raw_server third(api.accept(), two_streams);
  for (auto const stream : streams) {
    first.answer_whole(stream, "one");
  }
  for (int i = 0; i < 2; ++i) {
    second.answer_whole(second.read_request().stream, "two");
  }
  third.answer_whole(third.read_request().stream, "three");
  for (auto& each : clients) {
    EXPECT_EQ(each.read_response().status(), 200);
  }
}

/// Heads wait in the memory of the gateway: behind 1 MiB of them a server gets no more by that
/// connection.
TEST(gateway_servers_http2, that_read_nothing_have_little_waiting_for_them) {
  constexpr std::size_t field_octets = 50'000;  // nghttp2 reads no longer ones
  constexpr int streams_of_one = 100;
  origin api;
  gateway const with("http: {max-header-size: 256KiB}\n" + upstream("\"" + api.url() + "\""));
  auto const field = "X-Long: " + std::string(field_octets, 'a') + "\r\n";
  auto const request =
      "GET /a HTTP/1.1\r\nHost: a.example\r\n" + field + field + field + field + "\r\n";
  std::vector<connection> clients;
  clients.push_back(with.connect());
  clients.back().send(get_request);
  raw_server first(api.accept());
  (void)first.read_request();  // and nothing from now on
  while (api.is_untouched() && clients.size() < streams_of_one) {
    clients.push_back(with.connect());
    clients.back().send(request);
    auto const count = static_cast<double>(clients.size());
    expect_eventually(
        [&] {
          return with.metric("tidegate_upstream_in_flight{upstream=\"api\",server=\"" + api.url() +
                             "\"}") == count;
        },
        "it is under way");
  }
  EXPECT_LT(clients.size(), streams_of_one);
  raw_server second(api.accept());
  second.answer_whole(second.read_request().stream, "two");
  EXPECT_EQ(clients.back().read_response().body, "two");
}

TEST(gateway_servers_http2, have_requests_wait_for_a_stream) {
  origin api;
  gateway const with(upstream("\"" + api.url() + "\"", ", max-connections: 1, max-wait: 30s"));
  auto first = with.connect();
  first.send(get_request);
  std::string const one_stream("\0\3\0\0\0\1", 6);
  raw_server server(api.accept(), one_stream);
  auto const one = server.read_request();
  auto second = with.connect();
  second.send(get_request);
  server.answer_whole(one.stream, "one");
  EXPECT_EQ(first.read_response().body, "one");
  auto const two = server.read_request();
  server.answer_whole(two.stream, "two");
  EXPECT_EQ(second.read_response().body, "two");
}

}  // namespace
}  // namespace tidegate::e2e
