// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/explain/finding.hpp>

namespace tidegate::app {

/// Whether standard output is a terminal that may show colours: NO_COLOR is not set, TERM is not
/// "dumb".
[[nodiscard]] auto wanted_colours() -> explain::colours;

}  // namespace tidegate::app
