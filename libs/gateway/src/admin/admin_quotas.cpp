// SPDX-License-Identifier: Apache-2.0
#include "admin/admin_quotas.hpp"

#include <tidegate/config/describe.hpp>
#include <tidegate/http/query.hpp>
#include <tidegate/json/string.hpp>
#include <tidegate/ratelimit/write.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tidegate::gateway {

namespace {

using ratelimit::partition_source_kind;

constexpr std::string_view policies_path = "/api/v1/policies";
constexpr std::string_view partitions_path = "/api/v1/partitions";
constexpr std::string_view json_type = "application/json";
constexpr std::size_t partitions_default = 20;
constexpr std::size_t partitions_most = hot_partitions::partitions_max;

[[nodiscard]] auto with_tenth(double number) -> std::string {
  std::array<char, 40> text{};
  (void)std::snprintf(text.data(), text.size(), "%.1f", number);
  return text.data();
}

/// What all threads have of one policy.
[[nodiscard]] auto sums_of(std::span<std::shared_ptr<worker_metrics> const> workers,
                           std::string const& policy) -> policy_sums {
  policy_sums sums;
  for (auto const& worker : workers) {
    std::lock_guard const lock(worker->mutex);
    if (auto const found = worker->policies.find(policy); found != worker->policies.end()) {
      sums.add(*found->second);
    }
  }
  return sums;
}

[[nodiscard]] auto is_secret(partition_source_kind kind) -> bool {
  return kind == partition_source_kind::header || kind == partition_source_kind::cookie ||
         kind == partition_source_kind::query;
}

}  // namespace

auto hottest_of(std::span<std::shared_ptr<worker_metrics> const> workers, std::string const& policy,
                instant now) -> std::vector<hot_partitions::partition> {
  std::map<std::string, hot_partitions::partition> merged;
  for (auto const& worker : workers) {
    std::unique_lock lock(worker->mutex);
    auto const found = worker->policies.find(policy);
    auto seen = found == worker->policies.end() ? std::vector<hot_partitions::partition>()
                                                : found->second->hottest.look(now);
    lock.unlock();
    for (auto& each : seen) {
      auto [at, is_new] = merged.try_emplace(each.text, each);
      if (!is_new) {
        auto& sum = at->second;
        sum.requests += each.requests;
        sum.refused += each.refused;
        // The threads share the bucket, and whoever saw less of it saw it later.
        sum.remaining = std::min(sum.remaining, each.remaining);
        sum.reset = std::max(sum.reset, each.reset);
      }
    }
  }
  std::vector<hot_partitions::partition> all;
  all.reserve(merged.size());
  for (auto& [text, each] : merged) {
    all.push_back(std::move(each));
  }
  return all;
}

auto partition_key_of(std::string_view partition) -> std::string {
  static ratelimit::partition_rule const hashed({}, ratelimit::partition_key_form::hashed);
  std::string key;
  hashed.append_key(key, partition);
  std::string text;
  for (char const c : key) {
    constexpr std::string_view hex = "0123456789abcdef";
    auto const octet = static_cast<unsigned char>(c);
    text += {hex[octet >> 4U], hex[octet & 15U]};
  }
  return text;
}

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

void append_partition(std::string& out, ratelimit::partition_rule const& rule,
                      std::string_view text) {
  out += "\"partition\":[";
  std::string_view rest = text;
  auto const sources =
      is_partition_of(rule, text) ? rule.sources() : std::span<ratelimit::partition_source const>();
  for (auto const& source : sources) {
    auto const name = to_string(source);
    auto const line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    out += &source == sources.data() ? "{\"source\":" : ",{\"source\":";
    json::append_string(out, name);
    bool const is_shown =
        !is_secret(source.kind) || rule.form() == ratelimit::partition_key_form::plain;
    if (is_shown) {
      out += ",\"value\":";
      json::append_string(out, line.substr(std::min(name.size() + 1, line.size())));
    }
    out += "}";
  }
  out += "],\"key\":\"" + partition_key_of(text) + "\"";
}

namespace {

[[nodiscard]] auto policies_answer(runtime const& settings,
                                   std::span<std::shared_ptr<worker_metrics> const> workers)
    -> admin_answer {
  admin_answer answer{200, json_type, {}};
  auto& out = answer.content;
  out = "{\"policies\":[";
  for (auto const& policy : settings.settings.policies) {
    auto const sums = sums_of(workers, policy.name);
    out += &policy == settings.settings.policies.data() ? "{" : ",{";
    append_policy_members(out, policy);
    out += ",\"routes\":[";
    for (auto const& route : settings.routes) {
      if (std::ranges::any_of(route.limits,
                              [&](limit const& each) { return each.policy == &policy; })) {
        out += out.ends_with('[') ? "" : ",";
        json::append_string(out, route.settings->name);
      }
    }
    out += "],\"admitted\":" + std::to_string(sums.admitted);
    out += ",\"refused\":" + std::to_string(sums.refused);
    out += ",\"shadow-refused\":" + std::to_string(sums.shadow_refused);
    out += ",\"blocked\":" + std::to_string(sums.blocked) + "}";
  }
  out += "]}\n";
  return answer;
}

[[nodiscard]] auto partitions_answer(runtime const& settings, shared_state const& shared,
                                     shown_partitions& shown, admin_request const& request,
                                     instant now) -> admin_answer {
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
    hot_partitions::partition seen;
  };
  std::vector<hot> all;
  bool is_known = !wanted;
  for (auto const& policy : settings.settings.policies) {
    if (wanted && policy.name != *wanted) {
      continue;
    }
    is_known = true;
    for (auto& each : hottest_of(shared.metrics, policy.name, now)) {
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

  admin_answer answer{200, json_type, {}};
  auto& out = answer.content;
  out = "{\"window\":" + std::to_string(hot_partitions::window.count()) + ",\"partitions\":[";
  for (auto const& [policy, seen] : all) {
    out += out.ends_with('[') ? "{\"policy\":" : ",{\"policy\":";
    json::append_string(out, policy->name);
    out += ",";
    append_partition(out, policy->partition, seen.text);
    shown.add(seen.text);
    auto const id = policy_id_of(settings, *policy);
    auto const other = id ? shared.overrides.find(*id, seen.text, now) : std::nullopt;
    out +=
        ",\"requests\":" + with_tenth(seen.requests) + ",\"refused\":" + with_tenth(seen.refused);
    out += ",\"quota\":" + std::to_string(other ? other->quota : policy->policy.quota());
    out += ",\"remaining\":" + std::to_string(seen.remaining);
    if (policy->policy.unit() != ratelimit::quota_unit::concurrent_requests) {
      out += ",\"reset\":" +
             std::to_string(std::chrono::ceil<std::chrono::seconds>(seen.reset).count());
    }
    if (other) {
      out += ",\"usual-quota\":" + std::to_string(policy->policy.quota());
    }
    out += "}";
  }
  out += "]}\n";
  return answer;
}

}  // namespace

auto is_quota_path(std::string_view path) -> bool {
  return path == policies_path || path == partitions_path;
}

auto answer_quotas(runtime const& settings, shared_state const& shared, shown_partitions& shown,
                   admin_request const& request, instant now) -> admin_answer {
  return request.path == policies_path ? policies_answer(settings, shared.metrics)
                                       : partitions_answer(settings, shared, shown, request, now);
}

}  // namespace tidegate::gateway
