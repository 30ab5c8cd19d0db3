// SPDX-License-Identifier: Apache-2.0
#include "api/api_config.hpp"

#include <tidegate/http/problem.hpp>
#include <tidegate/json/writer.hpp>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tidegate::gateway {

namespace {

constexpr std::string_view config_path = "/api/v1/config";

[[nodiscard]] auto options_json(config const& settings) -> std::string {
  std::string text;
  json::writer out(text);
  out.begin_object().begin_array("options");
  for (auto const& each : settings.effective) {
    out.begin_object().member("path", each.path).member("value", each.value);
    out.member("origin", each.origin).end_object();
  }
  out.end_array().member("truncated", settings.effective.size() >= effective_options_max);
  out.end_object();
  return text;
}

void append_changes(json::writer& out, std::vector<config_change> const& changes) {
  out.begin_array("changes");
  for (auto const& each : changes) {
    out.begin_object().member("path", each.path).member("from", each.from).member("to", each.to);
    out.member("takes-effect", each.at_start ? "on restart" : "on reload").end_object();
  }
  out.end_array();
}

/// What a reload would do.
[[nodiscard]] auto foreseen(reload_outcome const& outcome) -> admin_answer {
  std::string text;
  json::writer out(text);
  out.begin_object().member("possible", outcome.has_value());
  if (outcome) {
    append_changes(out, *outcome);
  } else {
    auto const& [faults, reason] = outcome.error();
    out.begin_array("faults");
    for (auto const& [file, line, column, message] : faults) {
      auto const place = file + ":" + std::to_string(line) + ":" + std::to_string(column);
      out.begin_object().member("place", place).member("message", message).end_object();
    }
    out.end_array().member("reason", reason.empty() ? std::nullopt : std::optional(reason));
  }
  out.end_object();
  return admin_json(std::move(text));
}

/// What a reload did.
[[nodiscard]] auto done(reload_outcome const& outcome) -> admin_answer {
  if (outcome) {
    std::string text;
    json::writer out(text);
    append_changes(out.begin_object(), *outcome);
    out.end_object();
    return admin_json(std::move(text));
  }
  auto const& refusal = outcome.error();
  std::vector<std::string> faults;
  for (auto const& fault : refusal.faults) {
    faults.push_back(to_string(fault));
  }
  auto const detail = "The configuration was not applied: " +
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
                   admin_request const& request, admin_reply reply) {
  if (request.path == config_path) {
    reply(admin_json(options_json(settings)));
    return;
  }
  auto const to = std::make_shared<admin_reply>(std::move(reply));
  bool const is_asked = reloader.ask(
      on, request.method == wire::method::post ? reload_mode::apply : reload_mode::preview,
      [to](reload_mode mode, reload_outcome const& outcome) {
        (*to)(mode == reload_mode::preview ? foreseen(outcome) : done(outcome));
      });
  if (!is_asked) {
    (*to)(admin_problem(503, "Too many reloads are waiting; try again later."));
  }
}

}  // namespace tidegate::gateway
