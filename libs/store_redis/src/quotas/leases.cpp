// SPDX-License-Identifier: Apache-2.0
#include "quotas/leases.hpp"

#include "quotas/quota_key.hpp"

namespace tidegate::store_redis {

leases::leases(engine::loop& on, quota_store_options const& options, write_queue& queue)
    : loop_(on),
      options_(options),
      queue_(queue),
      idle_timer_(on, [this] { release_idle(); }),
      takers_(options.stores) {}

auto leases::find_usable(store::key_hash const& id, std::int64_t cost, std::int64_t quota,
                         instant now) -> lease* {
  auto* const found = table_.find(id);
  if (found == nullptr || !found->is_ahead) {
    return nullptr;
  }
  if (now >= found->valid_until) {
    end_slice(*found);
    return nullptr;
  }
  return cost <= found->units && quota >= found->policy.quota() ? found : nullptr;
}

auto leases::find_or_add(store::key_hash const& id, store::shared_charge const& charge, instant now)
    -> lease* {
  auto const& policy = *charge.local.policy;
  auto* found = table_.find(id);
  if (found == nullptr) {
    if (table_.size() >= options_.leases_max) {
      auto& oldest = table_.oldest();
      if (!oldest.is_idle()) {
        return nullptr;
      }
      release(oldest, oldest.units);
      table_.erase(oldest);
    }
    found = &table_.add(
        {.id = id, .key = key_of(charge), .policy = policy, .store_remaining = policy.quota()});
    idle_timer_.set_within(options_.lease_idle);
  }
  use_policy(*found, policy);
  found->is_ahead = is_leased(charge);
  table_.touch(*found, now);
  return found;
}

/// What the store gave to a larger quota may be more than a smaller one has.
void leases::use_policy(lease& of, ratelimit::policy const& policy) {
  if (policy.quota() < of.policy.quota()) {
    release(of, of.units);
  }
  bool const is_unused = of.units == 0 && of.held == 0 && !of.is_requested;
  if (is_unused || policy.quota() >= of.policy.quota()) {
    of.policy = policy;
  }
}

auto leases::wanted(lease& low, instant now) const -> std::int64_t {
  return low.is_concurrent() ? slots_ahead(low.held, low.store_remaining, takers_)
                             : lease_size(low.rate.per_period(now), low.store_remaining, takers_);
}

void leases::spend(lease& from, std::int64_t cost, instant now) {
  from.units -= cost;
  from.held += from.is_concurrent() ? cost : 0;
  from.rate.add(now, cost);
  if (from.last_used != now) {
    table_.touch(from, now);
  }
  refill(from, now);
}

void leases::refill(lease& low, instant now) {
  if (!low.is_requested && now >= low.exhausted_until && is_low(low.units, wanted(low, now))) {
    low.is_requested = true;
    queue_.add_lease_request(low.id);
  }
}

void leases::take_grant(lease& asked, lease_grant const& grant, instant sent) {
  asked.is_requested = false;
  asked.store_remaining = grant.verdict.left.remaining;
  asked.reset_at = sent + grant.verdict.left.reset;
  if (grant.units == 0) {
    asked.exhausted_until = sent + std::min<std::chrono::nanoseconds>(
                                       grant.verdict.retry, options_.lease_refusals_believed);
    return;
  }
  if (auto const end = grant.at + grant.lasts.count();
      !asked.is_concurrent() && end != asked.window_end) {
    end_slice(asked);
    asked.window_end = end;
    asked.taken_at = grant.at;
    asked.since = loop_.now();
    asked.valid_until = {};
  }
  asked.units += grant.units;
  // It was taken when it was sent or later, so that it lasts longer rather than shorter.
  asked.valid_until = std::max(asked.valid_until, sent + grant.lasts);
}

void leases::take_failure(lease& asked, instant sent) {
  asked.is_requested = false;
  asked.needs_report = asked.needs_report || asked.is_concurrent();
  asked.exhausted_until = sent + options_.lease_refusals_believed;
}

/// What is left of it when its window has ended. In a fixed window that is of no use any more.
void leases::end_slice(lease& ended) {
  if (ended.is_concurrent()) {
    // The store may have given them to others. What is held will be said by the next heartbeat.
    ended.needs_report = ended.needs_report || ended.units > 0;
    ended.units = 0;
  } else if (ended.policy.algorithm() == ratelimit::algorithm::sliding) {
    release(ended, ended.units);
  } else {
    ended.units = 0;
  }
}

void leases::release(lease& from, std::int64_t units) {
  if (units > 0) {
    from.units -= units;
    settle_in_store(from.id, from.key, from.policy, -units, from.taken_at);
  }
}

void leases::release_all() {
  for (auto& each : table_) {
    release(each, each.units);
  }
}

void leases::release_idle() {
  auto const now = loop_.now();
  for (auto left = table_.size(); left > 0; --left) {
    auto& oldest = table_.oldest();
    if (now - oldest.last_used < options_.lease_idle) {
      break;
    }
    if (!oldest.is_requested) {
      release(oldest, oldest.units);
    }
    if (oldest.is_idle()) {
      table_.erase(oldest);
    } else {
      table_.touch(oldest, now);
    }
  }
  if (table_.size() > 0) {
    idle_timer_.set_in(options_.lease_idle / 2);
  }
}

auto leases::settle(lease& spent, instant admitted_at, instant now, std::int64_t units)
    -> std::int64_t {
  if (spent.is_concurrent()) {
    auto const change = std::max(units, -spent.held);
    spent.held += change;
    if (!spent.is_ahead || now >= spent.valid_until || change > spent.units) {
      return change;
    }
    spent.units -= change;
    release(spent, excess(spent.units, wanted(spent, now)));
    return 0;
  }
  bool const is_of_this_window =
      now < spent.valid_until && (units > 0 || admitted_at >= spent.since);
  if (!is_of_this_window || units > spent.units) {
    return units;
  }
  spent.units -= units;
  return 0;
}

void leases::settle_in_store(store::key_hash const& id, std::string key,
                             ratelimit::policy const& policy, std::int64_t units,
                             std::int64_t admitted_at) {
  if (auto* const found = table_.find(id)) {
    found->unsent += units;
  }
  queue_.add(pending_settlement{id, std::move(key), policy, units, admitted_at});
}

void leases::forget(store::key_hash const& id) {
  if (auto* const found = table_.find(id)) {
    found->units = 0;
    found->exhausted_until = {};
    found->store_remaining = found->policy.quota();
  }
}

void leases::report_held() {
  for (auto const& each : table_) {
    if (each.is_concurrent() && (each.held > 0 || each.units > 0 || each.needs_report)) {
      queue_.add_hold_report(each.id);
    }
  }
}

}  // namespace tidegate::store_redis
