// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace CLI {
class App;
}

namespace tidegate::app {

/// Adds `tidegate top`, which sets `status` when it has run.
void add_top_command(CLI::App& app, int& status);

}  // namespace tidegate::app
