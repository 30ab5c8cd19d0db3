// SPDX-License-Identifier: Apache-2.0
#include "describe.hpp"

#include <tidegate/http/json_string.hpp>
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

auto json_list(std::span<std::string const> texts) -> std::string {
  std::string out = "[";
  for (auto const& text : texts) {
    out += out.size() == 1 ? "" : ",";
    http::append_json_string(out, text);
  }
  return out + "]";
}

auto joined(std::span<std::string const> texts) -> std::string {
  std::string out;
  for (auto const& text : texts) {
    out += (out.empty() ? "" : ", ") + text;
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

void append_keys_as_json(std::string& out, config const& settings) {
  out += ",\"idempotency\":{\"routes\":[";
  auto const* between = "";
  for (auto const& route : settings.routes) {
    if (!route.idempotency) {
      continue;
    }
    auto const& keys = *route.idempotency;
    out += between;
    between = ",";
    out += "{\"route\":";
    http::append_json_string(out, route.name);
    out += std::string(",\"required\":") + (keys.required ? "true" : "false") +
           ",\"methods\":" + json_list(keys.methods) +
           ",\"scope\":" + json_list(names_of(keys.scope)) + ",\"key-format\":";
    http::append_json_string(out, idempotency::name_of(keys.key.format));
    out += ",\"key-length-max\":" + std::to_string(keys.key.length_max) +
           ",\"replayed-for\":" + std::to_string(keys.policy.ttl.count()) + ",\"remembered-for\":" +
           std::to_string((keys.policy.ttl + keys.policy.tombstone).count()) + "}";
  }
  out += "],\"errors\":[";
  between = "";
  for (auto const code : all_codes) {
    out += between;
    between = ",";
    out += "{\"code\":";
    http::append_json_string(out, idempotency::name_of(code));
    out += ",\"status\":" + std::to_string(idempotency::status_of(code)) + ",\"title\":";
    http::append_json_string(out, idempotency::title_of(code));
    out += "}";
  }
  out += "]}";
}

void append_keys_as_html(std::string& out, config const& settings) {
  out +=
      "<h1>Idempotency-Key</h1>\n<p>A request with a key can be sent again: it is carried out "
      "once, and "
      "the first answer is given again.</p>\n";
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
    out += ", and belongs to whoever has the same ";
    append_html(out, joined(names_of(keys.scope)));
    out += ". An answer is given again for " + std::to_string(keys.policy.ttl.count()) +
           " seconds; the key is remembered for " +
           std::to_string((keys.policy.ttl + keys.policy.tombstone).count()) + ".</p>\n";
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

}  // namespace

void append_policy_members(std::string& out, policy_config const& policy) {
  out += R"("name":)";
  http::append_json_string(out, policy.name);
  out += ",\"quota\":" + std::to_string(policy.policy.quota()) + ",\"unit\":";
  http::append_json_string(out, ratelimit::name_of(policy.policy.unit()));
  if (has_window(policy)) {
    out += ",\"window\":" + std::to_string(policy.policy.window().count()) + ",\"algorithm\":";
    http::append_json_string(out, name_of(policy.policy.algorithm()));
  }
  out += std::string(",\"enforced\":") + (policy.shadow ? "false" : "true") +
         ",\"partition\":" + ratelimit::describe_as_json(policy.partition);
}

auto describe_as_json(config const& settings) -> std::string {
  std::string out = R"({"policies":[)";
  auto const* between = "";
  for (auto const& policy : settings.policies) {
    out += between;
    between = ",";
    out += "{";
    append_policy_members(out, policy);
    out += "}";
  }
  out += "]";
  if (uses_keys(settings)) {
    append_keys_as_json(out, settings);
  }
  return out + "}\n";
}

auto describe_as_html(config const& settings) -> std::string {
  std::string out =
      "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>Limits of this "
      "API</title>\n"
      "<style>body{font:16px/1.5 sans-serif;max-width:46em;margin:2em auto;padding:0 1em}"
      "@media(prefers-color-scheme:dark){body{background:#111;color:#eee}}</style>\n"
      "<h1>Limits of this API</h1>\n";
  for (auto const& policy : settings.policies) {
    if (policy.shadow) {
      continue;
    }
    out += "<h2>";
    append_html(out, policy.name);
    out += "</h2>\n<p>" + std::to_string(policy.policy.quota()) + " ";
    out += ratelimit::name_of(policy.policy.unit());
    if (has_window(policy)) {
      out += " in " + std::to_string(policy.policy.window().count()) + " seconds (";
      out += name_of(policy.policy.algorithm());
      out += ")";
    }
    out += ".</p>\n<p>";
    append_html(out, ratelimit::describe(policy.partition));
    out += "</p>\n";
  }
  if (uses_keys(settings)) {
    append_keys_as_html(out, settings);
  }
  return out + "</html>\n";
}

}  // namespace tidegate::gateway
