// SPDX-License-Identifier: Apache-2.0
//
// `quota: {by: plan, …}` of a policy.
#include <tidegate/config/values.hpp>
#include "reader/auth/auth_scalars.hpp"
#include "reader/parts.hpp"

#include <algorithm>
#include <array>

namespace tidegate::gateway {

namespace {

constexpr std::size_t plans_max = 64;

/// A quota from 0 on; `name` is what stands before it.
auto read_number(option_reader& in, std::string_view name, yaml_node::member const& member,
                 ratelimit::quota_unit unit) -> std::optional<std::int64_t> {
  if (in.has_no_value(member)) {
    return std::nullopt;
  }
  std::string const path = "policies.quota." + std::string(name);
  auto rule = option_at("policies.quota.default");
  rule.path = path;
  auto const number = in.take_node(rule, *member.value, read_quota);
  if (number && unit != ratelimit::quota_unit::content_bytes && !parse_count(member.value->text)) {
    in.fault(member.value->place, std::string(name) + ": " + shown(member.value->text) +
                                      " is a size, which is only for unit: content-bytes (expected "
                                      "a number)");
    return std::nullopt;
  }
  return number;
}

}  // namespace

auto read_quota_choice(option_reader& in, section const& from, ratelimit::quota_unit unit)
    -> std::optional<chosen_quota> {
  auto const* const given = from.find("quota");
  if (given == nullptr || given->value->kind != yaml_kind::mapping) {
    return std::nullopt;
  }
  section const inside{"policies.quota", given->value, given->value->place};
  auto const faults_before = in.fault_count();
  in.check_repetitions(*given->value, "plan");
  for (auto const* const key : {"by", "default"}) {
    if (!inside.has(key)) {
      in.fault(inside.place,
               "quota: " + shown(key) + " is missing" + expected(allowed_values(inside.rule(key))));
    }
  }
  chosen_quota made;
  if (auto const by = in.take(inside, "by", read_quota_source)) {
    made.choice.by = *by;
  }
  bool const by_plan = made.choice.by.kind == ratelimit::partition_source_kind::plan;
  for (auto const& member : given->value->members) {
    auto const& name = member.key->text;
    if (name == "by") {
      continue;
    }
    auto const number = read_number(in, name, member, unit).value_or(0);
    if (name == "default") {
      made.otherwise = number;
    } else if (name == "max" && !by_plan) {
      made.choice.max = number;
    } else if (!by_plan) {
      in.fault(member.key->place, "quota: unknown key " + shown(name) +
                                      expected("by, default and max with by: attribute:NAME"));
    } else if (!is_printable_name(name)) {
      in.fault(member.key->place,
               "invalid name " + shown(name) +
                   expected("printable ASCII characters, without spaces at the ends"));
    } else if (name == "max") {
      in.fault(member.key->place, "max: only with by: attribute:NAME");
    } else {
      made.choice.plans.push_back({name, number});
    }
  }
  if (made.choice.plans.size() > plans_max) {
    in.fault(inside.place,
             "quota: too many plans" + expected("at most " + std::to_string(plans_max)));
  }
  if (!by_plan && !inside.has("max")) {
    in.fault(inside.place, "quota: \"max\" is missing" + expected("the largest quota"));
  } else if (!by_plan && made.choice.max < std::max<std::int64_t>(made.otherwise, 1)) {
    in.fault(inside.place_of("max"),
             "max: less than the default, or 0" + expected("the largest quota"));
  } else if (by_plan && made.choice.largest(made.otherwise) == 0) {
    in.fault(inside.place, "quota: every plan has 0" + expected("at least one quota above 0"));
  }
  return in.fault_count() == faults_before ? std::optional(std::move(made)) : std::nullopt;
}

}  // namespace tidegate::gateway
