// SPDX-License-Identifier: Apache-2.0
#include <tidegate/config/describe.hpp>

#include <tidegate/config/key_scope.hpp>
#include <tidegate/idempotency/problems.hpp>
#include <tidegate/ratelimit/fields.hpp>

#include <algorithm>
#include <array>
#include <span>
#include <string_view>
#include <vector>

namespace tidegate::gateway {

namespace {

auto has_window(policy_config const& policy) -> bool {
  return policy.policy.unit() != ratelimit::quota_unit::concurrent_requests;
}

auto name_of(ratelimit::algorithm algorithm) -> std::string_view {
  switch (algorithm) {
    case ratelimit::algorithm::fixed: return "fixed";
    case ratelimit::algorithm::sliding: return "sliding";
    case ratelimit::algorithm::log: return "log";
    case ratelimit::algorithm::gcra: break;
  }
  return "gcra";
}

void append_html(std::string& out, std::string_view text) {
  for (auto const c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      default: out += c;
    }
  }
}

auto names_of(std::span<ratelimit::partition_source const> sources) -> std::vector<std::string> {
  std::vector<std::string> names;
  for (auto const& source : sources) {
    names.push_back(to_string(source));
  }
  return names;
}

auto joined(std::span<std::string const> texts, std::string const& between = ", ") -> std::string {
  std::string out;
  for (auto const& text : texts) {
    out += (out.empty() ? "" : between) + text;
  }
  return out;
}

auto uses_keys(config const& settings) -> bool {
  return std::ranges::any_of(settings.routes,
                             [](auto const& route) { return route.idempotency.has_value(); });
}

/// What a client can be told about a key, and what it means.
constexpr std::array all_codes = {
    idempotency::problem_code::key_missing,      idempotency::problem_code::key_malformed,
    idempotency::problem_code::key_too_old,      idempotency::problem_code::scope_missing,
    idempotency::problem_code::digest_mismatch,  idempotency::problem_code::key_reused,
    idempotency::problem_code::in_flight,        idempotency::problem_code::outcome_unknown,
    idempotency::problem_code::result_expired,   idempotency::problem_code::response_not_replayable,
    idempotency::problem_code::body_too_large,   idempotency::problem_code::too_many_keys,
    idempotency::problem_code::store_unavailable};

/// Which content makes two requests the same, by `routes[].idempotency.fingerprint`.
void append_fingerprint(json::writer& out, idempotency::fingerprint_rule const& rule) {
  if (rule.pointers().empty()) {
    out.member("fingerprint", rule == idempotency::fingerprint_rule::none()   ? "none"
                              : rule == idempotency::fingerprint_rule::json() ? "json"
                                                                              : "body");
    return;
  }
  std::vector<std::string_view> texts;
  for (auto const& pointer : rule.pointers()) {
    texts.push_back(pointer.text());
  }
  out.begin_object("fingerprint").list("json", texts).end_object();
}

auto fingerprint_as_html(idempotency::fingerprint_rule const& rule) -> std::string {
  std::string out = "its method, path and query";
  if (!rule.pointers().empty()) {
    out += " and these values of its JSON body:";
    for (auto const& pointer : rule.pointers()) {
      out += &pointer == rule.pointers().data() ? " <code>" : ", <code>";
      append_html(out, pointer.text());
      out += "</code>";
    }
  } else if (rule == idempotency::fingerprint_rule::json()) {
    out += " and its JSON body, whatever the order of members and the white space";
  } else if (!(rule == idempotency::fingerprint_rule::none())) {
    out += " and every byte of its body";
  }
  return out;
}

void append_keys_as_json(json::writer& out, config const& settings) {
  out.begin_object("idempotency").begin_array("routes");
  for (auto const& route : settings.routes) {
    if (!route.idempotency) {
      continue;
    }
    auto const& keys = *route.idempotency;
    out.begin_object()
        .member("route", route.name)
        .member("required", keys.required)
        .list("methods", keys.methods)
        .list("scope", names_of(keys.scope))
        .member("per-host", true)
        .member("key-format", idempotency::name_of(keys.key.format))
        .member("key-length-max", keys.key.length_max)
        .member("replayed-for", keys.policy.ttl.count())
        .member("remembered-for", (keys.policy.ttl + keys.policy.tombstone).count())
        .member("anonymous", keys.anonymous ? "allow" : "refuse");
    append_fingerprint(out, keys.fingerprint);
    out.member("in-flight", keys.policy.wait_in_flight ? "wait" : "conflict");
    if (keys.key.age_max) {
      out.member("key-age-max",
                 std::chrono::duration_cast<std::chrono::seconds>(*keys.key.age_max).count());
    }
    out.member("replay-cost", keys.replay_cost).end_object();
  }
  out.end_array().begin_array("errors");
  for (auto const code : all_codes) {
    out.begin_object()
        .member("code", idempotency::name_of(code))
        .member("status", idempotency::status_of(code))
        .member("title", idempotency::title_of(code))
        .end_object();
  }
  out.end_array().end_object();
}

void append_keys_as_html(std::string& out, config const& settings) {
  out +=
      "<h1>Idempotency-Key</h1>\n<p>A request with a key can be sent again: it is carried out "
      "once, and the first answer is given again.</p>\n";
  for (auto const& route : settings.routes) {
    if (!route.idempotency) {
      continue;
    }
    auto const& keys = *route.idempotency;
    out += "<h2>";
    append_html(out, route.name);
    out += "</h2>\n<p>A key is " + std::string(keys.required ? "required" : "taken") + " with ";
    append_html(out, joined(keys.methods));
    out += ". It is a String of at most " + std::to_string(keys.key.length_max) + " characters";
    if (keys.key.format != idempotency::key_format::any) {
      out += " that is a ";
      out += idempotency::name_of(keys.key.format);
    }
    if (keys.key.age_max) {
      out += ", made at most " +
             std::to_string(
                 std::chrono::duration_cast<std::chrono::seconds>(*keys.key.age_max).count()) +
             " seconds ago";
    }
    out += ". ";
    out += "The same key for another host or with another value of ";
    append_html(out, joined(names_of(keys.scope)));
    out += " is another key.";
    if (!keys.owned_by_address) {
      auto named = keys.scope;
      std::erase_if(named, [](auto const& source) { return !names_client(source.kind); });
      out += " A request without ";
      append_html(out, joined(names_of(named), " and "));
      out += keys.anonymous ? " owns its key together with all others of that kind."
                            : " cannot have a key: it is refused.";
    }
    out += "</p>\n<p>A request with the same key is the same request when it has the same of " +
           fingerprint_as_html(keys.fingerprint) +
           "; else it is refused with 422. While the first one is carried out, another " +
           (keys.policy.wait_in_flight ? "waits for its answer."
                                       : "is refused with 409; with <code>Prefer: "
                                         "wait=SECONDS</code> it waits for the answer.") +
           " An answer is given again for " + std::to_string(keys.policy.ttl.count()) +
           " seconds; the key is remembered for " +
           std::to_string((keys.policy.ttl + keys.policy.tombstone).count()) +
           ". An answer that is given again costs " +
           (keys.replay_cost == 0 ? "nothing" : std::to_string(keys.replay_cost)) + ".</p>\n";
  }
  out += "<h2>Errors</h2>\n<dl>\n";
  for (auto const code : all_codes) {
    out += "<dt id=\"" + std::string(idempotency::name_of(code)) + "\"><code>" +
           std::string(idempotency::name_of(code)) + "</code> (" +
           std::to_string(idempotency::status_of(code)) + ")</dt><dd>";
    append_html(out, idempotency::title_of(code));
    out += "</dd>\n";
  }
  out += "</dl>\n";
}

/// The route counts what is sent to it.
auto is_limited(route_config const& route, config const& settings) -> bool {
  return std::ranges::any_of(route.limits,
                             [&](auto position) { return !settings.policies[position].shadow; });
}

auto limits_of(route_config const& route, config const& settings) -> std::vector<std::string> {
  std::vector<std::string> names;
  for (auto const position : route.limits) {
    if (!settings.policies[position].shadow) {
      names.push_back(settings.policies[position].name);
    }
  }
  return names;
}

/// What a request costs, in the order in which the rules are tried (draft-07, section 2.2).
void append_costs_as_json(json::writer& out, config const& settings) {
  out.begin_array("routes");
  for (auto const& route : settings.routes) {
    if (!is_limited(route, settings)) {
      continue;
    }
    out.begin_object().member("route", route.name).member("path", route.match.path);
    if (!route.match.methods.empty()) {
      out.list("methods", route.match.methods);
    }
    if (!route.match.host.empty()) {
      out.member("host", route.match.host);
    }
    out.list("limits", limits_of(route, settings));
    out.begin_object("cost").member("default", route.cost.otherwise).begin_array("rules");
    for (auto const& rule : route.cost.rules) {
      out.begin_object().list("methods", rule.match.methods);
      out.member("path", rule.match.path).member("cost", rule.cost).end_object();
    }
    out.end_array().end_object().end_object();
  }
  out.end_array();
}

void append_costs_as_html(std::string& out, config const& settings) {
  out +=
      "<h1>What requests cost</h1>\n<p>Of policies that count requests, in units. Of the rules of "
      "a route the first that fits is taken.</p>\n";
  for (auto const& route : settings.routes) {
    if (!is_limited(route, settings)) {
      continue;
    }
    out += "<h2>";
    append_html(out, route.name);
    out += "</h2>\n<p>Counted by ";
    append_html(out, joined(limits_of(route, settings)));
    out += ".</p>\n<ul>\n";
    for (auto const& rule : route.cost.rules) {
      out += "<li><code>";
      append_html(out, joined(rule.match.methods) + " " + rule.match.path);
      out += "</code>: " + std::to_string(rule.cost) + "</li>\n";
    }
    out += "<li>" + std::string(route.cost.rules.empty() ? "Every request" : "All others") + ": " +
           std::to_string(route.cost.otherwise) + "</li>\n</ul>\n";
  }
}

/// How units may be spent within the window (draft-07, sections 2.2 and 2.3).
auto distribution_of(policy_config const& policy) -> std::string {
  switch (policy.policy.algorithm()) {
    case ratelimit::algorithm::fixed:
      if (policy.calendar) {
        return "Windows are those of the calendar; within one the quota may be spent in any way.";
      }
      return "A window begins with the first request in it; within it the quota may be spent in "
             "any way.";
    case ratelimit::algorithm::sliding:
      return "Windows follow one another. What was spent in the one before counts in proportion to "
             "how much of it is less than a window ago.";
    case ratelimit::algorithm::log:
      return "Each unit comes back a window after it was spent: no window, wherever it begins, has "
             "more than the quota.";
    case ratelimit::algorithm::gcra: break;
  }
  bool const is_quota = policy.choice && !policy.choice->burst;
  return "At most " + (is_quota ? "the quota" : std::to_string(policy.policy.burst())) +
         " at once; units come back one by one, evenly over the window.";
}

/// `100 requests`, or what each plan has.
void append_quota_as_html(std::string& out, policy_config const& policy) {
  std::string const unit(ratelimit::name_of(policy.policy.unit()));
  auto const usual = std::to_string(policy.policy.quota()) + " " + unit;
  if (!policy.choice) {
    out += usual;
    return;
  }
  auto const& choice = *policy.choice;
  if (choice.by.kind == ratelimit::partition_source_kind::attribute) {
    out += "As many " + unit + " as were agreed on, at most " + std::to_string(choice.max) +
           "; else " + usual;
    return;
  }
  for (auto const& each : choice.plans) {
    append_html(out, each.plan);
    out += ": " + std::to_string(each.quota) + " " + unit + "; ";
  }
  out += "all others: " + usual;
}

auto what_counts(policy_config const& policy) -> std::string {
  std::string out;
  switch (policy.policy.unit()) {
    case ratelimit::quota_unit::content_bytes:
      out = "The bodies of requests and responses count, in bytes.";
      break;
    case ratelimit::quota_unit::concurrent_requests:
      return "A request counts until its response has ended.";
    default: out = "Requests count with what they cost.";
  }
  return out + (policy.count == counted::successful
                    ? " A request whose response has a status from 400 on costs nothing."
                    : " All of them count, whatever the status of the response.");
}

}  // namespace

void append_quota_choice(json::writer& out, quota_choice const& choice, std::int64_t otherwise) {
  out.begin_object("quotas").member("by", to_string(choice.by)).member("default", otherwise);
  if (choice.by.kind == ratelimit::partition_source_kind::attribute) {
    out.member("max", choice.max);
  } else {
    out.begin_object("plans");
    for (auto const& each : choice.plans) {
      out.member(each.plan, each.quota);
    }
    out.end_object();
  }
  out.end_object();
}

void append_policy_members(json::writer& out, policy_config const& policy) {
  out.member("name", policy.name).member("quota", policy.policy.quota());
  if (policy.choice) {
    append_quota_choice(out, *policy.choice, policy.policy.quota());
  }
  out.member("unit", ratelimit::name_of(policy.policy.unit()));
  if (has_window(policy)) {
    out.member("window", policy.policy.window().count())
        .member("algorithm", name_of(policy.policy.algorithm()));
    if (policy.calendar) {
      out.member("calendar", ratelimit::name_of(policy.calendar->unit))
          .member("time-zone", policy.calendar->zone_name);
    }
  }
  out.member("enforced", !policy.shadow)
      .member_raw("partition", ratelimit::describe_as_json(policy.partition))
      .member("count", policy.count == counted::successful ? "successful" : "all");
  if (has_window(policy) && policy.policy.algorithm() == ratelimit::algorithm::gcra) {
    out.member("burst", policy.policy.burst());
  }
}

auto describe_as_json(config const& settings) -> std::string {
  std::string text;
  json::writer out(text);
  out.begin_object().begin_array("policies");
  for (auto const& policy : settings.policies) {
    out.begin_object();
    append_policy_members(out, policy);
    out.end_object();
  }
  out.end_array();
  append_costs_as_json(out, settings);
  if (uses_keys(settings)) {
    append_keys_as_json(out, settings);
  }
  out.end_object();
  return text + "\n";
}

auto describe_as_html(config const& settings) -> std::string {
  std::string out =
      "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>Limits of this "
      "API</title>\n"
      "<style>body{font:16px/1.5 sans-serif;max-width:46em;margin:2em auto;padding:0 "
      "1em}@media(prefers-color-scheme:dark){body{background:#111;color:#eee}}</style>\n"
      "<h1>Limits of this API</h1>\n";
  for (auto const& policy : settings.policies) {
    if (policy.shadow) {
      continue;
    }
    out += "<h2>";
    append_html(out, policy.name);
    out += "</h2>\n<p>";
    append_quota_as_html(out, policy);
    if (has_window(policy)) {
      out += policy.calendar
                 ? " in each " + std::string(ratelimit::name_of(policy.calendar->unit)) +
                       " of the calendar of " + policy.calendar->zone_name + " ("
                 : " in " + std::to_string(policy.policy.window().count()) + " seconds (";
      out += name_of(policy.policy.algorithm());
      out += ")";
    }
    out += ". " + what_counts(policy);
    if (has_window(policy)) {
      out += " " + distribution_of(policy);
    }
    out += "</p>\n<p>";
    append_html(out, ratelimit::describe(policy.partition));
    out += "</p>\n";
  }
  append_costs_as_html(out, settings);
  if (uses_keys(settings)) {
    append_keys_as_html(out, settings);
  }
  return out + "</html>\n";
}

}  // namespace tidegate::gateway
