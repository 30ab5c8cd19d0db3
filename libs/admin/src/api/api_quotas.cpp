// SPDX-License-Identifier: Apache-2.0
#include "api/api_quotas.hpp"

#include "api/partition_quota.hpp"

#include <tidegate/config/describe.hpp>
#include <tidegate/http/query.hpp>
#include <tidegate/ratelimit/write.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <optional>
#include <utility>

namespace tidegate::gateway {

namespace {

using ratelimit::partition_source_kind;

constexpr std::string_view policies_path = "/api/v1/policies";
constexpr std::string_view partitions_path = "/api/v1/partitions";
constexpr std::size_t partitions_default = 20;
constexpr std::size_t partitions_most = heavy_hitters::partitions_max;

[[nodiscard]] auto with_tenth(double number) -> std::string {
  std::array<char, 40> text{};
  (void)std::snprintf(text.data(), text.size(), "%.1f", number);
  return text.data();
}

[[nodiscard]] auto is_secret(partition_source_kind kind) -> bool {
  return kind == partition_source_kind::header || kind == partition_source_kind::cookie ||
         kind == partition_source_kind::query;
}

}  // namespace

auto is_partition_of(ratelimit::partition_rule const& rule, std::string_view partition) -> bool {
  for (auto const& source : rule.sources()) {
    auto const end = partition.find('\n');
    if (end == std::string_view::npos || !partition.starts_with(to_string(source) + "=")) {
      return false;
    }
    partition.remove_prefix(end + 1);
  }
  return partition.empty();
}

void append_partition(json::writer& out, ratelimit::partition_rule const& rule,
                      std::string_view text) {
  out.begin_array("partition");
  std::string_view rest = text;
  auto const sources =
      is_partition_of(rule, text) ? rule.sources() : std::span<ratelimit::partition_source const>();
  for (auto const& source : sources) {
    auto const name = to_string(source);
    auto const line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    out.begin_object().member("source", name);
    if (!is_secret(source.kind) || rule.form() == ratelimit::partition_key_form::plain) {
      out.member("value", line.substr(std::min(name.size() + 1, line.size())));
    }
    out.end_object();
  }
  out.end_array().member("key", partition_key_of(text));
}

namespace {

[[nodiscard]] auto policies_answer(control const& control) -> admin_answer {
  auto const& active = *control.active;
  std::string text;
  json::writer out(text);
  out.begin_object().begin_array("policies");
  for (auto const& policy : active.config.policies) {
    auto const sums = control.sums_of(policy.name);
    append_policy_members(out.begin_object(), policy);
    out.begin_array("routes");
    for (auto const& route : active.routes) {
      if (std::ranges::any_of(route.limits,
                              [&](limit const& each) { return each.policy == &policy; })) {
        out.value(route.settings->name);
      }
    }
    out.end_array().member("admitted", sums.admitted).member("refused", sums.refused);
    out.member("shadow-refused", sums.shadow_refused).member("blocked", sums.blocked).end_object();
  }
  out.end_array().end_object();
  return admin_json(std::move(text));
}

[[nodiscard]] auto partitions_answer(control const& control, partition_key_cache& shown,
                                     admin_request const& request, instant now) -> admin_answer {
  auto const& active = *control.active;
  std::string scratch;
  std::size_t most = partitions_default;
  if (auto const text = http::query_value(request.query, "limit", scratch)) {
    auto const [end, fault] = std::from_chars(text->data(), text->data() + text->size(), most);
    if (fault != std::errc{} || end != text->data() + text->size() || most == 0 ||
        most > partitions_most) {
      return admin_problem(400, "limit is a number from 1 to 64.");
    }
  }
  auto const wanted = http::query_value(request.query, "policy", scratch);
  struct hot {
    policy_config const* policy;
    heavy_hitters::partition seen;
  };
  std::vector<hot> all;
  bool is_known = !wanted;
  for (auto const& policy : active.config.policies) {
    if (wanted && policy.name != *wanted) {
      continue;
    }
    is_known = true;
    for (auto& each : control.hottest_of(policy.name, now)) {
      all.push_back({&policy, std::move(each)});
    }
  }
  if (!is_known) {
    return admin_problem(404, "There is no such policy.");
  }
  // By text among equals, so that a view that is drawn again does not jump.
  std::ranges::sort(all, [](hot const& a, hot const& b) {
    return std::pair(-a.seen.requests, std::string_view(a.seen.text)) <
           std::pair(-b.seen.requests, std::string_view(b.seen.text));
  });
  all.resize(std::min(all.size(), most));

  auto const consumers = control.consumers();
  std::string text;
  json::writer out(text);
  out.begin_object().member("window", heavy_hitters::window.count()).begin_array("partitions");
  for (auto const& [policy, seen] : all) {
    out.begin_object().member("policy", policy->name);
    append_partition(out, policy->partition, seen.text);
    shown.add(seen.text);
    auto const id = policy_id_of(active, *policy);
    auto const other = id ? control.overrides().find(*id, seen.text, now) : std::nullopt;
    out.member_raw("requests", with_tenth(seen.requests))
        .member_raw("refused", with_tenth(seen.refused))
        .member("quota", other ? other->quota : usual_quota_of(*consumers, *policy, seen.text))
        .member("remaining", seen.remaining);
    if (policy->policy.unit() != ratelimit::quota_unit::concurrent_requests) {
      out.member("reset", std::chrono::ceil<std::chrono::seconds>(seen.reset).count());
    }
    if (other) {
      out.member("usual-quota", usual_quota_of(*consumers, *policy, seen.text));
    }
    out.end_object();
  }
  out.end_array().end_object();
  return admin_json(std::move(text));
}

}  // namespace

auto answer_quotas(control const& control, partition_key_cache& shown, admin_request const& request,
                   instant now) -> admin_answer {
  return request.path == policies_path ? policies_answer(control)
                                       : partitions_answer(control, shown, request, now);
}

}  // namespace tidegate::gateway
