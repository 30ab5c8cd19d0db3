// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace tidegate::gateway {

/// 128 unpredictable bits in hexadecimal. Empty when the system gives no random numbers.
[[nodiscard]] auto random_hex() -> std::string;

}  // namespace tidegate::gateway
