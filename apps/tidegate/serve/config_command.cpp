// SPDX-License-Identifier: Apache-2.0
#include "commands.hpp"

#include "serve/config_file.hpp"
#include "serve/shown_fault.hpp"
#include "serve/stores.hpp"
#include "terminal.hpp"

#include <tidegate/config/config.hpp>
#include <tidegate/gateway/server.hpp>
#include <tidegate/json/writer.hpp>

#include <CLI/CLI.hpp>

#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tidegate::app {

namespace {

/// All that is wrong with what the configuration names outside of itself.
auto faults_of_files(gateway::config const& settings) -> std::vector<gateway::config_fault> {
  auto faults = gateway::check_files(settings);
  if (auto const state = check_state(settings); !state) {
    auto fault = gateway::place_of(settings, state.error().option);
    fault.message = state.error().message;
    faults.push_back(std::move(fault));
  }
  return faults;
}

struct check_settings {
  std::string file;
  bool without_files = false;
  bool json = false;
};

/// What is said of a configuration.
struct check_outcome {
  std::vector<gateway::config_fault> errors;
  std::vector<gateway::config_fault> warnings;
};

auto look_at(check_settings const& settings, std::string const& text) -> check_outcome {
  check_outcome out;
  auto made = gateway::parse_config(text, settings.file, sources_of_process(config_reading::first));
  if (!made) {
    out.errors = std::move(made.error());
  } else {
    out.warnings = made->warnings;
    if (auto const stores = check_stores(*made); !stores) {
      out.errors.push_back({settings.file, 1, 1, stores.error()});
    }
    if (!settings.without_files) {
      std::ranges::copy(faults_of_files(*made), std::back_inserter(out.errors));
      std::ranges::copy(gateway::warn_of_names(*made), std::back_inserter(out.warnings));
    }
  }
  for (auto* const faults : {&out.errors, &out.warnings}) {
    for (auto& fault : *faults) {
      fault.file = fault.file.empty() ? settings.file : fault.file;
      fault.message = made ? made->hidden.hide(std::move(fault.message)) : std::move(fault.message);
    }
  }
  return out;
}

void append_faults(json::writer& out, std::string_view name,
                   std::vector<gateway::config_fault> const& faults) {
  out.begin_array(name);
  for (auto const& fault : faults) {
    out.begin_object().member("file", fault.file).member("line", fault.line);
    out.member("column", fault.column).member("message", fault.message).end_object();
  }
  out.end_array();
}

auto in_json(std::string const& file_name, check_outcome const& found) -> std::string {
  std::string text;
  json::writer out(text);
  out.begin_object().member("file", file_name).member("ok", found.errors.empty());
  append_faults(out, "errors", found.errors);
  append_faults(out, "warnings", found.warnings);
  out.end_object();
  return text + "\n";
}

/// The texts of the files that have faults, for people at a terminal; empty for others.
class fault_sources {
 public:
  fault_sources(std::string const& main_file, std::string const& text) {
    texts_.emplace(main_file, text);
  }

  [[nodiscard]] auto of(gateway::config_fault const& fault) -> std::string_view {
    if (!is_terminal_) {
      return "";
    }
    auto const [known, fresh] = texts_.try_emplace(fault.file);
    if (fresh) {
      known->second = read_config_file(fault.file, config_reading::again).value_or("");
    }
    return known->second;
  }

 private:
  bool is_terminal_ = ::isatty(STDERR_FILENO) == 1;
  std::map<std::string, std::string> texts_;
};

auto check(check_settings const& settings) -> int {
  auto const text = read_config_file(settings.file, config_reading::first);
  if (!text && !settings.json) {
    std::cerr << "error: cannot read " << settings.file << ": " << text.error() << '\n';
    return exit_usage;
  }
  auto const found =
      text ? look_at(settings, *text)
           : check_outcome{
                 .errors = {{settings.file, 1, 1, "cannot read the file: " + text.error()}},
                 .warnings = {}};
  if (settings.json) {
    std::cout << in_json(settings.file, found);
    return found.errors.empty() ? exit_success : exit_usage;
  }
  // One line each for programs; people also see where.
  fault_sources sources(settings.file, *text);
  auto const colour = wanted_colours(STDERR_FILENO);
  for (auto const& warning : found.warnings) {
    auto shown = warning;
    shown.message = "warning: " + warning.message;
    std::cerr << shown_fault(shown, sources.of(shown), colour);
  }
  for (auto const& fault : found.errors) {
    std::cerr << shown_fault(fault, sources.of(fault), colour);
  }
  if (!found.errors.empty()) {
    return exit_usage;
  }
  std::cout << settings.file << ": ok\n";
  return exit_success;
}

}  // namespace

void add_config_commands(CLI::App& app, int& status) {
  auto* const check_command = app.add_subcommand("check", "Say what is wrong with a configuration");
  auto const settings = std::make_shared<check_settings>();
  check_command->add_option("-c,--config,FILE", settings->file, "The configuration file (YAML)")
      ->type_name("FILE");
  check_command->add_flag("--no-files", settings->without_files,
                          "Look at nothing but the file itself: neither at certificates, keys, "
                          "folders, secrets and schemas, nor whether names resolve; for CI");
  check_command->add_flag("--json", settings->json,
                          "One JSON object on standard output, and nothing else: file, ok, errors "
                          "and warnings, each of these with file, line, column and message");
  check_command->footer(
      R"(Each fault is one line: FILE:LINE:COLUMN: what is wrong and what is expected.
On a terminal the line of the file is below it. What is allowed and most likely
not meant is a warning.

Examples:
  tidegate check gateway.yaml
  tidegate check --no-files --json gateway.yaml | jq -r '.errors[].message'

Exit status: 0 nothing is wrong, warnings aside; 2 a fault was found.)");
  check_command->callback([settings, &status] {
    if (settings->file.empty()) {
      throw CLI::RequiredError("FILE");
    }
    status = check(*settings);
  });

  auto* const schema_command =
      app.add_subcommand("schema", "Print the JSON Schema of the configuration, for editors");
  auto const markdown = std::make_shared<bool>(false);
  schema_command->add_flag("--markdown", *markdown, "Print the reference in Markdown instead");
  schema_command->footer(
      R"(Examples:
  tidegate schema > tidegate.schema.json

Editors with the YAML language server take it by the first line of a file:
  # yaml-language-server: $schema=tidegate.schema.json)");
  schema_command->callback([markdown] {
    std::cout << (*markdown ? gateway::config_reference() : gateway::config_json_schema());
  });
}

}  // namespace tidegate::app
