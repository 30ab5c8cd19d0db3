// SPDX-License-Identifier: Apache-2.0
#include <tidegate/idempotency/decide.hpp>

#include <gtest/gtest.h>

namespace tidegate::TIDEGATE_ABI::idempotency {
namespace {

using namespace std::chrono_literals;
using enum record_state;

constexpr wall_time start{1'700'000'000'000ms};

auto const test_secret = secret(std::as_bytes(std::span(std::string_view("test"))));
auto const key = test_secret.lookup("tenant", "key");

auto fingerprint_of(std::string_view method, std::string_view path, std::string_view query,
                    std::string_view body, fingerprint_rule const& rule = {}) -> fingerprint {
  fingerprinter maker(test_secret, rule, method, path, query);
  if (rule.streams()) {
    maker.update(body);
  }
  return maker.finish(body);
}

auto request_of(fencing_token token, std::string_view body = "a") -> request_facts {
  return {.key = key, .fingerprint = fingerprint_of("POST", "/orders", "", body), .token = token};
}

/// A store of one key, which does what is said of stores and nothing else.
struct one_key {
  std::optional<record> stored;
  std::optional<stored_response> response;

  auto apply(change const& c) -> bool {
    EXPECT_EQ(c.key, key);
    if (!holds(c.when, find())) {
      return false;
    }
    stored = c.next;
    response = c.response;
    if (stored) {
      std::string octets;
      append_record(octets, *stored);
      EXPECT_EQ(read_record(octets), *stored) << "every transition makes what can be stored";
    }
    return true;
  }
  [[nodiscard]] auto find() const -> record const* { return stored ? &*stored : nullptr; }
};

/// Claims the key with `token` at `now` and returns the record.
auto claimed(one_key& store, fencing_token token, wall_time now = start, policy const& p = {})
    -> record {
  auto const d = decide(store.find(), request_of(token), p, now);
  EXPECT_EQ(d.verdict, verdict::run);
  EXPECT_TRUE(d.claim.has_value() && store.apply(*d.claim));
  return *store.stored;
}

auto const answer = stored_response{201, {{"Location", "/orders/1"}}, "{}", 2, true};
auto const streamed = stored_response{200, {}, "", 9, false};

/// The store in every state that a record can be in.
auto in_state(record_state state) -> one_key {
  one_key store;
  auto const mine = claimed(store, 1);
  switch (state) {
    case dispatched: break;
    case completed: EXPECT_TRUE(store.apply(complete(key, mine, answer, start))); break;
    case unknown:
      EXPECT_TRUE(store.apply(mark_unknown(key, mine, unknown_reason::timed_out, start)));
      break;
    case tombstone:
      EXPECT_TRUE(store.apply(complete(key, mine, answer, start)));
      EXPECT_TRUE(store.apply(expire(key, *store.stored, start + 24h).value()));
      break;
  }
  EXPECT_EQ(store.stored->state, state);
  return store;
}

// ---- deciding ----

TEST(idempotency_decide, runs_a_first_request) {
  auto const d = decide(nullptr, request_of(7), {}, start);
  ASSERT_EQ(d.verdict, verdict::run);
  ASSERT_TRUE(d.claim && d.claim->next);
  EXPECT_EQ(d.claim->when, condition{}) << "only if there is still no record";
  auto const& next = *d.claim->next;
  EXPECT_EQ(next.state, dispatched);
  EXPECT_EQ(next.token, 7U);
  EXPECT_EQ(next.attempt, 1U);
  EXPECT_EQ(next.created, start);
  EXPECT_EQ(next.lease_until, start + 30s);
  EXPECT_EQ(next.fingerprint, request_of(7).fingerprint);
}

TEST(idempotency_decide, lets_only_one_of_two_first_requests_run) {
  one_key store;
  auto const one = decide(nullptr, request_of(1), {}, start);
  auto const two = decide(nullptr, request_of(2), {}, start);
  EXPECT_TRUE(store.apply(*one.claim));
  EXPECT_FALSE(store.apply(*two.claim));
  EXPECT_EQ(decide(store.find(), request_of(2), {}, start).code, problem_code::in_flight);
}

TEST(idempotency_decide, answers_by_the_state_of_the_record) {
  auto const decided = [](record_state state, wall_time now = start) {
    return decide(in_state(state).find(), request_of(2), {}, now);
  };
  EXPECT_EQ(decided(completed).verdict, verdict::replay);
  auto const in_flight = decided(dispatched);
  EXPECT_EQ(in_flight.verdict, verdict::refuse);
  EXPECT_EQ(in_flight.code, problem_code::in_flight);
  EXPECT_EQ(in_flight.retry_after, 1s);
  auto const lost = decided(unknown);
  EXPECT_EQ(lost.verdict, verdict::refuse);
  EXPECT_EQ(lost.code, problem_code::outcome_unknown);
  EXPECT_EQ(lost.retry_after, 60s);
  auto const expired = decided(tombstone, start + 24h);
  EXPECT_EQ(expired.verdict, verdict::refuse);
  EXPECT_EQ(expired.code, problem_code::result_expired);
  EXPECT_EQ(expired.retry_after, 0s);
}

TEST(idempotency_decide, refuses_another_request_in_every_state) {
  using enum request_part;
  struct row {
    fingerprint other;
    request_parts differs;
  };
  for (auto const& [other, differs] : {
           row{fingerprint_of("PATCH", "/orders", "", "a"), {method}},
           {fingerprint_of("POST", "/order", "", "a"), {path}},
           {fingerprint_of("POST", "/orders", "x", "a"), {query}},
           {fingerprint_of("POST", "/orders", "", "b"), {body}},
           {fingerprint_of("PATCH", "/order", "x", "b"), {method, path, query, body}},
       }) {
    for (auto state : {dispatched, completed, unknown, tombstone}) {
      policy const eager{
          .wait_in_flight = true, .upstream_deduplicates = true, .retry_unknown = true};
      auto const d =
          decide(in_state(state).find(), {.key = key, .fingerprint = other}, eager, start + 1s);
      EXPECT_EQ(d.verdict, verdict::refuse) << name_of(state);
      EXPECT_EQ(d.code, problem_code::key_reused) << name_of(state);
      EXPECT_EQ(d.differs, differs) << name_of(state);
    }
  }
}

TEST(idempotency_decide, asks_for_the_fingerprint_by_the_rule_of_the_record) {
  one_key store = in_state(completed);
  auto const json = fingerprint_of("POST", "/orders", "", "a", fingerprint_rule::json());
  EXPECT_EQ(decide(store.find(), {.key = key, .fingerprint = json}, {}, start).verdict,
            verdict::needs_other_fingerprint);
  // A forgotten record has no say any more.
  EXPECT_EQ(decide(store.find(), {.key = key, .fingerprint = json}, {}, start + 192h).verdict,
            verdict::run);
}

TEST(idempotency_decide, lets_duplicates_wait_where_that_is_wanted_and_there_is_room) {
  auto const store = in_state(dispatched);
  policy const waiting{.wait_in_flight = true, .waiters_max = 2};
  auto request = request_of(2);
  request.waiters = 1;
  EXPECT_EQ(decide(store.find(), request, waiting, start).verdict, verdict::wait);
  EXPECT_EQ(decide(store.find(), request, {}, start).code, problem_code::in_flight);
  request.prefers_wait = true;
  EXPECT_EQ(decide(store.find(), request, {}, start).verdict, verdict::wait);
  request.waiters = 2;
  EXPECT_EQ(decide(store.find(), request, waiting, start).code, problem_code::in_flight);
}

TEST(idempotency_decide, takes_a_lease_that_has_ended_for_an_unknown_outcome) {
  auto const store = in_state(dispatched);
  EXPECT_EQ(decide(store.find(), request_of(2), {}, start + 30s - 1ms).code,
            problem_code::in_flight);
  EXPECT_EQ(decide(store.find(), request_of(2), {}, start + 30s).code,
            problem_code::outcome_unknown);
}

TEST(idempotency_decide, runs_an_unknown_outcome_again_only_where_the_upstream_deduplicates) {
  auto store = in_state(unknown);
  for (auto const& p :
       {policy{}, policy{.retry_unknown = true}, policy{.upstream_deduplicates = true}}) {
    EXPECT_EQ(decide(store.find(), request_of(2), p, start).code, problem_code::outcome_unknown);
  }
  policy const retrying{.upstream_deduplicates = true, .retry_unknown = true};
  auto const d = decide(store.find(), request_of(2), retrying, start + 5s);
  ASSERT_EQ(d.verdict, verdict::run);
  EXPECT_EQ(d.claim->when, (condition{1, {unknown}}));
  EXPECT_TRUE(store.apply(*d.claim));
  EXPECT_EQ(store.stored->attempt, 2U);
  EXPECT_EQ(store.stored->token, 2U);
  EXPECT_EQ(store.stored->created, start);
  EXPECT_EQ(store.stored->lease_until, start + 35s);
  // Of two that try again, one runs.
  EXPECT_FALSE(
      store.apply(*decide(in_state(unknown).find(), request_of(3), retrying, start).claim));

  auto abandoned = in_state(dispatched);
  auto const later = decide(abandoned.find(), request_of(2), retrying, start + 30s);
  ASSERT_EQ(later.verdict, verdict::run);
  EXPECT_TRUE(abandoned.apply(*later.claim));
  EXPECT_EQ(abandoned.stored->attempt, 2U);
}

TEST(idempotency_decide, never_runs_again_what_could_not_be_kept) {
  one_key store;
  auto const mine = claimed(store, 1);
  EXPECT_TRUE(store.apply(complete(key, mine, streamed, start)));
  EXPECT_EQ(store.response, streamed) << "the fields are kept";
  EXPECT_EQ(decide(store.find(), request_of(2), {}, start).code,
            problem_code::response_not_replayable);
}

TEST(idempotency_decide, replays_until_the_ttl_then_remembers_then_forgets) {
  auto const store = in_state(completed);
  auto const at = [&](std::chrono::milliseconds t) {
    return decide(store.find(), request_of(2), {}, start + t);
  };
  EXPECT_EQ(at(24h - 1ms).verdict, verdict::replay);
  EXPECT_EQ(at(24h).code, problem_code::result_expired) << "whether or not anybody cleaned up";
  EXPECT_EQ(at(192h - 1ms).code, problem_code::result_expired);
  ASSERT_EQ(at(192h).verdict, verdict::run);
  EXPECT_EQ(at(192h).claim->when, (condition{1, {completed}}));
  EXPECT_EQ(at(192h).claim->next->attempt, 1U);
}

TEST(idempotency_decide, never_runs_again_what_was_overtaken) {
  EXPECT_EQ(decide_overtaken(nullptr, request_of(1), {}, start).code,
            problem_code::outcome_unknown);
  policy const retrying{.upstream_deduplicates = true, .retry_unknown = true};
  auto const lost = decide_overtaken(in_state(unknown).find(), request_of(2), retrying, start);
  EXPECT_EQ(lost.verdict, verdict::refuse);
  EXPECT_EQ(lost.code, problem_code::outcome_unknown);
  EXPECT_EQ(decide_overtaken(in_state(completed).find(), request_of(2), {}, start).verdict,
            verdict::replay);
  EXPECT_EQ(decide_overtaken(in_state(dispatched).find(), request_of(2), {}, start).code,
            problem_code::in_flight);
}

// ---- transitions ----

TEST(idempotency_change, of_an_owner_that_was_overtaken_changes_nothing) {
  auto store = in_state(unknown);
  auto const first = *in_state(dispatched).stored;
  policy const retrying{.upstream_deduplicates = true, .retry_unknown = true};
  auto const second = claimed(store, 2, start, retrying);
  for (auto const& late : {
           complete(key, first, answer, start),
           release(key, first, start),
           mark_unknown(key, first, unknown_reason::no_answer, start),
           renew(key, first, {}, start),
       }) {
    EXPECT_FALSE(store.apply(late));
    EXPECT_EQ(*store.stored, second);
  }
  EXPECT_TRUE(store.apply(complete(key, second, answer, start)));
  for (auto const& late : {
           complete(key, second, streamed, start),
           release(key, second, start),
           mark_unknown(key, second, unknown_reason::no_answer, start),
           renew(key, second, {}, start),
       }) {
    EXPECT_FALSE(store.apply(late)) << "what is completed stays";
  }
  EXPECT_EQ(store.response, answer);
}

TEST(idempotency_change, of_a_key_that_was_released_and_claimed_again_needs_the_new_token) {
  one_key store;
  auto const first = claimed(store, 1);
  EXPECT_TRUE(store.apply(release(key, first, start)));
  EXPECT_FALSE(store.stored.has_value());
  EXPECT_FALSE(store.apply(complete(key, first, answer, start))) << "there is nothing to complete";
  auto const second = claimed(store, 2);
  EXPECT_EQ(second.attempt, 1U);
  EXPECT_FALSE(store.apply(complete(key, first, answer, start)));
  EXPECT_FALSE(store.apply(release(key, first, start)));
}

TEST(idempotency_change, resolves_an_unknown_outcome_by_the_late_answer_of_the_same_attempt) {
  auto store = in_state(unknown);
  auto const mine = *in_state(dispatched).stored;
  EXPECT_TRUE(store.apply(complete(key, mine, answer, start + 1h)));
  EXPECT_EQ(store.stored->state, completed);
  EXPECT_EQ(store.stored->reason, unknown_reason::none);
  EXPECT_EQ(expires(*store.stored), start + 25h);
  EXPECT_EQ(decide(store.find(), request_of(2), {}, start + 1h).verdict, verdict::replay);
}

TEST(idempotency_change, gives_a_later_attempt_back_to_unknown) {
  auto store = in_state(unknown);
  policy const retrying{.upstream_deduplicates = true, .retry_unknown = true};
  auto const second = claimed(store, 2, start, retrying);
  EXPECT_TRUE(store.apply(release(key, second, start + 1s)));
  ASSERT_TRUE(store.stored.has_value()) << "the first attempt may have been carried out";
  EXPECT_EQ(store.stored->state, unknown);
  EXPECT_EQ(store.stored->reason, unknown_reason::timed_out);
  EXPECT_EQ(store.stored->attempt, 2U);
}

TEST(idempotency_change, renews_the_lease_of_a_living_owner) {
  auto store = in_state(dispatched);
  auto const mine = *store.stored;
  EXPECT_TRUE(store.apply(renew(key, mine, {}, start + 10s)));
  EXPECT_EQ(store.stored->lease_until, start + 40s);
  EXPECT_TRUE(store.apply(complete(key, mine, answer, start + 35s)));
}

TEST(idempotency_change, ages_records_one_step_at_a_time) {
  EXPECT_EQ(expire(key, *in_state(dispatched).stored, start + 30s - 1ms), std::nullopt);
  EXPECT_EQ(expire(key, *in_state(completed).stored, start + 24h - 1ms), std::nullopt);
  EXPECT_EQ(expire(key, *in_state(unknown).stored, start + 192h - 1ms), std::nullopt);
  EXPECT_EQ(expire(key, *in_state(tombstone).stored, start + 192h - 1ms), std::nullopt);

  auto lapsed = in_state(dispatched);
  EXPECT_TRUE(lapsed.apply(expire(key, *lapsed.stored, start + 1000h).value()));
  ASSERT_TRUE(lapsed.stored.has_value()) << "never away at once";
  EXPECT_EQ(lapsed.stored->state, unknown);
  EXPECT_EQ(lapsed.stored->reason, unknown_reason::gateway_stopped);
  EXPECT_TRUE(lapsed.apply(expire(key, *lapsed.stored, start + 1000h).value()));
  EXPECT_FALSE(lapsed.stored.has_value());

  auto expired = in_state(completed);
  EXPECT_TRUE(expired.apply(expire(key, *expired.stored, start + 24h).value()));
  EXPECT_EQ(expired.stored->state, tombstone);
  EXPECT_EQ(expired.stored->status, 201);
  EXPECT_EQ(expired.response, std::nullopt) << "the response goes";
  EXPECT_EQ(forgotten(*expired.stored), start + 192h);
  EXPECT_TRUE(expired.apply(expire(key, *expired.stored, start + 192h).value()));
  EXPECT_FALSE(expired.stored.has_value());

  auto both = in_state(completed);
  EXPECT_TRUE(both.apply(expire(key, *both.stored, start + 192h).value()));
  EXPECT_FALSE(both.stored.has_value());
}

TEST(idempotency_change, lets_an_operator_resolve_an_unknown_outcome_and_nothing_else) {
  for (auto state : {dispatched, completed, tombstone}) {
    EXPECT_EQ(resolve(key, *in_state(state).stored, resolution::executed, start).error(),
              admin_fault::not_unknown);
  }
  auto executed = in_state(unknown);
  EXPECT_TRUE(executed.apply(*resolve(key, *executed.stored, resolution::executed, start + 1h)));
  EXPECT_EQ(decide(executed.find(), request_of(2), {}, start + 1h).code,
            problem_code::response_not_replayable);
  EXPECT_EQ(decide(executed.find(), request_of(2), {}, start + 25h).code,
            problem_code::result_expired);

  auto not_executed = in_state(dispatched);
  auto const mine = *not_executed.stored;
  EXPECT_TRUE(not_executed.apply(*resolve(key, mine, resolution::not_executed, start + 30s)));
  EXPECT_EQ(decide(not_executed.find(), request_of(2), {}, start + 30s).verdict, verdict::run);
  EXPECT_FALSE(not_executed.apply(complete(key, mine, answer, start + 31s)));
  EXPECT_FALSE(message(admin_fault::not_unknown).empty());
}

TEST(idempotency_change, lets_an_operator_purge_all_but_what_is_running) {
  EXPECT_EQ(purge(key, *in_state(dispatched).stored, start).error(), admin_fault::in_flight);
  for (auto state : {completed, unknown, tombstone}) {
    auto store = in_state(state);
    EXPECT_TRUE(store.apply(*purge(key, *store.stored, start + 24h)));
    EXPECT_FALSE(store.stored.has_value());
  }
  auto lapsed = in_state(dispatched);
  EXPECT_TRUE(lapsed.apply(*purge(key, *lapsed.stored, start + 30s)));
  EXPECT_NE(message(admin_fault::in_flight), message(admin_fault::not_unknown));
}

// ---- judging exchanges ----

TEST(idempotency_judge, takes_an_answer_for_what_the_contract_says) {
  for (int status = 0; status < 1000; ++status) {
    auto const j = judge(exchange_end::answered, status, {});
    auto const stored = judge(exchange_end::answered, status, {.store_5xx = true});
    switch (status) {
      case 401:
      case 403:
      case 407:
      case 408:
      case 421:
      case 425:
      case 429:
        EXPECT_EQ(j, judgement{outcome::released}) << status;
        EXPECT_EQ(stored, j) << status;
        break;
      case 502:
      case 503:
      case 504:
        EXPECT_EQ(j, (judgement{outcome::unknown, unknown_reason::upstream_failed})) << status;
        EXPECT_EQ(stored, judgement{outcome::completed}) << status;
        break;
      default:
        EXPECT_EQ(j.outcome, status >= 200 && status <= 599 ? outcome::completed : outcome::unknown)
            << status;
        EXPECT_EQ(stored, j) << status;
    }
  }
}

TEST(idempotency_judge, gives_back_only_on_proof) {
  struct row {
    exchange_end end;
    judgement judged;
    int status;
  };
  for (auto const& [end, judged, status] : {
           row{exchange_end::not_sent, {outcome::released}, 502},
           {exchange_end::not_processed, {outcome::released}, 502},
           {exchange_end::no_answer, {outcome::unknown, unknown_reason::no_answer}, 502},
           {exchange_end::cut_answer, {outcome::unknown, unknown_reason::cut_answer}, 502},
           {exchange_end::timed_out, {outcome::unknown, unknown_reason::timed_out}, 504},
           {exchange_end::stopped, {outcome::unknown, unknown_reason::gateway_stopped}, 502},
       }) {
    for (int answered : {0, 200, 429}) {
      EXPECT_EQ(judge(end, answered, {.store_5xx = true}), judged);
    }
    EXPECT_EQ(first_status(end), status);
  }
}

TEST(idempotency_names, of_states_and_reasons_are_told_apart) {
  for (auto state : {dispatched, completed, unknown, tombstone}) {
    EXPECT_FALSE(name_of(state).empty());
  }
  EXPECT_EQ(name_of(unknown_reason::none), "none");
  EXPECT_EQ(name_of(unknown_reason::gateway_stopped), "gateway-stopped");
}

}  // namespace
}  // namespace tidegate::TIDEGATE_ABI::idempotency
