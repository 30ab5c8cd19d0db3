// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace tidegate::app {

/// What this program is, for metrics.
struct program_version {
  std::string version;
  std::string commit;
};

/// Adds `tidegate serve`; sets `status` when it has run.
void add_serve_command(CLI::App& app, program_version const& version, int& status);

}  // namespace tidegate::app
