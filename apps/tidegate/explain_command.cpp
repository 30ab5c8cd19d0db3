// SPDX-License-Identifier: Apache-2.0
#include "commands.hpp"

#include "terminal.hpp"

#include <tidegate/explain.hpp>

#include <CLI/CLI.hpp>

#include <chrono>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

namespace tidegate::app {

namespace {

/// More than any header section there is.
constexpr std::size_t input_octets_max = std::size_t{1} << 20;

struct explain_settings {
  std::vector<std::string> lines;
  bool json = false;
};

/// What is on standard input, or nothing when it is too much.
[[nodiscard]] auto read_input() -> std::string {
  std::string text(input_octets_max + 1, '\0');
  std::cin.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(std::cin.gcount()));
  if (text.size() > input_octets_max) {
    throw CLI::ValidationError("-",
                               "standard input has more than 1 MiB, which no header section has");
  }
  return text;
}

auto explain(explain_settings const& settings) -> int {
  std::string input;
  explain::header_text message{};
  for (auto const& line : settings.lines) {
    if (line == "-") {
      if (settings.lines.size() > 1) {
        throw CLI::ValidationError("-",
                                   "headers come from standard input or from the command line");
      }
      input = read_input();
      message = explain::read_header_text(input);
    } else if (auto const field = explain::parse_field_line(line)) {
      message.fields.push_back(*field);
    } else {
      throw CLI::ValidationError("'" + line + "'", "is not of the form 'NAME: VALUE'");
    }
  }
  auto const now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  auto const findings =
      explain::explain_fields({.fields = message.fields, .status = message.status}, now);
  if (settings.json) {
    std::cout << explain::to_json(findings);
  } else if (findings.empty()) {
    std::cout << "None of these headers is about quotas, waiting or idempotency keys.\n";
  } else {
    std::cout << explain::to_text(findings, wanted_colours());
  }
  return explain::count(findings, explain::severity::error) > 0 ||
                 explain::count(findings, explain::severity::warning) > 0
             ? exit_failure
             : exit_success;
}

}  // namespace

void add_explain_command(CLI::App& app, std::vector<std::string> const& operands, int& status) {
  auto* const command = app.add_subcommand(
      "explain", "Say in words what headers about quotas, waiting and idempotency keys mean");
  auto const settings = std::make_shared<explain_settings>();
  command->add_option(
      "HEADER", settings->lines,
      "Such as 'Retry-After: 120'; -: header lines from standard input, as curl -I prints them");
  command->add_flag("--json", settings->json, "One JSON object");
  command->footer(
      R"(Knows RateLimit and RateLimit-Policy (draft-09 and draft-07), Retry-After,
X-RateLimit-* and its relatives (GitHub, OpenAI, Discord), what Anthropic,
Shopify and Stripe send, and Idempotency-Key. Headers that are given together
are explained together.

Examples:
  tidegate explain 'RateLimit: "a";r=38;t=12' 'RateLimit-Policy: "a";q=100;w=60'
  curl -sI https://api.example.com/ | tidegate explain -

Exit status: 0 nothing is wrong with them; 1 an error or a warning was found;
2 the command line is wrong.)");
  command->callback([settings, &operands, &status] {
    settings->lines.insert(settings->lines.end(), operands.begin(), operands.end());
    if (settings->lines.empty()) {
      throw CLI::RequiredError("HEADER");
    }
    status = explain(*settings);
  });
}

}  // namespace tidegate::app
