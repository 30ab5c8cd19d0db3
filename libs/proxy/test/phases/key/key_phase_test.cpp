// SPDX-License-Identifier: Apache-2.0
//
// What becomes of a request with a key, as traces: what the store, the upstream and the client do,
// and what the client gets.
#include "phases/key/key_phase.hpp"

#include "phases/exchange_fixture.hpp"
#include "phases/key/keyed_route.hpp"

#include <gmock/gmock.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tidegate::gateway {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class proxy_key_phase : public testing::Test {
 protected:
  /// One request that runs until its client has its answer.
  void run(exchange_fixture& with, std::string_view answer = created) {
    one_request asked(with, pay(), paid);
    ASSERT_TRUE(with.turn_until([&] { return api_.has(paid); }));
    api_.answer(answer);
    ASSERT_TRUE(asked.is_answered());
  }

  scripted_upstream api_;
};

TEST_F(proxy_key_phase, sends_a_request_once_and_replays_its_answer) {
  exchange_fixture with(keyed_route(api_));
  one_request first(with, pay(), paid);
  ASSERT_TRUE(with.turn_until([&] { return api_.has(paid); }));
  EXPECT_THAT(first.client.trace, IsEmpty()) << "the answer is recorded first";
  api_.answer(created);
  ASSERT_TRUE(first.is_answered());
  EXPECT_THAT(first.client.trace, ElementsAre("whole 201"));
  EXPECT_EQ(first.client.content, "done");
  EXPECT_THAT(first.client.lines, HasSubstr("X-Id: 1\r\n"));
  EXPECT_THAT(first.client.lines, Not(HasSubstr("Idempotent-Replayed")));

  one_request again(with, pay(), paid);
  ASSERT_TRUE(again.is_answered());
  EXPECT_THAT(again.client.trace, ElementsAre("whole 201"));
  EXPECT_EQ(again.client.content, "done");
  EXPECT_THAT(again.client.lines, HasSubstr("X-Id: 1\r\n"));
  EXPECT_THAT(again.client.lines, HasSubstr("Idempotent-Replayed: true\r\n"));
  EXPECT_FALSE(api_.has("")) << "the upstream is not asked";
  EXPECT_EQ(with.counted(keyed_outcome::first), 1U);
  EXPECT_EQ(with.counted(keyed_outcome::replayed), 1U);
}

TEST_F(proxy_key_phase, keeps_the_connection_when_an_upstream_answers_413_to_content_that_came) {
  exchange_fixture with(keyed_route(api_));
  one_request first(with, pay(), paid);
  ASSERT_TRUE(with.turn_until([&] { return api_.has(paid); }));
  api_.answer("HTTP/1.1 413 Content Too Large\r\nContent-Length: 2\r\n\r\nno");
  ASSERT_TRUE(first.is_answered());
  EXPECT_EQ(first.client.status, 413);
  EXPECT_FALSE(first.client.closes);
  one_request again(with, pay(), paid);
  ASSERT_TRUE(again.is_answered());
  EXPECT_EQ(again.client.status, 413);
  EXPECT_FALSE(again.client.closes);
}

TEST_F(proxy_key_phase, runs_other_keys_and_other_owners_by_themselves) {
  exchange_fixture with(keyed_route(api_));
  run(with);
  for (auto const& head : {pay("\"other\""), pay("\"k\"", "Bearer y")}) {
    one_request asked(with, head, paid);
    ASSERT_TRUE(with.turn_until([&] { return api_.has(paid); })) << head;
    api_.answer(created);
    ASSERT_TRUE(asked.is_answered()) << head;
    EXPECT_EQ(asked.client.status, 201);
  }
  EXPECT_EQ(with.counted(keyed_outcome::first), 3U);
}

TEST_F(proxy_key_phase, refuses_without_asking_the_upstream) {
  struct row {
    std::string_view name;
    std::string head;
    std::string content;
    int status;
    std::string_view code;
    keyed_outcome outcome;
  };
  exchange_fixture with(keyed_route(api_, ", max-body: 8"));
  run(with);
  for (auto const& [name, head, content, status, code, outcome] : std::vector<row>{
           {"no key", pay(""), "x", 400, "key-missing", keyed_outcome::missing},
           {"no key of the form", pay("k"), "x", 400, "key-malformed", keyed_outcome::malformed},
           {"no owner", pay("\"k\"", ""), "x", 400, "scope-missing", keyed_outcome::malformed},
           {"another content", pay("\"k\"", "Bearer x", 3), "pai", 422, "key-reused",
            keyed_outcome::reused},
           {"another path", pay("\"k\"", "Bearer x", 4, "", "/other"), std::string(paid), 422,
            "key-reused", keyed_outcome::reused},
           {"another query", pay("\"k\"", "Bearer x", 4, "", "/pay?a"), std::string(paid), 422,
            "key-reused", keyed_outcome::reused},
           {"declared too long", pay("\"l\"", "Bearer x", 9), "123456789", 413, "body-too-large",
            keyed_outcome::malformed},
           {"another digest",
            pay("\"d\"", "Bearer x", 4,
                "Content-Digest: sha-256=:LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ=:\r\n"),
            std::string(paid), 400, "digest-mismatch", keyed_outcome::malformed},
       }) {
    auto const before = with.counted(outcome);
    one_request asked(with, head);
    if (!asked.client.is_over) {
      asked.body(content, true);
    }
    ASSERT_TRUE(asked.is_answered()) << name;
    EXPECT_EQ(asked.client.status, status) << name;
    EXPECT_THAT(asked.client.content, HasSubstr("\"code\":\"" + std::string(code) + '"')) << name;
    EXPECT_THAT(asked.client.lines, HasSubstr("Link: <")) << name;
    EXPECT_EQ(with.counted(outcome), before + 1) << name;
    EXPECT_FALSE(api_.has("")) << name;
  }
}

TEST_F(proxy_key_phase, refuses_content_that_turns_out_too_long) {
  exchange_fixture with(keyed_route(api_, ", max-body: 8"));
  one_request asked(with,
                    "POST /pay HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer x\r\n"
                    "Idempotency-Key: \"k\"\r\nTransfer-Encoding: chunked\r\n\r\n");
  asked.body("8\r\n12345678\r\n", false);
  EXPECT_THAT(asked.client.trace, IsEmpty());
  EXPECT_EQ(asked->held_octets(), 8U);
  asked.body("1\r\n9\r\n", false);
  EXPECT_THAT(asked.client.trace, ElementsAre("whole 413"));
}

TEST_F(proxy_key_phase, answers_409_to_a_duplicate_while_the_first_runs) {
  exchange_fixture with(keyed_route(api_));
  one_request first(with, pay(), paid);
  ASSERT_TRUE(with.turn_until([&] { return api_.has(paid); }));
  one_request second(with, pay(), paid);
  ASSERT_TRUE(second.is_answered());
  EXPECT_EQ(second.client.status, 409);
  EXPECT_THAT(second.client.content, HasSubstr("\"code\":\"in-flight\""));
  EXPECT_THAT(second.client.lines, HasSubstr("Retry-After: "));
  EXPECT_EQ(with.counted(keyed_outcome::conflict), 1U);
  api_.answer(created);
  ASSERT_TRUE(first.is_answered());
  EXPECT_EQ(first.client.status, 201);
}

TEST_F(proxy_key_phase, has_duplicates_wait_for_the_answer_of_the_first) {
  for (bool const by_client : {false, true}) {
    scripted_upstream api;
    exchange_fixture with(keyed_route(api, by_client ? "" : ", in-flight: wait"));
    auto const head = by_client ? pay("\"k\"", "Bearer x", 4, "Prefer: wait=60\r\n") : pay();
    one_request first(with, head, paid);
    ASSERT_TRUE(with.turn_until([&] { return api.has(paid); }));
    one_request second(with, head, paid);
    with.turn();
    EXPECT_EQ(with.shared.idempotency->waiters.size(), 1U);
    EXPECT_THAT(second.client.trace, IsEmpty());
    api.answer(created);
    ASSERT_TRUE(first.is_answered());
    ASSERT_TRUE(second.is_answered());
    EXPECT_THAT(second.client.trace, ElementsAre("whole 201"));
    EXPECT_THAT(second.client.lines, HasSubstr("Idempotent-Replayed: true\r\n"));
    EXPECT_EQ(with.shared.idempotency->waiters.size(), 0U);
    EXPECT_EQ(api.connections(), 1);
  }
}

TEST_F(proxy_key_phase, answers_409_when_a_duplicate_has_waited_long_enough) {
  exchange_fixture with(keyed_route(api_));
  one_request first(with, pay(), paid);
  ASSERT_TRUE(with.turn_until([&] { return api_.has(paid); }));
  one_request second(with, pay("\"k\"", "Bearer x", 4, "Prefer: wait=0\r\n"), paid);
  ASSERT_TRUE(second.is_answered());
  EXPECT_EQ(second.client.status, 409);
  EXPECT_EQ(with.shared.idempotency->waiters.size(), 0U);
}

TEST_F(proxy_key_phase, forgets_a_duplicate_whose_client_has_gone) {
  exchange_fixture with(keyed_route(api_, ", in-flight: wait"));
  one_request first(with, pay(), paid);
  ASSERT_TRUE(with.turn_until([&] { return api_.has(paid); }));
  one_request second(with, pay(), paid);
  with.turn();
  ASSERT_EQ(with.shared.idempotency->waiters.size(), 1U);
  second.leave();
  EXPECT_EQ(with.shared.idempotency->waiters.size(), 0U);
  EXPECT_EQ(with.shared.connections.detached.load(), 0);
}

TEST_F(proxy_key_phase, waits_no_longer_when_it_ends_before_its_exchange_says_so) {
  exchange_fixture with(keyed_route(api_, ", in-flight: wait"));
  one_request first(with, pay(), paid);
  ASSERT_TRUE(with.turn_until([&] { return api_.has(paid); }));
  one_request second(with, pay(), paid);
  with.turn();
  auto& waiters = with.shared.idempotency->waiters;
  ASSERT_EQ(waiters.size(), 1U);
  second.vanish();
  EXPECT_EQ(waiters.size(), 0U);
  api_.answer(created);
  EXPECT_TRUE(first.is_answered());
}

TEST_F(proxy_key_phase, runs_on_when_its_client_has_gone) {
  exchange_fixture with(keyed_route(api_));
  one_request first(with, pay(), paid);
  ASSERT_TRUE(with.turn_until([&] { return api_.has(paid); }));
  first.leave();
  EXPECT_EQ(with.shared.connections.detached.load(), 1);
  api_.answer(created);
  ASSERT_TRUE(with.turn_until([&] { return with.shared.connections.detached.load() == 0; }));
  EXPECT_THAT(first.client.trace, IsEmpty());
  one_request again(with, pay(), paid);
  ASSERT_TRUE(again.is_answered());
  EXPECT_EQ(again.client.status, 201);
  EXPECT_THAT(again.client.lines, HasSubstr("Idempotent-Replayed: true\r\n"));
}

TEST_F(proxy_key_phase, is_over_when_the_client_goes_before_all_of_the_content_came) {
  exchange_fixture with(keyed_route(api_));
  one_request first(with, pay());
  first.body("pa", false);
  first.leave();
  EXPECT_EQ(with.shared.connections.detached.load(), 0);
  EXPECT_EQ(with.shared.memory.buffered.load(), 0);
  run(with);  // the key is free
}

TEST_F(proxy_key_phase, charges_a_run_once_and_a_replay_what_it_costs) {
  struct row {
    std::string_view options;
    std::string_view remaining;
  };
  for (auto const& [options, remaining] : std::vector<row>{
           {"", ";r=4"},
           {", replay-cost: 2", ";r=2"},
       }) {
    scripted_upstream api;
    exchange_fixture with("policies: {p: {quota: 5, window: 1h}}\n" +
                          keyed_route(api, std::string(options), ", limits: [p]"));
    one_request first(with, pay(), paid);
    ASSERT_TRUE(with.turn_until([&] { return api.has(paid); }));
    api.answer(created);
    ASSERT_TRUE(first.is_answered());
    EXPECT_THAT(first.client.lines, HasSubstr(";r=4")) << options;
    one_request again(with, pay(), paid);
    ASSERT_TRUE(again.is_answered());
    EXPECT_EQ(again.client.status, 201) << options;
    EXPECT_THAT(again.client.lines, HasSubstr(std::string(remaining))) << options;
  }
}

TEST_F(proxy_key_phase, keeps_the_charge_of_a_replay_whatever_the_answer_was) {
  exchange_fixture with("policies: {p: {quota: 5, window: 1h, count: successful}}\n" +
                        keyed_route(api_, ", replay-cost: 1", ", limits: [p]"));
  run(with, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");  // which is given back
  one_request replayed(with, pay(), paid);
  ASSERT_TRUE(replayed.is_answered());
  EXPECT_EQ(replayed.client.status, 404);
  EXPECT_THAT(replayed.client.lines, HasSubstr(";r=4"));
  one_request other(with, pay("\"l\""), paid);
  ASSERT_TRUE(with.turn_until([&] { return api_.has(paid); }));
  api_.answer(created);
  ASSERT_TRUE(other.is_answered());
  EXPECT_THAT(other.client.lines, HasSubstr(";r=3"));
}

TEST_F(proxy_key_phase, leaves_the_key_free_when_a_quota_refuses_the_request) {
  exchange_fixture with("policies: {p: {quota: 1, window: 1h}}\n" +
                        keyed_route(api_, "", ", limits: [p]"));
  run(with);
  one_request refused(with, pay("\"l\""), paid);
  ASSERT_TRUE(refused.is_answered());
  EXPECT_EQ(refused.client.status, 429);
  EXPECT_EQ(with.counted(keyed_outcome::refused), 1U);
  EXPECT_EQ(with.shared.idempotency->store->used().records, 1U) << "nothing was claimed";
  one_request replayed(with, pay(), paid);
  ASSERT_TRUE(replayed.is_answered());
  EXPECT_EQ(replayed.client.status, 201) << "a replay costs nothing";
}

TEST_F(proxy_key_phase, waits_with_the_lookup_until_the_client_has_taken_other_answers) {
  exchange_fixture with(keyed_route(api_));
  one_request asked(with, pay());
  asked.client.takes = false;
  asked.body(paid, true);
  with.turn();
  EXPECT_FALSE(api_.has(paid));
  EXPECT_EQ(with.shared.idempotency->store->used().records, 0U);
  EXPECT_GT(with.shared.memory.buffered.load(), static_cast<std::int64_t>(sizeof(key_phase)))
      << "what waits is counted";
  asked.client.takes = true;
  asked->client_resumed();
  ASSERT_TRUE(with.turn_until([&] { return api_.has(paid); }));
}

TEST_F(proxy_key_phase, does_as_the_route_says_while_the_store_fails) {
  for (bool const passes : {false, true}) {
    scripted_upstream api;
    exchange_fixture with(keyed_route(api, passes ? ", on-store-failure: pass" : ""),
                          std::make_unique<failing_store>(failing_store::when::finding));
    one_request asked(with, pay(), paid);
    if (passes) {
      ASSERT_TRUE(with.turn_until([&] { return api.has(paid); }));
      EXPECT_THAT(api.received(), Not(HasSubstr("Idempotency-Attempt")));
      api.answer(created);
    }
    ASSERT_TRUE(asked.is_answered());
    EXPECT_EQ(asked.client.status, passes ? 201 : 503);
    EXPECT_EQ(asked.client.lines.find("Idempotency-Status: bypassed\r\n") != std::string::npos,
              passes);
    EXPECT_EQ(with.counted(passes ? keyed_outcome::bypassed : keyed_outcome::store_failed), 1U);
    EXPECT_EQ(with.metrics->idempotency_store_failures.value(), 1U);
  }
}

TEST_F(proxy_key_phase, sends_nothing_before_the_claim_is_made) {
  exchange_fixture with(keyed_route(api_),
                        std::make_unique<failing_store>(failing_store::when::claiming));
  one_request asked(with, pay(), paid);
  ASSERT_TRUE(asked.is_answered());
  EXPECT_EQ(asked.client.status, 503);
  EXPECT_THAT(asked.client.content, HasSubstr("\"code\":\"store-unavailable\""));
  with.turn();
  EXPECT_FALSE(api_.has(paid));
  EXPECT_EQ(api_.received(), "");
  EXPECT_EQ(with.on->current->routes.front().pool->in_flight(), 0) << "the connection is let go";
}

TEST_F(proxy_key_phase, gives_the_charge_back_when_the_claim_is_not_made) {
  exchange_fixture with(
      "policies: {p: {quota: 1, window: 1h}}\n" + keyed_route(api_, "", ", limits: [p]"),
      std::make_unique<failing_store>(failing_store::when::claiming));
  for (int i = 0; i < 3; ++i) {
    one_request asked(with, pay(), paid);
    ASSERT_TRUE(asked.is_answered());
    EXPECT_EQ(asked.client.status, 503) << "and not 429";
  }
}

TEST_F(proxy_key_phase, says_how_policies_stand_where_it_refuses) {
  exchange_fixture with("policies: {p: {quota: 5, window: 1h}}\n" +
                        keyed_route(api_, "", ", limits: [p]"));
  run(with);
  one_request reused(with, pay("\"k\"", "Bearer x", 3), "pai");
  ASSERT_TRUE(reused.is_answered());
  EXPECT_EQ(reused.client.status, 422);
  EXPECT_THAT(reused.client.lines, HasSubstr("RateLimit: \"p\";r=4"));
  one_request missing(with, pay(""));
  ASSERT_TRUE(missing.is_answered());
  EXPECT_EQ(missing.client.status, 400);
  EXPECT_THAT(missing.client.lines, HasSubstr("RateLimit: \"p\";r=4")) << "nothing is spent";
}

TEST_F(proxy_key_phase, gives_the_answer_when_it_cannot_be_recorded_and_records_it_later) {
  auto made = std::make_unique<failing_store>(failing_store::when::recording);
  auto& records = *made;
  exchange_fixture with(keyed_route(api_), std::move(made));
  one_request asked(with, pay(), paid);
  ASSERT_TRUE(with.turn_until([&] { return api_.has(paid); }));
  api_.answer(created);
  ASSERT_TRUE(asked.is_answered());
  EXPECT_EQ(asked.client.status, 201) << "it was carried out";
  EXPECT_EQ(with.metrics->idempotency_store_failures.value(), 1U);
  one_request again(with, pay(), paid);
  ASSERT_TRUE(again.is_answered());
  EXPECT_EQ(again.client.status, 409) << "its record says that it runs";
  EXPECT_FALSE(api_.has(paid));
  records.recover();
  ASSERT_TRUE(with.turn_until([&] { return records.used().response_octets > 0; }));
  one_request replayed(with, pay(), paid);
  ASSERT_TRUE(replayed.is_answered());
  EXPECT_EQ(replayed.client.status, 201);
}

TEST_F(proxy_key_phase, sends_nothing_again_that_it_has_under_way_when_the_store_loses_it) {
  auto made = std::make_unique<failing_store>();
  auto& records = *made;
  exchange_fixture with(keyed_route(api_), std::move(made));
  one_request first(with, pay(), paid);
  ASSERT_TRUE(with.turn_until([&] { return api_.has(paid); }));
  records.lose_all();
  one_request second(with, pay(), paid);
  ASSERT_TRUE(second.is_answered());
  EXPECT_EQ(second.client.status, 409);
  EXPECT_EQ(api_.connections(), 1);
}

TEST_F(proxy_key_phase, answers_503_when_the_store_has_lost_the_response_to_replay) {
  auto made = std::make_unique<failing_store>();
  auto& records = *made;
  exchange_fixture with(keyed_route(api_), std::move(made));
  run(with);
  records.lose_responses();
  one_request again(with, pay(), paid);
  ASSERT_TRUE(again.is_answered());
  EXPECT_EQ(again.client.status, 503);
  EXPECT_THAT(again.client.content, HasSubstr("\"code\":\"store-unavailable\""));
  EXPECT_THAT(again.client.lines, HasSubstr("Retry-After: 1\r\n"));
  EXPECT_EQ(with.counted(keyed_outcome::store_failed), 1U);
  EXPECT_EQ(with.metrics->idempotency_store_failures.value(), 1U);
  EXPECT_FALSE(api_.has(paid));
}

TEST_F(proxy_key_phase, forgets_what_it_had_under_way_when_that_is_over) {
  auto made = std::make_unique<failing_store>();
  auto& records = *made;
  exchange_fixture with(keyed_route(api_), std::move(made));
  run(with);
  records.lose_all();
  one_request again(with, pay(), paid);
  EXPECT_TRUE(with.turn_until([&] { return api_.has(paid); })) << "nothing is known of the key";
}

}  // namespace
}  // namespace tidegate::gateway
