// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace CLI {
class App;
}

namespace tidegate::app {

/// Adds `tidegate scim export` and `tidegate scim import`, which set `status` when they have run.
void add_scim_command(CLI::App& app, int& status);

}  // namespace tidegate::app
