// SPDX-License-Identifier: Apache-2.0
#include "router.hpp"

#include "api/api_about.hpp"
#include "api/api_config.hpp"
#include "api/api_directory.hpp"
#include "api/api_history.hpp"
#include "api/api_idempotency.hpp"
#include "api/api_quotas.hpp"
#include "console.hpp"

#include <tidegate/config/values.hpp>

#include <algorithm>
#include <array>
#include <new>
#include <utility>

namespace tidegate::gateway {

namespace {

constexpr std::string_view plain_text = "text/plain; charset=utf-8";

[[nodiscard]] auto method_name(wire::method method) -> std::string_view {
  using enum wire::method;
  switch (method) {
    case get: return "GET";
    case head: return "HEAD";
    case post: return "POST";
    case delete_: return "DELETE";
    case patch: return "PATCH";
    default: return "";  // no endpoint has it
  }
}

/// Whether `allow`, as in `GET, HEAD`, names it.
[[nodiscard]] auto is_allowed(std::string_view allow, wire::method method) -> bool {
  auto const name = method_name(method);
  return !name.empty() && allow.contains(name);
}

/// Answers, and has it logged when it was a change.
[[nodiscard]] auto noted_reply(admin_exchange& exchange) -> admin_reply {
  return [words = change_in_words(exchange.request), note = std::move(exchange.note),
          reply = std::move(exchange.reply)](admin_answer answer) mutable {
    if (words) {
      note(*words, answer.status);
    }
    reply(std::move(answer));
  };
}

}  // namespace

auto change_in_words(admin_request const& request) -> std::optional<std::string> {
  bool const is_patch = request.method == wire::method::patch;
  bool const is_change =
      is_patch || request.method == wire::method::post || request.method == wire::method::delete_;
  if (!is_change || request.path.ends_with("/lookup")) {
    return std::nullopt;
  }
  auto words = std::string(method_name(request.method)) + " " + request.path;
  if (is_patch) {
    words += patch_in_words(request.content);
  } else if (request.path.ends_with("/resolve")) {  // other contents may have secrets
    words += " " + request.content;
  }
  return words;
}

/// One row of the table.
struct admin_router::route {
  enum class match : std::uint8_t { exact, below };  ///< `below`: the path itself, too

  std::string_view path;
  match matches;
  std::string_view allow;  ///< methods, as Allow names them; empty: the endpoint refuses others
  admin_role role;
  void (admin_router::*handler)(admin_exchange&);

  [[nodiscard]] auto has(std::string_view asked) const -> bool {
    return asked == path || (matches == match::below && asked.size() > path.size() &&
                             asked.starts_with(path) && asked[path.size()] == '/');
  }
};

/// The first row that has the path; null when none has.
auto admin_router::find(std::string_view path) -> route const* {
  using enum route::match;
  using enum admin_role;
  using self = admin_router;
  constexpr std::string_view reads = "GET, HEAD";
  static constexpr auto routes = std::to_array<route>({
      {"/", exact, reads, writer, &self::get_console},
      {"/metrics", exact, reads, writer, &self::get_metrics},
      {"/healthz", exact, reads, anyone, &self::get_health},
      {"/readyz", exact, reads, anyone, &self::get_readiness},
      {"/api/v1/about", exact, reads, writer, &self::get_about},
      {"/api/v1/history", exact, reads, writer, &self::get_history},
      {"/api/v1/events", exact, reads, writer, &self::get_events},
      {"/api/v1/policies", exact, reads, writer, &self::get_quotas},
      {"/api/v1/partitions", exact, reads, writer, &self::get_quotas},
      {"/api/v1/partitions/lookup", exact, "POST", reader, &self::use_partition},
      {"/api/v1/partitions/reset", exact, "POST", writer, &self::use_partition},
      {"/api/v1/partitions/quota", exact, "POST", writer, &self::use_partition},
      {"/api/v1/partitions/overrides", exact, "GET, HEAD, DELETE", writer, &self::use_partition},
      {"/api/v1/idempotency", exact, reads, writer, &self::use_keys},
      {"/api/v1/idempotency/lookup", exact, "POST", reader, &self::use_keys},
      {"/api/v1/idempotency/unknown", exact, reads, writer, &self::use_keys},
      {"/api/v1/idempotency", below, "", writer, &self::use_keys},
      {"/api/v1/directory", below, "", writer, &self::use_directory},
      {"/api/v1/config", exact, reads, writer, &self::use_config},
      {"/api/v1/config/reload", exact, "GET, HEAD, POST", writer, &self::use_config},
      {"/api/v1/session", exact, "GET, HEAD, POST, DELETE", reader, &self::use_session},
      {"/api/v1/explain", exact, "POST", reader, &self::explain},
      {"/api/v1/try", exact, "POST", writer, &self::try_request},
  });
  auto const* const found =
      std::ranges::find_if(routes, [&](route const& each) { return each.has(path); });
  return found == routes.end() ? nullptr : found;
}

admin_router::admin_router(control seen, admin_config const& settings, config_reloader& reloader,
                           program_facts const& about)
    : control_(std::move(seen)),
      access_(!is_local_address(settings.address)),
      reloader_(reloader),
      about_(about),
      partitions_(control_),
      tries_(control_),
      stores_(control_),
      sampler_(control_) {
  access_.use(settings.tokens);
}

auto admin_router::role_of(std::string_view path) -> admin_role {
  auto const* const found = find(path);
  return found == nullptr ? admin_role::writer : found->role;
}

void admin_router::answer(admin_exchange exchange) {
  auto const* const found = find(exchange.request.path);
  if (found == nullptr) {
    exchange.reply(admin_problem(404, "There is nothing at this path."));
  } else if (!found->allow.empty() && !is_allowed(found->allow, exchange.request.method)) {
    exchange.reply(method_not_allowed(found->allow));
  } else {
    (this->*found->handler)(exchange);
  }
}

void admin_router::note_out_of_memory() noexcept {
  ++out_of_memory_;
  try {
    control_.events()->write_limited(
        "admin out of memory", log_level::warning,
        "there was no memory for a request to the admin address; its connection was closed");
  } catch (std::bad_alloc const&) {  // not even for this line
  }
}

// ---- for people and machines that watch ----

auto admin_router::metrics() const -> std::string {
  std::string text;
  control_.append_metrics(text,
                          {.version = about_.version,
                           .commit = about_.commit,
                           .started = about_.started,
                           .last_reload_is_good = about_.last_reload_is_good.load(),
                           .last_good_reload = about_.last_good_reload.load(),
                           .reload_failures = about_.reload_failures.load(),
                           .out_of_memory = out_of_memory_},
                          stores_.figures());
  return text;
}

auto admin_router::history_from(std::size_t first) const -> std::string {
  return history_json(sampler_.history(), first,
                      {control_.loop.now(), std::chrono::system_clock::now()});
}

auto admin_router::figures() -> std::string const& {
  auto const now = control_.loop.now();
  if (figures_.empty() || now >= figures_at_ + event_interval / 2) {
    auto const& history = sampler_.history();
    auto const last = history.size() - std::min<std::size_t>(history.size(), 1);
    figures_ = console_figures(metrics(), history_from(last), std::chrono::system_clock::now());
    figures_at_ = now;
  }
  return figures_;
}

void admin_router::get_about(admin_exchange& exchange) {
  exchange.reply(admin_json(about_json(control_, about_)));
}

void admin_router::get_history(admin_exchange& exchange) {
  exchange.reply(answer_history(sampler_.history(), exchange.request,
                                {control_.loop.now(), std::chrono::system_clock::now()}));
}

void admin_router::get_console(admin_exchange& exchange) {
  auto const first = sampler_.history().first_after(control_.loop.now() - history_shown);
  exchange.reply(console_page(
      console_figures(metrics(), history_from(first), std::chrono::system_clock::now()),
      caller_json(exchange.caller), about_json(control_, about_)));
}

void admin_router::get_events(admin_exchange& exchange) {
  if (exchange.request.method != wire::method::head && streams_ >= streams_max) {
    exchange.reply(admin_problem(503, "Too many consoles are open."));
    return;
  }
  admin_answer events{200, "text/event-stream", {}};
  events.streams = true;
  exchange.reply(std::move(events));
}

void admin_router::get_metrics(admin_exchange& exchange) {
  exchange.reply({200, "text/plain; version=0.0.4; charset=utf-8", metrics()});
}

void admin_router::get_health(admin_exchange& exchange) {
  exchange.reply({200, plain_text, "ok\n"});
}

/// Other gateways have the same servers: to send requests there instead does not help, and would
/// take away routes that need no store. A store in a file is of this gateway alone.
void admin_router::get_readiness(admin_exchange& exchange) {
  bool is_ready = !control_.is_draining();
  std::string text = is_ready ? "" : "draining\n";
  for (auto const& store : stores_.figures()) {
    if (store.failing_since) {
      is_ready = is_ready && store.kind != "sqlite";
      text.append("the store fails: ").append(store.store).append(" (");
      text.append(store.kind).append(")\n");
    }
  }
  exchange.reply({is_ready ? 200 : 503, plain_text, is_ready ? "ready\n" + text : text});
}

void admin_router::get_quotas(admin_exchange& exchange) {
  exchange.reply(
      answer_quotas(control_, partitions_.shown(), exchange.request, control_.loop.now()));
}

void admin_router::explain(admin_exchange& exchange) {
  exchange.reply(explain_pasted(exchange.request.content, std::chrono::system_clock::now()));
}

// ---- what may change something ----

void admin_router::use_config(admin_exchange& exchange) {
  answer_config(control_.loop, control_.active->config, reloader_, exchange.request,
                noted_reply(exchange));
}

void admin_router::use_directory(admin_exchange& exchange) {
  answer_directory(control_.loop, *control_.active, control_.scim, exchange.request,
                   noted_reply(exchange));
}

void admin_router::use_keys(admin_exchange& exchange) {
  answer_idempotency(control_.loop, control_.keys, exchange.request, noted_reply(exchange));
}

void admin_router::use_partition(admin_exchange& exchange) {
  partitions_.answer(exchange.request, std::move(exchange.note), std::move(exchange.reply));
}

void admin_router::try_request(admin_exchange& exchange) {
  tries_.answer(exchange.request, std::move(exchange.note), std::move(exchange.reply));
}

void admin_router::use_session(admin_exchange& exchange) {
  auto answer = answer_session(access_, exchange.caller, exchange.cookie, exchange.request.method,
                               control_.loop.now());
  if (answer.status < 300) {
    noted_reply(exchange)(std::move(answer));
  } else {
    exchange.reply(std::move(answer));
  }
}

}  // namespace tidegate::gateway
