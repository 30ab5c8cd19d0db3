// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

/// The subcommands. Each of these functions adds one or two, which set `status` when they have run.
/// `operands` are the arguments that came after "--".
namespace tidegate::app {

// What every subcommand exits with.
inline constexpr int exit_success = 0;
inline constexpr int exit_failure = 1;        ///< the answer is no, or the work is not all done
inline constexpr int exit_usage = 2;          ///< the command line or the configuration is wrong
inline constexpr int exit_interrupted = 130;  ///< ended by Ctrl-C

/// What this program is, for metrics.
struct program_version {
  std::string version;
  std::string commit;
};

/// `tidegate serve`
void add_serve_command(CLI::App& app, program_version const& version, int& status);
/// `tidegate check` and `tidegate schema`
void add_config_commands(CLI::App& app, int& status);
/// `tidegate sf parse` and `tidegate sf format`
void add_sf_command(CLI::App& app, std::vector<std::string> const& operands, int& status);
/// `tidegate explain`
void add_explain_command(CLI::App& app, std::vector<std::string> const& operands, int& status);
/// `tidegate lint`
void add_lint_command(CLI::App& app, int& status);
/// `tidegate call`
void add_call_command(CLI::App& app, int& status);
/// `tidegate scim export`, `tidegate scim import` and `tidegate scim backup`
void add_scim_command(CLI::App& app, int& status);
/// `tidegate top`
void add_top_command(CLI::App& app, int& status);

}  // namespace tidegate::app
