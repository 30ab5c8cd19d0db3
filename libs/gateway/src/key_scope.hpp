// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace tidegate::gateway {

/// Appends the value of one source of `idempotency.scope` to the text of a scope, with its length, which
/// keeps values apart.
inline void append_scope_value(std::string& scope, std::string_view value) {
  scope.append(std::to_string(value.size())).append(":").append(value);
}

}  // namespace tidegate::gateway
