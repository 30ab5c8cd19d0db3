// SPDX-License-Identifier: Apache-2.0
#include <tidegate/idempotency/decide.hpp>

#include <limits>
#include <utility>

namespace tidegate::TIDEGATE_ABI::idempotency {

namespace {

[[nodiscard]] auto refused(problem_code code, std::chrono::seconds retry_after = {}) -> decision {
  return {.verdict = verdict::refuse, .code = code, .retry_after = retry_after};
}

/// A claim of `request` that takes the place of what `when` says.
[[nodiscard]] auto run(condition const& when, request_facts const& request, policy const& policy,
                       wall_time now) -> decision {
  record next;
  next.token = request.token;
  next.created = now;
  next.changed = now;
  next.lease_until = now + policy.lease;
  next.ttl = policy.ttl;
  next.tombstone = policy.tombstone;
  next.fingerprint = request.fingerprint;
  change claim{request.key, when, std::move(next)};
  claim.scope_keys_max = policy.keys_max;
  return {.verdict = verdict::run, .claim = std::move(claim)};
}

/// R6, R8: the same request once more, for an upstream that does nothing twice.
[[nodiscard]] auto run_again(record const& found, request_facts const& request,
                             policy const& policy, wall_time now) -> decision {
  auto again = run({found.token, {found.state}}, request, policy, now);
  auto& next = *again.claim->next;
  next.created = found.created;
  next.attempt =
      found.attempt + (found.attempt < std::numeric_limits<std::uint32_t>::max() ? 1 : 0);
  next.reason =
      found.state == record_state::unknown ? found.reason : unknown_reason::gateway_stopped;
  return again;
}

}  // namespace

auto decide(record const* found, request_facts const& request, policy const& policy, wall_time now)
    -> decision {
  if (found == nullptr) {
    return run({}, request, policy, now);
  }
  auto const state = state_at(*found, now);
  if (!state) {
    return run({found->token, {found->state}}, request, policy, now);
  }
  if (found->fingerprint.rule != request.fingerprint.rule) {
    return {.verdict = verdict::needs_other_fingerprint};
  }
  // R7
  if (auto const differs = differing_parts(found->fingerprint, request.fingerprint);
      !differs.empty()) {
    auto reused = refused(problem_code::key_reused);
    reused.differs = differs;
    return reused;
  }
  switch (*state) {
    case record_state::dispatched:
      if ((policy.wait_in_flight || request.prefers_wait) && request.waiters < policy.waiters_max) {
        return {.verdict = verdict::wait};
      }
      return refused(problem_code::in_flight, policy.retry_in_flight);
    case record_state::unknown:
      if (policy.retry_unknown && policy.upstream_deduplicates) {
        return run_again(*found, request, policy, now);
      }
      return refused(problem_code::outcome_unknown, policy.retry_unknown_outcome);
    case record_state::completed:
      return found->replayable ? decision{.verdict = verdict::replay}
                               : refused(problem_code::response_not_replayable);
    case record_state::tombstone: break;
  }
  return refused(problem_code::result_expired);
}

auto decide_overtaken(record const* found, request_facts const& request, policy const& policy,
                      wall_time now) -> decision {
  auto decided = decide(found, request, policy, now);
  return decided.verdict == verdict::run
             ? refused(problem_code::outcome_unknown, policy.retry_unknown_outcome)
             : decided;
}

auto judge(exchange_end end, int status, policy const& policy) noexcept -> judgement {
  switch (end) {
    case exchange_end::answered: break;
    case exchange_end::not_sent:
    case exchange_end::not_processed: return {outcome::released};
    case exchange_end::no_answer: return {outcome::unknown, unknown_reason::no_answer};
    case exchange_end::cut_answer: return {outcome::unknown, unknown_reason::cut_answer};
    case exchange_end::timed_out: return {outcome::unknown, unknown_reason::timed_out};
    case exchange_end::stopped: return {outcome::unknown, unknown_reason::gateway_stopped};
  }
  switch (status) {
    case 401:
    case 403:
    case 407:
    case 408:
    case 421:
    case 425:
    case 429: return {outcome::released};
    case 502:
    case 503:
    case 504:
      return policy.store_5xx ? judgement{outcome::completed}
                              : judgement{outcome::unknown, unknown_reason::upstream_failed};
    default: break;
  }
  // An interim status is not an answer, and what is beyond HTTP cannot be stored.
  return status >= 200 && status <= 599 ? judgement{outcome::completed}
                                        : judgement{outcome::unknown, unknown_reason::no_answer};
}

auto first_status(exchange_end end) noexcept -> int {
  return end == exchange_end::timed_out ? 504 : 502;
}

}  // namespace tidegate::TIDEGATE_ABI::idempotency
