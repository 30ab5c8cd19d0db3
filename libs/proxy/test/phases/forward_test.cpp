// SPDX-License-Identifier: Apache-2.0
#include "phases/forward.hpp"

#include "phases/exchange_fixture.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tidegate::gateway {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using why = upstream_failure;

constexpr std::array all_failures{why::connect_refused,
                                  why::connect_timeout,
                                  why::closed_unanswered,
                                  why::closed,
                                  why::malformed,
                                  why::timeout,
                                  why::idle,
                                  why::no_descriptor,
                                  why::refused_stream,
                                  why::busy,
                                  why::no_server};

TEST(proxy_forward, tells_clients_and_logs_why_an_upstream_did_not_answer) {
  struct row {
    why failure;
    std::string_view reason;
    int status;
    std::string_view title;
  };
  std::vector<row> const rows{
      {why::connect_refused, "upstream-refused", 502, "Bad Gateway"},
      {why::connect_timeout, "upstream-connect-timeout", 504, "Gateway Timeout"},
      {why::closed_unanswered, "upstream-closed", 502, "Bad Gateway"},
      {why::closed, "upstream-closed", 502, "Bad Gateway"},
      {why::malformed, "upstream-malformed", 502, "Bad Gateway"},
      {why::timeout, "upstream-timeout", 504, "Gateway Timeout"},
      {why::idle, "upstream-idle", 504, "Gateway Timeout"},
      {why::no_descriptor, "no-descriptor", 503, "Service Unavailable"},
      {why::refused_stream, "upstream-refused-stream", 502, "Bad Gateway"},
      {why::busy, "upstream-busy", 503, "Service Unavailable"},
      {why::no_server, "no-server", 503, "Service Unavailable"},
  };
  ASSERT_EQ(rows.size(), all_failures.size());
  std::string content;
  std::string lines;
  for (auto const& [failure, reason, status, title] : rows) {
    EXPECT_EQ(reason_of(failure), reason);
    auto const reply = failure_reply(failure, {content, lines});
    EXPECT_EQ(reply.reason, reason);
    EXPECT_EQ(reply.status, status) << reason;
    EXPECT_EQ(reply.content_type, http::problem_json) << reason;
    EXPECT_THAT(reply.content, HasSubstr("\"title\":\"" + std::string(title) + '"')) << reason;
    EXPECT_THAT(reply.content, HasSubstr("\"status\":" + std::to_string(status))) << reason;
  }
}

TEST(proxy_forward, has_clients_come_again_only_where_the_gateway_itself_has_no_room) {
  std::string content;
  std::string lines;
  for (auto const failure : all_failures) {
    EXPECT_EQ(failure_reply(failure, {content, lines}).retry_after,
              std::chrono::seconds(failure == why::no_descriptor || failure == why::busy ||
                                           failure == why::no_server
                                       ? 1
                                       : 0))
        << reason_of(failure);
  }
}

TEST(proxy_forward, knows_when_nothing_was_sent) {
  for (auto const failure : all_failures) {
    EXPECT_EQ(was_not_sent(failure), failure == why::connect_refused ||
                                         failure == why::connect_timeout ||
                                         failure == why::refused_stream)
        << reason_of(failure);
  }
}

TEST(proxy_forward, knows_when_no_server_was_asked) {
  for (auto const failure : all_failures) {
    EXPECT_EQ(was_not_asked(failure),
              failure == why::no_descriptor || failure == why::busy || failure == why::no_server)
        << reason_of(failure);
  }
}

TEST(proxy_forward, has_a_word_for_each_failure_that_a_retry_may_help_against) {
  using why = upstream_failure;
  using balance::retry_cause;
  for (auto const& [failure, what] : std::vector<std::pair<why, std::optional<retry_cause>>>{
           {why::connect_refused, retry_cause::connect},
           {why::connect_timeout, retry_cause::connect},
           {why::closed_unanswered, retry_cause::reset},
           {why::closed, retry_cause::reset},
           {why::malformed, std::nullopt},
           {why::timeout, retry_cause::timeout},
           {why::idle, std::nullopt},
           {why::refused_stream, retry_cause::refused_stream},
           {why::no_descriptor, std::nullopt},
           {why::busy, std::nullopt},
           {why::no_server, std::nullopt}}) {
    EXPECT_EQ(cause_of(failure), what) << reason_of(failure);
  }
}

TEST(proxy_forward, sends_again_what_is_named_and_safe_and_as_often_as_allowed) {
  using balance::retry_cause;
  balance::retry_settings settings{.on = 0x7f, .attempts = 2};
  for (auto const what :
       {retry_cause::connect, retry_cause::refused_stream, retry_cause::reset, retry_cause::timeout,
        retry_cause::status_502, retry_cause::status_503, retry_cause::status_504}) {
    EXPECT_TRUE(is_worth_a_retry(what, true, 0, settings));
    EXPECT_TRUE(is_worth_a_retry(what, true, 1, settings));
    EXPECT_FALSE(is_worth_a_retry(what, true, 2, settings)) << "twice is enough";
    EXPECT_EQ(is_worth_a_retry(what, false, 0, settings),
              what == retry_cause::connect || what == retry_cause::refused_stream)
        << "it may have arrived";
    auto others = settings;
    others.on = static_cast<std::uint8_t>(others.on & ~static_cast<unsigned>(what));
    EXPECT_FALSE(is_worth_a_retry(what, true, 0, others)) << "it is not named";
  }
}

TEST(proxy_forward, repeats_only_methods_that_are_idempotent) {
  struct row {
    std::string_view name;
    wire::method method;
    bool idempotent;
  };
  for (auto const& [name, method, idempotent] : std::vector<row>{
           {"GET", wire::method::get, true},
           {"HEAD", wire::method::head, true},
           {"PUT", wire::method::put, true},
           {"DELETE", wire::method::delete_, true},
           {"OPTIONS", wire::method::options, true},
           {"TRACE", wire::method::trace, true},
           {"POST", wire::method::post, false},
           {"PATCH", wire::method::patch, false},
           {"CONNECT", wire::method::connect, false},
           {"another", wire::method::other, false},
       }) {
    EXPECT_EQ(is_idempotent(method), idempotent) << name;
  }
}

// ---- on its way: what the upstream does, and what the client gets ----

constexpr std::string_view get_a = "GET /a HTTP/1.1\r\nHost: h\r\n\r\n";
constexpr std::string_view answer = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndone";

[[nodiscard]] auto post_of(std::size_t octets, std::string const& lines = "") -> std::string {
  return "POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: " + std::to_string(octets) + "\r\n" +
         lines + "\r\n";
}

class proxy_forward_phase : public testing::Test {
 protected:
  void use(std::string const& upstream = ", retries: 0") {
    with_.emplace(api_.config(upstream) + "routes: [{match: {path: /**}, upstream: api}]\n");
  }
  /// True when the upstream has a request that ends with `content`.
  [[nodiscard]] auto is_sent(std::string_view content = "\r\n\r\n") -> bool {
    return with_->turn_until([&] { return api_.has(content); });
  }

  scripted_upstream api_;
  std::optional<exchange_fixture> with_;
};

TEST_F(proxy_forward_phase, passes_an_answer_on_as_it_comes) {
  use();
  one_request asked(*with_, get_a);
  ASSERT_TRUE(is_sent());
  EXPECT_THAT(api_.received(), testing::StartsWith("GET /a HTTP/1.1\r\n"));
  api_.answer("HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndo");
  ASSERT_TRUE(with_->turn_until([&] { return asked.client.content == "do"; }));
  EXPECT_THAT(asked.client.trace, ElementsAre("interim 103", "head 200"));
  api_.answer("ne");
  ASSERT_TRUE(asked.is_answered());
  EXPECT_THAT(asked.client.trace, ElementsAre("interim 103", "head 200", "end"));
  EXPECT_EQ(asked.client.content, "done");
}

TEST_F(proxy_forward_phase, takes_no_connection_for_a_short_body_that_is_still_coming) {
  use();
  one_request asked(*with_, post_of(4));
  asked.body("bo", false);
  with_->turn();
  EXPECT_FALSE(api_.has(""));
  EXPECT_EQ(api_.connections(), 0);
  EXPECT_GT(asked->held_octets(), 2U) << "with its head";
  EXPECT_GT(with_->shared.memory.buffered.load(), 0);
  asked.body("dy", true);
  ASSERT_TRUE(is_sent("\r\n\r\nbody"));
  EXPECT_EQ(asked->held_octets(), 0U);
  EXPECT_EQ(with_->shared.memory.buffered.load(), 0);
}

TEST_F(proxy_forward_phase, holds_bodies_only_up_to_a_length_and_while_there_is_memory) {
  struct row {
    std::string_view name;
    std::string head;
  };
  for (auto const& [name, head] : std::vector<row>{
           {"too long", post_of(64 * 1024 + 1)},
           {"the client waits for 100", post_of(4, "Expect: 100-continue\r\n")},
           {"in chunks", "POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"},
       }) {
    scripted_upstream api;
    exchange_fixture with(api.config() + "routes: [{match: {path: /**}, upstream: api}]\n");
    one_request asked(with, head);
    EXPECT_TRUE(with.turn_until([&] { return api.has("\r\n\r\n"); })) << name;
  }
  use();
  with_->shared.memory.buffered = with_->on->current->active->config.http.max_buffered;
  one_request asked(*with_, post_of(4));
  EXPECT_TRUE(is_sent()) << "there is no memory to hold it";
}

TEST_F(proxy_forward_phase, sends_a_request_again_that_is_safe) {
  use(", retries: 1");
  one_request asked(*with_, get_a);
  ASSERT_TRUE(is_sent());
  api_.answer("");
  api_.hang_up();
  ASSERT_TRUE(is_sent());
  EXPECT_EQ(api_.connections(), 2);
  EXPECT_EQ(asked->forward().tries(), 2);
  api_.answer(answer);
  ASSERT_TRUE(asked.is_answered());
  EXPECT_THAT(asked.client.trace, ElementsAre("head 200", "end"));
}

TEST_F(proxy_forward_phase, sends_nothing_again_that_may_have_been_done) {
  use(", retries: 3");
  one_request asked(*with_, post_of(4), "body");
  ASSERT_TRUE(with_->turn_until([&] { return api_.has("body"); }));
  api_.hang_up();
  ASSERT_TRUE(asked.is_answered());
  EXPECT_THAT(asked.client.trace, ElementsAre("whole 502"));
  EXPECT_EQ(api_.connections(), 1);
}

TEST_F(proxy_forward_phase, sends_a_body_again_that_is_not_too_long) {
  struct row {
    std::size_t octets;
    bool is_sent_again;
  };
  for (auto const& [octets, is_sent_again] :
       {row{4, true}, row{60'000, true}, row{70'000, false}}) {
    scripted_upstream api;
    exchange_fixture with(api.config(", retries: 3") +
                          "routes: [{match: {path: /**}, upstream: api}]\n");
    one_request asked(with, "PUT" + post_of(octets).substr(4), std::string(octets - 1, 'x') + "!");
    ASSERT_TRUE(with.turn_until([&] { return api.has("!"); })) << octets;
    api.answer("");
    api.hang_up();
    if (!is_sent_again) {
      ASSERT_TRUE(asked.is_answered()) << octets;
      EXPECT_THAT(asked.client.trace, ElementsAre("whole 502")) << octets;
      continue;
    }
    ASSERT_TRUE(with.turn_until([&] { return api.has("!"); })) << octets;
    EXPECT_EQ(api.connections(), 2) << octets;
    api.answer(answer);
    ASSERT_TRUE(asked.is_answered()) << octets;
    EXPECT_EQ(asked.client.status, 200) << octets;
  }
}

TEST_F(proxy_forward_phase, sends_a_request_again_after_a_status_that_is_named) {
  use(", retry: {on: [503], attempts: 1, backoff: 1ms}");
  one_request asked(*with_, get_a);
  ASSERT_TRUE(is_sent());
  api_.answer("HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n");
  ASSERT_TRUE(with_->turn_until([&] { return api_.is_left(); }));
  api_.hang_up();
  ASSERT_TRUE(is_sent());
  api_.answer("HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n");
  ASSERT_TRUE(asked.is_answered());
  EXPECT_THAT(asked.client.trace, ElementsAre("head 503", "end")) << "once is enough";
  EXPECT_EQ(asked->forward().tries(), 2);
}

TEST_F(proxy_forward_phase, puts_the_path_of_a_server_before_that_of_the_request) {
  api_.base_path = "/base";
  use();
  one_request asked(*with_, get_a);
  ASSERT_TRUE(is_sent());
  EXPECT_THAT(api_.received(), testing::StartsWith("GET /base/a HTTP/1.1\r\n"));
}

TEST_F(proxy_forward_phase, does_not_count_a_connection_that_had_just_been_closed) {
  use(", retries: 0");
  one_request first(*with_, get_a);
  ASSERT_TRUE(is_sent());
  api_.answer(answer);
  ASSERT_TRUE(first.is_answered());
  one_request second(*with_, get_a);  // on the same connection
  ASSERT_TRUE(is_sent());
  ASSERT_EQ(api_.connections(), 1);
  api_.answer("");
  api_.hang_up();
  ASSERT_TRUE(is_sent());
  EXPECT_EQ(api_.connections(), 2);
  api_.answer(answer);
  ASSERT_TRUE(second.is_answered());
  EXPECT_EQ(second.client.status, 200);
}

TEST_F(proxy_forward_phase, says_what_went_wrong_while_nothing_was_sent_to_the_client) {
  struct row {
    std::string_view name;
    std::string_view said;
    std::string_view trace;
  };
  for (auto const& [name, said, trace] : std::vector<row>{
           {"nothing", "", "whole 502"},
           {"a part of a head", "HTTP/1.1 200 OK\r\nX", "whole 502"},
           {"no HTTP", "hello\r\n\r\n", "whole 502"},
           {"a part of the content", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello",
            "whole 502"},
           {"a part of the chunks",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", "whole 502"},
       }) {
    scripted_upstream api;
    exchange_fixture with(api.config(", retries: 0") +
                          "routes: [{match: {path: /**}, upstream: api}]\n");
    one_request asked(with, get_a);
    ASSERT_TRUE(with.turn_until([&] { return api.has("\r\n\r\n"); })) << name;
    api.answer(said);
    api.hang_up();
    ASSERT_TRUE(asked.is_answered()) << name;
    EXPECT_THAT(asked.client.trace, ElementsAre(std::string(trace))) << name;
  }
}

TEST_F(proxy_forward_phase, cuts_an_answer_that_breaks_off) {
  use(", retries: 3");
  one_request asked(*with_, get_a);
  ASSERT_TRUE(is_sent());
  api_.answer("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndo");
  ASSERT_TRUE(with_->turn_until([&] { return asked.client.content == "do"; }));
  api_.hang_up();
  ASSERT_TRUE(asked.is_answered());
  EXPECT_THAT(asked.client.trace, ElementsAre("head 200", "cut"));
  EXPECT_EQ(api_.connections(), 1);
}

TEST_F(proxy_forward_phase, answers_504_when_the_upstream_does_not_answer_in_time) {
  use(", timeout: 30ms");
  one_request asked(*with_, get_a);
  ASSERT_TRUE(is_sent());
  ASSERT_TRUE(asked.is_answered());
  EXPECT_THAT(asked.client.trace, ElementsAre("whole 504"));
}

TEST_F(proxy_forward_phase, answers_502_where_no_server_listens) {
  use(", retries: 2");
  api_.stop();
  one_request asked(*with_, get_a);
  ASSERT_TRUE(asked.is_answered());
  EXPECT_THAT(asked.client.trace, ElementsAre("whole 502"));
  EXPECT_EQ(asked->forward().tries(), 3);
}

TEST_F(proxy_forward_phase, closes_the_connection_when_the_client_has_gone) {
  use();
  one_request asked(*with_, get_a);
  ASSERT_TRUE(is_sent());
  asked.leave();
  ASSERT_TRUE(with_->turn_until([&] { return api_.is_left(); }));
  EXPECT_EQ(with_->on->current->routes.front().pool->in_flight(), 0);
  EXPECT_THAT(asked.client.trace, IsEmpty());
}

TEST_F(proxy_forward_phase, reads_no_more_than_a_slow_client_takes) {
  use();
  one_request asked(*with_, get_a);
  ASSERT_TRUE(is_sent());
  api_.answer("HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n12");
  ASSERT_TRUE(with_->turn_until([&] { return asked.client.content == "12"; }));
  asked.client.is_full = true;
  api_.answer("34");
  with_->turn();
  auto const before = asked.client.content;
  api_.answer("5678");
  with_->turn();
  EXPECT_EQ(asked.client.content, before);
  asked.client.is_full = false;
  asked->client_resumed();
  ASSERT_TRUE(asked.is_answered());
  EXPECT_EQ(asked.client.content, "12345678");
}

TEST_F(proxy_forward_phase, counts_options_down_and_answers_the_last_one_itself) {
  use();
  one_request passed(*with_, "OPTIONS /a HTTP/1.1\r\nHost: h\r\nMax-Forwards: 3\r\n\r\n");
  ASSERT_TRUE(is_sent());
  EXPECT_THAT(api_.received(), HasSubstr("Max-Forwards: 2\r\n"));
  EXPECT_THAT(api_.received(), Not(HasSubstr("Max-Forwards: 3\r\n")));
  one_request last(*with_, "OPTIONS /a HTTP/1.1\r\nHost: h\r\nMax-Forwards: 0\r\n\r\n");
  EXPECT_THAT(last.client.trace, ElementsAre("whole 200"));
  EXPECT_EQ(api_.connections(), 1);
}

}  // namespace
}  // namespace tidegate::gateway
