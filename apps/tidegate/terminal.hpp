// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/explain/finding.hpp>

namespace tidegate::app {

/// Whether a terminal is there that may show colours, at standard output when nothing is said:
/// NO_COLOR is not set, TERM is not "dumb".
[[nodiscard]] auto wanted_colours(int descriptor = 1) -> explain::colours;

}  // namespace tidegate::app
