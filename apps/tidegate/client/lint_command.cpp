// SPDX-License-Identifier: Apache-2.0
#include "commands.hpp"

#include "client/client_settings.hpp"
#include "command_line.hpp"
#include "terminal.hpp"

#include <tidegate/client/session.hpp>
#include <tidegate/idempotency/make_key.hpp>
#include <tidegate/lint.hpp>

#include <CLI/CLI.hpp>

#include <sys/random.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <future>
#include <iostream>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace tidegate::app {

namespace {

using namespace std::chrono_literals;

struct lint_settings {
  std::string url;
  std::vector<std::string> field_lines;
  std::string method;
  std::optional<std::string> data;
  std::string other_data;
  std::string ca_file;
  std::string fail_on = "warning";
  std::size_t requests = 3;
  bool write = false;
  bool require_key = false;
  bool scim = false;
  bool no_scim = false;
  bool verbose = false;
  bool json = false;
  bool rules = false;
};

[[nodiscard]] auto fresh_key() -> std::string {
  std::array<std::uint8_t, 10> randomness{};
  if (::getrandom(randomness.data(), randomness.size(), 0) !=
      static_cast<ssize_t>(randomness.size())) {
    throw std::runtime_error("cannot get random numbers from the system");
  }
  auto const now = std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
  return idempotency::make_key(now, randomness);
}

/// What the command line says about requests that change something.
void take_write(lint_settings const& settings, lint::probe_settings& wanted) {
  bool const is_safe = settings.method.empty() || settings.method == "GET" ||
                       settings.method == "HEAD" || settings.method == "OPTIONS";
  if (is_safe && !settings.method.empty() && (settings.data || settings.write)) {
    throw CLI::ValidationError("-X", settings.method + " changes nothing, so that it takes no key");
  }
  if (!settings.write && !settings.data && is_safe) {
    if (settings.require_key || !settings.other_data.empty()) {
      throw CLI::ValidationError("--require-key",
                                 "needs --write, which sends requests that change something");
    }
    return;
  }
  wanted.write_method = settings.method.empty() ? "POST" : settings.method;
  wanted.content = read_content("-d", settings.data.value_or("{}"));
  wanted.other_content = read_content("--other-data", settings.other_data);
  wanted.is_key_required = settings.require_key;
}

[[nodiscard]] auto take_settings(lint_settings const& settings) -> lint::probe_settings {
  lint::probe_settings wanted{
      .url = settings.url, .samples = settings.requests, .make_key = fresh_key};
  for (auto& [name, value] : fields_of(settings.field_lines)) {
    wanted.fields.push_back({std::move(name), std::move(value)});
  }
  wanted.scim = settings.scim      ? lint::scim_choice::always
                : settings.no_scim ? lint::scim_choice::never
                                   : lint::scim_choice::when_seen;
  take_write(settings, wanted);
  return wanted;
}

/// As the server answers, not as a polite client would have it: no retries and no pacing. A few
/// requests do no harm.
[[nodiscard]] auto session_options_of(lint_settings const& settings) -> client::session_options {
  client::session_options options;
  options.retries.retries_max = 0;
  options.retries.retry_after_max = 0s;
  options.attempt_time_max = 10s;
  options.time_max = 15s;
  options.response_body_octets_max = lint::content_octets_max;
  options.user_agent = "tidegate-lint";
  options.ca_file = settings.ca_file;
  return options;
}

[[nodiscard]] auto to_request(lint::planned_request const& planned, std::size_t number)
    -> client::request {
  client::request made{.method = planned.method, .url = planned.url};
  bool has_type = false;
  for (auto const& [name, value] : planned.fields) {
    made.fields.push_back({name, value});
    has_type = has_type || CLI::detail::to_lower(name) == "content-type";
  }
  made.body = planned.content;
  if (!made.body.empty() && !has_type) {
    made.fields.push_back({"Content-Type", "application/json"});
  }
  // A lane of its own: what a server says to one request does not hold the next one back.
  made.route = std::to_string(number);
  return made;
}

[[nodiscard]] auto to_exchange(lint::planned_request planned,
                               result<client::response, client::client_error> const& answer)
    -> lint::exchange {
  lint::exchange made{.request = std::move(planned)};
  made.received = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  if (!answer) {
    made.failure = to_string(answer.error());
    return made;
  }
  made.status = answer->status;
  made.content = answer->body;
  for (std::size_t i = 0; i < answer->fields.size(); ++i) {
    auto const line = answer->fields[i];
    made.fields.push_back({std::string(line.name), std::string(line.value)});
  }
  return made;
}

/// Sends what the prober asks for until it has seen enough.
void send_all(lint::prober& prober, client::session& session) {
  std::size_t number = 0;
  for (auto group = prober.next(); !group.empty(); group = prober.next()) {
    std::vector<std::future<result<client::response, client::client_error>>> answers;
    answers.reserve(group.size());
    for (auto const& planned : group) {
      answers.push_back(session.send(to_request(planned, ++number)));
    }
    for (std::size_t i = 0; i < group.size(); ++i) {
      prober.record(to_exchange(std::move(group[i]), answers[i].get()));
    }
  }
}

auto lint_url(lint_settings const& settings) -> int {
  lint::prober prober(take_settings(settings));
  auto session = client::session::open(session_options_of(settings));
  if (!session) {
    std::cerr << "error: " << to_string(session.error()) << '\n';
    return exit_failure;
  }
  send_all(prober, **session);
  auto const& exchanges = prober.exchanges();
  if (exchanges.front().status == 0) {
    std::cerr << "error: " << settings.url << ": " << exchanges.front().failure << '\n';
    return exit_failure;
  }
  auto const judgements = lint::judge(exchanges);
  if (settings.json) {
    std::cout << lint::to_json(settings.url, exchanges, judgements);
  } else {
    std::cout << lint::to_text(settings.url, exchanges, judgements,
                               settings.verbose ? lint::detail::every_rule : lint::detail::broken,
                               wanted_colours());
    for (auto const& each : exchanges) {
      if (each.status == 0) {
        std::cerr << "no answer: " << each.request.method << ' ' << each.request.url << ": "
                  << each.failure << '\n';
      }
    }
  }
  using explain::severity;
  bool is_wrong = lint::count_broken(judgements, severity::error) > 0;
  is_wrong = is_wrong ||
             (settings.fail_on != "error" && lint::count_broken(judgements, severity::warning) > 0);
  is_wrong = is_wrong ||
             (settings.fail_on == "advice" && lint::count_broken(judgements, severity::advice) > 0);
  return is_wrong ? exit_failure : exit_success;
}

}  // namespace

void add_lint_command(CLI::App& app, int& status) {
  auto* const command = app.add_subcommand(
      "lint", "Send a few requests and report how an API meets the specifications");
  auto const settings = std::make_shared<lint_settings>();
  command->add_option(
      "URL", settings->url,
      "With http:// or https://; without either: http for this machine, else https");
  add_field_option(*command, settings->field_lines);
  command
      ->add_option("--requests", settings->requests,
                   "GETs of the URL itself; they end with the first 429")
      ->check(number_within(1, 10'000))
      ->type_name("N")
      ->capture_default_str();
  command->add_flag("--write", settings->write,
                    "Try Idempotency-Key, too, with some POSTs that change something");
  command->add_option("-X,--request", settings->method, "Their method; implies --write")
      ->type_name("METHOD");
  command
      ->add_option("-d,--data", settings->data,
                   "Their body, @FILE reads a file; implies --write; {} when left out")
      ->type_name("BODY");
  command
      ->add_option("--other-data", settings->other_data,
                   "A body that asks for something else; made of -d when left out")
      ->type_name("BODY");
  command->add_flag("--require-key", settings->require_key,
                    "The API says that keys are required: a write without one has to get 400");
  auto* const scim =
      command->add_flag("--scim", settings->scim,
                        "URL is a SCIM server or one of its endpoints; seen by itself otherwise");
  command->add_flag("--no-scim", settings->no_scim, "Do not look for SCIM")->excludes(scim);
  add_ca_option(*command, settings->ca_file);
  command
      ->add_option("--fail-on", settings->fail_on,
                   "What makes the exit status 1, and what is worse")
      ->check(one_of({"error", "warning", "advice"}))
      ->type_name("LEVEL")
      ->capture_default_str();
  command->add_flag("-v,--verbose", settings->verbose, "Show the rules that hold, too");
  command->add_flag("--json", settings->json, "One JSON object, with every rule");
  command->add_flag("--rules", settings->rules,
                    "Print the list of rules, in Markdown, and send nothing");
  command->footer(
      R"(Sends GET requests only, unless --write, -X or -d is given: then up to seven
writes, some with the same Idempotency-Key.

Examples:
  tidegate lint https://api.example.com/v1/orders
  tidegate lint --requests 200 --fail-on advice 127.0.0.1:8080/v1/orders
  tidegate lint -d '{"amount": 5}' --require-key 127.0.0.1:8080/payments

Exit status: 0 nothing is wrong, advice aside; 1 an error or a warning was found
(or what --fail-on says), or there was no response; 2 the command line is
wrong.)");
  command->callback([settings, &status] {
    if (settings->rules) {
      std::cout << lint::rules_page();
      return;
    }
    if (settings->url.empty()) {
      throw CLI::RequiredError("URL");
    }
    settings->url = with_scheme(settings->url);
    status = lint_url(*settings);
  });
}

}  // namespace tidegate::app
