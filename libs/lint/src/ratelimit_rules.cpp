// SPDX-License-Identifier: Apache-2.0
#include "recording.hpp"

#include <tidegate/base/ascii.hpp>
#include <tidegate/json/value.hpp>
#include <tidegate/ratelimit/problems.hpp>
#include <tidegate/ratelimit/read.hpp>

#include <algorithm>
#include <array>
#include <set>
#include <string>

namespace tidegate::TIDEGATE_ABI::lint {

namespace {

using namespace explain::specification;
using enum explain::severity;

constexpr std::string_view limit_name = "RateLimit";
constexpr std::string_view policy_name = "RateLimit-Policy";
constexpr std::string_view types_base = "https://iana.org/assignments/http-problem-types#";

[[nodiscard]] auto has_legacy(seen const& each) -> bool {
  return !ratelimit::read_legacy(each.lines, each.source->received).limits.empty();
}

void check_advertised(recording const& what, verdict& out) {
  seen const* first = nullptr;
  for (auto const& each : what.all()) {
    if (each.status() == 0) {
      continue;
    }
    first = first == nullptr ? &each : first;
    out.applies();
    if (!each.fields(limit_name).empty() || !each.fields(policy_name).empty() || has_legacy(each)) {
      return;
    }
  }
  if (first != nullptr) {
    out.broken(*first, limit_name, "no response says anything about quotas");
  }
}

void check_stable(recording const& what, verdict& out) {
  seen const* first = nullptr;
  for (auto const& each : what.all()) {
    // A server may lower what it advertises while it is refusing.
    if (each.purpose() != probe::sample || !each.is_judged()) {
      continue;
    }
    if (first == nullptr) {
      first = &each;
      continue;
    }
    if (!first->fields(policy_name).empty() || !each.fields(policy_name).empty()) {
      out.applies();
      if (first->fields(policy_name) != each.fields(policy_name)) {
        out.broken(each, policy_name,
                   "the same request was answered with other policies than the time before");
      }
    }
  }
}

void check_secret(recording const& what, verdict& out) {
  constexpr std::array<std::string_view, 4> credentials = {"authorization", "x-api-key", "cookie",
                                                           "api-key"};
  constexpr std::size_t secret_min = 4;
  for (auto const& each : what.all()) {
    auto const judge_key = [&](std::optional<std::string> const& key, std::string_view field) {
      if (!key) {
        return;
      }
      out.applies();
      for (auto const& [name, value] : each.source->request.fields) {
        bool const is_credential = std::ranges::any_of(
            credentials, [&](std::string_view known) { return equal_ignoring_case(known, name); });
        // A scheme such as Bearer is not secret.
        auto const secret = value.substr(value.rfind(' ') + 1);
        if (is_credential && secret.size() >= secret_min && key->contains(secret)) {
          out.broken(each, field,
                     "the partition key shows the credential that was sent in " + name);
        }
      }
    };
    if (auto const limits = ratelimit::read_limits(each.fields(limit_name))) {
      for (auto const& limit : limits->limits) {
        judge_key(limit.partition_key, limit_name);
      }
    }
    if (auto const policies = ratelimit::read_policies(each.fields(policy_name))) {
      for (auto const& policy : policies->policies) {
        judge_key(policy.partition_key, policy_name);
      }
    }
  }
}

void check_says_when(recording const& what, verdict& out) {
  for (auto const& each : what.all()) {
    if (each.status() != 429) {
      continue;
    }
    out.applies();
    auto const limits = ratelimit::read_limits(each.fields(limit_name));
    bool const has_reset = limits && std::ranges::any_of(limits->limits, [](auto const& limit) {
                             return limit.reset.has_value();
                           });
    if (each.field("retry-after").empty() && !has_reset && !has_legacy(each)) {
      out.broken(each, "Retry-After", "the refusal does not say when to come back");
    }
  }
}

/// The problem type of the draft that a response has, as the name behind "#"; also where the
/// address of the registry is written in another way. Types elsewhere are the server's own,
/// whatever they are called (RFC 9457, section 3.1.1).
[[nodiscard]] auto quota_type(seen const& each) -> std::string_view {
  constexpr std::array<std::string_view, 3> names = {"quota-exceeded", "temporary-reduced-capacity",
                                                     "abnormal-usage-detected"};
  if (!each.json) {
    return {};
  }
  constexpr std::array<std::string_view, 4> registries = {
      types_base, "http://iana.org/assignments/http-problem-types#",
      "https://www.iana.org/assignments/http-problem-types#",
      "http://www.iana.org/assignments/http-problem-types#"};
  auto const type = text_of(*each.json, "type");
  for (auto const registry : registries) {
    auto const* const name = type.starts_with(registry)
                                 ? std::ranges::find(names, type.substr(registry.size()))
                                 : names.end();
    if (name != names.end()) {
      return *name;
    }
  }
  return {};
}

void check_problem_type(recording const& what, verdict& out) {
  for (auto const& each : what.all()) {
    if (quota_type(each).empty()) {
      continue;
    }
    out.applies();
    if (!text_of(*each.json, "type").starts_with(types_base)) {
      out.broken(each, "type",
                 "the type is to be " + std::string(types_base) + std::string(quota_type(each)));
    }
  }
}

void check_problem_status(recording const& what, verdict& out) {
  for (auto const& each : what.all()) {
    auto const type = quota_type(each);
    if (type.empty()) {
      continue;
    }
    out.applies();
    int const expected = type == "temporary-reduced-capacity" ? 503 : 429;
    if (each.status() != expected) {
      out.broken(each, "type", std::string(type) + " goes with " + std::to_string(expected));
    }
  }
}

void check_violated_missing(recording const& what, verdict& out) {
  for (auto const& each : what.all()) {
    if (quota_type(each).empty()) {
      continue;
    }
    out.applies();
    if (each.json->find("violated-policies") == nullptr) {
      out.broken(each, "violated-policies", "the member is missing");
    }
  }
}

void check_violated(recording const& what, verdict& out) {
  for (auto const& each : what.all()) {
    auto const* const member =
        quota_type(each).empty() ? nullptr : each.json->find("violated-policies");
    if (member == nullptr) {
      continue;
    }
    out.applies();
    auto const* const names = member->if_array();
    if (names == nullptr || std::ranges::any_of(*names, [](json::value const& name) {
          return name.if_string() == nullptr;
        })) {
      out.broken(each, "violated-policies", "the member is not an array of strings");
    }
  }
}

void check_violated_names(recording const& what, verdict& out) {
  for (auto const& each : what.all()) {
    auto const policies = ratelimit::read_policies(each.fields(policy_name));
    auto const* const names =
        quota_type(each).empty() ? nullptr : each.json->find<json::array>("violated-policies");
    if (!policies || policies->policies.empty() || names == nullptr ||
        policies->version == ratelimit::draft::draft_07) {
      continue;
    }
    out.applies();
    std::set<std::string_view> known;
    for (auto const& policy : policies->policies) {
      known.insert(policy.name);
    }
    for (auto const& name : *names) {
      auto const* const text = name.if_string();
      if (text != nullptr && !known.contains(*text)) {
        out.broken(each, "violated-policies",
                   "\"" + *text + "\" is not a policy of RateLimit-Policy");
      }
    }
  }
}

constexpr auto table = std::to_array<checked_rule>({
    {{"ratelimit-advertised", advice, ratelimit_09, "1, 6.2",
      "Responses say what quotas there are.", "1, 4.1"},
     check_advertised},
    {{"ratelimit-policy-stable", warning, ratelimit_09, "3",
      "RateLimit-Policy stays the same over a sequence of responses."},
     check_stable},
    {{"ratelimit-partition-key-secret", warning, ratelimit_09, "6.1, 8.2",
      "A partition key does not show a credential."},
     check_secret},
    {{"ratelimit-refusal-says-when", advice, status_429, "4",
      "A 429 says when to come back, by Retry-After or by a reset."},
     check_says_when},
    {{"ratelimit-problem-type", warning, ratelimit_09, "5",
      "The problem types of the draft are written as it registers them."},
     check_problem_type},
    {{"ratelimit-problem-status", warning, ratelimit_09, "10.2",
      "quota-exceeded and abnormal-usage-detected go with 429, temporary-reduced-capacity with "
      "503."},
     check_problem_status},
    {{"ratelimit-violated-missing", warning, ratelimit_09, "5.1, 5.2, 5.3",
      "The problem types of the draft come with violated-policies."},
     check_violated_missing},
    {{"ratelimit-violated-policies", error, ratelimit_09, "5.1, 5.2, 5.3",
      "violated-policies of these problem types is an array of strings."},
     check_violated},
    {{"ratelimit-violated-names", warning, ratelimit_09, "5.1, 5.2, 5.3",
      "violated-policies has names of policies that RateLimit-Policy has."},
     check_violated_names},
});

}  // namespace

auto ratelimit_rules() noexcept -> std::span<checked_rule const> {
  return table;
}

}  // namespace tidegate::TIDEGATE_ABI::lint
