// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace tidegate::app {

struct backup_settings {
  std::string config;  ///< the file that says where the directory is
  std::string from;    ///< or the directory itself
  std::string to;
};

/// Runs `tidegate scim backup` and returns its exit status.
[[nodiscard]] auto run_scim_backup(backup_settings const& settings) -> int;

}  // namespace tidegate::app
