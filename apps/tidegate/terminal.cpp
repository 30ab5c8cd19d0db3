// SPDX-License-Identifier: Apache-2.0
#include "terminal.hpp"

#include <unistd.h>

#include <cstdlib>
#include <string_view>

namespace tidegate::app {

auto wanted_colours(int descriptor) -> explain::colours {
  auto const* const no_colour = std::getenv("NO_COLOR");
  auto const* const terminal = std::getenv("TERM");
  bool const is_plain = (no_colour != nullptr && *no_colour != '\0') ||
                        (terminal != nullptr && std::string_view(terminal) == "dumb");
  return !is_plain && ::isatty(descriptor) == 1 ? explain::colours::on : explain::colours::off;
}

}  // namespace tidegate::app
