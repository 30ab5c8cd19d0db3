// SPDX-License-Identifier: Apache-2.0
#include <tidegate/idempotency/change.hpp>

#include <utility>

namespace tidegate::TIDEGATE_ABI::idempotency {

namespace {

using enum record_state;

[[nodiscard]] auto unknown_since(record next, unknown_reason reason, wall_time since) -> record {
  next.state = unknown;
  next.reason = reason;
  next.changed = since;
  next.lease_until = {};
  return next;
}

[[nodiscard]] auto completed_at(record next, wall_time now) -> record {
  next.state = completed;
  next.reason = unknown_reason::none;
  next.changed = now;
  next.lease_until = {};
  return next;
}

}  // namespace

auto holds(condition const& when, record const* stored) noexcept -> bool {
  if (!when.token || stored == nullptr) {
    return !when.token && stored == nullptr;
  }
  return stored->token == *when.token && when.states.contains(stored->state);
}

auto state_at(record const& record, wall_time now) noexcept -> std::optional<record_state> {
  if (now >= forgotten(record)) {
    return std::nullopt;
  }
  if (record.state == dispatched && now >= record.lease_until) {
    return unknown;  // R6
  }
  if (record.state == completed && now >= expires(record)) {
    return tombstone;
  }
  return record.state;
}

auto renew(lookup_key const& key, record const& mine, policy const& policy, wall_time now)
    -> change {
  auto next = mine;
  next.lease_until = now + policy.lease;
  return {key, {mine.token, {dispatched}}, std::move(next)};
}

auto complete(lookup_key const& key, record const& mine, stored_response response, wall_time now)
    -> change {
  auto next = completed_at(mine, now);
  next.origin = {};
  next.status = response.status;
  next.replayable = response.body_kept;
  return {key, {mine.token, {dispatched, unknown}}, std::move(next), std::move(response)};
}

auto release(lookup_key const& key, record const& mine, wall_time now) -> change {
  condition const when{mine.token, {dispatched, unknown}};
  if (mine.attempt == 1) {
    return {key, when};
  }
  // R4: the proof is of this attempt only; an earlier one may have been carried out.
  return {key, when, unknown_since(mine, mine.reason, now)};
}

auto mark_unknown(lookup_key const& key, record const& mine, unknown_reason reason, wall_time now)
    -> change {
  return {key, {mine.token, {dispatched}}, unknown_since(mine, reason, now)};
}

auto expire(lookup_key const& key, record const& found, wall_time now) -> std::optional<change> {
  auto const state = state_at(found, now);
  if (state == found.state) {
    return std::nullopt;
  }
  condition const when{found.token, {found.state}};
  if (found.state == dispatched) {
    // R6; never away at once, so that an owner that wakes up can still say what became of it.
    return change{key, when,
                  unknown_since(found, unknown_reason::gateway_stopped, found.lease_until)};
  }
  if (!state) {
    return change{key, when};
  }
  auto next = found;
  next.state = tombstone;
  next.replayable = false;
  return change{key, when, std::move(next)};
}

auto message(admin_fault fault) noexcept -> std::string_view {
  return fault == admin_fault::not_unknown
             ? "only an unknown outcome can be resolved"
             : "a request with this key is running and could run again without its record";
}

auto resolve(lookup_key const& key, record const& found, resolution outcome, wall_time now)
    -> result<change, admin_fault> {
  if (state_at(found, now) != unknown) {
    return failure(admin_fault::not_unknown);
  }
  condition const when{found.token, {found.state}};
  if (outcome == resolution::not_executed) {
    return change{key, when};
  }
  return change{key, when, completed_at(found, now)};  // without an answer that we saw
}

auto purge(lookup_key const& key, record const& found, wall_time now)
    -> result<change, admin_fault> {
  if (state_at(found, now) == dispatched) {
    return failure(admin_fault::in_flight);
  }
  return change{key, {found.token, {found.state}}};
}

}  // namespace tidegate::TIDEGATE_ABI::idempotency
