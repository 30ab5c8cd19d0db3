// SPDX-License-Identifier: Apache-2.0
//
// What an exchange does about quotas: whom a request counts against, whether it may go on, and what is told of it.
#include "exchange.hpp"
#include "field_names.hpp"
#include "request_values.hpp"

#include <tidegate/http/cookie.hpp>
#include <tidegate/http/query.hpp>
#include <tidegate/http/target.hpp>
#include <tidegate/ratelimit/merge.hpp>

#include <algorithm>
#include <mutex>
#include <utility>

namespace tidegate::gateway {

namespace {

using namespace std::chrono_literals;
using ratelimit::partition_source_kind;
using ratelimit::quota_unit;
using wire::known_field;

/// The value of a header field, its lines joined with ", ": `scratch` is for that, and then `is_repeated`.
[[nodiscard]] auto header_value(wire::request_head const& request, std::string_view name,
                                known_field known, std::string& scratch, bool& is_repeated)
    -> std::string_view {
  if (!request.has(known)) {
    return {};
  }
  std::string_view value;
  bool is_first = true;
  for (auto const& field : request.fields()) {
    if (field.known != known || (known == known_field::other && !equal_names(field.name, name))) {
      continue;
    }
    if (is_first) {
      value = field.value;
    } else {
      is_repeated = true;
      if (value.data() != scratch.data()) {
        scratch.assign(value);
      }
      scratch.append(", ").append(field.value);
      value = scratch;
    }
    is_first = false;
  }
  return value;
}

/// Whether the partition of the limit at `position` is that of a policy which may refuse.
[[nodiscard]] auto is_enforced(std::span<limit const> limits, std::size_t position) -> bool {
  return std::ranges::any_of(limits, [position](limit const& each) {
    return each.partition_of == position && !each.policy->shadow;
  });
}

/// A redirection that a client follows by itself (RFC 9110, section 15.4): not 300, 304 and 305.
[[nodiscard]] auto is_followed(int status) -> bool {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

void append_line(std::string& out, std::string_view name, std::string_view value) {
  if (!value.empty()) {
    wire::append_field(out, name, value);
  }
}

}  // namespace

auto exchange::value_of(ratelimit::partition_source const& source, known_field field,
                        wire::request_head const& request, std::string_view path,
                        client_address const& from) -> std::string_view {
  auto& scratch = scratch_;
  switch (source.kind) {
    case partition_source_kind::client_ip: {
      auto const client = find_client(request, from, *runtime_->settings, worker_.lines);
      if (client.is_v4() && client == from.peer) {
        return from.peer_text();
      }
      scratch.clear();
      http::append_client_key(scratch, client);
      return scratch;
    }
    case partition_source_kind::header: {
      bool is_repeated = false;
      auto const value = header_value(request, source.name, field, scratch, is_repeated);
      repeated_ = is_repeated ? &source : repeated_;
      return value;
    }
    case partition_source_kind::query: {
      auto query = request.query();
      query.remove_prefix(std::min<std::size_t>(1, query.size()));
      auto const value = http::query_value(query, source.name, scratch);
      if (value && http::is_repeated_in_query(query, source.name)) {
        repeated_ = &source;
      }
      return value.value_or("");
    }
    case partition_source_kind::cookie: {
      auto const lines = lines_of(request, known_field::cookie, worker_.lines);
      auto const value = http::find_cookie(lines, source.name);
      if (value && http::is_repeated_cookie(lines, source.name)) {
        repeated_ = &source;
      }
      return value.value_or("");
    }
    case partition_source_kind::method: return request.method_text();
    case partition_source_kind::host:
      if (auto const host = http::parse_host(request.authority())) {
        scratch.clear();
        http::append_normal_host(scratch, *host);
        return scratch;
      }
      return "";
    case partition_source_kind::path: return path;
    case partition_source_kind::route: return route_of().settings->name;
    case partition_source_kind::principal:
      return token_ != nullptr ? std::string_view(token_->name) : "";
  }
  return "";
}

void exchange::find_partitions(wire::request_head const& request, std::string_view path,
                               client_address const& from) {
  std::span const limits = route_of().limits;
  partitions_.clear();
  std::array<std::size_t, limits_max> ends;  // NOLINT: as many as there are limits
  repeated_ = nullptr;
  for (std::size_t i = 0; i < limits.size() && repeated_ == nullptr; ++i) {
    if (limits[i].partition_of == i) {
      auto const& rule = limits[i].policy->partition;
      for (std::size_t j = 0; j < limits[i].source_fields.size(); ++j) {
        rule.append_source(
            partitions_, j,
            value_of(rule.sources()[j], limits[i].source_fields[j], request, path, from));
      }
      if (repeated_ != nullptr && !is_enforced(limits, i)) {
        repeated_ = nullptr;
      }
    }
    ends[i] = partitions_.size();
  }
  if (repeated_ != nullptr) {
    return;
  }
  // The text does not move any more.
  for (std::size_t i = 0; i < limits.size(); ++i) {
    auto const of = limits[i].partition_of;
    auto const begin = of == 0 ? 0 : ends[of - 1];
    charges_[i] = {&limits[i].policy->policy, limits[i].id,
                   std::string_view(partitions_).substr(begin, ends[of] - begin), 1,
                   !limits[i].policy->shadow};
  }
  overrides_.reset();
  if (worker_.shared.overrides.any()) [[unlikely]] {
    use_overrides();
  }
}

void exchange::answer_repeated() {
  auto const detail = "The request has " + to_string(*repeated_) +
                      " more than once, and not every server would take the same one.";
  answer_problem(400, "Bad Request", detail);
}

void exchange::use_overrides() {
  auto const count = route_of().limits.size();
  for (std::size_t i = 0; i < count && !worker_.quotas; ++i) {
    auto& charge = charges_[i];
    auto const given =
        worker_.shared.overrides.find(charge.policy_id, charge.partition, worker_.loop.now());
    auto const other = given ? charge.policy->with_quota(given->quota)
                             : failure(ratelimit::policy_fault::quota_out_of_range);
    if (!other) {
      continue;
    }
    if (!overrides_) {
      overrides_ = std::make_unique<std::array<std::optional<ratelimit::policy>, limits_max>>();
    }
    (*overrides_)[i] = *other;
    charge.policy = &*(*overrides_)[i];
  }
}

void exchange::look() {
  for (std::size_t i = 0; i < route_of().limits.size(); ++i) {
    results_[i] = {};
    results_[i].decision.admitted = true;
    results_[i].decision.left = worker_.quotas
                                    ? worker_.quotas->look(shared_charge_of(i), worker_.loop.now())
                                    : worker_.shared.quotas.look(charges_[i], worker_.loop.now());
  }
}

void exchange::look_at_all() {
  look();
  advertise_all(true);
}

auto exchange::is_overloaded() -> bool {
  auto* const load = route_->pool == nullptr ? nullptr : route_->pool->settings().load.get();
  if (load == nullptr || load_ != nullptr) {
    return false;
  }
  {
    std::lock_guard const lock(load->mutex);
    auto const now = worker_.loop.now();
    bool const is_admitted = load->guard.admits(load->in_flight, now);
    share_ = load->guard.capacity(now);
    if (is_admitted) {
      ++load->in_flight;
      load_ = load;
      return false;
    }
  }
  look_at_all();
  log_decision("overloaded", {});
  reason_ = "overload";
  auto& content = worker_.text;
  content.clear();
  ratelimit::append_problem(content, ratelimit::problem_type::temporary_reduced_capacity, {});
  auto retry_after = std::chrono::nanoseconds(1s);
  for (std::size_t i = 0, view = 0; i < route_of().limits.size(); ++i) {
    if (!route_of().limits[i].policy->shadow) {
      auto const reset = views_[view++].reset.value_or(0s);
      if (results_[i].decision.left.remaining == 0) {  // it would be refused for that before
        retry_after = std::max(retry_after, reset);
      }
    }
  }
  refuse(ratelimit::problem_type::temporary_reduced_capacity, content, retry_after);
  return true;
}

auto exchange::is_blocked() -> bool {
  std::span const limits = route_of().limits;
  auto const now = worker_.loop.now();
  std::array<std::chrono::nanoseconds, limits_max> blocked{};
  bool is_any = false;
  for (std::size_t i = 0; i < limits.size(); ++i) {
    auto const& policy = *limits[i].policy;
    if (policy.abuse && !policy.shadow) {
      auto const state = worker_.shared.quotas.peek<ratelimit::refusal_state>(
          abuse_domain + limits[i].id, charges_[i].partition, now);
      blocked[i] = ratelimit::blocked_for(state, now);
      is_any = is_any || blocked[i] > 0ns;
    }
  }
  if (!is_any) {
    return false;
  }
  look();
  std::vector<std::string_view> names;
  std::vector<std::size_t> positions;
  for (std::size_t i = 0; i < limits.size(); ++i) {
    if (blocked[i] > 0ns) {
      route_->policies[i]->blocked.add();
      positions.push_back(i);
      names.emplace_back(limits[i].policy->name);
      auto& decided = results_[i].decision;
      decided = {false, {0, blocked[i]}, blocked[i]};
      // It stays among the hottest for as long as it comes.
      route_->policies[i]->hottest.count(charges_[i].partition, decided, now);
    }
  }
  advertise_all(false);
  auto retry_after = 0ns;
  for (std::size_t i = 0, view = 0; i < limits.size(); ++i) {
    if (!limits[i].policy->shadow) {
      auto const reset = views_[view++].reset.value_or(blocked[i]);
      retry_after = blocked[i] > 0ns ? std::max(retry_after, reset) : retry_after;
    }
  }
  log_decision("blocked", positions);
  reason_ = "abuse";
  auto& content = worker_.text;
  content.clear();
  ratelimit::append_problem(content, ratelimit::problem_type::abnormal_usage_detected, names);
  refuse(ratelimit::problem_type::abnormal_usage_detected, content, retry_after);
  return true;
}

void exchange::find_costs(wire::request_head const& request, std::string_view path) {
  auto const& route = route_of();
  std::span const limits = route.limits;
  if (limits.empty()) {
    return;
  }
  auto const cost = route.costs.cost(request.method_text(), path);
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

auto exchange::admit(holdable const* what) -> admission {
  auto const& route = route_of();
  std::span const limits = route.limits;
  if (limits.empty()) {
    return admission::admitted;
  }
  bool admitted = false;
  if (verdict_) {
    admitted = *std::exchange(verdict_, std::nullopt);
  } else if (route.watches_abuse && is_blocked()) {
    return admission::over;
  } else if (!worker_.quotas) {
    admitted = worker_.shared.quotas.spend({charges_.data(), limits.size()}, worker_.loop.now(),
                                           {results_.data(), limits.size()});
  } else if (decide_shared()) {
    admitted = *std::exchange(verdict_, std::nullopt);
  } else {
    if (what != nullptr) {
      hold(*what);
    }
    return admission::waiting;
  }
  for (std::size_t i = 0; i < limits.size(); ++i) {
    auto& counts = *route_->policies[i];
    if (results_[i].shared) {
      counts.shared.add();
    }
    counts.hottest.count(charges_[i].partition, results_[i].decision, worker_.loop.now());
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
    advertise_all(true);
    return admission::admitted;
  }
  if (denied_) {
    refuse_without_store();
  } else {
    refuse_by_quota();
  }
  return admission::over;
}

void exchange::count_refusals() {
  std::span const limits = route_of().limits;
  auto const now = worker_.loop.now();
  for (std::size_t i = 0; i < limits.size(); ++i) {
    auto const& policy = *limits[i].policy;
    auto& decided = results_[i].decision;
    if (!policy.abuse || policy.shadow || decided.admitted) {
      continue;
    }
    auto blocked = 0ns;
    worker_.shared.quotas.update<ratelimit::refusal_state>(
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

void exchange::refuse_by_quota() {
  std::span const limits = route_of().limits;
  if (route_of().watches_abuse) {
    count_refusals();
  }
  reason_ = "quota";
  advertise_all(false);
  auto retry_after = 0ns;
  std::array<std::size_t, limits_max> positions{};
  std::size_t refusals = 0;
  for (std::size_t i = 0, view = 0; i < limits.size(); ++i) {
    if (limits[i].policy->shadow) {
      continue;
    }
    auto const reset = views_[view++].reset.value_or(1s);
    if (!results_[i].decision.admitted) {
      positions[refusals++] = i;
      retry_after = std::max({retry_after, reset, 1ns});
    }
  }
  std::span const refused(positions.data(), refusals);
  log_decision("refused", refused);
  if (refused.size() == 1) {
    auto const& only = limits[refused.front()];
    refuse(ratelimit::problem_type::quota_exceeded, only.problem, retry_after, only.problem_head);
    return;
  }
  std::vector<std::string_view> violated;
  for (auto const i : refused) {
    violated.emplace_back(limits[i].policy->name);
  }
  auto& content = worker_.text;
  content.clear();
  ratelimit::append_problem(content, ratelimit::problem_type::quota_exceeded, violated);
  refuse(ratelimit::problem_type::quota_exceeded, content, retry_after);
}

void exchange::advertise_all(bool admitted, bool given_back) {
  std::span const limits = route_of().limits;
  views_count_ = 0;
  auto const random = worker_.random();
  // All keys first: then the text does not move any more.
  std::array<std::size_t, limits_max> key_ends;  // NOLINT: as many as there are limits
  if (route_of().tells_keys) {
    partition_keys_.clear();
    for (std::size_t i = 0; i < limits.size(); ++i) {
      limits[i].policy->partition.append_key(partition_keys_, charges_[i].partition);
      key_ends[i] = partition_keys_.size();
    }
  }
  for (std::size_t i = 0; i < limits.size(); ++i) {
    auto const& policy = *limits[i].policy;
    if (policy.shadow) {
      continue;
    }
    auto const& decided = results_[i].decision;
    auto const* how = &policy.advertisement;
    ratelimit::advertisement lowered;
    if (share_ < 1) {
      lowered = *how;
      lowered.share = share_;
      how = &lowered;
    }
    std::optional<std::string_view> key;
    if (policy.partition.form() != ratelimit::partition_key_form::none) {
      auto const begin = i == 0 ? 0 : key_ends[i - 1];
      key = std::string_view(partition_keys_).substr(begin, key_ends[i] - begin);
    }
    auto left = decided.left;
    if (given_back && policy.count == counted::successful) {
      left.remaining = std::min(left.remaining + charges_[i].cost, charges_[i].policy->cost_max());
    }
    ratelimit::policy_outcome const outcome{
        charges_[i].policy, left, decided.retry, !admitted && !decided.admitted, how, key};
    views_[views_count_++] = ratelimit::advertise(outcome, random);
  }
}

void exchange::append_limit_fields(std::string& out, wire::response_head const* origin, int status,
                                   bool resets) {
  auto const& fields = runtime_->settings->settings.fields;
  // Where we say nothing, what an upstream says passes as it is.
  if (route_ == nullptr || route_of().policies.empty()) {
    return;
  }
  auto const& route = route_of();
  if (charged_ && status >= 400 && route.gives_back) {
    advertise_all(true, true);
  }
  std::span<ratelimit::service_limit_view const> const views{views_.data(), views_count_};
  std::span<ratelimit::quota_policy_view const> policies = route.policies;
  std::vector<ratelimit::quota_policy_view> changed;
  if (overrides_ && !views.empty()) {
    changed = route.policies;
    for (std::size_t i = 0, shown = 0; i < route.limits.size(); ++i) {
      if (!route.limits[i].policy->shadow) {
        changed[shown++].quota = charges_[i].policy->quota();
      }
    }
    policies = changed;
  }
  policies = policies.first(views.size());  // all, or none where nobody knows how they stand
  if (fields.ratelimit) {
    bool const has_theirs = origin != nullptr && (origin->has(known_field::ratelimit) ||
                                                  origin->has(known_field::ratelimit_policy));
    bool const is_redirect = is_followed(status);
    if (has_theirs || is_redirect || !resets || !changed.empty()) [[unlikely]] {
      append_ratelimit(out, has_theirs ? origin : nullptr, is_redirect, policies, resets);
    } else if (!views.empty()) {
      route.fields.append_lines(out, views);
    }
  }
  if (fields.legacy) {
    if (auto const closest = ratelimit::find_expiring_limit(policies, views)) {
      wire::append_field(out, "X-RateLimit-Limit", static_cast<std::uint64_t>(closest->limit));
      wire::append_field(out, "X-RateLimit-Remaining",
                         static_cast<std::uint64_t>(closest->remaining));
      wire::append_field(out, "X-RateLimit-Reset", static_cast<std::uint64_t>(closest->reset));
    }
  }
}

/// Both fields, where RateLimit may say less than RateLimit-Policy, and with those of an upstream.
void exchange::append_ratelimit(std::string& out, wire::response_head const* origin,
                                bool is_redirect,
                                std::span<ratelimit::quota_policy_view const> policies,
                                bool resets) {
  auto const version = *runtime_->settings->settings.fields.ratelimit;
  std::span<ratelimit::service_limit_view const> const views{views_.data(), views_count_};
  std::vector<ratelimit::quota_policy_view> shown_policies;
  std::vector<ratelimit::service_limit_view> shown;
  for (std::size_t i = 0; i < views.size(); ++i) {
    if (!is_redirect || views[i].remaining != 0) {
      shown_policies.push_back(policies[i]);
      shown.push_back(views[i]);
    }
  }
  if (version == ratelimit::draft::draft_07) {
    // It has one limit, which is the lowest: no other is shown in its place.
    if (shown.size() < views.size()) {
      shown_policies.clear();
      shown.clear();
    }
  } else if (!resets) {
    for (auto& view : shown) {
      view.reset.reset();
    }
  }
  std::string policy;
  std::string limit;
  if (origin == nullptr) {
    ratelimit::append_policies(policy, policies, views, version);
    ratelimit::append_limits(limit, shown_policies, shown, version);
  } else {
    std::vector<std::string_view> more_lines;
    auto const policy_lines = lines_of(*origin, known_field::ratelimit_policy, worker_.lines);
    auto const limit_lines = lines_of(*origin, known_field::ratelimit, more_lines);
    auto const dropped = ratelimit::merge_fields({policy_lines, limit_lines}, policies, views,
                                                 version, policy, limit);
    if (dropped.policy || dropped.limit) {
      worker_.metrics->origin_fields_dropped.add();
    }
    if (shown.size() < views.size()) {
      std::string same_policy;
      limit.clear();
      (void)ratelimit::merge_fields({policy_lines, limit_lines}, shown_policies, shown, version,
                                    same_policy, limit);
    }
  }
  append_line(out, "RateLimit-Policy", policy);
  append_line(out, "RateLimit", limit);
}

void exchange::refuse(ratelimit::problem_type type, std::string_view content,
                      std::chrono::nanoseconds retry_after, std::string_view content_head) {
  auto& lines = worker_.field_lines;
  lines.clear();
  status_ = ratelimit::status_of(type);
  // Where no policy says when to come back, Retry-After alone does (draft-09, section 6).
  bool const is_a_reset =
      std::any_of(views_.begin(), views_.begin() + static_cast<std::ptrdiff_t>(views_count_),
                  [&](auto const& view) { return view.reset == retry_after; });
  append_limit_fields(lines, nullptr, status_, is_a_reset);
  wire::append_parts(lines, "Retry-After: ",
                     static_cast<std::uint64_t>(ratelimit::seconds_until(retry_after)), "\r\n");
  auto* const client = end(content.size());
  client->send_local({ratelimit::status_of(type), "application/problem+json", lines, content, false,
                      content_head});
}

void exchange::settle() {
  if (!std::exchange(charged_, false) || !route_of().gives_back) {
    return;
  }
  std::span const limits = route_of().limits;
  for (std::size_t i = 0; i < limits.size(); ++i) {
    auto const& policy = *limits[i].policy;
    if (!results_[i].decision.admitted) {
      continue;  // a shadow policy that would have refused was not charged
    }
    std::int64_t units = 0;
    if (policy.policy.unit() == quota_unit::concurrent_requests) {
      units = -1;
    } else if (policy.count == counted::successful && status_ >= 400) {
      units = -charges_[i].cost;
    } else if (policy.policy.unit() == quota_unit::content_bytes) {
      units = static_cast<std::int64_t>(request_octets_ + response_octets_) - charges_[i].cost;
    }
    if (units != 0) {
      settle_charge(i, units);
    }
  }
}

}  // namespace tidegate::gateway
