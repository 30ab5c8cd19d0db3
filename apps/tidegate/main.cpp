// SPDX-License-Identifier: Apache-2.0
//
// The one binary: takes the command line apart and hands over to a subcommand. It wires; it does not
// decide.
#include "call_command.hpp"
#include "config_command.hpp"
#include "exit_status.hpp"
#include "explain_command.hpp"
#include "lint_command.hpp"
#include "scim_command.hpp"
#include "serve_command.hpp"
#include "sf_command.hpp"
#include "tidegate_version.hpp"
#include "top_command.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <iostream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

auto main(int argc, char** argv) -> int {
  using namespace tidegate::app;

  CLI::App app("Tidegate makes HTTP APIs well behaved: rate limits, idempotency, SCIM.",
               "tidegate");
  app.set_version_flag("--version", "tidegate " TIDEGATE_VERSION " (" TIDEGATE_COMMIT ")");
  app.require_subcommand(0, 1);
  app.footer("Run 'tidegate COMMAND --help' for what a command takes.");

  // What stands after "--" is for the subcommand as it is, even if it looks like an option.
  auto const arguments = std::span(argv, static_cast<std::size_t>(argc));
  auto const dashes = std::find(arguments.begin(), arguments.end(), std::string_view("--"));
  auto const options = std::vector<std::string>(arguments.begin(), dashes);
  auto const operands = dashes == arguments.end()
                            ? std::vector<std::string>()
                            : std::vector<std::string>(dashes + 1, arguments.end());

  int status = exit_success;
  add_serve_command(app, status);
  add_config_commands(app, status);
  add_sf_command(app, operands, status);
  add_explain_command(app, operands, status);
  add_lint_command(app, status);
  add_top_command(app, status);
  add_call_command(app, status);
  add_scim_command(app, status);

  try {
    app.parse(std::vector<std::string>(options.rbegin(), options.rend() - 1));
    if (app.get_subcommands().empty()) {
      std::cerr << app.help();
      return exit_usage;
    }
  } catch (CLI::ParseError const& error) {
    auto const shown = app.exit(error);  // prints help, the version or what was wrong
    return shown == 0 ? exit_success : exit_usage;
  }
  if (!std::cout.flush()) {
    std::cerr << "error: cannot write to standard output\n";
    return exit_failure;
  }
  return status;
}
