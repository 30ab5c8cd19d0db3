// SPDX-License-Identifier: Apache-2.0
#include "config_command.hpp"

#include "config_file.hpp"
#include "exit_status.hpp"
#include "stores.hpp"

#include <tidegate/gateway/config.hpp>
#include <tidegate/gateway/server.hpp>

#include <CLI/CLI.hpp>

#include <iostream>
#include <memory>
#include <string>

namespace tidegate::app {

namespace {

auto check(std::string const& file_name) -> int {
  auto const text = read_config_file(file_name, config_reading::first);
  if (!text) {
    std::cerr << "error: cannot read " << file_name << ": " << text.error() << '\n';
    return exit_usage;
  }
  auto const made = gateway::parse_config(*text, file_name);
  if (!made) {
    for (auto const& fault : made.error()) {
      std::cerr << to_string(fault) << '\n';
    }
    return exit_usage;
  }
  if (auto const schemas = gateway::check_schemas(*made); !schemas) {
    std::cerr << file_name << ":1:1: " << schemas.error() << '\n';
    return exit_usage;
  }
  if (auto const stores = check_stores(*made); !stores) {
    std::cerr << file_name << ":1:1: " << stores.error() << '\n';
    return exit_usage;
  }
  for (auto const& warning : made->warnings) {
    std::cerr << "warning: " << to_string(warning) << '\n';
  }
  std::cout << file_name << ": ok\n";
  return exit_success;
}

}  // namespace

void add_config_commands(CLI::App& app, int& status) {
  auto* const check_command = app.add_subcommand("check", "Say what is wrong with a configuration");
  auto const file_name = std::make_shared<std::string>();
  check_command->add_option("-c,--config,FILE", *file_name, "The file")->required();
  check_command->footer(
      "Each fault is one line: FILE:LINE:COLUMN: what is wrong and what is allowed. Exits with 2\n"
      "when there is one. What is allowed and hardly meant is a line that begins with warning:.");
  check_command->callback([file_name, &status] { status = check(*file_name); });

  auto* const schema_command =
      app.add_subcommand("schema", "Print the JSON Schema of the configuration, for editors");
  auto const markdown = std::make_shared<bool>(false);
  schema_command->add_flag("--markdown", *markdown, "Print the reference in Markdown instead");
  schema_command->callback([markdown] {
    std::cout << (*markdown ? gateway::config_reference() : gateway::config_json_schema());
  });
}

}  // namespace tidegate::app
