// SPDX-License-Identifier: Apache-2.0
//
// A request with a key on its way to an upstream and back: what the upstream does, and what the
// client gets then and with a retry.
#include "phases/key/key_dispatch.hpp"

#include "phases/exchange_fixture.hpp"
#include "phases/key/keyed_route.hpp"

#include <gmock/gmock.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tidegate::gateway {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class proxy_key_dispatch : public testing::Test {
 protected:
  void use(std::string const& options = "", std::string const& upstream = "") {
    with_.emplace(keyed_route(api_, options, "", upstream));
  }
  /// True when the upstream has all of the request.
  [[nodiscard]] auto is_sent(std::string_view content = paid) -> bool {
    return with_->turn_until([&] { return api_.has(content); });
  }
  /// What a retry of the request gets, without the upstream.
  [[nodiscard]] auto retried() -> recorded_client {
    one_request again(*with_, pay(), paid);
    EXPECT_TRUE(again.is_answered());
    return again.client;
  }
  [[nodiscard]] auto records() const -> std::size_t {
    return with_->shared.idempotency->store->used().records;
  }

  scripted_upstream api_;
  std::optional<exchange_fixture> with_;
};

TEST_F(proxy_key_dispatch, sends_the_head_the_attempt_and_the_content) {
  use();
  one_request asked(*with_, pay("\"k\"", "Bearer x", 4, "X-Own: 1\r\nConnection: X-Hop\r\n"), paid);
  ASSERT_TRUE(is_sent());
  EXPECT_THAT(api_.received(), testing::StartsWith("POST /pay HTTP/1.1\r\n"));
  EXPECT_THAT(api_.received(), HasSubstr("X-Own: 1\r\n"));
  EXPECT_THAT(api_.received(), HasSubstr("Idempotency-Key: \"k\"\r\n"));
  EXPECT_THAT(api_.received(), Not(HasSubstr("X-Hop")));
  EXPECT_THAT(api_.received(), EndsWith("Idempotency-Attempt: 1\r\n\r\npaid"));
}

TEST_F(proxy_key_dispatch, sends_content_that_does_not_fit_into_memory_in_pieces) {
  use();
  std::string const content(1 << 20, 'x');
  one_request asked(*with_, pay("\"k\"", "Bearer x", content.size()), content);
  std::size_t octets = 0;
  ASSERT_TRUE(with_->turn_until([&] {
    (void)api_.has("");
    octets = api_.received().size() -
             std::min(api_.received().find("\r\n\r\n") + 4, api_.received().size());
    return octets >= content.size();
  }));
  EXPECT_EQ(octets, content.size());
  EXPECT_THAT(api_.received(), EndsWith("\r\n\r\n" + content));
}

TEST_F(proxy_key_dispatch, passes_on_and_keeps_the_fields_that_are_of_the_answer) {
  use();
  one_request asked(*with_, pay(), paid);
  ASSERT_TRUE(is_sent());
  api_.answer(
      "HTTP/1.1 200 OK\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nLocation: /1\r\n"
      "Connection: X-Hop, ETag\r\nX-Hop: 1\r\nETag: \"e\"\r\nKeep-Alive: timeout=5\r\nTrailer: "
      "X-T\r\n"
      "Retry-After: 7\r\nSet-Cookie: a=b\r\nContent-Type: text/plain\r\nTransfer-Encoding: "
      "chunked\r\n\r\n"
      "4\r\ndone\r\n0\r\nX-T: 1\r\n\r\n");
  ASSERT_TRUE(asked.is_answered());
  auto const again = retried();
  for (recorded_client const* const client :
       std::initializer_list<recorded_client const*>{&asked.client, &again}) {
    EXPECT_EQ(client->status, 200);
    EXPECT_EQ(client->content, "done");
    EXPECT_THAT(client->lines, HasSubstr("Location: /1\r\n"));
    EXPECT_THAT(client->lines, HasSubstr("Content-Type: text/plain\r\n"));
    EXPECT_THAT(client->lines, HasSubstr("Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n"));
    EXPECT_EQ(client->lines.rfind("Date: "), client->lines.find("Date: ")) << "there is one";
    for (auto const* const name :
         {"X-Hop", "Keep-Alive", "Trailer", "Transfer-Encoding", "Connection", "X-T"}) {
      EXPECT_THAT(client->lines, Not(HasSubstr(name)));
    }
  }
  EXPECT_THAT(asked.client.lines, HasSubstr("Retry-After: 7\r\n"));
  EXPECT_THAT(again.lines, Not(HasSubstr("Retry-After"))) << "it counts from the first answer";
  EXPECT_THAT(asked.client.lines, HasSubstr("Set-Cookie: a=b\r\n"));
  EXPECT_THAT(again.lines, Not(HasSubstr("ETag"))) << "Connection names it";
  EXPECT_THAT(again.lines, Not(HasSubstr("Set-Cookie"))) << "it was for the first client";
}

TEST_F(proxy_key_dispatch, dates_an_answer_that_has_no_date_once) {
  use();
  one_request asked(*with_, pay(), paid);
  ASSERT_TRUE(is_sent());
  api_.answer(created);
  ASSERT_TRUE(asked.is_answered());
  auto const date = asked.client.lines.substr(asked.client.lines.find("Date: "), 37);
  EXPECT_THAT(date, EndsWith(" GMT\r\n"));
  EXPECT_EQ(asked.client.lines.find("Date: ", asked.client.lines.find("Date: ") + 1),
            std::string::npos);
  EXPECT_THAT(retried().lines, HasSubstr(date));
}

TEST_F(proxy_key_dispatch, passes_on_interim_answers_but_100) {
  use();
  one_request asked(*with_, pay(), paid);
  ASSERT_TRUE(is_sent());
  api_.answer("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\n");
  ASSERT_TRUE(with_->turn_until([&] { return !asked.client.trace.empty(); }));
  api_.answer(created);
  ASSERT_TRUE(asked.is_answered());
  EXPECT_THAT(asked.client.trace, ElementsAre("interim 103", "whole 201"));
}

TEST_F(proxy_key_dispatch, loses_interim_answers_of_a_client_that_is_slow) {
  use();
  one_request asked(*with_, pay(), paid);
  ASSERT_TRUE(is_sent());
  asked.client.is_full = true;
  api_.answer("HTTP/1.1 103 Early Hints\r\n\r\n" + std::string(created));
  ASSERT_TRUE(asked.is_answered());
  EXPECT_THAT(asked.client.trace, ElementsAre("whole 201"));
}

TEST_F(proxy_key_dispatch, leaves_the_key_free_when_nothing_was_sent) {
  use();
  api_.stop();
  one_request asked(*with_, pay(), paid);
  ASSERT_TRUE(asked.is_answered());
  EXPECT_EQ(asked.client.status, 502);
  EXPECT_THAT(asked.client.lines, HasSubstr("Retry-After: 1\r\n"));
  EXPECT_EQ(with_->counted(keyed_outcome::not_sent), 1U);
  EXPECT_EQ(records(), 0U);
  EXPECT_EQ(retried().status, 502) << "it is tried again";
  EXPECT_EQ(with_->counted(keyed_outcome::not_sent), 2U);
}

TEST_F(proxy_key_dispatch, answers_503_where_the_gateway_has_no_connection_left) {
  use();
  with_->shared.connections.descriptors = 0;
  with_->shared.connections.upstreams = 1;
  one_request asked(*with_, pay(), paid);
  ASSERT_TRUE(asked.is_answered());
  EXPECT_EQ(asked.client.status, 503);
  EXPECT_THAT(asked.client.lines, HasSubstr("Retry-After: 1\r\n"));
  EXPECT_EQ(records(), 0U);
}

TEST_F(proxy_key_dispatch, remembers_that_an_outcome_is_unknown) {
  struct row {
    std::string_view name;
    std::string_view answer;
  };
  for (auto const& [name, answer] : std::vector<row>{
           {"no answer", ""},
           {"a part of a head", "HTTP/1.1 20"},
           {"a part of the content", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc"},
           {"no HTTP", "hello\r\n\r\n"},
       }) {
    scripted_upstream api;
    exchange_fixture with(keyed_route(api));
    one_request asked(with, pay(), paid);
    ASSERT_TRUE(with.turn_until([&] { return api.has(paid); })) << name;
    api.answer(answer);
    api.hang_up();
    ASSERT_TRUE(asked.is_answered()) << name;
    EXPECT_EQ(asked.client.status, 502) << name;
    EXPECT_THAT(asked.client.content, HasSubstr("\"code\":\"outcome-unknown\"")) << name;
    EXPECT_EQ(with.counted(keyed_outcome::unknown), 1U) << name;

    one_request again(with, pay(), paid);
    ASSERT_TRUE(again.is_answered()) << name;
    EXPECT_EQ(again.client.status, 409) << name;
    EXPECT_THAT(again.client.content, HasSubstr("\"code\":\"outcome-unknown\"")) << name;
    EXPECT_EQ(with.counted(keyed_outcome::unknown_refused), 1U) << name;
    EXPECT_EQ(api.connections(), 1) << name << ": it is not sent again";
  }
}

TEST_F(proxy_key_dispatch, sends_again_what_the_upstream_itself_deduplicates) {
  use(", upstream-deduplicates: true, on-unknown-outcome: retry");
  one_request asked(*with_, pay(), paid);
  ASSERT_TRUE(is_sent());
  api_.answer("HTTP/1.1 20");
  api_.hang_up();
  ASSERT_TRUE(asked.is_answered());
  EXPECT_EQ(asked.client.status, 502);
  one_request again(*with_, pay(), paid);
  ASSERT_TRUE(is_sent());
  EXPECT_THAT(api_.received(), HasSubstr("Idempotency-Attempt: 2\r\n"));
  api_.answer(created);
  ASSERT_TRUE(again.is_answered());
  EXPECT_EQ(again.client.status, 201);
}

TEST_F(proxy_key_dispatch, keeps_waiting_for_an_answer_that_is_late) {
  use("", ", timeout: 30ms");
  one_request asked(*with_, pay(), paid);
  ASSERT_TRUE(is_sent());
  ASSERT_TRUE(asked.is_answered());
  EXPECT_EQ(asked.client.status, 504);
  EXPECT_THAT(asked.client.content, HasSubstr("\"code\":\"outcome-unknown\""));
  EXPECT_EQ(retried().status, 409) << "it still runs";
  asked.leave();
  api_.answer(created);
  ASSERT_TRUE(with_->turn_until([&] { return with_->shared.connections.detached.load() == 0; }));
  EXPECT_THAT(asked.client.trace, ElementsAre("whole 504"));
  EXPECT_EQ(retried().status, 201) << "the true answer was recorded";
}

TEST_F(proxy_key_dispatch, takes_502_503_and_504_for_final_only_where_the_route_says_so) {
  struct row {
    std::string_view options;
    std::string_view status;
    int again;
  };
  for (auto const& [options, status, again] : std::vector<row>{
           {"", "500", 500},
           {"", "502", 409},
           {"", "503", 409},
           {"", "504", 409},
           {", store-5xx: true", "503", 503},
       }) {
    scripted_upstream api;
    exchange_fixture with(keyed_route(api, std::string(options)));
    one_request asked(with, pay(), paid);
    ASSERT_TRUE(with.turn_until([&] { return api.has(paid); })) << status;
    api.answer("HTTP/1.1 " + std::string(status) + " S\r\nContent-Length: 4\r\n\r\ndown");
    ASSERT_TRUE(asked.is_answered()) << status;
    EXPECT_EQ(asked.client.status, std::stoi(std::string(status)));
    EXPECT_EQ(asked.client.content, "down") << status << " is the answer of the upstream";
    one_request retry(with, pay(), paid);
    ASSERT_TRUE(retry.is_answered()) << status;
    EXPECT_EQ(retry.client.status, again) << status << options;
    EXPECT_EQ(api.received(), "") << status << options;
  }
}

TEST_F(proxy_key_dispatch, passes_an_answer_through_that_is_too_large_to_keep) {
  use(", max-response: 8");
  one_request asked(*with_, pay(), paid);
  ASSERT_TRUE(is_sent());
  api_.answer("HTTP/1.1 200 OK\r\nLocation: /1\r\nContent-Length: 10\r\n\r\n12345678");
  with_->turn();
  EXPECT_THAT(asked.client.trace, IsEmpty()) << "it may fit yet";
  api_.answer("9");
  ASSERT_TRUE(with_->turn_until([&] { return !asked.client.trace.empty(); }));
  EXPECT_THAT(asked.client.trace, ElementsAre("head 200"));
  EXPECT_EQ(asked.client.length, 10U);
  EXPECT_EQ(with_->shared.memory.buffered.load(), std::int64_t{paid.size()}) << "of the request";
  api_.answer("0");
  ASSERT_TRUE(asked.is_answered());
  EXPECT_THAT(asked.client.trace, ElementsAre("head 200", "end"));
  EXPECT_EQ(asked.client.content, "1234567890");

  auto const again = retried();
  EXPECT_EQ(again.status, 409);
  EXPECT_THAT(again.content, HasSubstr("\"code\":\"response-not-replayable\""));
  EXPECT_THAT(again.lines, HasSubstr("Location: /1\r\n")) << "where to look";
  EXPECT_EQ(with_->counted(keyed_outcome::not_replayable), 1U);
}

TEST_F(proxy_key_dispatch, cuts_an_answer_that_breaks_off_while_it_passes_through) {
  use(", max-response: 4");
  one_request asked(*with_, pay(), paid);
  ASSERT_TRUE(is_sent());
  api_.answer("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n12345");
  ASSERT_TRUE(with_->turn_until([&] { return !asked.client.trace.empty(); }));
  api_.hang_up();
  ASSERT_TRUE(asked.is_answered());
  EXPECT_THAT(asked.client.trace, ElementsAre("head 200", "cut"));
}

TEST_F(proxy_key_dispatch, reads_no_more_than_a_slow_client_takes) {
  use(", max-response: 4");
  one_request asked(*with_, pay(), paid);
  ASSERT_TRUE(is_sent());
  api_.answer("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n12345");
  ASSERT_TRUE(with_->turn_until([&] { return !asked.client.trace.empty(); }));
  asked.client.is_full = true;
  api_.answer("678");
  with_->turn();
  auto const before = asked.client.content.size();
  api_.answer("90");
  with_->turn();
  EXPECT_EQ(asked.client.content.size(), before);
  EXPECT_FALSE(asked.client.is_over);
  asked.client.is_full = false;
  asked->client_resumed();
  ASSERT_TRUE(asked.is_answered());
  EXPECT_EQ(asked.client.content, "1234567890");
}

TEST_F(proxy_key_dispatch, uses_a_connection_again) {
  use();
  for (auto const* const key : {"\"a\"", "\"b\"", "\"c\""}) {
    one_request asked(*with_, pay(key), paid);
    ASSERT_TRUE(is_sent());
    api_.answer(created);
    ASSERT_TRUE(asked.is_answered());
    EXPECT_EQ(asked.client.status, 201);
  }
  EXPECT_EQ(api_.connections(), 1);
}

TEST_F(proxy_key_dispatch, says_of_an_answer_whether_its_key_was_claimed) {
  kept_answer answer;
  answer.fields.push_back({"A", "1"});
  answer.limit_lines = "RateLimit: x\r\n";
  auto const claimed = answer.lines(true);
  EXPECT_EQ(claimed.more, "");
  EXPECT_EQ(claimed.fields.size(), 1U);
  EXPECT_EQ(claimed.limit_lines, "RateLimit: x\r\n");
  EXPECT_TRUE(claimed.has_date);
  EXPECT_EQ(answer.lines(false).more, "Idempotency-Status: bypassed\r\n");
}

}  // namespace
}  // namespace tidegate::gateway
