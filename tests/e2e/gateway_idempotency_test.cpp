// SPDX-License-Identifier: Apache-2.0
//
// Requests with an Idempotency-Key through the gateway. Numbers such as N5 are those of the failure
// cases that the design names.
#include "counting_api.hpp"
#include "keyed.hpp"
#include "process.hpp"
#include "raw_http2.hpp"

#include <tidegate/idempotency/decide.hpp>
#include <tidegate/store_sqlite/idempotency_store.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <thread>
#include <vector>

namespace tidegate::e2e {
namespace {

using testing::HasSubstr;
using testing::Not;

/// A request that the API has and has not answered.
struct request_under_way {
  connection client;
  connection server;
  message seen;  // by the API
};

auto begin(gateway const& with, origin& api, std::string const& request) -> request_under_way {
  auto client = with.connect();
  client.send(request);
  auto server = api.accept();
  auto seen = server.read_request();
  return {std::move(client), std::move(server), std::move(seen)};
}

/// Until the gateway has noticed that all its clients have come and left.
void await_no_connections(gateway const& with) {
  expect_eventually(
      [&] {
        return with.metric("tidegate_connections_accepted_total") > 0 &&
               with.metric("tidegate_connections_open") == 0;
      },
      "the gateway sees its clients leave");
}

class gateway_idempotency : public testing::Test {
 protected:
  data_folder data_;
};

TEST_F(gateway_idempotency, replays_the_first_answer_byte_for_byte) {
  origin api;
  gateway const with(keyed_config(api.url(), data_));
  auto [first_client, server, seen] = begin(with, api, post("\"k1\""));
  EXPECT_EQ(seen.body, "{\"a\":1}");
  EXPECT_EQ(seen.field("Idempotency-Key"), "\"k1\"");
  EXPECT_EQ(seen.field("Idempotency-Attempt"), "1");
  std::string body("\0\xff binary\r\n", 11);
  server.send(response("201 Created", body,
                       "Location: /orders/1\r\nSet-Cookie: s=1\r\nX-One: 1\r\nX-One: 2\r\n"));
  auto const first = first_client.read_response();
  EXPECT_EQ(first.status(), 201);
  EXPECT_EQ(first.body, body);
  EXPECT_EQ(first.field("Set-Cookie"), "s=1");
  EXPECT_EQ(first.count("Idempotent-Replayed"), 0U);

  auto const again = with.ask(post("\"k1\""));
  EXPECT_EQ(again.status(), 201);
  EXPECT_EQ(again.body, body);
  EXPECT_EQ(again.field("Location"), "/orders/1");
  EXPECT_EQ(again.field("X-One"), "1, 2");
  EXPECT_EQ(again.field("Date"), first.field("Date"));
  EXPECT_EQ(again.count("Set-Cookie"), 0U);
  EXPECT_EQ(again.field("Idempotent-Replayed"), "true");
  EXPECT_TRUE(server.is_silent());
  EXPECT_EQ(with.metric("tidegate_idempotency_total{route=\"/**\",outcome=\"first\"}"), 1);
  EXPECT_EQ(with.metric("tidegate_idempotency_total{route=\"/**\",outcome=\"replayed\"}"), 1);
}

TEST_F(gateway_idempotency, replays_after_a_restart) {
  serving_origin const api(response("200 OK", "once"));
  {
    gateway const with(keyed_config(api.url(), data_));
    EXPECT_EQ(with.ask(post("\"k\"")).body, "once");
  }
  gateway const with(keyed_config(api.url(), data_));
  EXPECT_EQ(with.ask(post("\"k\"")).field("Idempotent-Replayed"), "true");
  EXPECT_EQ(api.requests(), 1U);
}

TEST_F(gateway_idempotency, takes_other_keys_and_other_scopes_for_other_requests) {
  serving_origin const api(response("200 OK", "done"));
  gateway const with(keyed_config(api.url(), data_));
  EXPECT_EQ(with.ask(post("\"a\"")).status(), 200);
  EXPECT_EQ(with.ask(post("\"b\"")).count("Idempotent-Replayed"), 0U);
  auto const other = with.ask(
      "POST /a HTTP/1.1\r\nHost: a.example\r\nAuthorization: Bearer y\r\n"
      "Idempotency-Key: \"a\"\r\nContent-Length: 7\r\n\r\n{\"a\":1}");
  EXPECT_EQ(other.count("Idempotent-Replayed"), 0U);
  EXPECT_EQ(api.requests(), 3U);
}

TEST_F(gateway_idempotency, answers_400_to_a_missing_or_malformed_key) {
  origin api;
  gateway const with(keyed_config(api.url(), data_));
  expect_code(with.ask(post("")), 400, "key-missing");
  for (auto const* const key : {"abc", "\"\"", "\"a", "\"a\", \"b\"", "42"}) {
    expect_code(with.ask(post(key)), 400, "key-malformed");
  }
  expect_code(with.ask(post("\"a\"", "", "/a", "Idempotency-Key: \"b\"\r\n")), 400,
              "key-malformed");
  EXPECT_TRUE(api.is_untouched());
}

TEST_F(gateway_idempotency, lets_a_request_without_a_key_pass_where_it_is_optional) {
  serving_origin const api(response("200 OK", "done"));
  auto config = keyed_config(api.url(), data_);
  config.replace(config.find("required"), 8, "optional");
  gateway const with(config);
  EXPECT_EQ(with.ask(post("")).status(), 200);
  EXPECT_EQ(with.ask(post("")).count("Idempotent-Replayed"), 0U);
  EXPECT_EQ(with.ask("GET /a HTTP/1.1\r\nHost: a.example\r\nIdempotency-Key: bad\r\n\r\n").status(),
            200);
}

TEST_F(gateway_idempotency, answers_422_to_another_request_with_the_same_key) {
  serving_origin const api(response("200 OK", "done"));
  gateway const with(keyed_config(api.url(), data_));
  EXPECT_EQ(with.ask(post("\"k\"")).status(), 200);
  auto const body = with.ask(post("\"k\"", "{\"a\":2}"));
  expect_code(body, 422, "key-reused");
  EXPECT_THAT(body.body, HasSubstr("\"differs\":[\"body\"]"));
  EXPECT_THAT(with.ask(post("\"k\"", "{\"a\":1}", "/b?c")).body,
              HasSubstr("\"differs\":[\"path\",\"query\"]"));
  EXPECT_EQ(api.requests(), 1U);
}

TEST_F(gateway_idempotency, answers_409_while_the_first_runs_and_422_before_that) {
  origin api;
  gateway const with(keyed_config(api.url(), data_));
  auto [first, server, seen] = begin(with, api, post("\"k\""));
  auto const conflict = with.ask(post("\"k\""));
  expect_code(conflict, 409, "in-flight");
  EXPECT_NE(conflict.field("Retry-After"), "(none)");
  expect_code(with.ask(post("\"k\"", "other")), 422, "key-reused");
  server.send(response("200 OK", "done"));
  EXPECT_EQ(first.read_response().body, "done");
  EXPECT_EQ(with.ask(post("\"k\"")).body, "done");
}

TEST_F(gateway_idempotency, lets_so_many_duplicates_wait_for_the_first_answer) {  // N13
  origin api;
  gateway const with(keyed_config(api.url(), data_, "in-flight: wait, waiters-max: 8"), 2);
  auto [first, server, seen] = begin(with, api, post("\"k\""));
  std::vector<connection> others;
  for (int i = 0; i < 10; ++i) {  // one more than both threads could let in at once
    others.push_back(with.connect());
    others.back().send(post("\"k\""));
  }
  // When one is refused, eight wait.
  expect_eventually(
      [&] { return std::ranges::any_of(others, [](auto& each) { return !each.is_silent(); }); },
      "one is too many");
  server.send(response("200 OK", "done"));
  EXPECT_EQ(first.read_response().body, "done");
  int refused = 0;
  for (auto& each : others) {
    auto const answer = each.read_response();
    if (answer.status() == 409) {
      ++refused;
    } else {
      EXPECT_EQ(answer.body, "done");
      EXPECT_EQ(answer.field("Idempotent-Replayed"), "true");
    }
  }
  EXPECT_THAT(refused, testing::AllOf(testing::Ge(1), testing::Le(2)));
}

TEST_F(gateway_idempotency, waits_as_long_as_the_client_prefers) {
  origin api;
  gateway const with(keyed_config(api.url(), data_));
  auto [first, server, seen] = begin(with, api, post("\"k\""));
  auto second = with.connect();
  second.send(post("\"k\"", "{\"a\":1}", "/a", "Prefer: respond-async, wait=10\r\n"));
  EXPECT_TRUE(second.is_silent());
  expect_code(with.ask(post("\"k\"", "{\"a\":1}", "/a", "Prefer: wait=0\r\n")), 409, "in-flight");
  server.send(response("200 OK", "done"));
  EXPECT_EQ(second.read_response().field("Idempotent-Replayed"), "true");
}

TEST_F(gateway_idempotency, continues_when_the_client_has_left) {  // N2
  origin api;
  gateway const with(keyed_config(api.url(), data_));
  auto [first, server, seen] = begin(with, api, post("\"k\""));
  first.abort();
  await_no_connections(with);
  server.send(response("200 OK", "done"));
  expect_eventually([&] { return with.ask(post("\"k\"")).status() == 200; },
                    "the answer is stored");
}

TEST_F(gateway_idempotency, forwards_nothing_of_a_body_that_breaks_off) {  // N1
  origin api;
  gateway const with(keyed_config(api.url(), data_));
  auto client = with.connect();
  client.send(
      "POST /a HTTP/1.1\r\nHost: a\r\nIdempotency-Key: \"k\"\r\nContent-Length: 10\r\n\r\nhel");
  client.close();
  await_no_connections(with);
  EXPECT_TRUE(api.is_untouched());
}

TEST_F(gateway_idempotency, records_a_late_answer_after_a_504) {  // N5
  origin api;
  gateway const with(keyed_config(api.url(), data_));
  auto [first, server, seen] = begin(with, api, post("\"k\""));
  auto const late = first.read_response();
  EXPECT_EQ(late.status(), 504);
  EXPECT_THAT(late.body, HasSubstr("\"code\":\"outcome-unknown\""));
  expect_code(with.ask(post("\"k\"")), 409, "in-flight");
  server.send(response("200 OK", "late"));
  expect_eventually([&] { return with.ask(post("\"k\"")).body == "late"; }, "the answer is stored");
}

TEST_F(gateway_idempotency, does_not_know_the_outcome_of_an_answer_that_is_cut) {  // N6
  origin api;
  gateway const with(keyed_config(api.url(), data_));
  auto [first, server, seen] = begin(with, api, post("\"k\""));
  server.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhel");
  server.close();
  auto const answer = first.read_response();
  EXPECT_EQ(answer.status(), 502);
  EXPECT_THAT(answer.body, HasSubstr("outcome-unknown"));
  expect_code(with.ask(post("\"k\"")), 409, "outcome-unknown");
}

TEST_F(gateway_idempotency, may_run_again_when_no_connection_came_about) {  // N3
  auto const down = origin::refusing();
  gateway const with(keyed_config(down.url(), data_));
  EXPECT_EQ(with.ask(post("\"k\"")).status(), 502);
  EXPECT_EQ(with.ask(post("\"k\"")).status(), 502);
}

TEST_F(gateway_idempotency, gives_the_key_back_after_a_refusal_of_the_upstream) {  // S21
  origin api;
  gateway const with(keyed_config(api.url(), data_));
  for (auto const* const attempt : {"401 Unauthorized", "429 Too Many Requests", "201 Created"}) {
    auto client = with.connect();
    client.send(post("\"k\""));
    auto server = api.accept();
    EXPECT_EQ(server.read_request().field("Idempotency-Attempt"), "1");
    server.send(response(attempt, "x", "Connection: close\r\n"));
    EXPECT_EQ(client.read_response().status(), std::stoi(attempt));
  }
  EXPECT_EQ(with.ask(post("\"k\"")).status(), 201);
}

TEST_F(gateway_idempotency, stores_errors_that_are_final) {
  serving_origin const api(response("422 Unprocessable Content", "no"));
  gateway const with(keyed_config(api.url(), data_));
  EXPECT_EQ(with.ask(post("\"k\"")).status(), 422);
  auto const again = with.ask(post("\"k\""));
  EXPECT_EQ(again.status(), 422);
  EXPECT_EQ(again.field("Idempotent-Replayed"), "true");
}

TEST_F(gateway_idempotency, delivers_what_is_too_large_and_never_runs_again) {  // S16
  auto const large = std::string(300'000, 'x');
  serving_origin const api(response("200 OK", large));
  gateway const with(keyed_config(api.url(), data_, "max-response: 64KiB"));
  auto const first = with.ask(post("\"k\""));
  EXPECT_EQ(first.body, large);
  expect_code(with.ask(post("\"k\"")), 409, "response-not-replayable");
  EXPECT_EQ(api.requests(), 1U);
}

TEST_F(gateway_idempotency, answers_413_to_content_that_is_too_large) {  // S11
  origin api;
  gateway const with(keyed_config(api.url(), data_, "max-body: 1KiB"));
  EXPECT_EQ(with.ask(post("\"k\"", std::string(1025, 'x'))).status(), 413);
  auto chunked = with.connect();
  chunked.send(
      "POST /a HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer x\r\nIdempotency-Key: "
      "\"k\"\r\nTransfer-Encoding: chunked\r\n\r\n"
      "401\r\n" +
      std::string(1025, 'x') + "\r\n");
  EXPECT_EQ(chunked.read_response().status(), 413);
  EXPECT_TRUE(api.is_untouched());
}

TEST_F(gateway_idempotency, keeps_large_content_in_a_file_and_sends_it_whole) {
  auto const large = std::string(700'000, 'y');
  origin api;
  gateway const with(keyed_config(api.url(), data_));
  auto client = with.connect();
  std::thread sends([&] { client.send(post("\"k\"", large)); });
  auto server = api.accept();
  EXPECT_EQ(server.read_request().body, large);
  sends.join();
  server.send(response("200 OK", "done"));
  EXPECT_EQ(client.read_response().body, "done");
}

TEST_F(gateway_idempotency, takes_chunks_and_says_100_itself) {  // S12, S14
  origin api;
  gateway const with(keyed_config(api.url(), data_));
  auto client = with.connect();
  client.send(
      "POST /a HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer x\r\nIdempotency-Key: \"k\"\r\nExpect: "
      "100-continue\r\n"
      "Transfer-Encoding: chunked\r\n\r\n");
  EXPECT_EQ(client.read_response().status(), 100);
  client.send("5\r\nhello\r\n1\r\n!\r\n0\r\n\r\n");
  auto server = api.accept();
  auto const seen = server.read_request();
  EXPECT_EQ(seen.body, "hello!");
  EXPECT_EQ(seen.count("Expect"), 0U);
  server.send(response("200 OK", "done"));
  EXPECT_EQ(client.read_response().body, "done");
  // Other chunks, the same content.
  EXPECT_EQ(
      with.ask(
              "POST /a HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer x\r\nIdempotency-Key: \"k\"\r\n"
              "Content-Length: 6\r\n\r\nhello!")
          .field("Idempotent-Replayed"),
      "true");
}

TEST_F(gateway_idempotency, passes_103_on_and_does_not_store_it) {  // S15
  origin api;
  gateway const with(keyed_config(api.url(), data_));
  auto [client, server, seen] = begin(with, api, post("\"k\""));
  server.send("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + response("200 OK", "done"));
  EXPECT_EQ(client.read_response().status(), 103);
  EXPECT_EQ(client.read_response().status(), 200);
  EXPECT_EQ(with.ask(post("\"k\"")).status(), 200);
}

TEST_F(gateway_idempotency, charges_a_replay_nothing_and_claims_nothing_when_refused) {  // S7
  serving_origin const api(response("200 OK", "done"));
  gateway const with(keyed_config(api.url(), data_, "") +
                     "    limits: [p]\npolicies: {p: {quota: 1, window: 1h, algorithm: fixed}}\n");
  auto const first = with.ask(post("\"k\""));
  EXPECT_THAT(first.field("RateLimit"), HasSubstr("r=0"));
  auto const again = with.ask(post("\"k\""));
  EXPECT_EQ(again.status(), 200);
  EXPECT_THAT(again.field("RateLimit"), HasSubstr("r=0"));
  EXPECT_EQ(with.ask(post("\"other\"")).status(), 429);
  EXPECT_EQ(api.requests(), 1U);
}

/// Two clients send the same request at the same moment, ten thousand times.
void expect_one_effect_of_each_pair(std::string const& store, data_folder const& data) {
  constexpr std::size_t pairs_at_once = 32;
  constexpr std::size_t rounds = 313;
  counting_api const api;
  gateway const with(keyed_config(api.url(), data, "", "stores: {idempotency: " + store + "}\n"),
                     2);
  std::vector<connection> clients;
  for (std::size_t i = 0; i < 2 * pairs_at_once; ++i) {
    clients.push_back(with.connect());
  }
  for (std::size_t round = 0; round < rounds; ++round) {
    auto const key_of = [&](std::size_t client) {
      return "\"" + std::to_string(round) + "-" + std::to_string(client % pairs_at_once) + "\"";
    };
    // Every other one waits for the first.
    auto const* const lines = round % 2 == 0 ? "" : "Prefer: wait=10\r\n";
    for (std::size_t i = 0; i < clients.size(); ++i) {
      clients[i].send(post(key_of(i), "content", "/final", lines));
    }
    std::map<std::string, std::string> answers;
    for (std::size_t i = 0; i < clients.size(); ++i) {
      auto const answer = clients[i].read_response();
      if (answer.status() == 201) {
        ASSERT_EQ(answers.emplace(key_of(i), answer.body).first->second, answer.body);
      } else {
        ASSERT_EQ(round % 2, 0U);
        expect_code(answer, 409, "in-flight");
      }
    }
    ASSERT_EQ(answers.size(), pairs_at_once);
  }
  std::map<std::size_t, std::size_t> const once{{1, rounds * pairs_at_once}};
  EXPECT_EQ(api.counts(), once);
}

TEST_F(gateway_idempotency, runs_one_of_two_at_once_with_a_store_in_memory) {  // N8
  expect_one_effect_of_each_pair("memory", data_);
}

TEST_F(gateway_idempotency, runs_one_of_two_at_once_with_a_store_on_disk) {  // N8
  expect_one_effect_of_each_pair("\"sqlite:" + data_.path() + "/pairs.db\"", data_);
}

TEST_F(gateway_idempotency, runs_one_of_two_at_once_over_two_versions_of_http) {  // N8
  constexpr std::uint32_t pairs = 1000;
  counting_api const api;
  gateway const with(keyed_config(api.url(), data_), 2);
  auto http1 = with.connect();
  raw_client http2(with.connect());
  http2.send(8, 0, 0, std::string_view("\x7f\0\0\0", 4));  // room for the content of all responses
  for (std::uint32_t i = 0; i < pairs; ++i) {
    auto const key = "\"" + std::to_string(i) + "\"";
    // :method, :scheme and the names of :path, :authority and authorization are those of HPACK's
    // own table.
    std::string fields(
        "\x83\x86\x04\x06/final\x41\x09"
        "a.example\x0f\x08\x08"
        "Bearer x");
    fields.append(1, '\0')
        .append(
            "\x0f"
            "idempotency-key")
        .append(1, static_cast<char>(key.size()));
    auto const stream = 2 * i + 1;
    http2.send(frame_type::headers, 4, stream, fields.append(key));
    http2.send(frame_type::data, 1, stream, "content");
    http1.send(post(key, "content", "/final"));
    auto const answer = http1.read_response();
    ASSERT_TRUE(answer.status() == 201 || code_of(answer) == "in-flight") << answer.body;
    ASSERT_EQ(http2.read(frame_type::headers).stream, stream);
  }
  std::map<std::size_t, std::size_t> const once{{1, pairs}};
  EXPECT_EQ(api.counts(), once);
}

TEST_F(gateway_idempotency, does_not_know_what_it_had_sent_when_it_was_killed) {  // C3
  origin api;
  {
    gateway with(keyed_config(api.url(), data_));
    auto [client, server, seen] = begin(with, api, post("\"k\""));
    with.signal(SIGKILL);
    (void)with.wait();
  }
  gateway const with(keyed_config(api.url(), data_));
  expect_code(with.ask(post("\"k\"")), 409, "outcome-unknown");
}

TEST_F(gateway_idempotency, replays_trailers_without_those_of_quotas) {
  origin api;
  gateway const with(keyed_config(api.url(), data_));
  auto [client, server, seen] = begin(with, api, post("\"k\""));
  server.send(
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: RateLimit, X-Sum\r\n\r\n"
      "5\r\nhello\r\n0\r\nRateLimit: \"a\";r=1;t=2\r\nX-Sum: 1\r\n\r\n");
  auto const first = client.read_response();
  EXPECT_EQ(first.body, "hello");
  EXPECT_EQ(first.trailers, "X-Sum: 1\r\n");
  EXPECT_EQ(first.count("Trailer"), 0U);
  auto const again = with.ask(post("\"k\""));
  EXPECT_EQ(again.field("Idempotent-Replayed"), "true");
  EXPECT_EQ(again.body, "hello");
  EXPECT_EQ(again.trailers, "X-Sum: 1\r\n");
  EXPECT_EQ(again.count("Trailer") + again.count("RateLimit"), 0U);
}

TEST_F(gateway_idempotency, is_described_for_people_and_programs) {
  origin api;
  auto config = keyed_config(api.url(), data_, "ttl: 1h");
  config.replace(config.find("/**"), 3, "/a");
  gateway const with(config);
  EXPECT_THAT(
      with.get("/.well-known/tidegate").body,
      HasSubstr(R"("idempotency":{"routes":[{"route":"/a","required":true,"methods":["POST",)"
                R"("PATCH"],"scope":["header:authorization"],"per-host":true,"key-format":"any",)"
                R"("key-length-max":255,"replayed-for":3600,"remembered-for":608400,)"));
  auto const page = with.get("/.well-known/tidegate", "Accept: text/html\r\n").body;
  EXPECT_THAT(page, HasSubstr("<dt id=\"outcome-unknown\">"));
  EXPECT_THAT(page, HasSubstr("for 3600 seconds"));
}

TEST_F(gateway_idempotency, is_described_with_what_makes_a_request_the_same_and_who_owns_a_key) {
  origin api;
  gateway const usual(keyed_config(api.url(), data_, "anonymous: refuse"));
  EXPECT_THAT(usual.get("/.well-known/tidegate").body,
              HasSubstr(R"("anonymous":"refuse","fingerprint":"body","in-flight":"conflict",)"
                        R"("replay-cost":0})"));
  auto const page = usual.get("/.well-known/tidegate", "Accept: text/html\r\n").body;
  EXPECT_THAT(page, HasSubstr("The same key for another host or with another value of "
                              "header:authorization is another key. A request without "
                              "header:authorization cannot have a key: it is refused."));
  EXPECT_THAT(page, HasSubstr("its method, path and query and every byte of its body"));
  EXPECT_THAT(page, HasSubstr("another is refused with 409"));
}

TEST_F(gateway_idempotency, is_described_with_the_values_that_count_and_that_duplicates_wait) {
  origin api;
  gateway const with(
      keyed_config(api.url(), data_,
                   "anonymous: allow, scope: [header:x-user, client-ip, cookie:id], fingerprint: "
                   "{json: [/order/id, "
                   "/sum]}, in-flight: wait, key-format: uuidv7, key-age-max: 1h, replay-cost: 2"));
  EXPECT_THAT(with.get("/.well-known/tidegate").body,
              HasSubstr(R"("anonymous":"allow","fingerprint":{"json":["/order/id","/sum"]},)"
                        R"("in-flight":"wait","key-age-max":3600,"replay-cost":2})"));
  auto const page = with.get("/.well-known/tidegate", "Accept: text/html\r\n").body;
  EXPECT_THAT(page, HasSubstr("<code>/order/id</code>, <code>/sum</code>"));
  EXPECT_THAT(page, HasSubstr("another waits for its answer."));
  EXPECT_THAT(page,
              HasSubstr("without header:x-user and cookie:id owns its key together with all"));
}

TEST_F(gateway_idempotency, refuses_a_second_process_on_its_file) {
  serving_origin const api(response("200 OK", "done"));
  gateway const with(keyed_config(api.url(), data_));
  auto const file = std::filesystem::path(data_.path()) / "second.yaml";
  std::ofstream(file) << "listen: \"127.0.0.1:0\"\n" + keyed_config(api.url(), data_);
  auto const second = run({TIDEGATE_BINARY, "serve", "-c", file.string()});
  EXPECT_EQ(second.status, 1);
  EXPECT_THAT(second.err, HasSubstr("idempotency.db"));
}

TEST_F(gateway_idempotency, refuses_to_start_when_its_store_lost_its_secret_or_its_keys) {
  serving_origin const api(response("200 OK", "done"));
  {
    gateway const with(keyed_config(api.url(), data_));
    EXPECT_EQ(with.ask(post("\"k\"")).status(), 200);
  }
  namespace fs = std::filesystem;
  fs::path const folder = data_.path();
  auto const file = folder / "again.yaml";
  std::ofstream(file) << "listen: \"127.0.0.1:0\"\n" + keyed_config(api.url(), data_);
  auto const error_of_start = [&] {
    auto const started = run({TIDEGATE_BINARY, "serve", "-c", file.string()});
    EXPECT_EQ(started.status, 1);
    return started.err;
  };

  fs::rename(folder / "secrets.key", folder / "kept.key");
  EXPECT_THAT(error_of_start(), HasSubstr("secrets.key is not there, and "));
  EXPECT_FALSE(fs::exists(folder / "secrets.key")) << "none was made";
  std::ofstream(folder / "secrets.key") << std::string(32, 'x');
  fs::permissions(folder / "secrets.key", fs::perms::owner_read);
  EXPECT_THAT(error_of_start(), HasSubstr("was made with another secret"));
  fs::rename(folder / "kept.key", folder / "secrets.key");

  fs::rename(folder / "idempotency.db", folder / "kept.db");
  EXPECT_THAT(error_of_start(), HasSubstr("idempotency.db: the file is missing"));
  std::ofstream(folder / "idempotency.db") << "";
  EXPECT_THAT(error_of_start(), HasSubstr("idempotency.db: changes are missing"));
  fs::rename(folder / "kept.db", folder / "idempotency.db");

  gateway const with(keyed_config(api.url(), data_));
  EXPECT_EQ(with.ask(post("\"k\"")).field("Idempotent-Replayed"), "true");
  EXPECT_EQ(api.requests(), 1U);
}

TEST_F(gateway_idempotency, sends_nothing_when_its_file_was_deleted_while_it_runs) {
  serving_origin const api(response("200 OK", "done"));
  gateway const with(keyed_config(api.url(), data_));
  EXPECT_EQ(with.ask(post("\"before\"")).status(), 200);
  std::filesystem::remove(data_.path() + "/idempotency.db");
  expect_code(with.ask(post("\"k\"")), 503, "store-unavailable");
  EXPECT_EQ(with.ask(post("\"before\"")).field("Idempotent-Replayed"), "true");
  EXPECT_EQ(api.requests(), 1U);
}

TEST_F(gateway_idempotency, survives_clients_that_reset_before_100_continue) {
  origin api;
  gateway const with(keyed_config(api.url(), data_));
  for (int i = 0; i < 200; ++i) {
    auto client = with.connect();
    client.send(
        "POST /a HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer x\r\nIdempotency-Key: "
        "\"k\"\r\nExpect: 100-continue\r\n"
        "Content-Length: 5\r\n\r\n");
    client.abort();
  }
  EXPECT_EQ(with.admin("/healthz").status(), 200);
  EXPECT_TRUE(api.is_untouched());
}

TEST_F(gateway_idempotency, survives_clients_that_reset_while_a_large_answer_begins) {
  serving_origin const api(response("200 OK", std::string(300'000, 'x')));
  gateway const with(keyed_config(api.url(), data_, "max-response: 1KiB"));
  for (int i = 0; i < 100; ++i) {
    auto client = with.connect();
    client.send(post("\"k" + std::to_string(i) + "\""));
    if (i % 2 == 0) {
      (void)client.read(1);
    }
    client.abort();
  }
  expect_eventually([&] { return api.requests() >= 50; }, "requests run without their clients");
  EXPECT_EQ(with.admin("/healthz").status(), 200);
}

TEST_F(gateway_idempotency, passes_large_refusals_on_without_keeping_them) {
  auto const large = std::string(300'000, 'x');
  serving_origin const api(response("403 Forbidden", large));
  gateway const with(keyed_config(api.url(), data_, "max-response: 1KiB"));
  EXPECT_EQ(with.ask(post("\"k\"")).body, large);
  EXPECT_EQ(with.ask(post("\"k\"")).status(), 403);
  EXPECT_EQ(api.requests(), 2U);
}

TEST_F(gateway_idempotency, numbers_attempts_itself) {
  origin api;
  gateway const with(keyed_config(api.url(), data_));
  auto [client, server, seen] =
      begin(with, api,
            post("\"k\"", "{\"a\":1}", "/a",
                 "Idempotency-Attempt: 7\r\nidempotency-attempt: 8\r\nX-Last: 1\r\n"));
  EXPECT_EQ(seen.field("Idempotency-Attempt"), "1");
  EXPECT_EQ(seen.field("X-Last"), "1");
  server.send(response("200 OK", "done"));
  EXPECT_EQ(client.read_response().status(), 200);
}

TEST_F(gateway_idempotency, bounds_the_keys_of_each_scope) {  // S24
  serving_origin const api(response("200 OK", "done"));
  gateway const with(keyed_config(api.url(), data_, "keys-max: 2") +
                     "    limits: [p]\npolicies: {p: {quota: 9, window: 1h, algorithm: fixed}}\n");
  EXPECT_EQ(with.ask(post("\"a\"")).status(), 200);
  EXPECT_EQ(with.ask(post("\"b\"")).status(), 200);
  auto const refused = with.ask(post("\"c\""));
  expect_code(refused, 429, "too-many-keys");
  EXPECT_NE(refused.field("Retry-After"), "(none)");
  EXPECT_THAT(refused.field("RateLimit"), HasSubstr("r=7")) << "nothing is charged";
  EXPECT_EQ(with.ask(post("\"a\"")).field("Idempotent-Replayed"), "true");
  EXPECT_EQ(with.ask("POST /a HTTP/1.1\r\nHost: a.example\r\nAuthorization: Bearer y\r\n"
                     "Idempotency-Key: \"c\"\r\n\r\n")
                .status(),
            200);
  EXPECT_EQ(api.requests(), 3U);
  EXPECT_EQ(with.metric("tidegate_idempotency_total{route=\"/**\",outcome=\"too-many-keys\"}"), 1);
}

TEST_F(gateway_idempotency, bounds_the_waiting_requests_of_each_scope) {  // N13
  origin api;
  gateway const with(keyed_config(api.url(), data_, "in-flight: wait, waiters-max: 2000"));
  std::vector<connection> servers;
  std::vector<connection> clients;
  for (auto const* const key : {"\"a\"", "\"b\""}) {
    clients.push_back(with.connect());
    clients.back().send(post(key));
    servers.push_back(api.accept());
    (void)servers.back().read_request();
  }
  for (int i = 0; i < 1024; ++i) {
    clients.push_back(with.connect());
    clients.back().send(post("\"a\"", "{\"a\":1}", "/a", "Prefer: wait=100\r\n"));
  }
  expect_eventually([&] { return with.metric("tidegate_idempotency_waiting") == 1024; },
                    "there is no place left");
  expect_code(with.ask(post("\"b\"")), 409, "in-flight");
  for (auto& server : servers) {
    server.send(response("200 OK", "done"));
  }
  for (auto& client : clients) {
    EXPECT_EQ(client.read_response().body, "done");
  }
}

TEST_F(gateway_idempotency, checks_the_content_against_its_digest) {  // S12
  serving_origin const api(response("200 OK", "done"));
  gateway const with(keyed_config(api.url(), data_));
  // Of `{"hello": "world"}` and a line feed, as RFC 9530 has it.
  constexpr std::string_view digest = "RK/0qy18MlBSVnWgjwz6lZEWjP/lF5HF9bvEF8FabDg=";
  auto const lines =
      "Content-Digest: sha-512=:AA==:\r\nContent-Digest: sha-256=:" + std::string(digest) + ":\r\n";
  EXPECT_EQ(with.ask(post("\"a\"", "{\"hello\": \"world\"}\n", "/a", lines)).status(), 200);
  expect_code(with.ask(post("\"b\"", "{\"hello\": \"World\"}\n", "/a", lines)), 400,
              "digest-mismatch");
  expect_code(with.ask(post("\"b\"", "", "/a", lines)), 400, "digest-mismatch");
  // What says nothing by an algorithm that we know is not looked at.
  for (auto const* const other : {"sha-512=:AA==:", "sha-256=x", "sha-256=:AA==:", "sha-256=("}) {
    EXPECT_EQ(with.ask(post("\"" + std::to_string(api.requests()) + "\"", "x", "/a",
                            "Content-Digest: " + std::string(other) + "\r\n"))
                  .status(),
              200);
  }
  EXPECT_EQ(api.requests(), 5U);
}

TEST_F(gateway_idempotency, tells_where_to_look_for_what_cannot_be_replayed) {  // S16
  serving_origin const api(response("201 Created", std::string(2000, 'x'),
                                    "Location: /orders/1\r\nETag: \"v1\"\r\nX-Other: 1\r\n"));
  gateway const with(keyed_config(api.url(), data_, "max-response: 1KiB"));
  EXPECT_EQ(with.ask(post("\"k\"")).status(), 201);
  auto const again = with.ask(post("\"k\""));
  expect_code(again, 409, "response-not-replayable");
  EXPECT_EQ(again.field("Location"), "/orders/1");
  EXPECT_EQ(again.field("ETag"), "\"v1\"");
  EXPECT_EQ(again.count("X-Other"), 0U);
  EXPECT_EQ(again.count("Idempotent-Replayed"), 0U);
}

TEST_F(gateway_idempotency,
       remembers_a_key_after_its_answer_has_expired_and_then_forgets_it) {  // S3
  serving_origin const api(response("201 Created", "done"));
  gateway const with(keyed_config(api.url(), data_, "ttl: 1s, tombstone: 1s"));
  EXPECT_EQ(with.ask(post("\"k\"")).status(), 201);
  EXPECT_EQ(with.ask(post("\"k\"")).field("Idempotent-Replayed"), "true");
  message expired;
  expect_eventually(
      [&] {
        expired = with.ask(post("\"k\""));
        return expired.status() == 409;
      },
      "the answer expires");
  expect_code(expired, 409, "result-expired");
  EXPECT_THAT(expired.body, HasSubstr("\"first-status\":201"));
  EXPECT_EQ(api.requests(), 1U);
  expect_eventually([&] { return with.ask(post("\"k\"")).status() == 201; }, "the key is new");
  EXPECT_EQ(api.requests(), 2U);
}

TEST_F(gateway_idempotency, judges_a_record_by_the_rules_it_was_made_by) {  // S26
  serving_origin const api(response("200 OK", "done"));
  gateway with(keyed_config(api.url(), data_));
  EXPECT_EQ(with.ask(post("\"bytes\"")).status(), 200);
  EXPECT_EQ(
      with.reload(keyed_config(api.url(), data_, "fingerprint: json, ttl: 1s, tombstone: 0s")),
      "the configuration was applied");
  EXPECT_EQ(with.ask(post("\"json\"")).status(), 200);
  auto const spaced = std::string("{ \"a\": 1 }");
  EXPECT_EQ(with.ask(post("\"json\"", spaced)).field("Idempotent-Replayed"), "true");
  expect_code(with.ask(post("\"bytes\"", spaced)), 422, "key-reused");
  EXPECT_EQ(with.ask(post("\"bytes\"")).field("Idempotent-Replayed"), "true");
  expect_eventually([&] { return with.ask(post("\"json\"")).count("Idempotent-Replayed") == 0; },
                    "what was made by the new rules is forgotten by them");
  EXPECT_EQ(with.ask(post("\"bytes\"")).field("Idempotent-Replayed"), "true");
}

TEST_F(gateway_idempotency, replays_the_same_over_http_1_1_and_http_2) {  // S20
  auto const body = std::string("\0\r\n\xff", 4);
  serving_origin const api(response("201 Created", body, "X-One: 1\r\nX-Two: b\r\nX-One: 3\r\n"));
  gateway const with(keyed_config(api.url(), data_));
  auto const over_http2 = [&](std::string const& key) {
    return run({"/usr/bin/env", "curl", "-sS", "-i", "--max-time", "10", "--http2-prior-knowledge",
                "-H", "Idempotency-Key: " + key, "-H", "Authorization: Bearer x", "--data-binary",
                "{\"a\":1}", "-H", "Content-Type:", "-H", "Host: a.example",
                "http://" + with.authority() + "/a"})
        .out;
  };
  EXPECT_EQ(with.ask(post("\"1\"")).status(), 201);
  auto const first = over_http2("\"2\"");
  EXPECT_THAT(first, Not(HasSubstr("idempotent-replayed")));
  for (auto const* const key : {"\"1\"", "\"2\""}) {
    auto const again = over_http2(key);
    EXPECT_THAT(again, testing::StartsWith("HTTP/2 201"));
    EXPECT_THAT(again, HasSubstr("\r\nx-one: 1\r\nx-two: b\r\nx-one: 3\r\n"));
    EXPECT_THAT(again, HasSubstr("\r\nidempotent-replayed: true\r\n"));
    EXPECT_TRUE(again.ends_with("\r\n\r\n" + body));
    auto const here = with.ask(post(key));
    EXPECT_EQ(here.body, body);
    EXPECT_EQ(here.field("X-One"), "1, 3");
    EXPECT_THAT(again, HasSubstr("\r\ndate: " + here.field("Date") + "\r\n"));
  }
  EXPECT_EQ(api.requests(), 2U);
}

TEST_F(gateway_idempotency, says_when_the_clock_was_set_back) {  // N12
  serving_origin const api(response("200 OK", "done"));
  { gateway const makes_the_secret(keyed_config(api.url(), data_)); }
  {
    auto const later =
        std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now()) +
        std::chrono::hours(2);
    auto store =
        store_sqlite::idempotency_store::open({.file = data_.path() + "/idempotency.db"}, later);
    ASSERT_TRUE(store);
    idempotency::request_facts const request{.token = 1};
    (*store)->apply(*idempotency::decide(nullptr, request, {}, later).claim,
                    [](store::apply_answer const& answer) { EXPECT_TRUE(answer && answer->made); });
  }
  gateway with(keyed_config(api.url(), data_));
  EXPECT_EQ(with.ask(post("\"k\"")).status(), 200);
  (void)with.errors_until("the clock was set back");
}

/// Lets the gateway write no file any more, as if the disk took nothing, or lets it again.
void let_write(gateway const& with, bool may) {
  rlimit const limit{may ? RLIM_INFINITY : 0, RLIM_INFINITY};
  ASSERT_EQ(::prlimit(with.process(), RLIMIT_FSIZE, &limit, nullptr), 0);
}

TEST_F(gateway_idempotency, sends_nothing_while_the_disk_takes_nothing) {  // C9
  serving_origin const api(response("200 OK", "done"));
  gateway const with(keyed_config(api.url(), data_));
  EXPECT_EQ(with.ask(post("\"before\"")).status(), 200);
  let_write(with, false);
  for (int i = 0; i < 3; ++i) {
    auto const refused = with.ask(post("\"k\""));
    expect_code(refused, 503, "store-unavailable");
    EXPECT_NE(refused.field("Retry-After"), "(none)");
  }
  EXPECT_EQ(with.ask(post("\"before\"")).field("Idempotent-Replayed"), "true");
  EXPECT_EQ(with.ask(post("\"large\"", std::string(300'000, 'x'))).status(), 503);
  EXPECT_EQ(api.requests(), 1U);
  let_write(with, true);
  EXPECT_EQ(with.ask(post("\"k\"")).status(), 200);
  EXPECT_EQ(with.ask(post("\"large\"", std::string(300'000, 'x'))).status(), 200);
  EXPECT_EQ(with.ask(post("\"k\"")).field("Idempotent-Replayed"), "true");
  EXPECT_EQ(api.requests(), 3U);
}

TEST_F(gateway_idempotency, answers_and_writes_it_down_when_the_disk_takes_it_again) {  // N11
  origin api;
  {
    gateway const with(keyed_config(api.url(), data_));
    auto client = with.connect();
    client.send(post("\"k\""));
    auto server = api.accept();
    (void)server.read_request();
    let_write(with, false);
    server.send(response("200 OK", "done"));
    EXPECT_EQ(client.read_response().body, "done");
    expect_code(with.ask(post("\"k\"")), 409, "in-flight");
    let_write(with, true);
    expect_eventually([&] { return with.ask(post("\"k\"")).status() == 200; },
                      "it is written down");
  }
  gateway const with(keyed_config(api.url(), data_));
  EXPECT_EQ(with.ask(post("\"k\"")).field("Idempotent-Replayed"), "true");
}

TEST_F(gateway_idempotency, does_not_know_what_it_answered_when_the_disk_never_took_it) {  // N11
  origin api;
  {
    gateway with(keyed_config(api.url(), data_));
    auto client = with.connect();
    client.send(post("\"k\""));
    auto server = api.accept();
    (void)server.read_request();
    let_write(with, false);
    server.send(response("200 OK", "done"));
    EXPECT_EQ(client.read_response().body, "done");
    with.signal(SIGKILL);
    (void)with.wait();
  }
  gateway const with(keyed_config(api.url(), data_));
  expect_code(with.ask(post("\"k\"")), 409, "outcome-unknown");
}

TEST_F(gateway_idempotency, keeps_no_key_and_no_body_in_clear) {  // S4
  serving_origin const api(response("200 OK", "a-secret-answer"));
  {
    gateway const with(keyed_config(api.url(), data_));
    EXPECT_EQ(with.ask(post("\"a-secret-key\"", "a-secret-body")).status(), 200);
  }
  for (auto const& entry : std::filesystem::directory_iterator(data_.path())) {
    std::ifstream file(entry.path(), std::ios::binary);
    std::string const text((std::istreambuf_iterator<char>(file)), {});
    EXPECT_THAT(text, Not(HasSubstr("a-secret"))) << entry.path();
  }
}

}  // namespace
}  // namespace tidegate::e2e
