// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/config/config.hpp>
#include <tidegate/explain/finding.hpp>

#include <string>
#include <string_view>

namespace tidegate::app {

/// A fault for people at a terminal: its line of the file `text` below it, and a mark under the
/// place. Only the message where the place is not in `text`.
///
///     gateway.yaml:3:5: unknown key "servce"; did you mean "service"? (expected ...)
///       3 |   - servce: echo
///         |     ^
[[nodiscard]] auto shown_fault(gateway::config_fault const& fault, std::string_view text,
                               explain::colours colour) -> std::string;

}  // namespace tidegate::app
