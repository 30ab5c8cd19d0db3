// SPDX-License-Identifier: Apache-2.0
#include "phases/quota.hpp"

#include "observe/access_log_line.hpp"
#include "request/caller.hpp"
#include "services/wall_clock.hpp"

#include <tidegate/proxy/partition_key.hpp>

namespace tidegate::gateway {

namespace {

using namespace std::chrono_literals;
using ratelimit::quota_unit;

/// Whether the partition of the limit at `position` is that of a policy which may refuse.
[[nodiscard]] auto is_enforced(std::span<limit const> limits, std::size_t position) -> bool {
  return std::ranges::any_of(limits, [position](limit const& each) {
    return each.partition_of == position && !each.policy->shadow;
  });
}

[[nodiscard]] auto shared_charge_of(limit const& of, store::charge const& charge)
    -> store::shared_charge {
  return {charge, of.policy->name, of.policy->counting};
}

[[nodiscard]] auto share_of_gateway(quota_service const& service) -> double {
  return 1.0 / static_cast<double>(service.store->status().gateways);
}

/// Has limits decided by the quota that an attribute of the caller says.
void use_own_quotas(request_context const& context, std::span<store::charge> charges,
                    other_quotas& others) {
  std::span const limits = context.route_settings().limits;
  for (std::size_t i = 0; i < limits.size(); ++i) {
    auto const& policy = *limits[i].policy;
    if (!policy.choice || policy.choice->by.kind != ratelimit::partition_source_kind::attribute) {
      continue;
    }
    auto const usual = policy.policy.quota();
    auto const quota =
        policy.choice->quota_for(attribute_of(context, policy.choice->by.name), usual);
    if (quota != usual) {
      others.use(charges[i], i, policy.choice->policy_with(policy.policy, quota));
    }
  }
}

/// Has windows of a calendar decided by the one that it is now.
void use_calendars(std::span<limit const> limits, std::span<store::charge> charges,
                   other_quotas& others, instant now) {
  auto const wall = wall_clock_now();
  for (std::size_t i = 0; i < limits.size(); ++i) {
    if (auto const& rule = limits[i].policy->calendar) {
      others.use(charges[i], i, ratelimit::in_window_of(*charges[i].policy, *rule, now, wall));
    }
  }
}

}  // namespace

void quota_phase::reset() noexcept {
  charged_ = false;
  without_store_ = false;
  denied_ = false;
  decision_ = {};
  refused_count_ = 0;
  fields_.clear();
}

// ---- what a request costs, and whom ----

auto quota_phase::find_charges(request_context const& context, quota_service& service, instant now)
    -> bool {
  std::span const limits = context.route_settings().limits;
  partitions_.clear();
  std::array<std::size_t, limits_max> ends;  // NOLINT: as many as there are limits
  auto& values = service.values;
  values.repeated = nullptr;
  for (std::size_t i = 0; i < limits.size(); ++i) {
    if (limits[i].partition_of == i) {
      auto const& rule = limits[i].policy->partition;
      for (std::size_t j = 0; j < limits[i].source_fields.size(); ++j) {
        rule.append_source(
            partitions_, j,
            value_of(rule.sources()[j], limits[i].source_fields[j], context, values));
      }
      if (values.repeated != nullptr) {
        if (is_enforced(limits, i)) {
          return false;
        }
        values.repeated = nullptr;
      }
    }
    ends[i] = partitions_.size();
  }
  // The text does not move any more.
  for (std::size_t i = 0; i < limits.size(); ++i) {
    auto const of = limits[i].partition_of;
    auto const begin = of == 0 ? 0 : ends[of - 1];
    charges_[i] = {&limits[i].policy->policy, limits[i].id,
                   std::string_view(partitions_).substr(begin, ends[of] - begin), 1,
                   !limits[i].policy->shadow};
  }
  others_.are_used = false;
  if (context.route_settings().has_own_quotas) {
    use_own_quotas(context, charges_, others_);
  }
  if (service.overrides.any()) [[unlikely]] {
    use_overrides(context, service, now);
  }
  if (context.route_settings().has_calendar) [[unlikely]] {
    use_calendars(limits, charges_, others_, now);
  }
  find_costs(context);
  return true;
}

/// Has partitions decided by what an operator gave them for a while.
void quota_phase::use_overrides(request_context const& context, quota_service& service,
                                instant now) {
  auto const count = context.route_settings().limits.size();
  for (std::size_t i = 0; i < count && !service.store; ++i) {
    auto& charge = charges_[i];
    auto const given = service.overrides.find(charge.policy_id, charge.partition, now);
    auto const other = given ? charge.policy->with_quota(given->quota)
                             : failure(ratelimit::policy_fault::quota_out_of_range);
    if (!other) {
      continue;
    }
    others_.use(charge, i, *other);
  }
}

void quota_phase::find_costs(request_context const& context) {
  auto const& route = context.route_settings();
  std::span const limits = route.limits;
  if (limits.empty()) {
    return;
  }
  auto const& request = *context.head;
  auto const cost = route.costs.cost(request.method_text(), context.path);
  for (std::size_t i = 0; i < limits.size(); ++i) {
    switch (limits[i].policy->policy.unit()) {
      case quota_unit::content_bytes:
        charges_[i].cost = request.body().kind == wire::body_kind::content_length
                               ? static_cast<std::int64_t>(std::min<std::uint64_t>(
                                     request.body().length, 999'999'999'999'999))
                               : 0;
        break;
      case quota_unit::concurrent_requests: charges_[i].cost = 1; break;
      default: charges_[i].cost = cost;
    }
  }
}

void quota_phase::charge_replay(request_context const& context, std::int64_t cost) {
  std::span const limits = context.route_settings().limits;
  for (std::size_t i = 0; i < limits.size(); ++i) {
    bool const counts = limits[i].policy->policy.unit() == quota_unit::requests;
    charges_[i].cost = counts ? std::min(cost, charges_[i].policy->cost_max()) : 0;
  }
}

auto quota_phase::copy_charges(request_context const& context, std::string& partitions,
                               std::unique_ptr<overridden_policies>& policies,
                               std::span<store::shared_charge, limits_max> out) const
    -> std::size_t {
  partitions = partitions_;
  if (others_.are_used) {
    policies = std::make_unique<overridden_policies>(*others_.policies);
  }
  auto const count = context.route_settings().limits.size();
  for (std::size_t i = 0; i < count; ++i) {
    out[i] = shared_charge_of(context.route_settings().limits[i], charges_[i]);
    auto& partition = out[i].local.partition;
    auto const at = static_cast<std::size_t>(partition.data() - partitions_.data());
    partition = std::string_view(partitions).substr(at, partition.size());
    if (policies && (*policies)[i] && out[i].local.policy == &*(*others_.policies)[i]) {
      out[i].local.policy = &*(*policies)[i];
    }
  }
  return count;
}

// ---- the decision ----

auto quota_phase::enter(request_context& context, quota_service& service, instant now) -> step {
  auto const& route = context.route_settings();
  std::span const limits = route.limits;
  if (limits.empty()) {
    return step::next;
  }
  if (route.watches_abuse && is_blocked(context, service, now)) {
    return step::answered;
  }
  if (!service.store) {
    return decided(context, service,
                   service.table.spend({charges_.data(), limits.size()}, now,
                                       {results_.data(), limits.size()}),
                   now);
  }
  auto const admitted = decide_shared(context, service, now);
  return admitted ? decided(context, service, *admitted, now) : step::suspended;
}

auto quota_phase::resume(request_context& context, quota_service& service,
                         store::spend_answer const& answer, instant now) -> step {
  if (!answer) {
    return decided(context, service, decide_without_store(context, service, answer.error(), now),
                   now);
  }
  std::ranges::copy_n(answer->results.begin(),
                      static_cast<std::ptrdiff_t>(context.route_settings().limits.size()),
                      results_.begin());
  service.health.note(nullptr);
  return decided(context, service, answer->admitted, now);
}

auto quota_phase::decide_shared(request_context& context, quota_service& service, instant now)
    -> std::optional<bool> {
  without_store_ = false;
  denied_ = false;
  context.admitted_at = now;
  auto const count = context.route_settings().limits.size();
  std::array<store::shared_charge, limits_max> charges;
  for (std::size_t i = 0; i < count; ++i) {
    charges[i] = shared_charge_of(context.route_settings().limits[i], charges_[i]);
  }
  auto const here = service.store->spend_here({charges.data(), count}, now, results_);
  if (!here) {
    return decide_without_store(context, service, here.error(), now);
  }
  auto& counts = *here ? service.metrics.quota_store_here : service.metrics.quota_store_asked;
  counts.add();
  return *here;
}

auto quota_phase::decide_without_store(request_context const& context, quota_service& service,
                                       store::store_error const& why, instant now) -> bool {
  std::span const limits = context.route_settings().limits;
  without_store_ = true;
  service.health.note(&why);
  service.metrics.quota_store_failures.add();
  std::array<store::charge, limits_max> local;
  std::array<store::charged, limits_max> results;
  std::array<std::optional<ratelimit::policy>, limits_max> shares;
  std::array<std::size_t, limits_max> places{};
  std::size_t count = 0;
  double const share = share_of_gateway(service);
  for (std::size_t i = 0; i < limits.size(); ++i) {
    auto const& policy = *limits[i].policy;
    results_[i] = {};
    results_[i].decision.admitted = true;
    results_[i].decision.left = {charges_[i].policy->quota(), charges_[i].policy->window()};
    switch (policy.on_store_failure) {
      case store_failure::allow: break;
      case store_failure::deny:
        denied_ = denied_ || !policy.shadow;
        results_[i].decision = {false, {0, 1s}, 1s};
        break;
      case store_failure::local:
        shares[i] = charges_[i].policy->reduced(share);
        local[count] = charges_[i];
        local[count].policy = &*shares[i];
        places[count++] = i;
        break;
    }
  }
  if (denied_) {
    return false;
  }
  bool const admitted = count == 0 || service.table.spend({local.data(), count}, now, results);
  for (std::size_t i = 0; i < count; ++i) {
    results_[places[i]] = results[i];
  }
  return admitted;
}

auto quota_phase::decided(request_context& context, quota_service& service, bool admitted,
                          instant now) -> step {
  std::span const limits = context.route_settings().limits;
  for (std::size_t i = 0; i < limits.size(); ++i) {
    auto& counts = *context.route->policies[i];
    if (results_[i].shared) {
      counts.shared.add();
    }
    counts.hottest.count(charges_[i].partition, results_[i].decision, now);
    if (results_[i].decision.admitted) {
      counts.admitted.add();
    } else if (limits[i].policy->shadow) {
      counts.shadow_refused.add();
    } else {
      counts.refused.add();
    }
  }
  if (admitted) {
    charged_ = true;
    make_fields(context, service, true);
    return step::next;
  }
  if (!denied_) {
    refuse_by_quota(context, service, now);
    return step::answered;
  }
  fields_.clear();  // it is not known how the policies stand
  decision_ = "store-unavailable";
  constexpr auto type = ratelimit::problem_type::temporary_reduced_capacity;
  service.text.clear();
  ratelimit::append_problem(service.text, type, {});
  refuse(context, type, "quota-store", service.text, 1s);
  return step::answered;
}

// ---- refusals ----

auto quota_phase::is_blocked(request_context& context, quota_service& service, instant now)
    -> bool {
  std::span const limits = context.route_settings().limits;
  std::array<std::chrono::nanoseconds, limits_max> blocked{};
  for (std::size_t i = 0; i < limits.size(); ++i) {
    auto const& policy = *limits[i].policy;
    if (policy.abuse && !policy.shadow) {
      auto const state = service.table.peek<ratelimit::refusal_state>(abuse_domain + limits[i].id,
                                                                      charges_[i].partition, now);
      blocked[i] = ratelimit::blocked_for(state, now);
      if (blocked[i] > 0ns) {
        refused_[refused_count_++] = i;
      }
    }
  }
  if (refused_count_ == 0) {
    return false;
  }
  look_at_each(context, service, now);
  std::vector<std::string_view> names;
  for (auto const i : refused()) {
    auto& counts = *context.route->policies[i];
    counts.blocked.add();
    names.emplace_back(limits[i].policy->name);
    auto& decided = results_[i].decision;
    decided = {false, {0, blocked[i]}, blocked[i]};
    counts.hottest.count(charges_[i].partition, decided, now);  // for as long as it comes
  }
  make_fields(context, service, false);
  auto retry_after = 0ns;
  for (std::size_t i = 0, view = 0; i < limits.size(); ++i) {
    if (!limits[i].policy->shadow) {
      auto const& told = fields_.views()[view++];
      auto const wait = told.retry.value_or(told.reset.value_or(blocked[i]));
      retry_after = blocked[i] > 0ns ? std::max(retry_after, wait) : retry_after;
    }
  }
  decision_ = "blocked";
  constexpr auto type = ratelimit::problem_type::abnormal_usage_detected;
  service.text.clear();
  ratelimit::append_problem(service.text, type, names);
  refuse(context, type, "abuse", service.text, retry_after);
  return true;
}

/// Counts refusals by quota of partitions that are watched for abuse.
void quota_phase::count_refusals(request_context const& context, quota_service& service,
                                 instant now) {
  std::span const limits = context.route_settings().limits;
  for (std::size_t i = 0; i < limits.size(); ++i) {
    auto const& policy = *limits[i].policy;
    auto& decided = results_[i].decision;
    if (!policy.abuse || policy.shadow || decided.admitted) {
      continue;
    }
    auto blocked = 0ns;
    service.table.update<ratelimit::refusal_state>(
        abuse_domain + limits[i].id, charges_[i].partition, now,
        [&](ratelimit::refusal_state& state) {
          state = ratelimit::count_refusal(*policy.abuse, state, now).next;
          blocked = ratelimit::blocked_for(state, now);
          return ratelimit::expires(state);
        });
    if (blocked > 0ns) {  // from this refusal on
      decided.left.remaining = 0;
      decided.retry = std::max(decided.retry, blocked);
    }
  }
}

void quota_phase::refuse_by_quota(request_context& context, quota_service& service, instant now) {
  std::span const limits = context.route_settings().limits;
  if (context.route_settings().watches_abuse) {
    count_refusals(context, service, now);
  }
  make_fields(context, service, false);
  auto retry_after = 0ns;
  for (std::size_t i = 0, view = 0; i < limits.size(); ++i) {
    if (limits[i].policy->shadow) {
      continue;
    }
    auto const& told = fields_.views()[view++];
    if (!results_[i].decision.admitted) {
      refused_[refused_count_++] = i;
      retry_after = std::max({retry_after, told.retry.value_or(told.reset.value_or(1s)), 1ns});
    }
  }
  decision_ = "refused";
  constexpr auto type = ratelimit::problem_type::quota_exceeded;
  if (refused_count_ == 1) {
    auto const& only = limits[refused_.front()];
    refuse(context, type, "quota", only.problem, retry_after, only.problem_head);
    return;
  }
  std::vector<std::string_view> violated;
  for (auto const i : refused()) {
    violated.emplace_back(limits[i].policy->name);
  }
  service.text.clear();
  ratelimit::append_problem(service.text, type, violated);
  refuse(context, type, "quota", service.text, retry_after);
}

void quota_phase::refuse_overloaded(request_context& context, quota_service& service, instant now) {
  look(context, service, now);
  decision_ = "overloaded";
  std::span const limits = context.route_settings().limits;
  auto retry_after = std::chrono::nanoseconds(1s);
  for (std::size_t i = 0, view = 0; i < limits.size(); ++i) {
    if (!limits[i].policy->shadow) {
      auto const reset = fields_.views()[view++].reset.value_or(0s);
      if (results_[i].decision.left.remaining == 0) {  // it would be refused for that before
        retry_after = std::max(retry_after, reset);
      }
    }
  }
  constexpr auto type = ratelimit::problem_type::temporary_reduced_capacity;
  service.text.clear();
  ratelimit::append_problem(service.text, type, {});
  refuse(context, type, "overload", service.text, retry_after);
}

void quota_phase::refuse(request_context& context, ratelimit::problem_type type,
                         std::string_view reason, std::string_view content,
                         std::chrono::nanoseconds retry_after,
                         std::string_view content_head) const {
  // Where no policy says when to come back, Retry-After alone does (draft-09, section 6).
  bool const is_a_reset = std::ranges::any_of(fields_.views(), [&](auto const& view) {
    return view.reset == retry_after || view.retry == retry_after;
  });
  auto& reply = context.reply.emplace();
  reply.status = ratelimit::status_of(type);
  reply.reason = reason;
  reply.content = content;
  reply.content_head = content_head;
  reply.retry_after = retry_after;
  reply.has_resets = is_a_reset;
}

// ---- what is told ----

void quota_phase::look_at_each(request_context const& context, quota_service& service,
                               instant now) {
  for (std::size_t i = 0; i < context.route_settings().limits.size(); ++i) {
    results_[i] = {};
    results_[i].decision.admitted = true;
    results_[i].decision.left =
        service.store ? service.store->look(
                            shared_charge_of(context.route_settings().limits[i], charges_[i]), now)
                      : service.table.look(charges_[i], now);
  }
}

void quota_phase::look(request_context const& context, quota_service& service, instant now) {
  look_at_each(context, service, now);
  make_fields(context, service, true);
}

void quota_phase::make_fields(request_context const& context, quota_service& service, bool admitted,
                              bool given_back) {
  fields_.make(context, charges_, results_, admitted, given_back, service.jitter.next());
}

void quota_phase::append_fields(std::string& out, request_context const& context,
                                quota_service& service, wire::response_head const* upstream,
                                int status, bool has_resets) {
  // Where we say nothing, what an upstream says passes as it is.
  if (context.route == nullptr || context.route_settings().policies.empty()) {
    return;
  }
  if (charged_ && status >= 400 && context.route_settings().gives_back) {
    make_fields(context, service, true, true);
  }
  quota_fields::appended_to response{
      .upstream = upstream, .status = status, .has_resets = has_resets};
  if (others_.are_used) [[unlikely]] {
    response.overridden = charges_;
  }
  fields_.append(out, context, response, service.metrics, service.values.lines);
}

void quota_phase::append_decision(std::string& line, request_context const& context) const {
  std::vector<std::string_view> policies;
  std::vector<std::string> partitions;
  for (auto const i : refused()) {
    policies.emplace_back(context.route_settings().limits[i].policy->name);
    partitions.push_back(partition_key_of(charges_[i].partition));
  }
  append_log_decision(line, decision(), policies, partitions);
}

// ---- afterwards ----

void quota_phase::correct_charges(request_context const& context, quota_service& service,
                                  instant now) {
  std::span const limits = context.route_settings().limits;
  for (std::size_t i = 0; i < limits.size(); ++i) {
    auto const& policy = *limits[i].policy;
    if (!results_[i].decision.admitted) {
      continue;  // a shadow policy that would have refused was not charged
    }
    std::int64_t units = 0;
    if (policy.policy.unit() == quota_unit::concurrent_requests) {
      units = -1;
    } else if (policy.count == counted::successful && context.status >= 400) {
      units = -charges_[i].cost;
    } else if (policy.policy.unit() == quota_unit::content_bytes) {
      units = static_cast<std::int64_t>(context.request_octets + context.response_octets) -
              charges_[i].cost;
    }
    if (units != 0) {
      settle_charge({service.table, service.store.get()}, charge_at(context, i), now, units);
    }
  }
}

void quota_phase::release(request_context const& context, quota_service& service, instant now) {
  if (!std::exchange(charged_, false)) {
    return;
  }
  for (std::size_t i = 0; i < context.route_settings().limits.size(); ++i) {
    if (results_[i].decision.admitted && charges_[i].cost != 0) {
      settle_charge({service.table, service.store.get()}, charge_at(context, i), now,
                    -charges_[i].cost);
    }
  }
}

auto quota_phase::detach_charges(request_context const& context) -> std::unique_ptr<held_charges> {
  if (!charged_ || !context.route_settings().gives_back) {
    charged_ = false;
    return nullptr;
  }
  auto held = std::make_unique<held_charges>();
  held->partitions = partitions_;
  std::span const limits = context.route_settings().limits;
  for (std::size_t i = 0; i < limits.size(); ++i) {
    bool const is_corrected =
        results_[i].decision.admitted && limits[i].policy->policy.unit() != quota_unit::requests;
    if (is_corrected) {
      auto& partition = held->charges.emplace_back(charge_at(context, i)).charge.partition;
      auto const at = static_cast<std::size_t>(partition.data() - partitions_.data());
      partition = std::string_view(held->partitions).substr(at, partition.size());
    }
  }
  if (others_.are_used) {
    held->overrides = std::move(others_.policies);
  }
  charged_ = false;
  return held;
}

}  // namespace tidegate::gateway
