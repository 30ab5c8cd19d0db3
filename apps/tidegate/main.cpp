// SPDX-License-Identifier: Apache-2.0
//
// The one binary: takes the command line apart and hands over to a subcommand. It wires; it does
// not decide.
#include "commands.hpp"
#include "tidegate_version.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <iostream>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

/// How many letters have to be put in, left out or changed.
auto distance(std::string_view a, std::string_view b) -> std::size_t {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    auto before = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      auto const changed = before + (a[i - 1] == b[j - 1] ? 0U : 1U);
      before = std::exchange(row[j], std::min({row[j] + 1, row[j - 1] + 1, changed}));
    }
  }
  return row.back();
}

/// The message for a first word that is not a command.
auto unknown_command(CLI::App const& app, std::string const& word) -> std::string {
  std::string nearest;
  std::size_t fewest = 3;  // further away it is not meant
  std::string all;
  for (auto const* const each : app.get_subcommands([](auto const*) { return true; })) {
    auto const& name = each->get_name();
    all += (all.empty() ? "" : ", ") + name;
    if (auto const so_far = distance(word, name); so_far < fewest) {
      fewest = so_far;
      nearest = name;
    }
  }
  return "error: unknown command \"" + word + "\"; " +
         (nearest.empty() ? "" : "did you mean \"" + nearest + "\"? ") + "Commands: " + all + "\n";
}

/// `help`, `help COMMAND` and `version` are taken for the options that they stand for.
void take_words_for_options(std::vector<std::string>& arguments) {
  if (arguments.size() < 2) {
    return;
  }
  if (arguments[1] == "version") {
    arguments[1] = "--version";
  } else if (arguments[1] == "help") {
    arguments.erase(arguments.begin() + 1);
    arguments.emplace_back("--help");
  }
}

}  // namespace

auto main(int argc, char** argv) -> int {
  using namespace tidegate::app;

  CLI::App app("Tidegate makes HTTP APIs well behaved: rate limits, idempotency, SCIM.",
               "tidegate");
  app.set_version_flag("-v,--version", "tidegate " TIDEGATE_VERSION " (" TIDEGATE_COMMIT ")");
  app.require_subcommand(0, 1);
  app.footer("Run 'tidegate help COMMAND' for what a command takes.");

  // What stands after "--" is for the subcommand as it is, even if it looks like an option.
  auto const arguments = std::span(argv, static_cast<std::size_t>(argc));
  auto const dashes = std::find(arguments.begin(), arguments.end(), std::string_view("--"));
  auto options = std::vector<std::string>(arguments.begin(), dashes);
  take_words_for_options(options);
  auto const operands = dashes == arguments.end()
                            ? std::vector<std::string>()
                            : std::vector<std::string>(dashes + 1, arguments.end());

  int status = exit_success;
  add_serve_command(app, {TIDEGATE_VERSION, TIDEGATE_COMMIT}, status);
  add_config_commands(app, status);
  add_sf_command(app, operands, status);
  add_explain_command(app, operands, status);
  add_lint_command(app, status);
  add_top_command(app, status);
  add_call_command(app, status);
  add_scim_command(app, status);

  auto const is_second_word = [&](CLI::App const* each) {
    return options.size() > 1 && each->get_name() == options[1];
  };
  auto const commands = app.get_subcommands([](CLI::App const*) { return true; });
  if (options.size() > 1 && !options[1].starts_with('-') &&
      std::ranges::none_of(commands, is_second_word)) {
    std::cerr << unknown_command(app, options[1]);
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
