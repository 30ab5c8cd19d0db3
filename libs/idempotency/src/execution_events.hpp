// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/http/field.hpp>
#include <tidegate/idempotency/execution.hpp>

#include <utility>

/// The events of an execution: `execution.cpp` makes the machine that ships of them, the tests
/// those that break a rule.
namespace tidegate::TIDEGATE_ABI::idempotency {

// ---- the content ----

template <class Rules>
auto basic_execution<Rules>::content_complete(request_facts facts) -> action {
  if (stage_ != stage::content) {
    return {};
  }
  facts_ = std::move(facts);
  stage_ = stage::lookup;
  return {.kind = action_kind::find};
}

template <class Rules>
auto basic_execution<Rules>::content_refused(problem_code code, std::string_view detail) -> action {
  std::chrono::seconds const retry_after(code == problem_code::store_unavailable ? 1 : 0);
  return refuse({.verdict = verdict::refuse, .code = code, .retry_after = retry_after}, detail);
}

// ---- what is known of the key ----

template <class Rules>
auto basic_execution<Rules>::found(lookup_result& known, wall_time now, fingerprint const* other)
    -> action {
  if (stage_ != stage::lookup && stage_ != stage::waiting) {
    return {};
  }
  auto const* stored = known.stored;
  if (known.running && is_absent(stored, now)) {
    known.running->lease_until = now + policy_->lease;
    stored = &*known.running;
  }
  facts_.waiters = is_waiter_ ? 0 : known.waiters;
  if (!rules_.keeps(rule::r7) && stored != nullptr) {
    other = &stored->fingerprint;
  }
  // By the rule of the record it is compared; by its own it is claimed.
  auto own =
      other != nullptr ? std::optional(std::exchange(facts_.fingerprint, *other)) : std::nullopt;
  auto decided = decide(stored, facts_, *policy_, now);
  if (!rules_.keeps(rule::r6) && stored != nullptr &&
      state_at(*stored, now) == record_state::unknown) {
    decided = decide(nullptr, facts_, *policy_, now);
    decided.claim->when = {stored->token, {stored->state}};
  }
  if (own) {
    facts_.fingerprint = *std::move(own);
    if (decided.claim) {
      decided.claim->next->fingerprint = facts_.fingerprint;
    }
  }
  if (decided.verdict == verdict::needs_other_fingerprint) {
    return {.kind = action_kind::fingerprint, .rule_text = stored->fingerprint.rule};
  }
  return follow(std::move(decided), now);
}

template <class Rules>
auto basic_execution<Rules>::follow(decision decided, wall_time now) -> action {
  switch (decided.verdict) {
    case verdict::wait:
      stage_ = stage::waiting;
      return {.kind = std::exchange(is_waiter_, true) ? action_kind::wait : action_kind::join};
    case verdict::run: {
      pending_ = *std::move(decided.claim);
      bool const was_waiter = std::exchange(is_waiter_, false);
      auto next = run(now);
      next.leaves_waiters = was_waiter;
      return next;
    }
    case verdict::replay:
      stage_ = stage::over;
      return {.kind = action_kind::replay, .leaves_waiters = std::exchange(is_waiter_, false)};
    default: return refuse(decided);
  }
}

template <class Rules>
auto basic_execution<Rules>::refuse(decision const& why, std::string_view detail) -> action {
  stage_ = stage::over;
  action next{.kind = action_kind::refuse,
              .drops_connection = true,
              .leaves_waiters = std::exchange(is_waiter_, false),
              .code = why.code,
              .differs = why.differs,
              .retry_after = why.retry_after,
              .detail = detail};
  if (is_claimed_ && why.code == problem_code::outcome_unknown) {  // it ran, and was overtaken
    next.unknown = unknown_reason::no_answer;
  }
  return next;
}

template <class Rules>
auto basic_execution<Rules>::woken() -> action {
  if (stage_ != stage::waiting) {
    return {};
  }
  is_waiter_ = false;
  return {.kind = action_kind::find};
}

template <class Rules>
auto basic_execution<Rules>::timer(bool wait_is_over) -> action {
  if (stage_ == stage::waiting) {
    return wait_is_over ? refuse({.verdict = verdict::refuse,
                                  .code = problem_code::in_flight,
                                  .retry_after = policy_->retry_in_flight})
                        : action{.kind = action_kind::find};
  }
  bool const is_owner = is_claimed_ && stage_ != stage::streaming && stage_ != stage::over;
  return {.kind = is_owner ? action_kind::renew : action_kind::none};
}

template <class Rules>
auto basic_execution<Rules>::store_failed(store_failure why, wall_time now) -> action {
  if (stage_ == stage::recording) {
    // The work is done, so the client gets its answer; the record follows when the store is back.
    auto next = reply();
    next.queued = &pending_;
    return next;
  }
  bool const was_claiming = stage_ == stage::claiming;
  if (!was_claiming && stage_ != stage::lookup && stage_ != stage::waiting) {
    return {};
  }
  bool const changed_nothing = why == store_failure::full || why == store_failure::scope_full;
  bool const bypasses = options_.bypasses_failed_store && why != store_failure::damaged &&
                        why != store_failure::scope_full;
  if (was_claiming && !changed_nothing) {
    // The claim may have been made all the same. It is given back, since nothing was sent; or,
    // when the request runs without protection, its outcome will not be known.
    auto const claimed = *std::move(pending_.next);
    pending_ = bypasses && has_client_
                   ? mark_unknown(facts_.key, claimed, unknown_reason::no_answer, now)
                   : release(facts_.key, claimed, now);
  }
  action next;
  if (bypasses) {
    is_bypassed_ = true;
    bool const was_waiter = std::exchange(is_waiter_, false);
    if (has_client_) {
      next = run(now);
      next.bypasses = true;
    } else {
      stage_ = stage::over;
      next.kind = action_kind::finish;
    }
    next.drops_connection = true;
    next.leaves_waiters = was_waiter;
  } else {
    bool const has_no_room = why == store_failure::full || why == store_failure::no_space;
    bool const is_scope = why == store_failure::scope_full;
    next = refuse({.verdict = verdict::refuse,
                   .code = is_scope ? problem_code::too_many_keys : problem_code::store_unavailable,
                   .retry_after = is_scope || has_no_room ? policy_->retry_unknown_outcome
                                                          : std::chrono::seconds(1)},
                  has_no_room ? "The request was not run, because there is no room for another "
                                "Idempotency-Key: send it again later."
                              : "");
    next.refunds = std::exchange(is_charged_, false);
  }
  next.queued = was_claiming && !changed_nothing ? &pending_ : nullptr;
  return next;
}

// ---- the run ----

template <class Rules>
auto basic_execution<Rules>::run(wall_time now) -> action {
  if (!is_charged_) {
    stage_ = stage::admission;
    return {.kind = action_kind::admit};
  }
  if (options_.connects) {
    return connect(false);
  }
  return is_bypassed_ ? send() : claim(now);
}

template <class Rules>
auto basic_execution<Rules>::admitted(request_origin origin, wall_time now) -> action {
  if (stage_ != stage::admission) {
    return {};
  }
  is_charged_ = true;
  if (!is_bypassed_) {
    pending_.next->origin = std::move(origin);
  }
  return run(now);
}

template <class Rules>
auto basic_execution<Rules>::connect(bool fresh) -> action {
  stage_ = stage::connecting;
  lost_connection_ = false;
  ++tries_;
  return {.kind = action_kind::connect, .fresh = fresh};
}

template <class Rules>
auto basic_execution<Rules>::connected(wall_time now) -> action {
  if (stage_ != stage::connecting) {
    return {};
  }
  return is_claimed_ || is_bypassed_ ? send() : claim(now);
}

/// R1: nothing is sent before the claim is durable.
template <class Rules>
auto basic_execution<Rules>::claim(wall_time now) -> action {
  stage_ = stage::claiming;
  // The connection may have taken its time: the lease begins now.
  auto& next = *pending_.next;
  next.created = next.attempt == 1 ? now : next.created;
  next.changed = now;
  next.lease_until = now + policy_->lease;
  if (!rules_.keeps(rule::r3)) {
    next.token = 0;  // the same for every claim fences nothing
  }
  if (!rules_.keeps(rule::r1)) {
    is_claimed_ = true;
    mine_ = next;
    return send();
  }
  return {.kind = action_kind::claim, .change = &pending_};
}

template <class Rules>
auto basic_execution<Rules>::claim_applied(bool made, lookup_result& known, fencing_token token,
                                           wall_time now) -> action {
  if (stage_ != stage::claiming) {
    return {};
  }
  if (made) {
    is_claimed_ = true;
    mine_ = *std::move(pending_.next);
    pending_ = {};
    return lost_connection_ ? connect(true) : send();
  }
  // Another request was faster.
  bool const was_charged = std::exchange(is_charged_, false);
  action next{.kind = action_kind::finish};
  stage_ = stage::over;
  if (has_client_) {
    facts_.token = token;
    stage_ = stage::lookup;
    next = found(known, now);
  }
  next.drops_connection = true;
  next.refunds = was_charged;
  return next;
}

template <class Rules>
auto basic_execution<Rules>::send() -> action {
  stage_ = stage::running;
  return {.kind = action_kind::send};
}

/// R8: nothing is sent again once a byte may have been sent.
template <class Rules>
auto basic_execution<Rules>::upstream_failed(upstream_fault why, wall_time now) -> action {
  bool const may_connect =
      stage_ == stage::connecting || (stage_ == stage::running && !rules_.keeps(rule::r8));
  if (may_connect && why != upstream_fault::no_connection &&
      (tries_ < options_.tries_max || why == upstream_fault::stale)) {
    return connect(true);
  }
  switch (stage_) {
    case stage::connecting: fault_ = why; return record_end(exchange_end::not_sent, now);
    case stage::claiming: lost_connection_ = true; return {};
    case stage::running:
      if (why == upstream_fault::refused && !recorder_) {
        fault_ = why;
        return record_end(exchange_end::not_sent, now);
      }
      if (why == upstream_fault::timed_out) {
        return record_end(exchange_end::timed_out, now);
      }
      return record_end(recorder_ && why != upstream_fault::content_lost ? exchange_end::cut_answer
                                                                         : exchange_end::no_answer,
                        now);
    case stage::recording: ended_ = stream_end::cut; return {};
    case stage::streaming: stage_ = stage::over; return {.kind = action_kind::abort_stream};
    default: return {};
  }
}

/// R5: the client is told that the outcome is unknown; the answer is still waited for.
template <class Rules>
auto basic_execution<Rules>::answer_late() -> action {
  if (stage_ != stage::running || !is_claimed_ || is_late_) {
    return {};
  }
  is_late_ = true;
  has_client_ = false;
  return {.kind = action_kind::report_late, .unknown = unknown_reason::timed_out};
}

// ---- the answer ----

template <class Rules>
void basic_execution<Rules>::answer_head(std::uint16_t status,
                                         std::span<http::field const> fields) {
  status_ = status;
  recorder_.emplace(status, fields, options_.body_max);
}

template <class Rules>
void basic_execution<Rules>::answer_trailers(std::span<http::field const> trailers) {
  if (stage_ == stage::running && recorder_) {
    recorder_->set_trailers(trailers);
  }
}

template <class Rules>
auto basic_execution<Rules>::answer_body(std::string_view piece, body_part part, wall_time now)
    -> action {
  bool const is_last = part != body_part::more;
  if (stage_ == stage::streaming && is_last) {
    stage_ = stage::over;
    return {.kind = action_kind::end_stream};
  }
  if (stage_ != stage::running && stage_ != stage::recording) {
    return {};
  }
  ended_ = is_last ? stream_end::whole : stream_end::open;
  if (stage_ == stage::recording) {
    return {};
  }
  recorder_->add(piece);
  if (part == body_part::last_not_run && is_claimed_) {
    end_ = exchange_end::answered;
    return record_change(release(facts_.key, mine_, now));
  }
  if (recorder_->keeps_body()) {
    return is_last ? record_end(exchange_end::answered, now) : action{};
  }
  // Too large to be kept: it passes through, once it is durable that it cannot be replayed.
  return is_claimed_ ? record_change(change_by(exchange_end::answered, now)) : reply();
}

/// R2: the client is answered when it is durable what became of its request.
template <class Rules>
auto basic_execution<Rules>::record_end(exchange_end end, wall_time now) -> action {
  end_ = end;
  if (!is_claimed_) {
    return reply();
  }
  auto next = record_change(change_by(end, now));
  if (!rules_.keeps(rule::r2)) {
    next = reply();
    next.queued = &pending_;
  }
  return next;
}

template <class Rules>
auto basic_execution<Rules>::record_change(change next) -> action {
  stage_ = stage::recording;
  pending_ = std::move(next);
  pending_.seal = options_.seals;
  return {.kind = action_kind::record, .change = &pending_};
}

template <class Rules>
auto basic_execution<Rules>::change_by(exchange_end end, wall_time now) -> change {
  auto judged = judge(end, status_, *policy_);
  if (!rules_.keeps(rule::r4) && judged.outcome == outcome::unknown) {
    judged = {outcome::released};
  }
  switch (judged.outcome) {
    case outcome::completed: return complete(facts_.key, mine_, recorder_->finish(), now);
    case outcome::released: return release(facts_.key, mine_, now);
    case outcome::unknown: break;
  }
  return mark_unknown(facts_.key, mine_, judged.reason, now);
}

template <class Rules>
auto basic_execution<Rules>::record_applied(bool made, lookup_result const& known, wall_time now)
    -> action {
  if (stage_ != stage::recording) {
    return {};
  }
  if (!made && known.stored == nullptr && pending_.next && pending_.when.token && known.running &&
      known.running->token == mine_.token) {
    // The store has lost the claim, and no operator has said that it may go. It ran, so a retry
    // must not run it again: what became of it is written as if the claim were there.
    pending_.when = {};
    return {.kind = action_kind::record, .change = &pending_};
  }
  bool const is_answer = pending_.next && pending_.next->state == record_state::completed;
  if (made || !is_answer) {
    return reply();
  }
  auto decided = decide_overtaken(known.stored, facts_, *policy_, now);
  // It ran, so it never waits for another one to run it again (R8).
  if (decided.verdict == verdict::wait) {
    decided = {.verdict = verdict::refuse,
               .code = problem_code::in_flight,
               .retry_after = policy_->retry_in_flight};
  } else if (decided.verdict == verdict::needs_other_fingerprint) {
    decided = {.verdict = verdict::refuse,
               .code = problem_code::outcome_unknown,
               .retry_after = policy_->retry_unknown_outcome};
  }
  auto next = follow(std::move(decided), now);
  next.drops_connection = true;
  next.settles = true;
  return next;
}

template <class Rules>
auto basic_execution<Rules>::reply() -> action {
  action next;
  if (is_claimed_ && end_ != exchange_end::not_sent && pending_.next &&
      pending_.next->state == record_state::unknown) {
    next.unknown = pending_.next->reason;
  }
  if (!end_) {
    stage_ = ended_ == stream_end::open ? stage::streaming : stage::over;
    next.kind = action_kind::stream;
    next.stream = ended_;
    return next;
  }
  stage_ = stage::over;
  next.end = *end_;
  next.fault = fault_;
  next.kind = *end_ == exchange_end::answered   ? action_kind::answer
              : *end_ == exchange_end::not_sent ? action_kind::answer_unreachable
                                                : action_kind::answer_unknown;
  return next;
}

/// R5: what may have been sent goes on without its client.
template <class Rules>
auto basic_execution<Rules>::client_gone(wall_time now) -> action {
  bool const was_running =
      stage_ == stage::claiming || stage_ == stage::running || stage_ == stage::recording;
  if (was_running || (is_claimed_ && stage_ == stage::connecting)) {
    has_client_ = false;
    if (!rules_.keeps(rule::r5) && stage_ == stage::running) {
      end_ = exchange_end::no_answer;
      return record_change(release(facts_.key, mine_, now));
    }
    return {.kind = action_kind::detach};
  }
  bool const is_unsent = stage_ != stage::streaming && stage_ != stage::over;
  stage_ = stage::over;
  return {.kind = action_kind::finish,
          .drops_connection = true,
          .leaves_waiters = std::exchange(is_waiter_, false),
          .refunds = is_unsent && std::exchange(is_charged_, false)};
}

}  // namespace tidegate::TIDEGATE_ABI::idempotency
