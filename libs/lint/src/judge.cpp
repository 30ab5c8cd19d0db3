// SPDX-License-Identifier: Apache-2.0
#include <tidegate/lint/judge.hpp>

#include "recording.hpp"

#include <tidegate/base/ascii.hpp>
#include <tidegate/explain/fields.hpp>
#include <tidegate/ratelimit/read.hpp>

#include <algorithm>
#include <array>

namespace tidegate::TIDEGATE_ABI::lint {

namespace {

/// Rules about single fields that a response can break; keys are in requests.
[[nodiscard]] auto response_field_rules() -> std::vector<explain::rule> {
  std::vector<explain::rule> all;
  for (auto const& one : explain::field_rules()) {
    if (!one.id.starts_with("idempotency-")) {
      all.push_back(one);
    }
  }
  return all;
}

/// Whether a RateLimit field of that draft is there, well-formed or not.
[[nodiscard]] auto has_draft(seen const& each, ratelimit::draft version) -> bool {
  auto const is_of = [&](auto const& lines, auto const& read) {
    return !lines.empty() && (read ? read->version : read.error().version) == version;
  };
  auto const limits = each.fields("ratelimit");
  auto const policies = each.fields("ratelimit-policy");
  return is_of(limits, ratelimit::read_limits(limits)) ||
         is_of(policies, ratelimit::read_policies(policies));
}

/// Whether a response has a field that a rule about single fields is for.
[[nodiscard]] auto has_field_for(seen const& each, explain::rule const& rule) -> bool {
  if (rule.id.starts_with("retry-after-")) {
    return !each.fields("retry-after").empty();
  }
  if (rule.id.starts_with("x-ratelimit-")) {
    return std::ranges::any_of(each.lines, [](auto const& line) {
      return equal_ignoring_case(line.name.substr(0, 12), "x-ratelimit-") ||
             equal_ignoring_case(line.name.substr(0, 13), "x-rate-limit-");
    });
  }
  if (rule.id == "ratelimit-redirect-exhausted" && each.status() / 100 != 3) {
    return false;
  }
  bool const is_older = rule.specification == explain::specification::ratelimit_07;
  bool const is_newer = rule.specification == explain::specification::ratelimit_09;
  return (!is_older && has_draft(each, ratelimit::draft::draft_09)) ||
         ((!is_newer || !rule.section_07.empty()) && has_draft(each, ratelimit::draft::draft_07));
}

void judge_fields(recording const& what, std::span<judgement> judgements) {
  for (auto const& each : what.all()) {
    for (auto& one : judgements) {
      if (has_field_for(each, one.rule)) {
        verdict(one).applies();
      }
    }
    for (auto& found : explain::explain_fields({.fields = each.lines, .status = each.status()},
                                               each.source->received)) {
      auto const one = std::ranges::find(judgements, found.rule,
                                         [](judgement const& known) { return known.rule.id; });
      if (one != judgements.end()) {
        verdict(*one).broken(each, std::move(found));
      }
    }
  }
}

[[nodiscard]] auto behaviour_rules() -> std::array<std::span<checked_rule const>, 5> {
  return {ratelimit_rules(), problem_rules(), idempotency_rules(), scim_config_rules(),
          scim_rules()};
}

}  // namespace

auto title_of(area of) noexcept -> std::string_view {
  switch (of) {
    case area::ratelimit: return "RateLimit and Retry-After";
    case area::problem_details: return "Problem details";
    case area::idempotency: return "Idempotency-Key";
    case area::scim: break;
  }
  return "SCIM pagination";
}

auto area_of(explain::rule const& of) noexcept -> area {
  if (of.id.starts_with("problem-")) {
    return area::problem_details;
  }
  if (of.id.starts_with("idempotency-")) {
    return area::idempotency;
  }
  return of.id.starts_with("scim-") ? area::scim : area::ratelimit;
}

auto name_of(outcome what) noexcept -> std::string_view {
  switch (what) {
    case outcome::not_seen: return "not-seen";
    case outcome::holds: return "holds";
    case outcome::broken: break;
  }
  return "broken";
}

auto rules() -> std::vector<explain::rule> {
  auto all = response_field_rules();
  for (auto const group : behaviour_rules()) {
    for (auto const& one : group) {
      all.push_back(one.about);
    }
  }
  return all;
}

auto judge(std::span<exchange const> exchanges) -> std::vector<judgement> {
  recording const what(exchanges);
  std::vector<judgement> judgements;
  for (auto const& one : response_field_rules()) {
    judgements.push_back({.rule = one});
  }
  judge_fields(what, judgements);
  for (auto const group : behaviour_rules()) {
    for (auto const& one : group) {
      auto& added = judgements.emplace_back(judgement{.rule = one.about});
      verdict out(added);
      one.check(what, out);
    }
  }
  return judgements;
}

auto count_broken(std::span<judgement const> judgements, explain::severity level) noexcept
    -> std::size_t {
  return static_cast<std::size_t>(std::ranges::count_if(judgements, [&](judgement const& one) {
    return one.result == outcome::broken && one.rule.level == level;
  }));
}

}  // namespace tidegate::TIDEGATE_ABI::lint
