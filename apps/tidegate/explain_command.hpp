// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace tidegate::app {

/// Adds `tidegate explain`, which sets `status` when it has run. `operands` are the arguments that
/// came after "--".
void add_explain_command(CLI::App& app, std::vector<std::string> const& operands, int& status);

}  // namespace tidegate::app
