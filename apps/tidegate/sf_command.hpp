// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace tidegate::app {

/// Adds `tidegate sf parse` and `tidegate sf format`; each sets `status` when it has run.
/// `operands` are the arguments that came after "--".
void add_sf_command(CLI::App& app, std::vector<std::string> const& operands, int& status);

}  // namespace tidegate::app
