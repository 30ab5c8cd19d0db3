// SPDX-License-Identifier: Apache-2.0
//
// The one binary: takes the command line apart and hands over to a subcommand. It wires; it does
// not decide.
#include "command_line.hpp"
#include "commands.hpp"
#include "tidegate_version.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <iostream>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace {

/// `help COMMAND` is `COMMAND --help`.
void take_help_for_an_option(std::vector<std::string>& arguments) {
  if (arguments.size() < 2 || arguments[1] != "help") {
    return;
  }
  bool const is_about_itself = arguments.size() == 3 && arguments[2].starts_with('-');
  if (!is_about_itself) {
    arguments.erase(arguments.begin() + 1);
    arguments.emplace_back("--help");
  }
}

/// `help` and `version`, for those who look for them among the commands.
void add_own_commands(CLI::App& app, std::string const& version) {
  auto* const help = app.add_subcommand("help", "Print what a command takes");
  auto const words = std::make_shared<std::vector<std::string>>();
  help->add_option("COMMAND", *words, "The command, such as call or scim export");
  help->callback([words] {});  // never run: see above
  auto* const print_version = app.add_subcommand("version", "Print the version");
  print_version->callback([version] { std::cout << version << '\n'; });
}

}  // namespace

auto main(int argc, char** argv) -> int {
  using namespace tidegate::app;

  auto const version = std::string("tidegate " TIDEGATE_VERSION " (" TIDEGATE_COMMIT ")");
  CLI::App app("Tidegate: rate limits, safe retries and SCIM in front of any HTTP API.",
               "tidegate");
  use_common_texts(app);
  app.set_version_flag("-v,--version", version, "Print the version");
  app.require_subcommand(0, 1);

  // What stands after "--" is for the subcommand as it is, even if it looks like an option.
  auto const arguments = std::span(argv, static_cast<std::size_t>(argc));
  auto const dashes = std::find(arguments.begin(), arguments.end(), std::string_view("--"));
  auto options = std::vector<std::string>(arguments.begin(), dashes);
  take_help_for_an_option(options);
  auto const operands = dashes == arguments.end()
                            ? std::vector<std::string>()
                            : std::vector<std::string>(dashes + 1, arguments.end());

  int status = exit_success;
  add_serve_command(app, {TIDEGATE_VERSION, TIDEGATE_COMMIT}, status);
  add_config_commands(app, status);
  add_top_command(app, status);
  add_explain_command(app, operands, status);
  add_lint_command(app, status);
  add_call_command(app, status);
  add_scim_command(app, status);
  add_sf_command(app, operands, status);
  add_own_commands(app, version);
  // Behind them, since commands inherit it.
  app.footer(R"(Examples:
  tidegate serve --upstream http://127.0.0.1:3000 --limit 100/m
  tidegate check gateway.yaml
  tidegate help call)");

  // Before all else, since `serv --help` is not about the program.
  auto const is_meant = [&](CLI::App const* each) { return each->get_name() == options[1]; };
  if (options.size() > 1 && !options[1].starts_with('-') &&
      std::ranges::none_of(app.get_subcommands([](CLI::App const*) { return true; }), is_meant)) {
    std::cerr << "error: " << unknown_command(app, options[1]) << '\n';
    return exit_usage;
  }
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
