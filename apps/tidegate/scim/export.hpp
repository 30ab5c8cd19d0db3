// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "scim/settings.hpp"

namespace tidegate::app {

/// Runs `tidegate scim export` and returns its exit status.
///
/// Resources go to FILE.partial, one line of JSON each. FILE.state has the place of the walk and
/// how much of FILE.partial belongs to it; it is written when that much is on the disk. When all is
/// there, FILE.partial becomes FILE, or FILE is made of it, and FILE.state goes.
[[nodiscard]] auto run_scim_export(export_settings const& settings) -> int;

}  // namespace tidegate::app
