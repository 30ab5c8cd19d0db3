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
               std::string(key) + ": a size is for unit content-bytes (expected a number)");
    }
  }
}

/// Quota, window, unit, algorithm and burst, which depend on each other.
auto read_limit(option_reader& in, section const& from) -> std::optional<ratelimit::policy> {
  ratelimit::policy_settings settings;
  auto const unit = in.take(from, "unit", read_choice);
  auto const algorithm = in.take(from, "algorithm", read_choice);
  auto const quota = in.take(from, "quota", read_quota);
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
        in.fault(given->key->place, std::string(key) + ": not for concurrent-requests");
      }
    }
  } else if (!from.has("window")) {
    in.fault(from.place, "\"window\" is missing" + expected(allowed_values(from.rule("window"))));
  } else if (window && *window % std::chrono::seconds(1) != std::chrono::nanoseconds(0)) {
    in.fault(from.place_of("window"), "window: not in whole seconds (expected whole seconds)");
  }
  if (!concurrent && settings.burst && settings.algorithm != ratelimit::algorithm::gcra) {
    in.fault(from.find("burst")->key->place, "burst: only for algorithm gcra");
    settings.burst = std::nullopt;
  }
  if (!quota || (concurrent ? settings.burst.has_value() : !window)) {
    return std::nullopt;
  }
  settings.quota = *quota;
  settings.window = concurrent ? std::chrono::seconds(0)
                               : std::chrono::duration_cast<std::chrono::seconds>(*window);
  auto const policy = ratelimit::policy::make(settings);
  if (!policy) {
    // What is left are bounds that depend on several values.
    in.fault(from.place_of("burst"), std::string(ratelimit::message(policy.error())));
    return std::nullopt;
  }
  return *policy;
}

auto read_abuse(option_reader& in, section const& from)
    -> std::optional<ratelimit::abuse_settings> {
  auto const* const given = from.find("abuse");
  if (given == nullptr || (given->value->kind == yaml_kind::scalar &&
                           is_word(from.rule("abuse"), given->value->text))) {
    return std::nullopt;
  }
  auto const abuse = in.open_at(from, "abuse");
  return ratelimit::abuse_settings{
      .refusals = static_cast<std::uint32_t>(in.take_or_default(abuse, "refusals", read_integer)),
      .within = in.take_or_default(abuse, "within", read_duration),
      .block = in.take_or_default(abuse, "block", read_duration),
  };
}

auto read_policy(option_reader& in, section const& from, std::string_view name)
    -> std::optional<policy_config> {
  auto const policy = read_limit(in, from);
  auto const form = in.take(from, "partition-key", read_choice);
  auto sources = read_sources(in, from, "partition");
  auto const shadow = in.take(from, "enforce", read_choice) == "shadow";
  auto const count = in.take(from, "count", read_choice);
  auto const jitter = in.take_or_default(from, "jitter", read_duration);
  auto const max_rate = in.take(from, "max-advertised-rate", read_rate);
  auto const abuse = read_abuse(in, from);
  bool const leases = in.take(from, "counting", read_choice) == "lease";
  auto const failure = in.take(from, "on-store-failure", read_choice);
  if (auto const secret = std::ranges::find_if(sources, ratelimit::is_credential);
      form == "plain" && secret != sources.end()) {
    in.fault(from.place_of("partition-key"),
             "partition-key: \"plain\" would tell " + shown(to_string(*secret)) +
                 ", which is a credential, in every response (expected none, hashed)");
  }
  if (!policy) {
    return std::nullopt;
  }
  // What was taken ahead drains before it is used: more than the burst could come at once.
  if (leases && policy->algorithm() == ratelimit::algorithm::gcra &&
      policy->unit() != ratelimit::quota_unit::concurrent_requests) {
    in.fault(from.place_of("counting"),
             "counting: gcra cannot be counted by lease (expected exact)");
  }
  using ratelimit::partition_key_form;
  return policy_config{
      .name = std::string(name),
      .policy = *policy,
      .partition = ratelimit::partition_rule(std::move(sources),
                                             form == "hashed"  ? partition_key_form::hashed
                                             : form == "plain" ? partition_key_form::plain
                                                               : partition_key_form::none),
      .advertisement = {.max_rate = max_rate, .jitter = jitter},
      .shadow = shadow,
      .count = count == "successful" ? counted::successful : counted::all,
      .abuse = abuse,
      .counting = leases ? store::counting::lease : store::counting::exact,
      .on_store_failure = failure == "allow"  ? store_failure::allow
                          : failure == "deny" ? store_failure::deny
                                              : store_failure::local,
  };
}

}  // namespace

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
