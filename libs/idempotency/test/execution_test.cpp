// SPDX-License-Identifier: Apache-2.0
#include <tidegate/idempotency/execution.hpp>

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// Event in, action out: one table for each stage, whose rows begin with a machine in that stage.
namespace tidegate::TIDEGATE_ABI::idempotency {
namespace {

using namespace std::chrono_literals;

constexpr wall_time start{1'000'000ms};

[[nodiscard]] auto fingerprint_of(std::string_view body, std::string rule = "b") -> fingerprint {
  fingerprint made{.rule = std::move(rule)};
  made.parts.back().front() = static_cast<std::byte>(body.front());
  return made;
}

/// A machine with what its events need.
struct trace {
  explicit trace(execution_options const& options = {.tries_max = 2, .body_max = 4})
      : run(rules, options) {}

  policy rules{.keys_max = 7};
  execution run;
  wall_time now = start;
  lookup_result known;
  record other{
      .token = 9, .lease_until = start + 1h, .ttl = 1h, .fingerprint = fingerprint_of("a")};

  auto content() -> action {
    return run.content_complete({.fingerprint = fingerprint_of("a"), .token = 5});
  }
  auto find(record const* stored = nullptr) -> action {
    known = {.stored = stored};
    return run.found(known, now);
  }
  /// The record of another request, as it would be in `state`.
  auto find_other(record_state state) -> action {
    other.state = state;
    other.changed = now;
    other.replayable = state == record_state::completed;
    return find(&other);
  }
  auto claim_made() -> action { return run.claim_applied(true, known, 0, now); }
  auto recorded(bool made, record const* stored = nullptr) -> action {
    known = {.stored = stored};
    return run.record_applied(made, known, now);
  }
  auto answer(std::uint16_t status, std::string_view body = "ok") -> action {
    run.answer_head(status, {});
    (void)run.answer_body(body, body_part::more, now);
    return run.answer_body("", body_part::last, now);
  }

  // Each goes from the beginning to its stage.
  auto lookup() -> trace& { return done(content()); }
  auto waiting() -> trace& {
    rules.wait_in_flight = true;
    return lookup().done(find_other(record_state::dispatched));
  }
  auto admission() -> trace& { return lookup().done(find()); }
  auto connecting() -> trace& {
    return admission().done(run.admitted({"pay", "", "", "", ""}, now));
  }
  auto claiming() -> trace& { return connecting().done(run.connected(now)); }
  auto running() -> trace& { return claiming().done(claim_made()); }
  auto recording() -> trace& { return running().done(answer(201)); }
  auto recording_large() -> trace& {
    run_large();
    return *this;
  }
  void run_large() {
    (void)running();
    run.answer_head(200, {});
    (void)run.answer_body("large", body_part::more, now);
  }
  auto streaming() -> trace& { return recording_large().done(recorded(true)); }
  auto bypassed() -> trace& {
    return lookup()
        .done(run.store_failed(store_failure::unavailable, now))
        .done(run.admitted({}, now))
        .done(run.connected(now));
  }

  auto done(action const& /*performed*/) -> trace& { return *this; }
};

constexpr std::string_view kinds[] = {"none",
                                      "find",
                                      "fingerprint",
                                      "join",
                                      "wait",
                                      "admit",
                                      "connect",
                                      "claim",
                                      "send",
                                      "record",
                                      "renew",
                                      "report_late",
                                      "detach",
                                      "stream",
                                      "end_stream",
                                      "abort_stream",
                                      "answer",
                                      "answer_unknown",
                                      "answer_unreachable",
                                      "replay",
                                      "refuse",
                                      "finish"};

[[nodiscard]] auto text_of(change const& c) -> std::string {
  std::string text(!c.next ? "removed" : name_of(c.next->state));
  text += c.when.token ? " of " + std::to_string(*c.when.token) : " of none";
  return c.response && !c.response->body_kept ? text + " without body" : text;
}

/// An action as one line: its kind with what belongs to it, then what is done before it.
[[nodiscard]] auto text_of(action const& a) -> std::string {
  std::string text(kinds[static_cast<std::size_t>(a.kind)]);
  if (a.kind == action_kind::refuse) {
    text.append(" ").append(name_of(a.code));
    text += a.retry_after > 0s ? " " + std::to_string(a.retry_after.count()) + "s" : "";
    text += a.detail.empty() ? "" : " \"" + std::string(a.detail.substr(0, 23)) + "\"";
  }
  text += a.kind == action_kind::answer_unknown ? " " + std::to_string(first_status(a.end)) : "";
  text += a.fresh ? " fresh" : "";
  text += a.stream == stream_end::whole ? " whole" : a.stream == stream_end::cut ? " cut" : "";
  text += a.rule_text.empty() ? "" : " by " + std::string(a.rule_text);
  text += a.change != nullptr ? " " + text_of(*a.change) : "";
  text += a.drops_connection ? ", drops" : "";
  text += a.leaves_waiters ? ", leaves" : "";
  text += a.refunds ? ", refunds" : "";
  text += a.settles ? ", settles" : "";
  text += a.bypasses ? ", bypasses" : "";
  text += a.unknown ? ", unknown " + std::string(name_of(*a.unknown)) : "";
  text += a.queued != nullptr ? ", queues " + text_of(*a.queued) : "";
  return text;
}

struct row {
  std::string_view name;
  std::function<action(trace&)> event;
  std::string_view expected;
  stage then;
};

constexpr execution_options usual{.tries_max = 2, .body_max = 4};
constexpr execution_options bypassing{.bypasses_failed_store = true, .tries_max = 2, .body_max = 4};
constexpr execution_options service{.connects = false, .tries_max = 1, .body_max = 4};

void expect(std::vector<row> const& rows, trace& (trace::*begin)(),
            execution_options const& options = usual) {
  for (auto const& each : rows) {
    trace at(options);
    if (begin != nullptr) {
      (void)(at.*begin)();
    }
    EXPECT_EQ(text_of(each.event(at)), each.expected) << each.name;
    EXPECT_EQ(at.run.at(), each.then) << each.name;
  }
}

auto gone(trace& t) -> action {
  return t.run.client_gone(t.now);
}
auto store_fails(store_failure why) -> std::function<action(trace&)> {
  return [why](trace& t) { return t.run.store_failed(why, t.now); };
}
auto upstream_fails(upstream_fault why) -> std::function<action(trace&)> {
  return [why](trace& t) { return t.run.upstream_failed(why, t.now); };
}
auto other_is(record_state state) -> std::function<action(trace&)> {
  return [state](trace& t) { return t.find_other(state); };
}
auto ignored(trace& t) -> std::vector<std::string> {
  return {text_of(t.run.woken()), text_of(t.run.connected(t.now)), text_of(t.find()),
          text_of(t.run.admitted({}, t.now))};
}

TEST(idempotency_execution, asks_for_the_record_once_the_content_is_complete) {
  expect(
      {{"complete", [](trace& t) { return t.content(); }, "find", stage::lookup},
       {"too large", [](trace& t) { return t.run.content_refused(problem_code::body_too_large); },
        "refuse body-too-large, drops", stage::over},
       {"not kept",
        [](trace& t) { return t.run.content_refused(problem_code::store_unavailable, "No room."); },
        "refuse store-unavailable 1s \"No room.\", drops", stage::over},
       {"client gone", gone, "finish, drops", stage::over},
       {"a timer", [](trace& t) { return t.run.timer(true); }, "none", stage::content}},
      nullptr);
}

TEST(idempotency_execution, does_after_the_lookup_what_the_record_says) {
  expect({{"absent", [](trace& t) { return t.find(); }, "admit", stage::admission},
          {"dispatched", other_is(record_state::dispatched), "refuse in-flight 1s, drops",
           stage::over},
          {"completed", other_is(record_state::completed), "replay", stage::over},
          {"unknown", other_is(record_state::unknown), "refuse outcome-unknown 60s, drops",
           stage::over},
          {"tombstone", other_is(record_state::tombstone), "refuse result-expired, drops",
           stage::over},
          {"R6: lease has ended",
           [](trace& t) {
             t.now += 2h;
             t.other.ttl = t.other.tombstone = 10h;
             t.other.changed = t.now;
             return t.find(&t.other);
           },
           "refuse outcome-unknown 60s, drops", stage::over},
          {"R7: another request",
           [](trace& t) {
             t.other.fingerprint = fingerprint_of("b");
             return t.find_other(record_state::completed);
           },
           "refuse key-reused, drops", stage::over},
          {"waits where the route says so",
           [](trace& t) {
             t.rules.wait_in_flight = true;
             return t.find_other(record_state::dispatched);
           },
           "join", stage::waiting},
          {"too many wait",
           [](trace& t) {
             t.rules.wait_in_flight = true;
             t.known = {.stored = &t.other, .waiters = 64};
             t.other.changed = t.now;
             return t.run.found(t.known, t.now);
           },
           "refuse in-flight 1s, drops", stage::over},
          {"this process has it under way, whatever the store has lost",
           [](trace& t) {
             t.other.lease_until = {};
             t.other.changed = t.now;
             t.known = {.running = t.other};
             return t.run.found(t.known, t.now);
           },
           "refuse in-flight 1s, drops", stage::over},
          {"made by another rule",
           [](trace& t) {
             t.other.fingerprint = fingerprint_of("a", "j");
             return t.find_other(record_state::completed);
           },
           "fingerprint by j", stage::lookup},
          {"client gone", gone, "finish, drops", stage::over}},
         &trace::lookup);
}

TEST(idempotency_execution, compares_by_the_rule_of_the_record_and_claims_by_its_own) {
  trace t;
  (void)t.lookup();
  t.other.fingerprint = fingerprint_of("a", "j");
  (void)t.find_other(record_state::completed);
  auto const same = fingerprint_of("a", "j");
  EXPECT_EQ(text_of(t.run.found(t.known, t.now, &same)), "replay");

  trace again;
  (void)again.lookup();
  again.rules.upstream_deduplicates = again.rules.retry_unknown = true;
  again.other.fingerprint = fingerprint_of("a", "j");
  (void)again.find_other(record_state::unknown);
  EXPECT_EQ(text_of(again.run.found(again.known, again.now, &same)), "admit");
  (void)again.run.admitted({}, again.now);
  auto const claim = again.run.connected(again.now);
  EXPECT_EQ(text_of(claim), "claim dispatched of 9");
  EXPECT_EQ(claim.change->next->fingerprint, fingerprint_of("a"));
  EXPECT_EQ(claim.change->next->attempt, 2U);
}

TEST(idempotency_execution, runs_nothing_or_unprotected_when_the_store_cannot_be_asked) {
  constexpr auto full = "refuse store-unavailable 60s \"The request was not run\", drops";
  expect({{"unavailable", store_fails(store_failure::unavailable),
           "refuse store-unavailable 1s, drops", stage::over},
          {"damaged", store_fails(store_failure::damaged), "refuse store-unavailable 1s, drops",
           stage::over},
          {"no space", store_fails(store_failure::no_space), full, stage::over}},
         &trace::lookup);
  expect({{"unavailable", store_fails(store_failure::unavailable), "admit, drops, bypasses",
           stage::admission},
          {"damaged is never passed", store_fails(store_failure::damaged),
           "refuse store-unavailable 1s, drops", stage::over}},
         &trace::lookup, bypassing);
  expect({{"while it waits", store_fails(store_failure::unavailable),
           "admit, drops, leaves, bypasses", stage::admission}},
         &trace::waiting, bypassing);
}

TEST(idempotency_execution, waits_for_the_answer_to_another_request) {
  expect({{"still running", other_is(record_state::dispatched), "wait", stage::waiting},
          {"answered", other_is(record_state::completed), "replay, leaves", stage::over},
          {"given back", [](trace& t) { return t.find(); }, "admit, leaves", stage::admission},
          {"woken", [](trace& t) { return t.run.woken(); }, "find", stage::waiting},
          {"woken for nothing",
           [](trace& t) {
             (void)t.run.woken();
             return t.find_other(record_state::dispatched);
           },
           "join", stage::waiting},
          {"looks again", [](trace& t) { return t.run.timer(false); }, "find", stage::waiting},
          {"waited long enough", [](trace& t) { return t.run.timer(true); },
           "refuse in-flight 1s, drops, leaves", stage::over},
          {"store fails", store_fails(store_failure::unavailable),
           "refuse store-unavailable 1s, drops, leaves", stage::over},
          {"client gone", gone, "finish, drops, leaves", stage::over}},
         &trace::waiting);
}

TEST(idempotency_execution, connects_when_it_is_admitted) {
  expect({{"admitted", [](trace& t) { return t.run.admitted({}, t.now); }, "connect",
           stage::connecting},
          {"refused",
           [](trace& t) {
             t.run.refused();
             return action{};
           },
           "none", stage::over},
          {"client gone", gone, "finish, drops", stage::over}},
         &trace::admission);
  expect({{"a service needs no connection", [](trace& t) { return t.run.admitted({}, t.now); },
           "claim dispatched of none", stage::claiming}},
         &trace::admission, service);
}

TEST(idempotency_execution, claims_when_it_is_connected) {
  expect({{"connected", [](trace& t) { return t.run.connected(t.now); }, "claim dispatched of none",
           stage::claiming},
          {"refused once", upstream_fails(upstream_fault::not_connected), "connect fresh",
           stage::connecting},
          {"refused as often as it may be",
           [](trace& t) {
             (void)t.run.upstream_failed(upstream_fault::not_connected, t.now);
             return t.run.upstream_failed(upstream_fault::not_connected, t.now);
           },
           "answer_unreachable", stage::over},
          {"stale connections are not counted",
           [](trace& t) {
             (void)t.run.upstream_failed(upstream_fault::not_connected, t.now);
             return t.run.upstream_failed(upstream_fault::stale, t.now);
           },
           "connect fresh", stage::connecting},
          {"no connection to be had", upstream_fails(upstream_fault::no_connection),
           "answer_unreachable", stage::over},
          {"client gone", gone, "finish, drops, refunds", stage::over}},
         &trace::connecting);
}

TEST(idempotency_execution, begins_the_lease_when_it_claims_and_says_what_the_request_was_for) {
  trace t;
  (void)t.connecting();
  t.now += 5s;
  auto const claim = t.run.connected(t.now);
  EXPECT_EQ(claim.change->next->created, t.now);
  EXPECT_EQ(claim.change->next->lease_until, t.now + t.rules.lease);
  EXPECT_EQ(claim.change->next->origin.route, "pay");
  EXPECT_EQ(claim.change->next->token, 5U);
  EXPECT_EQ(claim.change->scope_keys_max, 7U);
}

TEST(idempotency_execution, sends_when_the_claim_is_durable) {
  auto const not_made = [](record_state state) {
    return [state](trace& t) {
      t.other.state = state;
      t.other.changed = t.now;
      t.other.replayable = true;
      t.known = {.stored = &t.other};
      return t.run.claim_applied(false, t.known, 6, t.now);
    };
  };
  expect({{"R1: made", [](trace& t) { return t.claim_made(); }, "send", stage::running},
          {"made, but the connection has ended",
           [](trace& t) {
             (void)t.run.upstream_failed(upstream_fault::closed, t.now);
             return t.claim_made();
           },
           "connect fresh", stage::connecting},
          {"another was faster", not_made(record_state::dispatched),
           "refuse in-flight 1s, drops, refunds", stage::over},
          {"another has been answered", not_made(record_state::completed), "replay, drops, refunds",
           stage::over},
          {"another has gone already",
           [](trace& t) {
             t.known = {};
             return t.run.claim_applied(false, t.known, 6, t.now);
           },
           "admit, drops, refunds", stage::admission},
          {"another was faster, and the client is gone",
           [&](trace& t) {
             (void)gone(t);
             return not_made(record_state::completed)(t);
           },
           "finish, drops, refunds", stage::over},
          {"client gone", gone, "detach", stage::claiming}},
         &trace::claiming);
}

TEST(idempotency_execution, gives_a_claim_back_that_may_have_been_made_all_the_same) {
  expect({{"unavailable", store_fails(store_failure::unavailable),
           "refuse store-unavailable 1s, drops, refunds, queues removed of 5", stage::over},
          {"full, so that nothing was claimed", store_fails(store_failure::full),
           "refuse store-unavailable 60s \"The request was not run\", drops, refunds", stage::over},
          {"too many keys", store_fails(store_failure::scope_full),
           "refuse too-many-keys 60s, drops, refunds", stage::over}},
         &trace::claiming);
  expect({{"runs unprotected, so that its outcome will not be known",
           store_fails(store_failure::unavailable), "connect, drops, bypasses, queues unknown of 5",
           stage::connecting},
          {"nothing runs for a client that is gone",
           [](trace& t) {
             (void)gone(t);
             return t.run.store_failed(store_failure::unavailable, t.now);
           },
           "finish, drops, queues removed of 5", stage::over},
          {"full", store_fails(store_failure::full), "connect, drops, bypasses", stage::connecting},
          {"too many keys are never passed", store_fails(store_failure::scope_full),
           "refuse too-many-keys 60s, drops, refunds", stage::over}},
         &trace::claiming, bypassing);
}

TEST(idempotency_execution, records_what_became_of_a_request_that_ran) {
  auto const answered = [](std::uint16_t status) {
    return [status](trace& t) { return t.answer(status); };
  };
  expect(
      {{"answered", answered(201), "record completed of 5", stage::recording},
       {"R4: refused by the upstream", answered(429), "record removed of 5", stage::recording},
       {"R4: the upstream failed", answered(502), "record unknown of 5", stage::recording},
       {"R4, R8: no answer", upstream_fails(upstream_fault::closed), "record unknown of 5",
        stage::recording},
       {"R8: stale proves nothing once it was sent", upstream_fails(upstream_fault::stale),
        "record unknown of 5", stage::recording},
       {"timed out", upstream_fails(upstream_fault::timed_out), "record unknown of 5",
        stage::recording},
       {"content lost", upstream_fails(upstream_fault::content_lost), "record unknown of 5",
        stage::recording},
       {"too large to be kept",
        [](trace& t) {
          t.run.answer_head(200, {});
          return t.run.answer_body("large", body_part::more, t.now);
        },
        "record completed of 5 without body", stage::recording},
       {"R5: client gone", gone, "detach", stage::running},
       {"R6: owner is alive", [](trace& t) { return t.run.timer(false); }, "renew", stage::running},
       {"late", [](trace& t) { return t.run.answer_late(); }, "report_late, unknown timed-out",
        stage::running},
       {"late once only",
        [](trace& t) {
          (void)t.run.answer_late();
          return t.run.answer_late();
        },
        "none", stage::running},
       {"an answer after the 504",
        [](trace& t) {
          (void)t.run.answer_late();
          return t.answer(201);
        },
        "record completed of 5", stage::recording}},
      &trace::running);
}

TEST(idempotency_execution, gives_the_key_back_when_no_byte_was_sent) {
  trace t;
  (void)t.claiming();
  (void)t.run.upstream_failed(upstream_fault::closed, t.now);
  EXPECT_EQ(text_of(t.claim_made()), "connect fresh");
  EXPECT_EQ(text_of(gone(t)), "detach");
  EXPECT_EQ(text_of(t.run.timer(false)), "renew");
  EXPECT_EQ(text_of(t.run.upstream_failed(upstream_fault::not_connected, t.now)),
            "record removed of 5");
  EXPECT_EQ(text_of(t.recorded(true)), "answer_unreachable");
}

TEST(idempotency_execution, asks_a_service_in_the_same_way) {
  auto const whole = [](std::string_view body, body_part part) {
    return [=](trace& t) {
      t.run.answer_head(200, {});
      return t.run.answer_body(body, part, t.now);
    };
  };
  auto const begin = [](trace& t) {
    (void)t.admission().done(t.run.admitted({}, t.now)).done(t.claim_made());
  };
  for (auto const& each : std::vector<row>{
           {"answered", whole("ok", body_part::last), "record completed of 5", stage::recording},
           {"refused before anything was done", whole("ok", body_part::last_not_run),
            "record removed of 5", stage::recording},
           {"too large", whole("large", body_part::last), "record completed of 5 without body",
            stage::recording},
       }) {
    trace t(service);
    begin(t);
    EXPECT_EQ(t.run.at(), stage::running);
    EXPECT_EQ(text_of(each.event(t)), each.expected) << each.name;
    EXPECT_EQ(t.run.at(), each.then) << each.name;
  }
  trace t(service);
  begin(t);
  (void)whole("large", body_part::last)(t);
  EXPECT_EQ(text_of(t.recorded(true)), "stream whole");
}

TEST(idempotency_execution, answers_when_the_record_is_durable) {
  auto const overtaken = [](record_state state) {
    return [state](trace& t) {
      t.other.state = state;
      t.other.changed = t.now;
      t.other.replayable = true;
      t.rules.wait_in_flight = true;
      return t.recorded(false, &t.other);
    };
  };
  expect(
      {{"R2: made", [](trace& t) { return t.recorded(true); }, "answer", stage::over},
       {"the store fails: the answer goes out, the record follows",
        store_fails(store_failure::unavailable), "answer, queues completed of 5", stage::over},
       {"R3: overtaken, and answered", overtaken(record_state::completed), "replay, drops, settles",
        stage::over},
       {"R8: overtaken by one that runs", overtaken(record_state::dispatched),
        "refuse in-flight 1s, drops, settles", stage::over},
       {"overtaken, and unknown", overtaken(record_state::unknown),
        "refuse outcome-unknown 60s, drops, settles, unknown no-answer", stage::over},
       {"R8: overtaken by an operator who removed it", [](trace& t) { return t.recorded(false); },
        "refuse outcome-unknown 60s, drops, settles, unknown no-answer", stage::over},
       {"overtaken by one with another rule",
        [](trace& t) {
          t.other.fingerprint.rule = "j";
          t.other.changed = t.now;
          return t.recorded(false, &t.other);
        },
        "refuse outcome-unknown 60s, drops, settles, unknown no-answer", stage::over},
       {"the store has lost the claim",
        [](trace& t) {
          t.known = {.running = t.run.mine()};
          return t.run.record_applied(false, t.known, t.now);
        },
        "record completed of none", stage::recording},
       {"R5: client gone", gone, "detach", stage::recording},
       {"R6: owner is alive", [](trace& t) { return t.run.timer(false); }, "renew",
        stage::recording}},
      &trace::recording);
}

TEST(idempotency_execution, tells_the_client_of_an_unknown_outcome_when_that_is_recorded) {
  struct unknown_row {
    upstream_fault why;
    bool head_came;
    std::string_view expected;
  };
  for (auto const& each : {
           unknown_row{upstream_fault::closed, false, "answer_unknown 502, unknown no-answer"},
           {upstream_fault::closed, true, "answer_unknown 502, unknown cut-answer"},
           {upstream_fault::content_lost, true, "answer_unknown 502, unknown no-answer"},
           {upstream_fault::timed_out, false, "answer_unknown 504, unknown timed-out"},
           {upstream_fault::timed_out, true, "answer_unknown 504, unknown timed-out"},
       }) {
    for (bool const made : {true, false}) {
      trace t;
      (void)t.running();
      if (each.head_came) {
        t.run.answer_head(200, {});
      }
      (void)t.run.upstream_failed(each.why, t.now);
      EXPECT_EQ(text_of(t.recorded(made, made ? nullptr : &t.other)), each.expected);
    }
  }
  trace t;
  (void)t.running().done(t.answer(503));
  EXPECT_EQ(text_of(t.recorded(true)), "answer, unknown upstream-failed");
}

TEST(idempotency_execution, streams_what_is_too_large_once_that_is_recorded) {
  expect({{"made", [](trace& t) { return t.recorded(true); }, "stream", stage::streaming},
          {"the store fails", store_fails(store_failure::unavailable),
           "stream, queues completed of 5 without body", stage::streaming},
          {"all of it has come",
           [](trace& t) {
             (void)t.run.answer_body("", body_part::last, t.now);
             return t.recorded(true);
           },
           "stream whole", stage::over},
          {"it was cut",
           [](trace& t) {
             (void)t.run.upstream_failed(upstream_fault::closed, t.now);
             return t.recorded(true);
           },
           "stream cut", stage::over},
          {"more of it", [](trace& t) { return t.run.answer_body("more", body_part::more, t.now); },
           "none", stage::recording},
          {"overtaken", [](trace& t) { return t.recorded(false, &t.other); },
           "refuse in-flight 1s, drops, settles", stage::over}},
         &trace::recording_large);
  expect(
      {{"the end", [](trace& t) { return t.run.answer_body("", body_part::last, t.now); },
        "end_stream", stage::over},
       {"cut", upstream_fails(upstream_fault::closed), "abort_stream", stage::over},
       {"content lost", upstream_fails(upstream_fault::content_lost), "abort_stream", stage::over},
       {"no lease any more", [](trace& t) { return t.run.timer(false); }, "none", stage::streaming},
       {"client gone", gone, "finish, drops", stage::over}},
      &trace::streaming);
}

TEST(idempotency_execution, records_nothing_of_what_runs_unprotected) {
  expect({{"answered", [](trace& t) { return t.answer(201); }, "answer", stage::over},
          {"no answer", upstream_fails(upstream_fault::closed), "answer_unknown 502", stage::over},
          {"too large to be kept",
           [](trace& t) {
             t.run.answer_head(200, {});
             return t.run.answer_body("large", body_part::more, t.now);
           },
           "stream", stage::streaming},
          {"late is late", [](trace& t) { return t.run.answer_late(); }, "none", stage::running},
          {"no lease", [](trace& t) { return t.run.timer(false); }, "none", stage::running}},
         &trace::bypassed, bypassing);
}

TEST(idempotency_execution, ignores_what_comes_too_late) {
  trace t;
  (void)t.recording().done(t.recorded(true));
  EXPECT_EQ(t.run.at(), stage::over);
  for (auto const& text : ignored(t)) {
    EXPECT_EQ(text, "none");
  }
  EXPECT_EQ(text_of(t.recorded(true)), "none");
  EXPECT_EQ(text_of(t.claim_made()), "none");
  EXPECT_EQ(text_of(t.run.store_failed(store_failure::unavailable, t.now)), "none");
  EXPECT_EQ(text_of(t.run.upstream_failed(upstream_fault::closed, t.now)), "none");
  EXPECT_EQ(text_of(t.run.timer(true)), "none");
  EXPECT_EQ(text_of(gone(t)), "finish, drops");
}

}  // namespace
}  // namespace tidegate::TIDEGATE_ABI::idempotency
