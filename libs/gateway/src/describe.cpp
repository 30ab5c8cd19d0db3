// SPDX-License-Identifier: Apache-2.0
#include "describe.hpp"

#include <tidegate/http/json_string.hpp>
#include <tidegate/ratelimit/fields.hpp>

#include <string_view>

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

}  // namespace

auto describe_as_json(config const& settings) -> std::string {
  std::string out = R"({"policies":[)";
  auto const* between = "";
  for (auto const& policy : settings.policies) {
    out += between;
    between = ",";
    out += R"({"name":)";
    http::append_json_string(out, policy.name);
    out += ",\"quota\":" + std::to_string(policy.policy.quota()) + ",\"unit\":";
    http::append_json_string(out, ratelimit::name_of(policy.policy.unit()));
    if (has_window(policy)) {
      out += ",\"window\":" + std::to_string(policy.policy.window().count()) + ",\"algorithm\":";
      http::append_json_string(out, name_of(policy.policy.algorithm()));
    }
    out += std::string(",\"enforced\":") + (policy.shadow ? "false" : "true") +
           ",\"partition\":" + ratelimit::describe_as_json(policy.partition) + "}";
  }
  return out + "]}\n";
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
  return out + "</html>\n";
}

}  // namespace tidegate::gateway
