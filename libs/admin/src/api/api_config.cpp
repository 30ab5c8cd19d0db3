// SPDX-License-Identifier: Apache-2.0
#include "api/api_config.hpp"

#include <tidegate/http/problem.hpp>
#include <tidegate/json/string.hpp>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tidegate::gateway {

namespace {

constexpr std::string_view config_path = "/api/v1/config";
constexpr std::string_view reload_path = "/api/v1/config/reload";
constexpr std::string_view json_type = "application/json";

void append_member(std::string& out, std::string_view name,
                   std::optional<std::string> const& text) {
  out.append("\"").append(name).append("\":");
  if (text) {
    json::append_string(out, *text);
  } else {
    out.append("null");
  }
}

[[nodiscard]] auto options_json(config const& settings) -> std::string {
  std::string out = "{\"options\":[";
  for (auto const& each : settings.effective) {
    out.append(out.ends_with('[') ? "{" : ",{");
    append_member(out, "path", each.path);
    out.append(",");
    append_member(out, "value", each.value);
    out.append(",");
    append_member(out, "origin", each.origin);
    out.append("}");
  }
  bool const is_cut = settings.effective.size() >= effective_options_max;
  out.append("],\"truncated\":").append(is_cut ? "true" : "false").append("}\n");
  return out;
}

void append_changes(std::string& out, std::vector<config_change> const& changes) {
  out.append("\"changes\":[");
  for (auto const& each : changes) {
    out.append(out.ends_with('[') ? "{" : ",{");
    append_member(out, "path", each.path);
    out.append(",");
    append_member(out, "from", each.from);
    out.append(",");
    append_member(out, "to", each.to);
    out.append(",\"takes-effect\":").append(each.at_start ? "\"on restart\"}" : "\"on reload\"}");
  }
  out.append("]");
}

/// What a reload would do.
[[nodiscard]] auto foreseen(reload_outcome const& outcome) -> admin_answer {
  std::string out = "{\"possible\":";
  if (outcome) {
    out.append("true,");
    append_changes(out, *outcome);
    out.append("}\n");
    return {200, json_type, std::move(out)};
  }
  out.append("false,\"faults\":[");
  for (auto const& fault : outcome.error().faults) {
    out.append(out.ends_with('[') ? "{" : ",{");
    append_member(
        out, "place",
        fault.file + ":" + std::to_string(fault.line) + ":" + std::to_string(fault.column));
    out.append(",");
    append_member(out, "message", fault.message);
    out.append("}");
  }
  out.append("],");
  append_member(
      out, "reason",
      outcome.error().reason.empty() ? std::nullopt : std::optional(outcome.error().reason));
  out.append("}\n");
  return {200, json_type, std::move(out)};
}

/// What a reload did.
[[nodiscard]] auto done(reload_outcome const& outcome) -> admin_answer {
  if (outcome) {
    std::string out = "{";
    append_changes(out, *outcome);
    out.append("}\n");
    return {200, json_type, std::move(out)};
  }
  auto const& refusal = outcome.error();
  std::vector<std::string> faults;
  for (auto const& fault : refusal.faults) {
    faults.push_back(to_string(fault));
  }
  auto const detail = "The configuration was not taken over: " +
                      (refusal.reason.empty() ? std::string("it has faults") : refusal.reason) +
                      ".";
  std::string out;
  {
    http::problem_writer writer(
        out, {.title = "Unprocessable Content", .status = 422, .detail = detail});
    writer.extension("faults", faults);
  }
  return {422, http::problem_json, std::move(out)};
}

}  // namespace

void answer_config(engine::loop& on, config const& settings, config_reloader& reloader,
                   admin_request const& request,
                   std::move_only_function<void(admin_answer)> reply) {
  bool const is_get = request.method == wire::method::get || request.method == wire::method::head;
  bool const may_post = request.path == reload_path;
  if (!is_get && !(may_post && request.method == wire::method::post)) {
    reply(method_not_allowed(may_post ? "GET, HEAD, POST" : "GET, HEAD"));
    return;
  }
  if (request.path == config_path) {
    reply({200, json_type, options_json(settings)});
    return;
  }
  auto const to = std::make_shared<std::move_only_function<void(admin_answer)>>(std::move(reply));
  bool const is_asked =
      reloader.ask(on, is_get ? reload_mode::preview : reload_mode::apply,
                   [to](reload_mode mode, reload_outcome const& outcome) {
                     (*to)(mode == reload_mode::preview ? foreseen(outcome) : done(outcome));
                   });
  if (!is_asked) {
    (*to)(admin_problem(503, "As many ask for a reload as may; try again later."));
  }
}

}  // namespace tidegate::gateway
