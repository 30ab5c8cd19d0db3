// SPDX-License-Identifier: Apache-2.0
#include "config_command.hpp"

#include "config_file.hpp"
#include "exit_status.hpp"
#include "stores.hpp"

#include <tidegate/gateway/config.hpp>
#include <tidegate/gateway/server.hpp>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <iostream>
#include <iterator>
#include <memory>
#include <string>
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

auto check(std::string const& file_name, bool with_files) -> int {
  auto const text = read_config_file(file_name, config_reading::first);
  if (!text) {
    std::cerr << "error: cannot read " << file_name << ": " << text.error() << '\n';
    return exit_usage;
  }
  auto const made = gateway::parse_config(*text, file_name);
  auto faults = made ? std::vector<gateway::config_fault>() : made.error();
  if (made) {
    for (auto const& warning : made->warnings) {
      auto shown = warning;
      shown.message = "warning: " + warning.message;
      std::cerr << to_string(shown) << '\n';
    }
    if (auto const stores = check_stores(*made); !stores) {
      faults.push_back({file_name, 1, 1, stores.error()});
    }
    if (with_files) {
      std::ranges::copy(faults_of_files(*made), std::back_inserter(faults));
    }
  }
  for (auto& fault : faults) {
    fault.file = fault.file.empty() ? file_name : fault.file;
    std::cerr << to_string(fault) << '\n';
  }
  if (!faults.empty()) {
    return exit_usage;
  }
  std::cout << file_name << ": ok\n";
  return exit_success;
}

}  // namespace

void add_config_commands(CLI::App& app, int& status) {
  auto* const check_command = app.add_subcommand("check", "Say what is wrong with a configuration");
  auto const file_name = std::make_shared<std::string>();
  check_command->add_option("-c,--config,FILE", *file_name, "The file")->required();
  auto const without_files = std::make_shared<bool>(false);
  check_command->add_flag("--no-files", *without_files,
                          "Look at nothing but the file itself: neither at certificates, keys, "
                          "folders, secrets and schemas, nor whether names resolve");
  check_command->footer(
      "Each fault is one line: FILE:LINE:COLUMN: what is wrong and what is allowed. Exits with 2\n"
      "when there is one. What is allowed and most likely not meant is a warning.");
  check_command->callback(
      [file_name, without_files, &status] { status = check(*file_name, !*without_files); });

  auto* const schema_command =
      app.add_subcommand("schema", "Print the JSON Schema of the configuration, for editors");
  auto const markdown = std::make_shared<bool>(false);
  schema_command->add_flag("--markdown", *markdown, "Print the reference in Markdown instead");
  schema_command->callback([markdown] {
    std::cout << (*markdown ? gateway::config_reference() : gateway::config_json_schema());
  });
}

}  // namespace tidegate::app
