// SPDX-License-Identifier: Apache-2.0
#include "rules.hpp"

namespace tidegate::explain {

auto name_of(severity level) noexcept -> std::string_view {
  switch (level) {
    case severity::info: return "info";
    case severity::advice: return "advice";
    case severity::warning: return "warning";
    case severity::error: break;
  }
  return "error";
}

auto field_rules() noexcept -> std::span<rule const> {
  return rule_table;
}

}  // namespace tidegate::explain
