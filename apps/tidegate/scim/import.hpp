// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "scim/settings.hpp"

namespace tidegate::app {

/// Runs `tidegate scim import` and returns its exit status.
///
/// FILE.import is the journal: a line that says what is imported, then one for each line of FILE
/// that is settled. The Idempotency-Key of a request is made of the journal's first line, the
/// number of its first line and its content, so what was under way when the program ended is sent
/// again as the same request.
[[nodiscard]] auto run_scim_import(import_settings const& settings) -> int;

}  // namespace tidegate::app
