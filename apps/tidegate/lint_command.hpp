// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace CLI {
class App;
}

namespace tidegate::app {

/// Adds `tidegate lint`, which sets `status` when it has run.
void add_lint_command(CLI::App& app, int& status);

}  // namespace tidegate::app
