// SPDX-License-Identifier: Apache-2.0
#include "phases/quota_fields.hpp"

#include "request/request_fields.hpp"

#include <tidegate/ratelimit/merge.hpp>
#include <tidegate/wire/http1_write.hpp>

namespace tidegate::gateway {

namespace {

using wire::known_field;

/// A redirection that a client follows by itself (RFC 9110, section 15.4): not 300, 304 and 305.
[[nodiscard]] auto is_followed(int status) -> bool {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

/// Whether an upstream has sent RateLimit fields of its own.
[[nodiscard]] auto has_limits(wire::response_head const* upstream) -> bool {
  return upstream != nullptr &&
         (upstream->has(known_field::ratelimit) || upstream->has(known_field::ratelimit_policy));
}

void append_line(std::string& out, std::string_view name, std::string_view value) {
  if (!value.empty()) {
    wire::append_field(out, name, value);
  }
}

/// `RateLimit-Limit` and its relatives, of the policy that is closest to exhaustion, behind each of
/// the beginnings that are wanted.
void append_legacy(std::string& out, fields_config const& fields,
                   std::span<ratelimit::quota_policy_view const> policies,
                   std::span<ratelimit::service_limit_view const> limits) {
  auto const closest = ratelimit::find_expiring_limit(policies, limits);
  if (!closest) {
    return;
  }
  auto const append = [&](std::string_view limit, std::string_view remaining,
                          std::string_view reset) {
    wire::append_field(out, limit, static_cast<std::uint64_t>(closest->limit));
    wire::append_field(out, remaining, static_cast<std::uint64_t>(closest->remaining));
    wire::append_field(out, reset, static_cast<std::uint64_t>(closest->reset));
  };
  if (fields.legacy_x) {
    append("X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset");
  }
  if (fields.legacy_triple) {
    append("RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset");
  }
}

}  // namespace

void quota_fields::make(request_context const& context, std::span<store::charge const> charges,
                        std::span<store::charged const> results, bool admitted, bool given_back,
                        std::uint64_t random) {
  auto const& route = context.route_settings();
  std::span const limits = route.limits;
  auto const version = context.active->config.fields.ratelimit.value_or(ratelimit::draft::draft_09);
  count_ = 0;
  // All keys first: then the text does not move any more.
  std::array<std::size_t, limits_max> key_ends;  // NOLINT: as many as there are limits
  if (route.tells_keys) {
    partition_keys_.clear();
    for (std::size_t i = 0; i < limits.size(); ++i) {
      limits[i].policy->partition.append_key(partition_keys_, charges[i].partition);
      key_ends[i] = partition_keys_.size();
    }
  }
  for (std::size_t i = 0; i < limits.size(); ++i) {
    auto const& policy = *limits[i].policy;
    if (policy.shadow) {
      continue;
    }
    auto const& charge = charges[i];
    auto const& decided = results[i].decision;
    auto const* how = &policy.advertisement;
    ratelimit::advertisement lowered;
    if (context.capacity < 1) {
      lowered = *how;
      lowered.share = context.capacity;
      how = &lowered;
    }
    std::optional<std::string_view> key;
    if (policy.partition.form() != ratelimit::partition_key_form::none) {
      auto const begin = i == 0 ? 0 : key_ends[i - 1];
      key = std::string_view(partition_keys_).substr(begin, key_ends[i] - begin);
    }
    auto left = decided.left;
    if (given_back && policy.count == counted::successful) {
      left.remaining = std::min(left.remaining + charge.cost, charge.policy->cost_max());
    }
    views_[count_++] = ratelimit::advertise(
        {charge.policy, left, decided.retry, !admitted && !decided.admitted, how, key, version},
        random);
  }
}

void quota_fields::append(std::string& out, request_context const& context,
                          appended_to const& response, worker_metrics& metrics,
                          std::vector<std::string_view>& lines) const {
  auto const& fields = context.active->config.fields;
  bool const are_usual = fields.ratelimit && !fields.has_legacy() && response.has_resets &&
                         response.overridden.empty() && !has_limits(response.upstream) &&
                         !is_followed(response.status);
  if (!are_usual) [[unlikely]] {
    append_unusual(out, context, response, metrics, lines);
  } else if (count_ > 0) {
    context.route_settings().fields.append_lines(out, views());
  }
}

void quota_fields::append_unusual(std::string& out, request_context const& context,
                                  appended_to const& response, worker_metrics& metrics,
                                  std::vector<std::string_view>& lines) const {
  auto const& fields = context.active->config.fields;
  auto const& route = context.route_settings();
  std::span<ratelimit::quota_policy_view const> policies = route.policies;
  std::vector<ratelimit::quota_policy_view> changed;
  if (!response.overridden.empty() && count_ > 0) {
    changed = route.policies;
    for (std::size_t i = 0, shown = 0; i < route.limits.size(); ++i) {
      if (!route.limits[i].policy->shadow) {
        auto& view = changed[shown++];
        view.quota = response.overridden[i].policy->quota();
        if (view.window) {
          view.window = response.overridden[i].policy->window();
        }
      }
    }
    policies = changed;
  }
  policies = policies.first(count_);  // all, or none where nothing is known of them
  if (fields.ratelimit) {
    bool const has_theirs = has_limits(response.upstream);
    if (has_theirs || is_followed(response.status) || !response.has_resets || !changed.empty()) {
      append_merged(out, *fields.ratelimit,
                    {.upstream = has_theirs ? response.upstream : nullptr,
                     .status = response.status,
                     .has_resets = response.has_resets},
                    policies, metrics, lines);
    } else if (count_ > 0) {
      route.fields.append_lines(out, views());
    }
  }
  if (fields.has_legacy()) {
    append_legacy(out, fields, policies, views());
  }
}

/// Both fields, where RateLimit may say less than RateLimit-Policy, and with those of an upstream.
void quota_fields::append_merged(std::string& out, ratelimit::draft version,
                                 appended_to const& response,
                                 std::span<ratelimit::quota_policy_view const> policies,
                                 worker_metrics& metrics,
                                 std::vector<std::string_view>& lines) const {
  bool const is_redirect = is_followed(response.status);
  std::vector<ratelimit::quota_policy_view> shown_policies;
  std::vector<ratelimit::service_limit_view> shown;
  for (std::size_t i = 0; i < count_; ++i) {
    if (!is_redirect || views_[i].remaining != 0) {
      shown_policies.push_back(policies[i]);
      shown.push_back(views_[i]);
    }
  }
  if (!ratelimit::rules_of(version).has_names) {
    // It has one limit, which is the lowest: no other is shown in its place.
    if (shown.size() < count_) {
      shown_policies.clear();
      shown.clear();
    }
  } else if (!response.has_resets) {
    for (auto& view : shown) {
      view.reset.reset();
    }
  }
  std::string policy;
  std::string limit;
  if (response.upstream == nullptr) {
    ratelimit::append_policies(policy, policies, views(), version);
    ratelimit::append_limits(limit, shown_policies, shown, version);
  } else {
    std::vector<std::string_view> more_lines;
    auto const policy_lines = lines_of(*response.upstream, known_field::ratelimit_policy, lines);
    auto const limit_lines = lines_of(*response.upstream, known_field::ratelimit, more_lines);
    auto const dropped = ratelimit::merge_fields({policy_lines, limit_lines}, policies, views(),
                                                 version, policy, limit);
    if (dropped.policy || dropped.limit) {
      metrics.origin_fields_dropped.add();
    }
    if (shown.size() < count_) {
      std::string same_policy;
      limit.clear();
      (void)ratelimit::merge_fields({policy_lines, limit_lines}, shown_policies, shown, version,
                                    same_policy, limit);
    }
  }
  append_line(out, "RateLimit-Policy", policy);
  append_line(out, "RateLimit", limit);
}

}  // namespace tidegate::gateway
