// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace CLI {
class App;
}

namespace tidegate::app {

/// Adds `tidegate check` and `tidegate schema`; each sets `status` when it has run.
void add_config_commands(CLI::App& app, int& status);

}  // namespace tidegate::app
