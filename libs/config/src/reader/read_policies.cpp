// SPDX-License-Identifier: Apache-2.0
#include <tidegate/config/values.hpp>
#include "reader/parts.hpp"
#include "reader/time_zones.hpp"

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
               std::string(key) + ": " + shown(written_text(*given->value)) +
                   " is a size, which is only for unit: content-bytes (expected a number)");
    }
  }
}

/// `window: {calendar: ..., time-zone: ...}`; nothing when it is a duration, and after a fault.
auto read_calendar(option_reader& in, section const& from)
    -> std::optional<ratelimit::calendar_rule> {
  auto const* const given = from.find("window");
  if (given == nullptr || given->value->kind != yaml_kind::mapping) {
    return std::nullopt;
  }
  auto const window = in.open(*given->value, "policies.window");
  auto const unit = in.take(window, "calendar", read_choice);
  auto const zone_name = in.take(window, "time-zone", read_name);
  if (!unit || !zone_name) {
    return std::nullopt;
  }
  auto zone = load_time_zone(*zone_name);
  if (!zone) {
    in.fault(window.place_of("time-zone"), "time-zone: " + zone.error());
    return std::nullopt;
  }
  return ratelimit::calendar_rule{*ratelimit::calendar_unit_named(*unit), *zone_name,
                                  *std::move(zone)};
}

/// The policy of these settings, or that of the default where there are several quotas.
auto make_limit(option_reader& in, section const& from, ratelimit::policy_settings settings,
                std::optional<chosen_quota> chosen, std::optional<quota_choice>& choice)
    -> std::optional<ratelimit::policy> {
  if (chosen) {  // each of them has the burst, which the smallest may not fit
    settings.quota = chosen->choice.smallest(chosen->otherwise);
    chosen->choice.burst = settings.burst;
  }
  // What is left are bounds that depend on several values.
  auto const policy = ratelimit::policy::make(settings);
  auto const largest =
      policy && chosen ? policy->with_quota(chosen->choice.largest(chosen->otherwise)) : policy;
  if (!largest) {
    bool const is_log = largest.error() == ratelimit::policy_fault::log_quota_too_large;
    in.fault(from.place_of(is_log ? "quota" : "burst"),
             std::string(ratelimit::message(largest.error())));
    return std::nullopt;
  }
  if (!chosen) {
    return *policy;
  }
  choice = std::move(chosen->choice);
  return choice->policy_with(*policy, chosen->otherwise);
}

/// Quota, window, unit, algorithm and burst, which depend on each other.
auto read_limit(option_reader& in, section const& from, std::optional<quota_choice>& choice,
                std::optional<ratelimit::calendar_rule>& calendar)
    -> std::optional<ratelimit::policy> {
  ratelimit::policy_settings settings;
  auto const unit = in.take(from, "unit", read_choice);
  auto const algorithm = in.take(from, "algorithm", read_choice);
  auto chosen = read_quota_choice(
      in, from, unit ? ratelimit::quota_unit_named(*unit) : ratelimit::quota_unit());
  bool const is_plain = !from.has_mapping("quota");
  auto const plain = is_plain ? in.take(from, "quota", read_quota).value_or(-1) : -1;
  auto const* const given_window = from.find("window");
  bool const is_calendar =
      given_window != nullptr && given_window->value->kind == yaml_kind::mapping;
  calendar = read_calendar(in, from);
  std::optional<std::chrono::nanoseconds> window;
  if (!is_calendar) {
    window = in.take(from, "window", read_duration);
  } else if (calendar) {
    window = ratelimit::usual_length(calendar->unit);
  }
  settings.burst = in.take(from, "burst", read_quota);
  if (!unit || !algorithm || from.node == nullptr) {
    return std::nullopt;
  }
  settings.unit = ratelimit::quota_unit_named(*unit);
  settings.algorithm = *algorithm == "fixed"  ? ratelimit::algorithm::fixed
                       : *algorithm == "gcra" ? ratelimit::algorithm::gcra
                       : *algorithm == "log"  ? ratelimit::algorithm::log
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
  if (!concurrent && is_calendar && settings.algorithm != ratelimit::algorithm::fixed) {
    in.fault(from.place_of("window"),
             "window: a calendar is only for algorithm: fixed (expected a duration, e.g. 1d)");
    return std::nullopt;
  }
  settings.is_calendar = is_calendar;
  if (!concurrent && settings.burst && settings.algorithm != ratelimit::algorithm::gcra) {
    in.fault(from.find("burst")->key->place, "burst: only with algorithm: gcra");
    settings.burst = std::nullopt;
  }
  if ((plain < 0 && !chosen) ||
      (concurrent ? settings.burst.has_value() || is_calendar : !window)) {
    return std::nullopt;
  }
  settings.quota = plain;
  settings.window = concurrent ? std::chrono::seconds(0)
                               : std::chrono::duration_cast<std::chrono::seconds>(*window);
  return make_limit(in, from, settings, std::move(chosen), choice);
}

auto read_policy(option_reader& in, section const& from, std::string_view name)
    -> std::optional<policy_config> {
  std::optional<quota_choice> choice;
  std::optional<ratelimit::calendar_rule> calendar;
  auto const policy = read_limit(in, from, choice, calendar);
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
      .calendar = std::move(calendar),
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
  if (made.counting == store::counting::lease && made.calendar) {
    in.fault(from.place_of("counting"),
             "counting: \"lease\" does not work with a calendar (expected exact)");
  }
  // What was taken ahead drains before it is used: more than the burst could come at once. Of a log
  // it would be used later than the log says.
  bool const is_gcra = policy->algorithm() == ratelimit::algorithm::gcra;
  if (made.counting == store::counting::lease &&
      (is_gcra || policy->algorithm() == ratelimit::algorithm::log) &&
      policy->unit() != ratelimit::quota_unit::concurrent_requests) {
    in.fault(from.place_of("counting"), "counting: \"lease\" does not work with algorithm: " +
                                            std::string(is_gcra ? "gcra" : "log") +
                                            " (expected exact)");
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
      in.fault(item->place, key + ": duplicate " + shown(written_text(*item)));
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
