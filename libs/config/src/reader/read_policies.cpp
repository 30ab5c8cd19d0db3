// SPDX-License-Identifier: Apache-2.0
#include <tidegate/config/values.hpp>
#include "reader/parts.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace tidegate::gateway {

namespace {

/// A size such as 10MiB is for octets.
void check_units(option_reader& in, section const& from, ratelimit::quota_unit unit) {
  for (auto const* const key : {"quota", "burst"}) {
    auto const* const given = from.find(key);
    if (unit != ratelimit::quota_unit::content_bytes && given != nullptr &&
        parse_size(given->value->text) && !parse_count(given->value->text)) {
      in.fault(given->value->place,
               std::string(key) + ": " + shown(given->value->text) +
                   " is a size, which is only for unit: content-bytes (expected a number)");
    }
  }
}

/// Quota, window, unit, algorithm and burst, which depend on each other.
auto read_limit(option_reader& in, section const& from, std::optional<quota_choice>& choice)
    -> std::optional<ratelimit::policy> {
  ratelimit::policy_settings settings;
  auto const unit = in.take(from, "unit", read_choice);
  auto const algorithm = in.take(from, "algorithm", read_choice);
  auto chosen = read_quota_choice(
      in, from, unit ? ratelimit::quota_unit_named(*unit) : ratelimit::quota_unit());
  std::int64_t const otherwise = chosen ? chosen->otherwise : 0;
  auto const plain = from.has_mapping("quota") ? std::nullopt : in.take(from, "quota", read_quota);
  auto const window = in.take(from, "window", read_duration);
  settings.burst = in.take(from, "burst", read_quota);
  if (!unit || !algorithm || from.node == nullptr) {
    return std::nullopt;
  }
  settings.unit = ratelimit::quota_unit_named(*unit);
  settings.algorithm = *algorithm == "fixed"  ? ratelimit::algorithm::fixed
                       : *algorithm == "gcra" ? ratelimit::algorithm::gcra
                                              : ratelimit::algorithm::sliding;
  check_units(in, from, settings.unit);
  bool const concurrent = settings.unit == ratelimit::quota_unit::concurrent_requests;
  if (concurrent) {
    for (auto const* const key : {"window", "algorithm", "burst"}) {
      if (auto const* const given = from.find(key)) {
        in.fault(given->key->place, std::string(key) + ": not with unit: concurrent-requests");
      }
    }
  } else if (!from.has("window")) {
    in.fault(from.place, "\"window\" is missing" + expected(allowed_values(from.rule("window"))));
  } else if (window && *window % std::chrono::seconds(1) != std::chrono::nanoseconds(0)) {
    in.fault(from.place_of("window"), "window: must be whole seconds (expected e.g. 10s)");
  }
  if (!concurrent && settings.burst && settings.algorithm != ratelimit::algorithm::gcra) {
    in.fault(from.find("burst")->key->place, "burst: only with algorithm: gcra");
    settings.burst = std::nullopt;
  }
  if ((!plain && !chosen) || (concurrent ? settings.burst.has_value() : !window)) {
    return std::nullopt;
  }
  if (chosen) {
    // Each quota has the burst; the largest is the first that it may not fit.
    settings.quota = chosen->choice.smallest(chosen->otherwise);
    chosen->choice.burst = settings.burst;
  } else {
    settings.quota = plain.value_or(0);
  }
  settings.window = concurrent ? std::chrono::seconds(0)
                               : std::chrono::duration_cast<std::chrono::seconds>(*window);
  auto const policy = ratelimit::policy::make(settings);
  if (!policy) {
    // What is left are bounds that depend on several values.
    in.fault(from.place_of("burst"), std::string(ratelimit::message(policy.error())));
    return std::nullopt;
  }
  if (chosen) {
    choice = std::move(chosen->choice);
    return choice->policy_with(*policy, otherwise);
  }
  return *policy;
}

auto read_policy(option_reader& in, section const& from, std::string_view name)
    -> std::optional<policy_config> {
  std::optional<quota_choice> choice;
  auto const policy = read_limit(in, from, choice);
  auto const form = in.take(from, "partition-key", read_choice);
  auto sources = read_sources(in, from, "partition");
  if (auto const secret = std::ranges::find_if(sources, ratelimit::is_credential);
      form == "plain" && secret != sources.end()) {
    in.fault(from.place_of("partition-key"), "partition-key: \"plain\" would show the credential " +
                                                 shown(to_string(*secret)) +
                                                 " in every response (expected none or hashed)");
  }
  // Its options are checked even when it has no quota.
  using ratelimit::partition_key_form;
  policy_config made{
      .name = std::string(name),
      .policy = policy ? *policy
                       : *ratelimit::policy::make(
                             {.quota = 1, .window = std::chrono::seconds(1), .burst = {}}),
      .choice = std::move(choice),
      .partition = ratelimit::partition_rule(std::move(sources),
                                             form == "hashed"  ? partition_key_form::hashed
                                             : form == "plain" ? partition_key_form::plain
                                                               : partition_key_form::none),
      .advertisement = {},
      .abuse = {},
  };
  in.fill(from, made);
  if (!policy) {
    return std::nullopt;
  }
  // What was taken ahead drains before it is used: more than the burst could come at once.
  if (made.counting == store::counting::lease &&
      policy->algorithm() == ratelimit::algorithm::gcra &&
      policy->unit() != ratelimit::quota_unit::concurrent_requests) {
    in.fault(from.place_of("counting"),
             "counting: \"lease\" does not work with algorithm: gcra (expected exact)");
  }
  return made;
}

}  // namespace

auto read_sources(option_reader& in, section const& from, std::string const& key)
    -> std::vector<ratelimit::partition_source> {
  auto const& rule = from.rule(key);
  if (from.find(key) == nullptr) {
    return {*read_source(rule, {rule.initial})};
  }
  std::vector<ratelimit::partition_source> sources;
  for (auto const* const item : in.items_at(from, key)) {
    auto source = in.take_node(rule, *item, read_source);
    if (source && std::find(sources.begin(), sources.end(), *source) != sources.end()) {
      in.fault(item->place, key + ": duplicate " + shown(item->text));
    } else if (sources.size() == sources_max) {
      in.fault(item->place,
               key + ": too many sources" + expected("at most " + std::to_string(sources_max)));
      break;
    } else if (source) {
      sources.push_back(*std::move(source));
    }
  }
  return sources;
}

void check_principal(option_reader& in, yaml_place place, std::string_view key,
                     std::span<ratelimit::partition_source const> sources,
                     route_config const& route) {
  bool const asks =
      std::ranges::any_of(sources, [](auto const& source) { return needs_principal(source.kind); });
  if (asks && !route.auth) {
    auto const found = std::ranges::find_if(
        sources, [](auto const& source) { return needs_principal(source.kind); });
    in.fault(place,
             std::string(key) + ": " + shown(to_string(*found)) + " needs \"auth\" on the route");
  }
}

auto read_policies(option_reader& in, section const& top, config& made) -> name_table {
  name_table names;
  for (auto const& member : in.named_at(top, "policies")) {
    auto const faults_before = in.fault_count();
    auto const from = in.has_no_value(member) ? section{"policies", nullptr, member.key->place}
                                              : in.open(*member.value, "policies");
    auto policy = read_policy(in, from, member.key->text);
    // A policy with faults has a name all the same, which routes may use.
    if (policy && in.fault_count() == faults_before) {
      names.try_emplace(member.key->text, made.policies.size());
      made.policies.push_back(*std::move(policy));
    } else {
      names.try_emplace(member.key->text, std::nullopt);
    }
  }
  return names;
}

}  // namespace tidegate::gateway
