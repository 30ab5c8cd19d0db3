// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace CLI {
class App;
}

namespace tidegate::app {

/// Adds `tidegate call`, which sets `status` when it has run.
void add_call_command(CLI::App& app, int& status);

}  // namespace tidegate::app
